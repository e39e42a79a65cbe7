//! Windows of images: `ExtractGlimpse`, `ExtractGlimpseV2`.

use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::Error;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("ExtractGlimpse", |call| build(call, first_version)),
    ("ExtractGlimpseV2", |call| build(call, second_version)),
];

/// Meaning of offsets.
#[derive(Debug, Clone, Copy)]
struct Meaning {
    /// Whether they are parts of the image, not pixels.
    normalized: bool,
    /// Whether they are relative to the middle.
    centered: bool,
}

/// Where a window of some size begins in a dimension of another size.
type Start = fn(Meaning, offset: f32, image: f32, window: f32) -> f32;

/// Offsets are those of the middle of the window.
fn first_version(meaning: Meaning, offset: f32, image: f32, window: f32) -> f32 {
    let offset = if meaning.normalized { offset * image } else { offset };
    let offset = if meaning.centered { offset / 2.0 + image / 2.0 } else { offset };
    offset - window / 2.0
}

/// Offsets are those of the first pixel of the window, unless they are both centred and normalised.
fn second_version(meaning: Meaning, offset: f32, image: f32, window: f32) -> f32 {
    match (meaning.centered, meaning.normalized) {
        (true, true) => first_version(meaning, offset, image, window),
        (true, false) => offset + image / 2.0,
        (false, true) => offset * image,
        (false, false) => offset,
    }
}

fn build(call: &OpCall<'_>, start: Start) -> Result<Option<Arc<dyn Kernel>>> {
    let (noise, uniform) = (call.attrs.string("noise")?, call.attrs.bool("uniform_noise")?);
    if uniform && !matches!(noise, "" | "uniform") {
        return Err(call.wrong("noise", "\"uniform\" where `uniform_noise` is true", noise));
    }
    // Random pixels are those outside of the image alone, of which there may be none.
    let (op, noise) = (call.op.name, noise.to_string());
    let meaning = Meaning {
        normalized: call.attrs.bool("normalized")?,
        centered: call.attrs.bool("centered")?,
    };
    let (image, out) = (call.shape(0).clone(), call.output_shape(0)?);
    let [height, width, channels] = [image[1], image[2], image[3]];
    let [rows, columns] = [out[1], out[2]];
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (x, offsets): (&[f32], &[f32]) = (io.input(0), io.input(2));
        let y: &mut [f32] = io.output(0);
        for (index, y) in y.chunks_mut(channels.max(1)).enumerate() {
            let (image, row, column) =
                (index / (rows * columns), index / columns % rows, index % columns);
            let at = |axis: usize, place: usize, size: usize, window: usize| {
                let offset = offsets[image * 2 + axis];
                let first = start(meaning, offset, size as f32, window as f32);
                let first = (!first.is_nan()).then_some(first as i64)?;
                let position = usize::try_from(first.saturating_add(place as i64)).ok();
                position.filter(|&place| place < size)
            };
            match at(0, row, height, rows).zip(at(1, column, width, columns)) {
                Some((row, column)) => {
                    let pixel = (image * height + row) * width + column;
                    y.copy_from_slice(&x[pixel * channels..][..channels]);
                }
                None if noise != "zero" => {
                    let what = format!("random pixels outside the image (`noise` is \"{noise}\")");
                    return Err(Error::Unsupported { op: op.into(), what: what.into() }.into());
                }
                None => y.fill(0.0),
            }
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_where_tensorflow_begins_them() {
        let meaning = |centered, normalized| Meaning { normalized, centered };
        assert_eq!(first_version(meaning(true, true), 0.5, 6.0, 3.0), 3.0);
        assert_eq!(first_version(meaning(false, false), 1.0, 6.0, 3.0), -0.5);
        assert_eq!(second_version(meaning(true, false), 1.0, 6.0, 3.0), 4.0);
        assert_eq!(second_version(meaning(false, true), 0.5, 6.0, 3.0), 3.0);
    }
}
