//! Edit distance of sequences: `EditDistance`.

use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error, Shape, budget};
use half::{bf16, f16};
use num_complex::Complex;
use std::{collections::BTreeMap, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[("EditDistance", edit_distance)];

/// The number of symbols to insert, delete or replace to make one sequence the other
/// (Levenshtein).
fn distance<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        budget::tick();
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The sequences of a sparse tensor, by their position in a tensor of shape `outer`.
fn sequences<T: Cell>(io: &Io<'_>, first: usize, outer: &Shape) -> Result<BTreeMap<usize, Vec<T>>> {
    let (indices, values): (&[i64], &[T]) = (io.input(first), T::read(io, first + 1)?);
    let rank = outer.rank() + 1;
    let mut sequences: BTreeMap<usize, Vec<T>> = BTreeMap::new();
    for (place, value) in indices.chunks_exact(rank).zip(values) {
        budget::tick();
        let mut position = 0;
        for (&index, &size) in place.iter().zip(outer.iter()) {
            match usize::try_from(index) {
                Ok(index) if index < size => position = position * size + index,
                _ => {
                    let detail = format!("coordinate {index} is outside of {outer}");
                    let op = "EditDistance".into();
                    return Err(Error::Status { code: Code::Internal, op, detail }.into());
                }
            }
        }
        sequences.entry(position).or_default().push(value.clone());
    }
    Ok(sequences)
}

fn edit_distance(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell + PartialEq>(normalize: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let dims = |input: usize| io.input::<i64>(input);
            let sizes = dims(2).iter().zip(dims(5)).map(|(a, b)| *a.max(b));
            let sizes: Vec<i64> = sizes.take(dims(2).len() - 1).collect();
            let outer = Shape::from_i64(&sizes)?;
            io.check_size(DType::F32, &outer)?;
            let hypotheses = sequences::<T>(io, 0, &outer)?;
            let references = sequences::<T>(io, 3, &outer)?;
            f32::write(io, 0, DType::F32, &outer, |out| {
                out.fill(0.0);
                for &place in hypotheses.keys().chain(references.keys()) {
                    budget::tick();
                    let own = |all: &BTreeMap<usize, Vec<T>>| all.get(&place).cloned();
                    let reference = own(&references).unwrap_or_default();
                    let changes =
                        distance(&own(&hypotheses).unwrap_or_default(), &reference) as f32;
                    out[place] = if normalize { changes / reference.len() as f32 } else { changes };
                }
                Ok(())
            })
        })
    }
    let normalize = call.attrs.bool("normalize")?;
    Ok(match call.dtype(1) {
        DType::I8 => Some(kernel::<i8>(normalize)),
        DType::I16 => Some(kernel::<i16>(normalize)),
        DType::I32 => Some(kernel::<i32>(normalize)),
        DType::I64 => Some(kernel::<i64>(normalize)),
        DType::U8 | DType::Bool => Some(kernel::<u8>(normalize)),
        DType::U16 => Some(kernel::<u16>(normalize)),
        DType::U32 => Some(kernel::<u32>(normalize)),
        DType::U64 => Some(kernel::<u64>(normalize)),
        DType::F16 => Some(kernel::<f16>(normalize)),
        DType::BF16 => Some(kernel::<bf16>(normalize)),
        DType::F32 => Some(kernel::<f32>(normalize)),
        DType::F64 => Some(kernel::<f64>(normalize)),
        DType::C64 => Some(kernel::<Complex<f32>>(normalize)),
        DType::C128 => Some(kernel::<Complex<f64>>(normalize)),
        DType::String => Some(kernel::<Bytes>(normalize)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        let check = |a: &str, b: &str, expected| {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        };
        check("kitten", "sitting", 3);
        check("", "abc", 3);
        check("abc", "", 3);
        check("abc", "abc", 0);
        check("ab", "ba", 2);
    }
}
