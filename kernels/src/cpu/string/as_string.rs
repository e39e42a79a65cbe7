//! Numbers as text: `AsString`.

use super::{
    printf::{Format, Notation, flushed},
    put_strings,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Shape, workspace};
use half::{bf16, f16};
use num_complex::Complex;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("AsString", as_string)];

/// Style of all elements.
#[derive(Debug, Clone, Copy)]
struct Style {
    format: Format,
    notation: Notation,
}

impl Style {
    fn double(&self, value: f64) -> String {
        self.format.float(value, self.notation)
    }

    fn float(&self, value: impl Into<f32>) -> String {
        self.double(flushed(value.into()).into())
    }
}

fn as_string(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let size = |name| call.attrs.int(name).map(|size| usize::try_from(size).ok());
    let (width, precision) = (size("width")?, size("precision")?);
    let flag = call.attrs.bytes("fill")?.first().copied();
    let most = 1 << 20;
    if width.is_some_and(|width| width > most) || precision.is_some_and(|digits| digits > most) {
        return Err(call.wrong("width", format!("{most} or less"), "more"));
    }
    let size = width.unwrap_or(0).max(precision.unwrap_or(0));
    workspace::check::<u8>(call.shape(0).num_elements().saturating_mul(size))?;
    let notation = if call.attrs.bool("scientific")? {
        Notation::Scientific
    } else if call.attrs.bool("shortest")? {
        Notation::Shortest
    } else {
        Notation::Fixed
    };
    let format = Format { flag, width: width.unwrap_or(0), precision };
    Ok(writer(call.dtype(0), call.shape(0).clone(), Style { format, notation }))
}

fn writer(dtype: DType, shape: Shape, style: Style) -> Option<Arc<dyn Kernel>> {
    macro_rules! each {
        ($type:ty, $x:ident => $text:expr) => {{
            Some(Arc::new(move |io: &mut Io<'_>| {
                let elements: &[$type] = io.input(0);
                let texts = elements.iter().map(|&$x| Bytes::from($text));
                put_strings(io, 0, &shape, texts)
            }))
        }};
    }
    match dtype {
        DType::F32 => each!(f32, x => style.float(x)),
        DType::F64 => each!(f64, x => style.double(x)),
        DType::F16 => each!(f16, x => style.float(x)),
        DType::BF16 => each!(bf16, x => style.float(x)),
        DType::I8 => each!(i8, x => style.format.signed(x.into())),
        DType::I16 => each!(i16, x => style.format.signed(x.into())),
        DType::I32 => each!(i32, x => style.format.signed(x.into())),
        DType::I64 => each!(i64, x => style.format.signed(x)),
        DType::U8 => each!(u8, x => style.format.unsigned(x.into())),
        DType::U16 => each!(u16, x => style.format.unsigned(x.into())),
        DType::U32 => each!(u32, x => style.format.unsigned(x.into())),
        DType::U64 => each!(u64, x => style.format.unsigned(x)),
        DType::C64 => {
            each!(Complex<f32>, x => format!("({},{})", style.float(x.re), style.float(x.im)))
        }
        DType::C128 => {
            each!(Complex<f64>, x => format!("({},{})", style.double(x.re), style.double(x.im)))
        }
        DType::Bool => each!(u8, x => if x != 0 { "true" } else { "false" }),
        DType::String => Some(Arc::new(move |io: &mut Io<'_>| {
            let texts = io.strings(0)?.iter().map(|text| {
                let width = style.format.width.max(text.len());
                let mut filled = text.to_vec();
                match style.format.flag {
                    Some(b'-') => filled.resize(width, b' '),
                    _ => drop(filled.splice(0..0, vec![b' '; width - text.len()])),
                }
                Bytes::from(filled)
            });
            put_strings(io, 0, &shape, texts)
        })),
        _ => None,
    }
}
