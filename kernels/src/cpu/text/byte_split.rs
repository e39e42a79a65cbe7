//! Bytes of strings: `TFText>ByteSplitWithOffsets`, `TFText>ByteSplitByOffsets`.

use super::{put_splits, put_texts, rows};
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape};
use std::sync::Arc;

const BY_OFFSETS: &str = "TFText>ByteSplitByOffsets";

pub(crate) const KERNELS: &[(&str, Build)] =
    &[(BY_OFFSETS, by_offsets), ("TFText>ByteSplitWithOffsets", with_offsets)];

fn with_offsets(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let (texts, mut splits) = (io.strings(0)?, vec![0]);
        for text in texts {
            splits.push(splits[splits.len() - 1] + text.len());
        }
        let shape = Shape::new([splits[splits.len() - 1]])?;
        u8::write(io, 0, DType::U8, &shape, |out| {
            for (text, ends) in texts.iter().zip(splits.windows(2)) {
                out[ends[0]..ends[1]].copy_from_slice(text);
            }
            Ok(())
        })?;
        put_splits(io, 1, DType::I64, &splits)?;
        for (output, first) in [(2, 0), (3, 1)] {
            if !io.is_read(output) {
                continue;
            }
            i32::write(io, output, DType::I32, &shape, |out| {
                for ends in splits.windows(2) {
                    let offsets = &mut out[ends[0]..ends[1]];
                    offsets.iter_mut().zip(first..).for_each(|(out, offset)| *out = offset);
                }
                Ok(())
            })?;
        }
        Ok(())
    })))
}

fn by_offsets(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let texts = io.strings(0)?;
        let (starts, ends): (&[i32], &[i32]) = (io.input(1), io.input(2));
        let rows = rows(BY_OFFSETS, io.input(3), starts.len().min(ends.len()))?;
        if rows.len() != texts.len() {
            let (expected, found) = (format!("{} splits", texts.len() + 1), rows.len() + 1);
            return Err(Error::argument(BY_OFFSETS, "input_row_splits", expected, found).into());
        }
        let (mut parts, mut splits) = (Vec::new(), vec![0]);
        for (row, text) in rows.into_iter().zip(texts) {
            for (&start, &end) in starts[row.clone()].iter().zip(&ends[row]) {
                let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
                match range {
                    Some((start, end)) if start <= end && end <= text.len() => {
                        parts.push(text.slice(start..end));
                    }
                    _ => {
                        let expected = format!("a part of {} bytes", text.len());
                        let found = format!("{start} to {end}");
                        return Err(Error::argument(BY_OFFSETS, "offsets", expected, found).into());
                    }
                }
            }
            splits.push(parts.len());
        }
        put_texts(io, 0, parts)?;
        put_splits(io, 1, DType::I64, &splits)
    })))
}
