//! Tensors put into text: `StringFormat`.

use super::{put_strings, summary::element};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, HostTensor, Shape};
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
    let specs = call.inputs.to_vec();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let mut text = pieces[0].clone().into_bytes();
        for (input, (spec, piece)) in specs.iter().zip(&pieces[1..]).enumerate() {
            let tensor = io.to_host(input, spec)?;
            match edge.min(tensor.len()) {
                // Flags of which none is shown leave no trace.
                0 if spec.dtype == DType::Bool => {}
                0 if spec.shape.rank() == 0 => text.extend_from_slice(b"..."),
                edge if spec.dtype.is_complex() && spec.shape.rank() > 0 => {
                    unshown(tensor.len(), edge, &mut text);
                }
                edge => dims(&tensor, &spec.shape, 0, edge, &mut text),
            }
            text.extend_from_slice(piece.as_bytes());
        }
        put_strings(io, 0, &Shape::scalar(), vec![Bytes::from(text)])
    })))
}

/// Elements that have no text, whatever their dimensions are.
fn unshown(n_elements: usize, limit: usize, out: &mut Vec<u8>) {
    out.push(b'[');
    out.extend_from_slice(vec!["?"; limit].join(" ").as_bytes());
    if limit < n_elements {
        out.extend_from_slice(b"...");
    }
    out.push(b']');
}

/// Dimensions `dims` of a tensor, from element `first` on: the first and the last `edge` of each,
/// with dots between them.
fn dims(tensor: &HostTensor, rest: &[usize], first: usize, edge: usize, out: &mut Vec<u8>) {
    let [size, inner @ ..] = rest else {
        return element(tensor, first, b"\"", out);
    };
    let step: usize = inner.iter().product();
    let mut gap = vec![b'\n'; inner.len()];
    gap.resize(if inner.is_empty() { 1 } else { tensor.shape().rank() }, b' ');
    let (head, tail) = (edge.min(*size), size.saturating_sub(edge).max(edge));
    out.push(b'[');
    for index in 0..head {
        if index > 0 {
            out.extend_from_slice(&gap);
        }
        dims(tensor, inner, first + index * step, edge, out);
    }
    if head < *size && head < tail {
        out.extend_from_slice(&gap);
        out.extend_from_slice(b"...");
    }
    for index in tail..*size {
        out.extend_from_slice(&gap);
        dims(tensor, inner, first + index * step, edge, out);
    }
    out.push(b']');
}
