//! The best label of each time step.

use super::{Sizes, write_paths};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{Code, DType, infer::normalize_axis};
use std::{ops::Neg, sync::Arc};

pub(super) fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let sizes = Sizes::new(call.op.name, call.shape(0));
    let blank = normalize_axis(call.attrs.int("blank_index")?, sizes.classes)?;
    let merge = call.attrs.bool("merge_repeated")?;
    Ok(match call.dtype(0) {
        DType::F32 => Some(kernel::<f32>(sizes, blank, merge)),
        DType::F64 => Some(kernel::<f64>(sizes, blank, merge)),
        _ => None,
    })
}

fn kernel<T: Number + PartialOrd + Neg<Output = T>>(
    sizes: Sizes,
    blank: usize,
    merge: bool,
) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let lengths = sizes.lengths(io, 1, Code::FailedPrecondition)?;
        let scores: &[T] = io.input(0);
        let log_probability: &mut [T] = io.output(3);
        let mut paths = Vec::new();
        for (batch, &length) in lengths.iter().enumerate() {
            let (mut path, mut total, mut before) = (Vec::new(), T::ZERO, None);
            for time in 0..length {
                let (label, score) = best(sizes.row(scores, time, batch));
                total = total.plus(-score);
                if label != blank && !(merge && before == Some(label)) {
                    path.push(label as i64);
                }
                before = Some(label);
            }
            log_probability[batch] = total;
            paths.push(path);
        }
        let paths: Vec<&[i64]> = paths.iter().map(|path| &path[..]).collect();
        write_paths(io, [0, 1, 2], &paths)
    })
}

/// The first of the largest scores.
fn best<T: Copy + PartialOrd>(scores: &[T]) -> (usize, T) {
    let later = |best: (usize, T), other: (usize, T)| if other.1 > best.1 { other } else { best };
    scores.iter().copied().enumerate().skip(1).fold((0, scores[0]), later)
}
