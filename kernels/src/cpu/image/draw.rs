//! The edges of boxes: `DrawBoundingBoxes`, `DrawBoundingBoxesV2`.

use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Shape};
use half::f16;
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("DrawBoundingBoxes", build), ("DrawBoundingBoxesV2", build)];

/// The colours that TensorFlow draws with where none are passed.
const COLOURS: [[f32; 4]; 10] = [
    [1.0, 1.0, 0.0, 1.0],
    [0.0, 0.0, 1.0, 1.0],
    [1.0, 0.0, 0.0, 1.0],
    [0.0, 1.0, 0.0, 1.0],
    [0.5, 0.0, 0.5, 1.0],
    [0.5, 0.5, 0.0, 1.0],
    [0.5, 0.0, 0.0, 1.0],
    [0.0, 0.0, 0.5, 1.0],
    [0.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 1.0, 1.0],
];

fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell + bytemuck::Pod>(
        image: Shape,
        boxes: Shape,
        depth: Option<usize>,
        round: fn(f32) -> T,
    ) -> Arc<dyn Kernel> {
        let [height, width, channels] = [image[1], image[2], image[3]];
        Arc::new(move |io: &mut Io<'_>| {
            let out: &mut [T] = io.output(0);
            out.copy_from_slice(io.input(0));
            let colours: &[f32] = if depth.is_some() { io.input(2) } else { &[] };
            let colours: Vec<&[f32]> = match depth {
                Some(depth) if !colours.is_empty() => colours.chunks(depth.max(1)).collect(),
                _ if channels == 1 => vec![&[1.0]],
                _ => COLOURS.iter().map(|colour| &colour[..]).collect(),
            };
            let coordinates = io.input::<f32>(1).as_chunks::<4>().0;
            for (index, place) in coordinates.iter().enumerate() {
                let image_len = height * width * channels;
                let image = &mut out[index / boxes[1] * image_len..][..image_len];
                let colour: Vec<T> = colours[index % boxes[1] % colours.len()][..channels]
                    .iter()
                    .map(|&x| round(x))
                    .collect();
                for (rows, columns) in edges(*place, height, width) {
                    for row in rows {
                        for column in columns.clone() {
                            let at = (row * width + column) * channels;
                            image[at..at + channels].copy_from_slice(&colour);
                        }
                    }
                }
            }
            Ok(())
        })
    }
    let (image, boxes) = (call.shape(0).clone(), call.shape(1).clone());
    let depth = call.inputs.get(2).map(|colours| colours.shape[1]);
    if image.num_elements() == 0 {
        return Ok(Some(Arc::new(|_: &mut Io<'_>| Ok(()))));
    }
    Ok(match call.dtype(0) {
        DType::F16 => Some(kernel::<f16>(image, boxes, depth, f16::from_f32)),
        DType::F32 => Some(kernel::<f32>(image, boxes, depth, |x| x)),
        _ => None,
    })
}

/// The rows and columns of the edges of a box that are inside an image.
fn edges(place: [f32; 4], height: usize, width: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let at = |coordinate: f32, size: usize| (coordinate * (size - 1) as f32) as i64;
    let [top, left] = [at(place[0], height), at(place[1], width)];
    let [bottom, right] = [at(place[2], height), at(place[3], width)];
    let inside = |low: i64, high: i64, size: usize| {
        let high = high.min(size as i64 - 1);
        low.max(0) as usize..(high + 1).max(0) as usize
    };
    let (rows, columns) = (inside(top, bottom, height), inside(left, right, width));
    let mut edges = Vec::new();
    if rows.is_empty() || columns.is_empty() || top > bottom || left > right {
        return edges;
    }
    for (row, inside) in [(top, top >= 0), (bottom, bottom < height as i64)] {
        if inside {
            edges.push((row as usize..row as usize + 1, columns.clone()));
        }
    }
    for (column, inside) in [(left, left >= 0), (right, right < width as i64)] {
        if inside {
            edges.push((rows.clone(), column as usize..column as usize + 1));
        }
    }
    edges
}
