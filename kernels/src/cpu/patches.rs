//! `ExtractImagePatches`.

use super::{Build, cell::Cell, dispatch::with_cell};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Shape, patches::PatchWindow, patches::patch_windows};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("ExtractImagePatches", extract_image_patches)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

fn extract_image_patches(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let windows = call.with_context(patch_windows)?;
    let (dtype, image, shape) = (call.dtype(0), call.shape(0).clone(), call.output_shape(0)?);
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, windows, image, shape)))
}

/// `[batch, rows, columns, channels] → [batch, rows', columns', height · width · channels]`.
fn kernel<T: Cell>(
    dtype: DType,
    windows: [PatchWindow; 2],
    image: Shape,
    shape: Shape,
) -> Arc<dyn Kernel> {
    let [height, width] = windows;
    let (rows, columns, channels) = (image[1], image[2], image[3]);
    let (top, left) = (height.positions(rows).1, width.positions(columns).1);
    Arc::new(move |io: &mut Io<'_>| {
        let source = T::read(io, 0)?;
        let threads = io.threads();
        let patch = shape[3];
        T::write(io, 0, dtype, &shape, |out| {
            let per_piece = (PIECE / patch.max(1)).max(1);
            threads.for_each_piece(out, per_piece * patch, |start, out| {
                for (n, out) in out.chunks_exact_mut(patch).enumerate() {
                    let number = start / patch + n;
                    let (column, rest) = (number % shape[2], number / shape[2]);
                    let (row, member) = (rest % shape[1], rest / shape[1]);
                    for (index, out) in out.chunks_exact_mut(channels).enumerate() {
                        let (i, j) = (index / width.size, index % width.size);
                        let y = (row * height.stride + i * height.rate).checked_sub(top);
                        let x = (column * width.stride + j * width.rate).checked_sub(left);
                        match (y.filter(|&y| y < rows), x.filter(|&x| x < columns)) {
                            (Some(y), Some(x)) => {
                                let pixel = ((member * rows + y) * columns + x) * channels;
                                out.clone_from_slice(&source[pixel..][..channels]);
                            }
                            _ => out.fill(T::blank()),
                        }
                    }
                }
            });
            Ok(())
        })
    })
}
