//! Animations in GIF format, by the `gif` crate.
//!
//! Frames are laid over each other as in TensorFlow: each begins as the one before it, whatever the
//! file says about disposal, and is as large as the largest frame, whatever the file says about the
//! screen. The first begins black. A file that is damaged after a frame ends there.

use super::{Pixels, wrong};
use crate::{error::Result, kernel::Io};
use ferroflow_ir::{DType, Shape, budget, workspace};
use gif::{ColorOutput, DecodeOptions, MemoryLimit};
use std::num::NonZeroU64;

const CHANNELS: usize = 3;

/// A frame with colours by their numbers in a table.
struct Frame {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    transparent: Option<u8>,
    colours: Option<Vec<u8>>,
    numbers: Vec<u8>,
}

/// All frames, or the first.
pub(super) fn decode(
    op: &'static str,
    io: &Io<'_>,
    contents: &[u8],
    all_frames: bool,
) -> Result<Pixels> {
    let (frames, screen_colours) = read(op, io, contents)?;
    let height = frames.iter().map(|frame| frame.height).max().unwrap_or(0);
    let width = frames.iter().map(|frame| frame.width).max().unwrap_or(0);
    let wanted = if all_frames { frames.len() } else { 1 };
    let shape = Shape::new([wanted, height, width, CHANNELS])?;
    io.check_size(DType::U16, &shape)?;
    let size = height * width * CHANNELS;
    let mut samples = workspace::filled(0, shape.num_elements())?;
    for (at, frame) in frames.iter().take(wanted).enumerate() {
        let (before, own) = samples.split_at_mut(at * size);
        if at > 0 {
            own[..size].copy_from_slice(&before[(at - 1) * size..]);
        }
        let colours = frame.colours.as_ref().or(screen_colours.as_ref());
        let colours =
            colours.ok_or_else(|| wrong(op, format!("GIF frame {at} without colours")))?;
        draw(op, frame, colours.as_chunks().0, own, (height, width))?;
    }
    Ok(Pixels { frames: Some(wanted), height, width, channels: CHANNELS, wide: false, samples })
}

/// The frames up to the first that is damaged, and the colours of those that have none.
fn read(op: &'static str, io: &Io<'_>, contents: &[u8]) -> Result<(Vec<Frame>, Option<Vec<u8>>)> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    if let Some(limit) = NonZeroU64::new(io.limit() as u64) {
        options.set_memory_limit(MemoryLimit::Bytes(limit));
    }
    let mut decoder = options.read_info(contents).map_err(|error| wrong(op, error))?;
    let (mut frames, mut size): (Vec<Frame>, usize) = (Vec::new(), 0);
    loop {
        budget::tick();
        let frame = match decoder.read_next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(error) if frames.is_empty() => return Err(wrong(op, error)),
            Err(_) => break,
        };
        size = size.saturating_add(frame.buffer.len());
        io.check_size(DType::U8, &Shape::new([size])?)?;
        frames.push(Frame {
            left: frame.left.into(),
            top: frame.top.into(),
            width: frame.width.into(),
            height: frame.height.into(),
            transparent: frame.transparent,
            colours: frame.palette.clone(),
            numbers: frame.buffer.to_vec(),
        });
    }
    match frames.is_empty() {
        true => Err(wrong(op, "a GIF file without frames")),
        false => Ok((frames, decoder.global_palette().map(<[u8]>::to_vec))),
    }
}

/// Lays what is seen of a frame over a canvas.
fn draw(
    op: &'static str,
    frame: &Frame,
    colours: &[[u8; CHANNELS]],
    canvas: &mut [u16],
    (height, width): (usize, usize),
) -> Result<()> {
    let seen = width.saturating_sub(frame.left).min(frame.width);
    if seen == 0 {
        return Ok(());
    }
    let lines = frame.numbers.chunks_exact(frame.width.max(1)).take(frame.height);
    for (line, row) in lines.zip(frame.top..height) {
        let out = &mut canvas[(row * width + frame.left) * CHANNELS..];
        for (out, &number) in out.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(&line[..seen]) {
            if frame.transparent != Some(number) {
                let colour = colours.get(usize::from(number));
                let wrong = || wrong(op, format!("a GIF frame with colour {number}"));
                *out = colour.ok_or_else(wrong)?.map(u16::from);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_beside_the_canvas_are_not_seen() {
        let frame = |left, top| Frame {
            left,
            top,
            width: 2,
            height: 2,
            transparent: None,
            colours: None,
            numbers: vec![0; 4],
        };
        let drawn = |left, top| {
            let mut canvas = vec![0; 2 * 2 * CHANNELS];
            draw("DecodeGif", &frame(left, top), &[[7; CHANNELS]], &mut canvas, (2, 2)).unwrap();
            canvas.iter().filter(|&&sample| sample == 7).count() / CHANNELS
        };
        assert_eq!(
            [drawn(0, 0), drawn(1, 1), drawn(2, 0), drawn(9, 0), drawn(0, 9)],
            [4, 1, 0, 0, 0]
        );
    }
}
