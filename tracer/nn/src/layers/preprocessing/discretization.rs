//! Numbers as categories: bins between boundaries.

use super::OutputMode;
use crate::layers::{Layer, Mode, compute::input, shapes::wrong};
use ferroflow_ir::DType;
use ferroflow_tracer::{
    error::Result,
    ops::{self, IntoOperand},
    tensor::Tensor,
};
use ferroflow_tracer_macros::Trackable;
use std::borrow::Borrow;

/// Numbers as the bins they are in, a number at a boundary being in the bin above: `int32` of the
/// shape of the input, or vectors of `float32`.
///
/// ```
/// use ferroflow_nn::{Discretization, Layer, Mode};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let layer = Discretization::new([0.0, 1.0])?;
/// let bins = layer.call(&Tensor::from([-0.5f32, 0.0, 0.5, 7.0]), Mode::Inference)?;
/// assert_eq!(bins.to_vec::<i32>()?, [0, 1, 1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone, PartialEq)]
pub struct Discretization {
    #[trackable(skip)]
    boundaries: Vec<f32>,
    #[trackable(skip)]
    output_mode: OutputMode,
}

impl Discretization {
    /// A layer of bins between these numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when they do not grow.
    pub fn new(boundaries: impl Into<Vec<f32>>) -> Result<Discretization> {
        let boundaries = boundaries.into();
        if !boundaries.is_sorted() {
            return Err(wrong("boundaries in order", format!("{boundaries:?}")));
        }
        Ok(Discretization { boundaries, output_mode: OutputMode::Int })
    }

    /// A layer of so many bins that have about as many numbers of the data each. Quantiles are
    /// approximated up to `epsilon`, by 0.01 in Keras.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for no bins, an epsilon that is
    /// not from above 0 to 1, and no data; those of the batches.
    pub fn adapted<B: IntoOperand>(
        batches: impl IntoIterator<Item = B>,
        n_bins: usize,
        epsilon: f64,
    ) -> Result<Discretization> {
        if n_bins == 0 || !(epsilon > 0.0 && epsilon <= 1.0) {
            let found = format!("{n_bins} bins up to {epsilon}");
            return Err(wrong("bins up to an epsilon from above 0 to 1", found));
        }
        let mut summary = Summary::default();
        for batch in batches {
            let batch = batch.into_operand(DType::F32)?;
            let values = batch.borrow().cast(DType::F32)?.to_vec::<f32>()?;
            summary = Summary::of(values, epsilon).and(summary).compressed(epsilon);
        }
        let mut boundaries = summary.compressed(1.0 / n_bins as f64).values;
        if boundaries.pop().is_none() {
            return Err(wrong("a number at least", "none"));
        }
        Discretization::new(boundaries)
    }

    /// The same layer, whose bins are returned in this form.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for [`OutputMode::TfIdf`].
    pub fn with_output_mode(self, output_mode: OutputMode) -> Result<Discretization> {
        output_mode.check_unweighted()?;
        Ok(Discretization { output_mode, ..self })
    }

    /// The boundaries between the bins.
    pub fn boundaries(&self) -> &[f32] {
        &self.boundaries
    }
}

impl Layer for Discretization {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = match x.dtype() {
            DType::F64 | DType::I32 | DType::I64 => x.clone(),
            _ => input(x)?.cast(DType::F32)?,
        };
        let bins = ops::bucketize(&x, &self.boundaries)?;
        self.output_mode.of(&bins, self.boundaries.len() + 1, DType::F32)
    }
}

/// Numbers in order, each of which stands for a number of them.
#[derive(Default)]
struct Summary {
    values: Vec<f32>,
    weights: Vec<f32>,
}

impl Summary {
    /// About `1 / epsilon` of the numbers, at equal distances of their order.
    fn of(mut values: Vec<f32>, epsilon: f64) -> Summary {
        values.sort_by(f32::total_cmp);
        let step = (values.len() as f64 * epsilon).max(1.0);
        let taken = values.iter().copied().skip((step - 1.0) as usize).step_by(step as usize);
        let values: Vec<f32> = taken.collect();
        let weights = vec![step as f32; values.len()];
        Summary { values, weights }
    }

    /// The numbers of both, in order.
    fn and(self, other: Summary) -> Summary {
        let pairs = |summary: Summary| summary.values.into_iter().zip(summary.weights);
        let mut all: Vec<(f32, f32)> = pairs(self).chain(pairs(other)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (values, weights) = all.into_iter().unzip();
        Summary { values, weights }
    }

    /// As many numbers as fit `epsilon`, interpolated between those that are there.
    fn compressed(self, epsilon: f64) -> Summary {
        if (self.values.len() as f64) * epsilon < 1.0 {
            return self;
        }
        let mut sum = 0.0;
        let sums: Vec<f32> = self
            .weights
            .iter()
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let parts: Vec<f64> = sums.iter().map(|&part| f64::from(part / sum)).collect();
        let n = (1.0 / epsilon).ceil() as usize;
        let wanted: Vec<f64> = (0..n).map(|n| epsilon + n as f64 * epsilon).collect();
        let at = |ys: &[f32]| -> Vec<f64> {
            wanted.iter().map(|&x| interpolated(x, &parts, ys)).collect()
        };
        let values = at(&self.values).into_iter().map(|value| value as f32).collect();
        let mut before = 0.0;
        let weights =
            at(&sums).into_iter().map(|sum| (sum - std::mem::replace(&mut before, sum)) as f32);
        Summary { values, weights: weights.collect() }
    }
}

/// The line through the points at `x`; beyond them the first or last.
fn interpolated(x: f64, xs: &[f64], ys: &[f32]) -> f64 {
    let above = xs.partition_point(|&other| other <= x);
    let (Some(&first), Some(&last)) = (ys.first(), ys.last()) else { return f64::NAN };
    match above {
        0 => first.into(),
        above if above == xs.len() => last.into(),
        above => {
            let (a, b) = (f64::from(ys[above - 1]), f64::from(ys[above]));
            a + (b - a) / (xs[above] - xs[above - 1]) * (x - xs[above - 1])
        }
    }
}
