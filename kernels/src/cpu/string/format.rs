//! Tensors put into text: `StringFormat`.

use super::{
    printf::{flushed, quoted, shown},
    put_strings,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Shape};
use half::{bf16, f16};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("StringFormat", string_format)];

fn string_format(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let template = call.attrs.string("template")?.to_string();
    let placeholder = call.attrs.string("placeholder")?;
    let pieces: Vec<String> = match placeholder {
        "" => vec![String::new(), template],
        _ => template.split(placeholder).map(str::to_string).collect(),
    };
    if pieces.len() != call.inputs.len() + 1 {
        let expected = format!("with {} placeholders", call.inputs.len());
        return Err(call.wrong("template", expected, pieces.len() - 1));
    }
    let summarize = call.attrs.int("summarize")?;
    let edge = usize::try_from(summarize).unwrap_or(usize::MAX);
    let specs: Vec<(DType, Shape)> =
        call.inputs.iter().map(|input| (input.dtype, input.shape.clone())).collect();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let mut text = pieces[0].clone().into_bytes();
        for (input, (dtype, shape)) in specs.iter().enumerate() {
            let show = Elements { io, input, dtype: *dtype };
            match edge.min(shape.num_elements()) {
                // Flags of which none is shown leave no trace.
                0 if *dtype == DType::Bool => {}
                0 if shape.rank() == 0 => text.extend_from_slice(b"..."),
                edge => show.dims(shape, 0, shape.rank(), edge, &mut text)?,
            }
            text.extend_from_slice(pieces[input + 1].as_bytes());
        }
        put_strings(io, 0, &Shape::scalar(), vec![Bytes::from(text)])
    })))
}

/// The elements of an input, as text.
struct Elements<'a, 'b> {
    io: &'a Io<'b>,
    input: usize,
    dtype: DType,
}

impl Elements<'_, '_> {
    /// Dimensions `dims` of a tensor of this rank, from element `first` on: the first and the last
    /// `edge` of each, with dots between them.
    fn dims(
        &self,
        dims: &[usize],
        first: usize,
        rank: usize,
        edge: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let [size, inner @ ..] = dims else { return self.element(first, out) };
        let step: usize = inner.iter().product();
        let mut gap = vec![b'\n'; inner.len()];
        gap.resize(if inner.is_empty() { 1 } else { rank }, b' ');
        let (head, tail) = (edge.min(*size), size.saturating_sub(edge).max(edge));
        out.push(b'[');
        for index in 0..head {
            if index > 0 {
                out.extend_from_slice(&gap);
            }
            self.dims(inner, first + index * step, rank, edge, out)?;
        }
        if head < *size && head < tail {
            out.extend_from_slice(&gap);
            out.extend_from_slice(b"...");
        }
        for index in tail..*size {
            out.extend_from_slice(&gap);
            self.dims(inner, first + index * step, rank, edge, out)?;
        }
        out.push(b']');
        Ok(())
    }

    fn element(&self, index: usize, out: &mut Vec<u8>) -> Result<()> {
        macro_rules! number {
            ($type:ty) => {
                self.io.input::<$type>(self.input)[index].to_string()
            };
        }
        let text = match self.dtype {
            DType::F32 => shown(flushed(self.io.input::<f32>(self.input)[index]), 6, 9),
            DType::F64 => shown(self.io.input::<f64>(self.input)[index], 15, 17),
            DType::F16 => shown(f32::from(self.io.input::<f16>(self.input)[index]), 6, 9),
            DType::BF16 => shown(flushed(self.io.input::<bf16>(self.input)[index].into()), 6, 9),
            DType::I8 | DType::QI8 => number!(i8),
            DType::I16 | DType::QI16 => number!(i16),
            DType::I32 | DType::QI32 => number!(i32),
            DType::I64 => number!(i64),
            DType::U8 | DType::QU8 | DType::Bool => number!(u8),
            DType::U16 | DType::QU16 => number!(u16),
            DType::U32 => number!(u32),
            DType::U64 => number!(u64),
            DType::String => {
                quoted(&self.io.strings(self.input)?[index], out);
                return Ok(());
            }
            _ => "?".to_string(),
        };
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
