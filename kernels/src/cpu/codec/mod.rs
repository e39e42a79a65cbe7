//! Encoded images: `DecodeBmp`, `DecodeGif`, `DecodeImage`, `DecodeJpeg`, `DecodePng`, `DecodeWebP`,
//! `DecodeAndCropJpeg`, `EncodeJpeg`, `EncodePng` and what goes with them.
//!
//! Most ops decode what they are named after and some other formats as well, as in TensorFlow.
//! Samples become other samples as there, too.

mod animation;
mod bmp;
mod encode;
mod jpeg;
mod portable;
mod web;

use super::{Build, cell::Cell};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{DType, Error, HostTensor, Shape};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("DecodeAndCropJpeg", |call| decode(call, Kind::Part)),
    ("DecodeBmp", |call| decode(call, Kind::Bmp)),
    ("DecodeGif", |call| decode(call, Kind::Frames)),
    ("DecodeImage", |call| decode(call, Kind::Any)),
    ("DecodeJpeg", |call| decode(call, Kind::Still)),
    ("DecodePng", |call| decode(call, Kind::Still)),
    ("DecodeWebP", |call| decode(call, Kind::WebP)),
    ("EncodeJpeg", encode::with_attributes),
    ("EncodeJpegVariableQuality", encode::with_quality),
    ("EncodePng", portable::encode),
    ("ExtractJpegShape", jpeg_shape),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Bmp,
    Gif,
    Jpeg,
    Png,
    WebP,
    /// A format without a decoder here.
    Foreign(&'static str),
}

impl Format {
    /// The format that a file begins like.
    fn of(contents: &[u8]) -> Option<Format> {
        const BEGINNINGS: &[(&[u8], Format)] = &[
            (b"\x89PNG\r\n\x1a\n", Format::Png),
            (b"BM", Format::Bmp),
            (b"\xff\xd8\xff", Format::Jpeg),
            (b"GIF8", Format::Gif),
            (b"RIFF", Format::WebP),
            (b"\xff\x0a", Format::Foreign("JPEG XL")),
        ];
        let known = BEGINNINGS.iter().find(|(beginning, _)| contents.starts_with(beginning));
        known.map(|&(_, format)| format)
    }
}

/// Kind of image that an op decodes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// A still image, in any format but BMP.
    Still,
    /// A part of an image in JPEG format.
    Part,
    Bmp,
    /// All frames of an animation, or an image as the only one.
    Frames,
    /// Images as they are, animations too.
    WebP,
    /// The same, in BMP format too.
    Any,
}

/// An image as a file holds it.
struct Pixels {
    /// The number of frames of an animation; `None` for an image.
    frames: Option<usize>,
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

/// Request of a call.
#[derive(Clone)]
struct Request {
    op: &'static str,
    kind: Kind,
    channels: usize,
    dtype: DType,
    /// Whether all frames of an animation are wanted.
    all_frames: bool,
    jpeg: jpeg::DecodeSettings,
}

impl Request {
    fn new(call: &OpCall<'_>, kind: Kind) -> Result<Request> {
        let channels = match kind {
            Kind::Frames => 3,
            _ => usize::try_from(call.attrs.int("channels")?).unwrap_or(0),
        };
        let mut jpeg = jpeg::DecodeSettings { channels, ..Default::default() };
        if call.op.attr("ratio").is_some() {
            jpeg.ratio = usize::try_from(call.attrs.int("ratio")?).unwrap_or(1);
            jpeg.is_smooth = call.attrs.bool("fancy_upscaling")?;
            jpeg.is_accurate = call.attrs.string("dct_method")? == "INTEGER_ACCURATE";
            jpeg.recover = call.attrs.bool("try_recover_truncated")?;
            jpeg.fraction = call.attrs.float("acceptable_fraction")?;
        }
        let all_frames = match kind {
            Kind::Any => call.attrs.bool("expand_animations")?,
            Kind::Still | Kind::Part | Kind::Bmp | Kind::Frames | Kind::WebP => true,
        };
        Ok(Request {
            op: call.op.name,
            kind,
            channels,
            dtype: call.outputs[0].dtype,
            all_frames,
            jpeg,
        })
    }

    fn wrong_channels(&self, expected: &'static str) -> crate::Error {
        Error::argument(self.op, "channels", expected, self.channels).into()
    }

    /// The image of a file, before the number of channels is seen to.
    fn read(&self, io: &Io<'_>, format: Format, contents: &[u8]) -> Result<Pixels> {
        let is_meant = match (self.kind, format) {
            (Kind::Any, _) | (_, Format::Foreign(_)) => true,
            (Kind::Bmp, format) => format == Format::Bmp,
            (Kind::Part, format) => format == Format::Jpeg,
            (Kind::WebP, format) => !matches!(format, Format::Bmp | Format::Gif),
            (Kind::Frames, format) => format != Format::Bmp,
            (Kind::Still, format) => !matches!(format, Format::Bmp | Format::WebP),
        };
        if !is_meant {
            return Err(wrong(self.op, format!("{format:?}")));
        }
        match format {
            Format::Bmp if self.channels == 1 => Err(self.wrong_channels("0, 3 or 4 for BMP")),
            Format::Bmp => bmp::decode(self.op, io, contents),
            Format::Gif if !matches!(self.channels, 0 | 3) => {
                Err(self.wrong_channels("0 or 3 for GIF"))
            }
            Format::Gif => {
                let pixels = animation::decode(self.op, io, contents, self.all_frames)?;
                match (self.kind, pixels.frames) {
                    (Kind::Still, Some(frames)) if frames > 1 => {
                        Err(wrong(self.op, format!("an animation of {frames} frames")))
                    }
                    _ => Ok(pixels),
                }
            }
            Format::Jpeg if self.channels == 4 => Err(self.wrong_channels("0, 1 or 3 for JPEG")),
            Format::Jpeg => jpeg::decode(self.op, io, contents, &self.jpeg),
            Format::Png => portable::decode(self.op, io, contents),
            Format::WebP if self.channels == 1 => Err(self.wrong_channels("0, 3 or 4 for WebP")),
            Format::WebP if self.dtype != DType::U8 => {
                Err(Error::argument(self.op, "dtype", "uint8 for WebP", self.dtype).into())
            }
            Format::WebP => {
                let pixels = web::decode(self.op, io, contents, self.all_frames)?;
                match self.channels == 0 || self.channels == pixels.channels {
                    true => Ok(pixels),
                    false => Err(self.wrong_channels("those of the WebP image")),
                }
            }
            Format::Foreign(name) => {
                let what = format!("{name} files").into();
                Err(Error::Unsupported { op: self.op.into(), what }.into())
            }
        }
    }

    /// Whether a file's frames are a dimension of the result.
    fn has_frames(&self, is_animation: bool) -> bool {
        match self.kind {
            Kind::Frames => true,
            Kind::Any => is_animation && self.all_frames,
            Kind::WebP => is_animation,
            Kind::Still | Kind::Part | Kind::Bmp => false,
        }
    }
}

fn decode(call: &OpCall<'_>, kind: Kind) -> Result<Option<Arc<dyn Kernel>>> {
    let request = Request::new(call, kind)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let contents = &io.strings(0)?[0];
        let Some(format) = Format::of(contents) else {
            return Err(wrong(request.op, format!("{} other bytes", contents.len())));
        };
        let pixels = match kind {
            Kind::Part => {
                let window = window(request.op, io.input::<i32>(1))?;
                let jpeg = jpeg::DecodeSettings { window: Some(window), ..request.jpeg.clone() };
                Request { jpeg, ..request.clone() }.read(io, format, contents)?
            }
            _ => request.read(io, format, contents)?,
        };
        let frames = match request.has_frames(pixels.frames.is_some()) {
            true => Some(pixels.frames.unwrap_or(1)),
            false => None,
        };
        let pixels = Pixels { frames, ..pixels.with_channels(request.channels) };
        // TensorFlow widens samples by a shift, but those of PNG so that white stays white.
        let factor = if format == Format::Png { 257 } else { 256 };
        let dtype = request.dtype;
        match dtype {
            DType::U8 if pixels.wide => pixels.write(io, dtype, |x| (x >> 8) as u8),
            DType::U8 => pixels.write(io, dtype, |x| x as u8),
            DType::U16 if pixels.wide => pixels.write(io, dtype, |x| x),
            DType::U16 => pixels.write(io, dtype, |x| x * factor),
            // By the reciprocal, and PNG by way of 16 bits: what rounding leaves is TensorFlow's, too.
            _ if pixels.wide => pixels.write(io, dtype, |x| f32::from(x) * (1.0 / 65535.0)),
            _ if format == Format::Png => {
                pixels.write(io, dtype, |x| f32::from(x * factor) * (1.0 / 65535.0))
            }
            _ => pixels.write(io, dtype, |x| f32::from(x) * (1.0 / 255.0)),
        }
    })))
}

/// The first row, first column, height and width that a window tells.
fn window(op: &'static str, window: &[i32]) -> Result<[usize; 4]> {
    let sizes: Option<Vec<usize>> = window.iter().map(|&size| size.try_into().ok()).collect();
    let sizes = sizes.and_then(|sizes| sizes.try_into().ok());
    let wrong = || Error::argument(op, "crop_window", "a part of the image", format!("{window:?}"));
    Ok(sizes.ok_or_else(wrong)?)
}

fn jpeg_shape(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (op, dtype) = (call.op.name, call.outputs[0].dtype);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let shape = jpeg::shape(&io.strings(0)?[0]).map_err(|damage| wrong(op, damage))?;
        let tensor = match dtype {
            DType::I64 => HostTensor::from_slice(Shape::new([3])?, &shape.map(|size| size as i64))?,
            _ => HostTensor::from_slice(Shape::new([3])?, &shape.map(|size| size as i32))?,
        };
        io.put(0, tensor)
    })))
}

/// The parts of red and green in grey, of `1 << 15`; blue has the rest. They are 0.299 and 0.587, cut
/// off as in libpng (`png_set_rgb_to_gray_fixed`).
const GREY: (u32, u32) = (9797, 19234);

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
        let sizes = [self.height, self.width, self.channels];
        let shape = Shape::new(self.frames.into_iter().chain(sizes))?;
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
            let pixels = Pixels {
                frames: None,
                height: size.0,
                width: size.1,
                channels,
                wide: false,
                samples,
            };
            assert_eq!(pixels.with_channels(wanted).samples, expected);
        };
        check(3, vec![5, 6], &[5, 5, 5, 6, 6, 6]);
        check(4, vec![5, 9, 6, 8], &[5, 5, 5, 9, 6, 6, 6, 8]);
        check(4, vec![1, 2, 3, 4, 5, 6], &[1, 2, 3, 255, 4, 5, 6, 255]);
        check(1, vec![7, 7, 7, 0, 255, 0], &[7, 149]);
        check(0, vec![7, 8], &[7, 8]);
    }
}
