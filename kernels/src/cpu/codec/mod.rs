//! Encoded images: `DecodeBmp`, `DecodeImage`, `DecodePng`, `EncodePng`.
//!
//! Samples become other samples as in TensorFlow, which leaves that to libpng.

mod bmp;
mod portable;

use super::{Build, cell::Cell};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{DType, Error, Shape};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("DecodeBmp", |call| decode(call, &[Format::Bmp])),
    ("DecodeImage", |call| decode(call, &[Format::Bmp, Format::Png])),
    ("DecodePng", |call| decode(call, &[Format::Png])),
    ("EncodePng", portable::encode),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Bmp,
    Png,
    /// One that nobody has written a decoder for here.
    Foreign(&'static str),
}

impl Format {
    /// The format that a file begins like.
    fn of(contents: &[u8]) -> Option<Format> {
        const BEGINNINGS: &[(&[u8], Format)] = &[
            (b"\x89PNG\r\n\x1a\n", Format::Png),
            (b"BM", Format::Bmp),
            (b"\xff\xd8\xff", Format::Foreign("JPEG")),
            (b"GIF8", Format::Foreign("GIF")),
            (b"RIFF", Format::Foreign("WebP")),
            (b"\xff\x0a", Format::Foreign("JPEG XL")),
        ];
        let known = BEGINNINGS.iter().find(|(beginning, _)| contents.starts_with(beginning));
        known.map(|&(_, format)| format)
    }
}

/// An image as a file holds it.
struct Pixels {
    height: usize,
    width: usize,
    channels: usize,
    /// Whether samples have 16 bits, not 8.
    wide: bool,
    samples: Vec<u16>,
}

/// The error that a file is damaged, or not what the op decodes.
fn wrong(op: &'static str, found: impl std::fmt::Display) -> crate::Error {
    Error::argument(op, "contents", "an image in a format that the op decodes", found).into()
}

fn decode(call: &OpCall<'_>, formats: &'static [Format]) -> Result<Option<Arc<dyn Kernel>>> {
    let wanted = usize::try_from(call.attrs.int("channels")?).unwrap_or(0);
    let (op, dtype) = (call.op.name, call.outputs[0].dtype);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let contents = &io.strings(0)?[0];
        let format = match Format::of(contents) {
            Some(Format::Foreign(name)) if formats.len() > 1 => {
                let what = format!("{name} files").into();
                return Err(Error::Unsupported { op: op.into(), what }.into());
            }
            Some(format) if formats.contains(&format) => format,
            Some(format) => return Err(wrong(op, format!("{format:?}"))),
            None => return Err(wrong(op, format!("{} other bytes", contents.len()))),
        };
        let pixels = match format {
            Format::Bmp => bmp::decode(op, io, contents)?,
            Format::Png => portable::decode(op, io, contents)?,
            Format::Foreign(_) => unreachable!("no op decodes a foreign format"),
        };
        if format == Format::Bmp && wanted == 1 {
            return Err(Error::argument(op, "channels", "0, 3 or 4 for BMP", wanted).into());
        }
        let pixels = pixels.with_channels(wanted);
        // TensorFlow widens BMP samples by a shift, PNG samples so that white stays white.
        let factor = if format == Format::Bmp { 256 } else { 257 };
        match dtype {
            DType::U8 if pixels.wide => pixels.write(io, dtype, |x| (x >> 8) as u8),
            DType::U8 => pixels.write(io, dtype, |x| x as u8),
            DType::U16 if pixels.wide => pixels.write(io, dtype, |x| x),
            DType::U16 => pixels.write(io, dtype, |x| x * factor),
            _ if pixels.wide => pixels.write(io, dtype, |x| f32::from(x) / 65535.0),
            _ => pixels.write(io, dtype, |x| f32::from(x) / 255.0),
        }
    })))
}

/// How much of red and green grey takes, in parts of `1 << 15`; blue is the rest.
const GREY: (u32, u32) = (9798, 19235);

impl Pixels {
    /// The image with a number of channels: 1 for grey, 3 for colour, 4 with opacity; 0 for what
    /// there is.
    fn with_channels(self, wanted: usize) -> Pixels {
        if wanted == 0 || wanted == self.channels {
            return self;
        }
        let opaque = if self.wide { u16::MAX } else { u16::from(u8::MAX) };
        let mut samples = Vec::with_capacity(self.height * self.width * wanted);
        for pixel in self.samples.chunks(self.channels) {
            let (colour, opacity) = match *pixel {
                [grey] => ([grey; 3], opaque),
                [grey, opacity] => ([grey; 3], opacity),
                [red, green, blue] => ([red, green, blue], opaque),
                [red, green, blue, opacity, ..] => ([red, green, blue], opacity),
                [] => ([0; 3], opaque),
            };
            match wanted {
                1 => samples.push(self.grey(colour)),
                3 => samples.extend(colour),
                _ => samples.extend(colour.into_iter().chain([opacity])),
            }
        }
        Pixels { channels: wanted, samples, ..self }
    }

    fn grey(&self, [red, green, blue]: [u16; 3]) -> u16 {
        if red == green && red == blue {
            return red;
        }
        let sum = u32::from(red) * GREY.0
            + u32::from(green) * GREY.1
            + u32::from(blue) * ((1 << 15) - GREY.0 - GREY.1);
        let half = if self.wide { 1 << 14 } else { 0 };
        ((sum + half) >> 15) as u16
    }

    fn write<T: Cell + Number>(
        &self,
        io: &mut Io<'_>,
        dtype: DType,
        sample: impl Fn(u16) -> T,
    ) -> Result<()> {
        let shape = Shape::new([self.height, self.width, self.channels])?;
        T::write(io, 0, dtype, &shape, |out| {
            out.iter_mut().zip(&self.samples).for_each(|(out, &x)| *out = sample(x));
            Ok(())
        })
    }
}

/// Checks that there is room for an image's samples.
fn check_room(io: &Io<'_>, height: usize, width: usize, channels: usize) -> Result<()> {
    io.check_size(DType::U16, &Shape::new([height, width, channels])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_made_and_dropped() {
        let check = |wanted: usize, samples: Vec<u16>, expected: &[u16]| {
            let (channels, size) = (samples.len() / 2, (1, 2));
            let pixels = Pixels { height: size.0, width: size.1, channels, wide: false, samples };
            assert_eq!(pixels.with_channels(wanted).samples, expected);
        };
        check(3, vec![5, 6], &[5, 5, 5, 6, 6, 6]);
        check(4, vec![5, 9, 6, 8], &[5, 5, 5, 9, 6, 6, 6, 8]);
        check(4, vec![1, 2, 3, 4, 5, 6], &[1, 2, 3, 255, 4, 5, 6, 255]);
        check(1, vec![7, 7, 7, 0, 255, 0], &[7, 149]);
        check(0, vec![7, 8], &[7, 8]);
    }
}
