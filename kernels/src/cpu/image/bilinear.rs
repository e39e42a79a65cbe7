//! Bilinear interpolation.
//!
//! It goes along rows first and then between two rows, each time from the low number by a share of
//! the difference, as in TensorFlow's kernel (`resize_bilinear_op.cc`): numbers are the same to the
//! last bit, and so are bytes made of them.

use super::resize::{ImageSize, Resize};
use crate::{
    device::OpCall,
    error::Result,
    plan::interpolation::{Neighbours, neighbours, scalings},
    simd::{Vectorized, vectorize},
    threads::Threads,
};

/// Lines of the output that a thread computes one after the other, as neighbours share rows.
const LINES: usize = 8;

pub(in crate::cpu) struct BilinearResize {
    size: ImageSize,
    rows: Vec<Neighbours>,
    columns: Vec<Neighbours>,
    /// Whether images keep their size, and are copied.
    same: bool,
}

impl BilinearResize {
    /// The interpolation that a call asks for.
    pub(in crate::cpu) fn new(call: &OpCall<'_>) -> Result<BilinearResize> {
        let shape = call.output_shape(0)?;
        let [rows, columns] = scalings(call, call.shape(0), &shape)?;
        let (rows, columns) = (neighbours(rows)?, neighbours(columns)?);
        let same = shape == *call.shape(0);
        Ok(BilinearResize { size: ImageSize::new(call.shape(0)), rows, columns, same })
    }

    fn along_row(&self, row: &[f32], out: &mut [f32]) {
        let channels = self.size.channels;
        let pixel = |column: usize| &row[column * channels..][..channels];
        for (between, out) in self.columns.iter().zip(out.chunks_mut(channels)) {
            let (low, high) = (pixel(between.low), pixel(between.high));
            for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
                *out = low + (high - low) * between.part;
            }
        }
    }

    /// Interpolates integers by shares with so many bits, as `quantized_resize_bilinear_op.cc` does;
    /// `of` makes one of an integer in its range.
    pub(in crate::cpu) fn apply_fixed<T: Copy + Into<i64> + Send + Sync>(
        &self,
        threads: &Threads,
        x: &[T],
        out: &mut [T],
        bits: u32,
        of: fn(i64) -> T,
    ) {
        let channels = self.size.channels;
        let (row, out_row) = (self.size.row(), self.columns.len() * channels);
        if out.is_empty() {
            return;
        }
        let one = 1i64 << bits;
        let share = |between: &Neighbours| (between.part * one as f32) as i64;
        threads.for_each_piece(out, out_row, |start, out| {
            let line = start / out_row;
            let first = line / self.rows.len() * self.size.height;
            let between = &self.rows[line % self.rows.len()];
            let [above, below] =
                [between.low, between.high].map(|number| &x[(first + number) * row..][..row]);
            let down = share(between);
            for (column, out) in self.columns.iter().zip(out.chunks_mut(channels)) {
                let across = share(column);
                for (channel, out) in out.iter_mut().enumerate() {
                    let along = |line: &[T]| -> i64 {
                        let low: i64 = line[column.low * channels + channel].into();
                        let high: i64 = line[column.high * channels + channel].into();
                        low * one + (high - low) * across
                    };
                    let (above, below) = (along(above), along(below));
                    let sum = above + (below - above) / one * down;
                    *out = of((sum + one / 2) / one);
                }
            }
        });
    }
}

/// An interpolated row, with its number among those of all images.
struct Line {
    number: Option<usize>,
    values: Vec<f32>,
}

/// Numbers at a share of the way between two others.
struct Between<'a> {
    out: &'a mut [f32],
    low: &'a [f32],
    high: &'a [f32],
    part: f32,
}

impl Vectorized for Between<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((out, low), high) in self.out.iter_mut().zip(self.low).zip(self.high) {
            *out = low + (high - low) * self.part;
        }
    }
}

impl Resize for BilinearResize {
    fn apply(&self, threads: &Threads, x: &[f32], out: &mut [f32]) {
        if self.same {
            out.copy_from_slice(x);
            return;
        }
        let (row, out_row) = (self.size.row(), self.columns.len() * self.size.channels);
        if out.is_empty() {
            return;
        }
        threads.for_each_piece(out, out_row * LINES, |start, out| {
            let mut lines = [(); 2].map(|()| Line { number: None, values: vec![0.0; out_row] });
            for (line, out) in (start / out_row..).zip(out.chunks_mut(out_row)) {
                let between = self.rows[line % self.rows.len()];
                let first = line / self.rows.len() * self.size.height;
                let numbers = [first + between.low, first + between.high];
                if lines[1].number == Some(numbers[0]) {
                    lines.swap(0, 1);
                }
                for (line, number) in lines.iter_mut().zip(numbers) {
                    if line.number != Some(number) {
                        self.along_row(&x[number * row..][..row], &mut line.values);
                        line.number = Some(number);
                    }
                }
                let [low, high] = [0, 1].map(|at| lines[at].values.as_slice());
                vectorize(Between { out, low, high, part: between.part });
            }
        });
    }
}
