//! Images to JPEG format: `EncodeJpeg` and `EncodeJpegVariableQuality`.
//!
//! The files are those that TensorFlow writes with libjpeg-turbo, byte for byte.

mod codes;
mod file;
mod forward;
mod progressive;
mod samples;
mod scan;

use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{Error, HostTensor};
use std::sync::Arc;

/// No side is longer; libjpeg has the same bound.
const MAX_SIDE: usize = 65500;
/// The longest description that a segment holds.
const MAX_METADATA: usize = 65_533 - file::METADATA_NAME.len();

/// Settings of an encoded image.
#[derive(Debug, Clone)]
struct Settings {
    /// From 0 to 100; 0 counts as 1.
    quality: i32,
    is_progressive: bool,
    /// Whether codes are made for the image.
    is_small: bool,
    /// Whether colours have half as many samples in rows and columns.
    has_less_colour: bool,
    /// 1 for inches, 2 for centimetres.
    density_unit: u8,
    density: [u16; 2],
    metadata: Bytes,
}

/// An image of bytes.
#[derive(Debug, Clone, Copy)]
struct Image<'a> {
    height: usize,
    width: usize,
    /// 1 or 3.
    channels: usize,
    samples: &'a [u8],
}

pub(super) fn with_attributes(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let attrs = call.attrs;
    let density = |name: &'static str| -> Result<u16> {
        let value = attrs.int(name)?;
        let wrong = || Error::argument(call.op.name, name, "at most 65535", value);
        Ok(u16::try_from(value).map_err(|_| wrong())?)
    };
    let settings = Settings {
        quality: i32::try_from(attrs.int("quality")?).unwrap_or(100),
        is_progressive: attrs.bool("progressive")?,
        is_small: attrs.bool("optimize_size")?,
        has_less_colour: attrs.bool("chroma_downsampling")?,
        density_unit: if attrs.string("density_unit")? == "cm" { 2 } else { 1 },
        density: [density("x_density")?, density("y_density")?],
        metadata: attrs.bytes("xmp_metadata")?.clone(),
    };
    if settings.metadata.len() > MAX_METADATA {
        let len = settings.metadata.len();
        return Err(Error::argument(call.op.name, "xmp_metadata", "shorter", len).into());
    }
    let wanted = match attrs.string("format")? {
        "grayscale" => Some(1),
        "rgb" => Some(3),
        _ => None,
    };
    encode(call, settings, wanted)
}

pub(super) fn with_quality(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let settings = Settings {
        quality: 0,
        is_progressive: false,
        is_small: false,
        has_less_colour: true,
        density_unit: 1,
        density: [300; 2],
        metadata: Bytes::new(),
    };
    encode(call, settings, None)
}

fn encode(
    call: &OpCall<'_>,
    settings: Settings,
    wanted: Option<usize>,
) -> Result<Option<Arc<dyn Kernel>>> {
    let (op, shape) = (call.op.name, call.shape(0).clone());
    let &[height, width, channels] = shape.dims() else {
        return Err(call.wrong("image", "an image", &shape));
    };
    let is_sized = (1..=MAX_SIDE).contains(&height) && (1..=MAX_SIDE).contains(&width);
    if !is_sized || !matches!(channels, 1 | 3) || wanted.is_some_and(|wanted| wanted != channels) {
        return Err(call.wrong("image", "of the format's channels and size", &shape));
    }
    let has_quality = call.inputs.len() > 1;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let mut settings = settings.clone();
        if has_quality {
            settings.quality = io.scalar(1);
            if !(0..=100).contains(&settings.quality) {
                let quality = settings.quality;
                return Err(Error::argument(op, "quality", "from 0 to 100", quality).into());
            }
        }
        let image = Image { height, width, channels, samples: io.bytes(0) };
        io.put(0, HostTensor::scalar_string(file::write(&image, &settings)))
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cpu::codec::{Format, Kind, Request, jpeg},
        threads::Threads,
    };
    use ferroflow_ir::DType;
    use proptest::prelude::*;

    /// A picture of slopes.
    fn file(height: usize, width: usize, is_progressive: bool) -> (Vec<u8>, Bytes) {
        let sample = |at: usize| {
            let (row, column, channel) = (at / 3 / width, at / 3 % width, at % 3);
            (row * (5 + channel) + column * (3 - channel) + 40 * channel) as u8 / 2
        };
        let samples: Vec<u8> = (0..height * width * 3).map(sample).collect();
        let settings = Settings {
            quality: 95,
            is_progressive,
            is_small: false,
            has_less_colour: true,
            density_unit: 1,
            density: [300; 2],
            metadata: Bytes::new(),
        };
        let image = Image { height, width, channels: 3, samples: &samples };
        let contents = file::write(&image, &settings);
        (samples, contents)
    }

    fn decode(contents: &[u8], jpeg: jpeg::DecodeSettings) -> Result<Vec<u16>> {
        let threads = Threads::single();
        let io = Io::empty(&threads, 1 << 24);
        let request = Request {
            op: "DecodeImage",
            kind: Kind::Any,
            channels: 0,
            dtype: DType::U8,
            all_frames: true,
            jpeg,
        };
        let format = Format::of(contents).unwrap_or(Format::Jpeg);
        Ok(request.read(&io, format, contents)?.samples)
    }

    #[test]
    fn images_come_back() {
        for (size, is_progressive) in [((24, 40), false), ((17, 33), true), ((1, 1), false)] {
            let (samples, contents) = file(size.0, size.1, is_progressive);
            let decoded = decode(&contents, jpeg::DecodeSettings::default()).unwrap();
            let distances = decoded.iter().zip(&samples);
            let sum: u32 = distances.map(|(&a, &b)| u32::from(a.abs_diff(b.into()))).sum();
            assert!(sum as usize <= samples.len() * 4, "{sum} of {}", samples.len());
        }
    }

    proptest! {
        /// Damaged files give an error or some image, in little time and memory.
        #[test]
        fn damage_is_survived(
            is_progressive: bool,
            recover: bool,
            ratio in proptest::sample::select(vec![1_usize, 2, 4, 8]),
            changes in proptest::collection::vec((0_usize..2000, any::<u8>()), 0..6),
            len in 0_usize..2000,
        ) {
            let (_, contents) = file(24, 40, is_progressive);
            let mut contents = contents.to_vec();
            for (at, byte) in changes {
                let at = at % contents.len();
                contents[at] = byte;
            }
            contents.truncate(len.max(3));
            let fraction = if recover { 1.0 } else { 0.1 };
            let settings = jpeg::DecodeSettings { ratio, recover, fraction, ..Default::default() };
            let _ = decode(&contents, settings);
        }
    }
}
