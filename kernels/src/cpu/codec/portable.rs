//! Images in PNG format, by the `png` crate.

use super::{Pixels, check_room, wrong};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error, HostTensor, Shape, workspace};
use png::{BitDepth, ColorType, Compression, Decoder, Encoder, EncodingError, Transformations};
use std::{io::Cursor, sync::Arc};

/// Palettes become colours, and samples of less than 8 bits have 8.
pub(super) fn decode(op: &'static str, io: &Io<'_>, contents: &[u8]) -> Result<Pixels> {
    let mut decoder = Decoder::new(Cursor::new(contents));
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|error| wrong(op, error))?;
    let (color, depth) = reader.output_color_type();
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let channels = color.samples();
    check_room(io, height, width, channels)?;
    let size = reader.output_buffer_size().ok_or_else(|| wrong(op, "an image too large"))?;
    let mut bytes = workspace::filled(0, size)?;
    reader.next_frame(&mut bytes).map_err(|error| wrong(op, error))?;
    let wide = depth == BitDepth::Sixteen;
    let samples = match wide {
        true => bytes.as_chunks().0.iter().map(|&bytes| u16::from_be_bytes(bytes)).collect(),
        false => bytes.into_iter().map(u16::from).collect(),
    };
    Ok(Pixels { frames: None, height, width, channels, wide, samples })
}

pub(super) fn encode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (shape, op) = (call.shape(0), call.op.name);
    let (batch, image) = shape.split_at(shape.rank() - 3);
    let batch = Shape::new(batch.iter().copied())?;
    let (height, width, channels) = (image[0], image[1], image[2]);
    let compression = match call.attrs.int("compression")? {
        0 => Compression::NoCompression,
        1..=3 => Compression::Fast,
        -1 | 4..=6 => Compression::Balanced,
        _ => Compression::High,
    };
    let color = match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    };
    let (depth, sample) = match call.dtype(0) {
        DType::U8 => (BitDepth::Eight, 1),
        DType::U16 => (BitDepth::Sixteen, 2),
        _ => return Ok(None),
    };
    let size = u32::try_from(width).ok().zip(u32::try_from(height).ok());
    let (width_bits, height_bits) = size.ok_or_else(|| call.wrong("image", "smaller", shape))?;
    let len = height * width * channels * sample;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let bytes = io.bytes(0);
        let write = |index: usize| -> Result<Bytes, EncodingError> {
            let mut own = bytes[index * len..][..len].to_vec();
            if sample == 2 {
                let swap = |pair: &mut [u8; 2]| {
                    *pair = u16::from_ne_bytes(*pair).to_be_bytes();
                };
                own.as_chunks_mut().0.iter_mut().for_each(swap);
            }
            let mut contents = Vec::new();
            let mut encoder = Encoder::new(&mut contents, width_bits, height_bits);
            encoder.set_color(color);
            encoder.set_depth(depth);
            encoder.set_compression(compression);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&own)?;
            writer.finish()?;
            Ok(Bytes::from(contents))
        };
        let encoded: Result<Vec<Bytes>, EncodingError> =
            (0..batch.num_elements()).map(write).collect();
        let encoded = encoded.map_err(|error| {
            let (code, op, detail) = (Code::Internal, op.into(), error.to_string());
            Error::Status { code, op, detail }
        })?;
        io.put(0, HostTensor::from_strings(batch.clone(), encoded)?)
    })))
}
