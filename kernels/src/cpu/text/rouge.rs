//! `RougeL` ("ROUGE: A Package for Automatic Evaluation of Summaries", Lin, 2004, section 3).

use super::{put_vector, rows};
use crate::{
    cpu::{Build, cell::Cell, dispatch::with_stored, index::integers},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("RougeL", rouge_l)];

/// The length of the longest subsequence of both.
fn common<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut lengths = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (place, y) in b.iter().enumerate() {
            let above = lengths[place + 1];
            lengths[place + 1] = if x == y { diagonal + 1 } else { above.max(lengths[place]) };
            diagonal = above;
        }
    }
    lengths[b.len()]
}

/// The harmonic mean of precision and recall, recall with weight `alpha`. A negative `alpha` asks
/// for the weights of the tensor2tensor library.
fn f_measure(precision: f32, recall: f32, alpha: f32) -> f32 {
    let (above, below) = if alpha < 0.0 {
        let beta = (f64::from(precision) / (f64::from(recall) + 1e-12)) as f32;
        let square = beta * beta;
        ((1.0 + square) * recall * precision, recall + square * precision)
    } else {
        (precision * recall, alpha * recall + (1.0 - alpha) * precision)
    };
    match below > 0.0 {
        true => above / below,
        false if alpha < 0.0 => 0.0,
        false => below,
    }
}

fn rouge_l(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, splits) = (call.dtype(0), call.dtype(1));
    let lengths = [call.shape(0).num_elements(), call.shape(2).num_elements()];
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let scored = with_stored!(dtype, T => score::<T>(io, splits, lengths));
        scored.unwrap_or(Ok(()))
    })))
}

fn score<T: Cell + PartialEq>(io: &mut Io<'_>, splits: DType, lengths: [usize; 2]) -> Result<()> {
    let alpha: f32 = io.scalar(4);
    if alpha > 1.0 || alpha.is_nan() {
        return Err(Error::argument("RougeL", "alpha", "at most 1", alpha).into());
    }
    let (hypotheses, references) = (T::read(io, 0)?, T::read(io, 2)?);
    let own = rows("RougeL", &integers(io, 1, splits), lengths[0])?;
    let others = rows("RougeL", &integers(io, 3, splits), lengths[1])?;
    let mut measures: [Vec<f32>; 3] = Default::default();
    for (own, other) in own.into_iter().zip(others) {
        let (hypothesis, reference) = (&hypotheses[own], &references[other]);
        // Products of the lengths are what the table of the library takes.
        io.check_size(DType::I32, &Shape::new([hypothesis.len() + 2, reference.len() + 2])?)?;
        let length = common(hypothesis, reference) as f32;
        let share = |n: usize| (f64::from(length) / (f64::from(n as f32) + 1e-12)) as f32;
        let (precision, recall) = (share(hypothesis.len()), share(reference.len()));
        measures[0].push(f_measure(precision, recall, alpha));
        measures[1].push(precision);
        measures[2].push(recall);
    }
    for (output, values) in measures.iter().enumerate() {
        put_vector(io, output, DType::F32, values)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsequences_are_found() {
        assert_eq!(common(b"abcbdab", b"bdcaba"), 4);
        assert_eq!(common(b"", b"a"), 0);
    }
}
