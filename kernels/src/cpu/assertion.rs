//! `Assert`.

use super::Build;
use crate::{
    device::{OpCall, OperandSpec},
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{Code, DType, Error, HostTensor};
use std::{fmt::Write, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[("Assert", assertion)];

fn assertion(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let data: Vec<OperandSpec> = call.inputs[1..].to_vec();
    let shown = usize::try_from(call.attrs.int("summarize")?).unwrap_or(usize::MAX);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        if io.bytes(0).first().is_some_and(|&byte| byte != 0) {
            return Ok(());
        }
        let mut detail = "assertion failed:".to_string();
        for (index, spec) in data.iter().enumerate() {
            write!(detail, " {}", summary(io, index + 1, spec, shown)?).expect("text has room");
        }
        Err(Error::Status { code: Code::InvalidArgument, op: "Assert".into(), detail }.into())
    })))
}

/// The first elements of an input.
fn summary(io: &Io<'_>, input: usize, spec: &OperandSpec, shown: usize) -> Result<String> {
    let tensor = match spec.dtype {
        DType::String => HostTensor::from_strings(spec.shape.clone(), io.strings(input)?.to_vec())?,
        DType::Resource | DType::Variant => return Ok(format!("[{}]", spec.dtype)),
        dtype => HostTensor::from_bytes(dtype, spec.shape.clone(), io.bytes(input))?,
    };
    let mut text = "[".to_string();
    for index in 0..tensor.len().min(shown) {
        if index > 0 {
            text.push(' ');
        }
        tensor.fmt_element(index, &mut text).expect("text has room");
    }
    text.push_str(if tensor.len() > shown { " ...]" } else { "]" });
    Ok(text)
}
