//! Images in BMP format, with 8 bits per sample and without compression.

use super::{Pixels, check_room, wrong};
use crate::{error::Result, kernel::Io};
use ferroflow_ir::workspace;

/// Rows begin at multiples of so many bytes.
const ALIGNMENT: usize = 4;

pub(super) fn decode(op: &'static str, io: &Io<'_>, contents: &[u8]) -> Result<Pixels> {
    let short = || wrong(op, format!("{} bytes of BMP", contents.len()));
    let bytes = |at: usize| contents.get(at..).and_then(|rest| rest.first_chunk::<4>());
    let long = |at: usize| bytes(at).map(|&bytes| i32::from_le_bytes(bytes)).ok_or_else(short);
    let (header, width, height) = (long(10)?, long(18)?, long(22)?);
    let bits = long(26)? >> 16;
    let channels = match bits {
        8 | 24 | 32 => bits as usize / 8,
        _ => return Err(wrong(op, format!("{bits} bits per pixel"))),
    };
    let size =
        |size: i32| usize::try_from(size).map_err(|_| wrong(op, format!("a size of {size}")));
    let (header, width) = (size(header)?, size(width)?);
    let (upwards, height) = (height >= 0, height.unsigned_abs() as usize);
    if width == 0 || height == 0 {
        return Err(wrong(op, format!("an image of {width} by {height}")));
    }
    check_room(io, height, width, channels)?;
    let row = (width * channels).next_multiple_of(ALIGNMENT);
    let end = height.checked_mul(row).and_then(|size| size.checked_add(header));
    if end != Some(contents.len()) {
        return Err(short());
    }
    let data = &contents[header..];
    let mut samples = workspace::reserve(height * width * channels)?;
    for line in 0..height {
        let line = if upwards { height - 1 - line } else { line };
        for pixel in data[line * row..][..width * channels].chunks(channels) {
            match *pixel {
                [blue, green, red] => samples.extend([red, green, blue].map(u16::from)),
                [blue, green, red, opacity] => {
                    samples.extend([red, green, blue, opacity].map(u16::from));
                }
                _ => samples.extend(pixel.iter().map(|&x| u16::from(x))),
            }
        }
    }
    Ok(Pixels { frames: None, height, width, channels, wide: false, samples })
}
