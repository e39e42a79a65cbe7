//! Bytes as numbers: `DecodeRaw`, `DecodePaddedRaw`.

use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("DecodePaddedRaw", decode_padded), ("DecodeRaw", decode)];

/// The numbers that bytes stand for.
#[derive(Debug, Clone)]
struct Numbers {
    dtype: DType,
    /// Bytes of a number.
    size: usize,
    /// Bytes of what is written in one order: half a complex number, else all of it.
    part: usize,
    /// Whether parts have to be turned round.
    swapped: bool,
    /// The shape of the strings.
    shape: Shape,
}

impl Numbers {
    fn new(call: &OpCall<'_>) -> Result<Numbers> {
        let dtype = call.outputs[0].dtype;
        let size = dtype.size().unwrap_or(1);
        let part = if dtype.is_complex() { size / 2 } else { size };
        let swapped = call.attrs.bool("little_endian")? != cfg!(target_endian = "little");
        Ok(Numbers { dtype, size, part, swapped, shape: call.shape(0).clone() })
    }

    /// Writes `length` bytes of each string, or what there is and zeros.
    fn put(&self, io: &mut Io<'_>, texts: &[Bytes], length: usize) -> Result<()> {
        let dims = self.shape.iter().copied().chain([length / self.size]);
        let shape = Shape::new(dims)?;
        let mut tensor = io.allocate(self.dtype, shape)?;
        let bytes = tensor.bytes_mut();
        bytes.fill(0);
        for (row, text) in bytes.chunks_exact_mut(length.max(1)).zip(texts) {
            let n_present = text.len().min(length);
            row[..n_present].copy_from_slice(&text[..n_present]);
        }
        if self.swapped {
            bytes.chunks_exact_mut(self.part).for_each(<[u8]>::reverse);
        }
        if self.dtype == DType::Bool {
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        io.put(0, tensor)
    }
}

fn decode(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let numbers = Numbers::new(call)?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let texts = Bytes::read(io, 0)?;
        let length = texts.first().map_or(0, Bytes::len);
        let wrong = |expected: String, found: usize| {
            crate::Error::from(Error::argument("DecodeRaw", "bytes", expected, found))
        };
        if let Some(other) = texts.iter().find(|text| text.len() != length) {
            return Err(wrong(format!("of {length} bytes, as the others"), other.len()));
        }
        if length % numbers.size != 0 {
            return Err(wrong(format!("of a multiple of {} bytes", numbers.size), length));
        }
        numbers.put(io, texts, length)
    })))
}

fn decode_padded(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (numbers, shape) = (Numbers::new(call)?, call.output_shape(0)?);
    let length = shape.last().copied().unwrap_or(0) * numbers.size;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let texts = Bytes::read(io, 0)?;
        numbers.put(io, texts, length)
    })))
}
