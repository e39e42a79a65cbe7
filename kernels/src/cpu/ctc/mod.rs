//! Connectionist temporal classification (Graves et al. 2006).
//!
//! Scores are `[time, batch, classes]`; the last class is "blank" unless an attribute names another
//! one. Probabilities are kept as logarithms in `f64`.

mod beam;
mod greedy;
mod loss;

use super::{Build, cell::Cell};
use crate::{error::Result, kernel::Io};
use ferroflow_ir::{Code, DType, Error, Shape};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("CTCBeamSearchDecoder", beam::build),
    ("CTCGreedyDecoder", greedy::build),
    ("CTCLoss", loss::build),
];

/// The sizes of the scores.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    op: &'static str,
    time: usize,
    batch: usize,
    classes: usize,
}

impl Sizes {
    fn new(op: &'static str, scores: &Shape) -> Sizes {
        Sizes { op, time: scores[0], batch: scores[1], classes: scores[2] }
    }

    /// The number of time steps of each element of the batch, out of input `index`; `code` is the
    /// status of one that is out of range.
    fn lengths(&self, io: &Io<'_>, index: usize, code: Code) -> Result<Vec<usize>> {
        let length = |(batch, &length): (usize, &i32)| match usize::try_from(length) {
            Ok(length) if length <= self.time => Ok(length),
            _ => {
                let detail =
                    format!("sequence length {length} of {batch} is not in [0, {}]", self.time);
                Err(Error::Status { code, op: self.op.into(), detail }.into())
            }
        };
        io.input::<i32>(index).iter().enumerate().map(length).collect()
    }

    /// The scores of an element of the batch at a time.
    fn row<'a, T>(&self, scores: &'a [T], time: usize, batch: usize) -> &'a [T] {
        &scores[(time * self.batch + batch) * self.classes..][..self.classes]
    }
}

/// The logarithms of the probabilities that scores stand for.
fn log_softmax<T: Copy + Into<f64>>(scores: &[T]) -> Vec<f64> {
    let largest = scores.iter().fold(f64::NEG_INFINITY, |largest, &x| largest.max(x.into()));
    let sum: f64 = scores.iter().map(|&x| (x.into() - largest).exp()).sum();
    let log_sum = largest + sum.ln();
    scores.iter().map(|&x| x.into() - log_sum).collect()
}

/// `log(exp(a) + exp(b))`
fn log_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// Writes a path for each element of the batch as a sparse matrix: its indices, values and shape.
fn write_paths(io: &mut Io<'_>, outputs: [usize; 3], paths: &[&[i64]]) -> Result<()> {
    let n: usize = paths.iter().map(|path| path.len()).sum();
    let longest = paths.iter().map(|path| path.len()).max().unwrap_or(0);
    let [indices, values, shape] = outputs;
    i64::write(io, indices, DType::I64, &Shape::new([n, 2])?, |out| {
        let coordinates = paths.iter().enumerate().flat_map(|(batch, path)| {
            (0..path.len()).flat_map(move |step| [batch as i64, step as i64])
        });
        out.iter_mut().zip(coordinates).for_each(|(out, place)| *out = place);
        Ok(())
    })?;
    i64::write(io, values, DType::I64, &Shape::new([n])?, |out| {
        out.iter_mut().zip(paths.concat()).for_each(|(out, value)| *out = value);
        Ok(())
    })?;
    io.output::<i64>(shape).copy_from_slice(&[paths.len() as i64, longest as i64]);
    Ok(())
}
