//! `ResizeArea`: the mean over the area that a pixel covers.
//!
//! Sums go along rows first and then over rows, and are divided at the end, as in TensorFlow's kernel
//! (`resize_area_op.cc`): numbers are the same to the last bit, and so are bytes made of them.

use super::resize::{AddMultiple, ImageSize, Resize, along_row, for_each_line};
use crate::{
    device::OpCall,
    error::Result,
    plan::interpolation::{InterpolationWeights, covered, scalings},
    simd::vectorize,
    threads::Threads,
};

pub(super) struct AreaResize {
    size: ImageSize,
    rows: InterpolationWeights,
    columns: InterpolationWeights,
    /// Reciprocal of the area that a pixel covers.
    scale: f32,
}

impl AreaResize {
    pub(super) fn new(call: &OpCall<'_>) -> Result<AreaResize> {
        let [rows, columns] = scalings(call, call.shape(0), &call.output_shape(0)?)?;
        let spans = [rows.scale(), columns.scale()].into_iter().filter(|&span| span != 0.0);
        let scale = 1.0 / spans.product::<f32>();
        let (rows, columns) = (covered(rows, 1.0)?, covered(columns, 1.0)?);
        Ok(AreaResize { size: ImageSize::new(call.shape(0)), rows, columns, scale })
    }
}

impl Resize for AreaResize {
    fn apply(&self, threads: &Threads, x: &[f32], out: &mut [f32]) {
        let AreaResize { size, rows, columns, scale } = self;
        let (row, out_row) = (size.row(), columns.len() * size.channels);
        for_each_line(threads, *size, rows, out_row, x, out, |taps, image, out| {
            let mut sums = vec![0.0; out_row];
            out.fill(0.0);
            for &(position, weight) in taps {
                along_row(columns, size.channels, &image[position * row..][..row], &mut sums);
                vectorize(AddMultiple(out, weight, &sums));
            }
            out.iter_mut().for_each(|sum| *sum *= scale);
        });
    }
}
