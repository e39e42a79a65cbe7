//! Images and animations in WebP format, by the `image-webp` crate.

use super::{Pixels, wrong};
use crate::{error::Result, kernel::Io};
use ferroflow_ir::budget;
use ferroflow_ir::{DType, Shape, workspace};
use image_webp::WebPDecoder;
use std::io::Cursor;

/// All frames, or the first; an image is an animation of one frame.
pub(super) fn decode(
    op: &'static str,
    io: &Io<'_>,
    contents: &[u8],
    all_frames: bool,
) -> Result<Pixels> {
    let mut decoder = WebPDecoder::new(Cursor::new(contents)).map_err(|error| wrong(op, error))?;
    decoder.set_memory_limit(io.limit());
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let n_frames = match (decoder.is_animated(), all_frames) {
        (true, true) => decoder.num_frames() as usize,
        _ => 1,
    };
    let shape = Shape::new([n_frames, height, width, channels])?;
    io.check_size(DType::U16, &shape)?;
    let mut samples = workspace::reserve(shape.num_elements())?;
    let mut bytes = workspace::filled(0, height * width * channels)?;
    for _ in 0..n_frames {
        budget::tick();
        match decoder.is_animated() {
            true => decoder.read_frame(&mut bytes).map(|_| ()),
            false => decoder.read_image(&mut bytes),
        }
        .map_err(|error| wrong(op, error))?;
        samples.extend(bytes.iter().copied().map(u16::from));
    }
    Ok(Pixels { frames: Some(n_frames), height, width, channels, wide: false, samples })
}
