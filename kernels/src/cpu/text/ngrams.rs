//! Windows of neighbouring strings, joined: `TFText>NgramsStringJoin`.

use super::{put_splits, put_texts, rows, shared::SharedTexts};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, HostTensor, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("TFText>NgramsStringJoin", ngrams)];

/// Separators and limits of joined strings.
struct Join {
    width: usize,
    separator: Bytes,
}

impl Join {
    fn windows(&self, io: &Io<'_>, row: &[Bytes], joined: &mut SharedTexts) -> Result<()> {
        for window in row.windows(self.width) {
            let length = window.iter().map(Bytes::len).sum::<usize>()
                + self.separator.len() * (self.width - 1);
            if length > io.limit() {
                io.check_size(DType::U8, &Shape::new([length])?)?;
            }
            joined.buffer.reserve(length);
            for (place, piece) in window.iter().enumerate() {
                if place > 0 {
                    joined.buffer.extend_from_slice(&self.separator);
                }
                joined.buffer.extend_from_slice(piece);
            }
            joined.push_written();
        }
        Ok(())
    }
}

fn ngrams(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let width = call.attrs.int("width")?;
    let separator = call.attrs.bytes("string_separator")?.clone();
    let join = Join { width: usize::try_from(width).unwrap_or(0).max(1), separator };
    let n_splits = call.inputs.len() - 1;
    if n_splits == 0 {
        return dense(call, join);
    }
    let op = call.op.name;
    let outer: Vec<Shape> = (1..n_splits).map(|index| call.shape(index).clone()).collect();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let texts = io.strings(0)?;
        let (mut joined, mut splits) = (SharedTexts::with_room(texts.len())?, vec![0]);
        for row in rows(op, io.input(n_splits), texts.len())? {
            join.windows(io, &texts[row], &mut joined)?;
            splits.push(joined.len());
        }
        put_texts(io, 0, joined.finish())?;
        for (index, shape) in outer.iter().enumerate() {
            let bytes = io.bytes(1 + index);
            io.put(1 + index, HostTensor::from_bytes(DType::I64, shape.clone(), bytes)?)?;
        }
        put_splits(io, n_splits, DType::I64, &splits)
    })))
}

/// Windows along the last axis of a tensor.
fn dense(call: &OpCall<'_>, join: Join) -> Result<Option<Arc<dyn Kernel>>> {
    let shape = call.output_shape(0)?;
    let length = call.shape(0).last().copied().unwrap_or(0);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let texts = io.strings(0)?;
        let mut joined = SharedTexts::with_room(texts.len())?;
        for row in texts.chunks(length.max(1)) {
            join.windows(io, row, &mut joined)?;
        }
        io.put(0, HostTensor::from_strings(shape.clone(), joined.finish())?)
    })))
}
