//! Accumulators: sums of gradients that wait until there are enough of them.
//!
//! Source: `conditional_accumulator_base.h` of TensorFlow.

use crate::{
    budget::{KeptTensors, wait},
    context::Context,
    error::Result,
    execute::execute,
    resource::Resource,
    rows::{RowRun, join, row, stacked},
    sync::{Condvar, Mutex},
};
use ferroflow_ir::{Attrs, DType, Error as IrError, HostTensor, PartialShape, ops::names};
use std::{cmp::Ordering, fmt};

/// An accumulator of gradients: dense ones, or sparse ones.
#[derive(Debug)]
pub(crate) struct Accumulator<G = HostTensor> {
    dtype: DType,
    shape: PartialShape,
    /// Whether it returns the mean of what it took, and not the sum.
    mean: bool,
    state: Mutex<Sum<G>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Sum<G> {
    value: Option<KeptTensors<G>>,
    count: i32,
    step: i64,
}

impl<G> Accumulator<G> {
    /// An empty accumulator.
    pub(crate) fn new(dtype: DType, shape: PartialShape, mean: bool) -> Accumulator<G> {
        let state = Mutex::new(Sum { value: None, count: 0, step: 0 });
        Accumulator { dtype, shape, mean, state, changed: Condvar::new() }
    }

    /// The dtype of gradients.
    pub(crate) fn dtype(&self) -> DType {
        self.dtype
    }

    /// The number of gradients in it.
    pub(crate) fn count(&self) -> i32 {
        self.state.lock().count
    }

    /// Sets the step from which on gradients count.
    pub(crate) fn set_step(&self, step: i64) {
        self.state.lock().step = step;
    }

    /// The sum of what is in it and how many gradients that were, once there are so many; empties
    /// it and goes on to the next step.
    fn take_sum(&self, required: i32) -> Result<(G, i32)> {
        if required <= 0 {
            let expected = "positive";
            return Err(
                IrError::argument("an accumulator", "num_required", expected, required).into()
            );
        }
        let mut state = self.state.lock();
        loop {
            if state.count >= required
                && let Some(sum) = state.value.take()
            {
                let count = std::mem::take(&mut state.count);
                state.step = state.step.saturating_add(1);
                return Ok((sum.value, count));
            }
            wait(&self.changed, &mut state)?;
        }
    }
}

impl Accumulator {
    /// Adds a gradient; one of an earlier step is left out.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when it is of another dtype or shape.
    pub(crate) fn apply(&self, context: &Context, step: i64, gradient: HostTensor) -> Result<()> {
        gradient.check(self.dtype)?;
        let mut state = self.state.lock();
        if step < state.step {
            return Ok(());
        }
        let shape: PartialShape = gradient.shape().into();
        let expected = match &state.value {
            Some(sum) => self.shape.merge(&sum.value.shape().into()),
            None => Some(self.shape.clone()),
        };
        if !expected.as_ref().is_some_and(|expected| expected.is_compatible_with(&shape)) {
            let expected = format!("of shape {}", expected.unwrap_or_default());
            return Err(IrError::argument("an accumulator", "gradient", expected, shape).into());
        }
        let sum = match state.value.take() {
            Some(sum) => {
                let inputs = [sum.value.into(), gradient.into()];
                execute(context, names::ADD_V2, Attrs::new(), &inputs)?.remove(0).into_host()?
            }
            None => gradient,
        };
        state.value = Some(KeptTensors::new(sum, 1)?);
        state.count = state.count.saturating_add(1);
        self.changed.notify_all();
        Ok(())
    }

    /// The mean or the sum of what is in it, once there are so many gradients; empties it and goes
    /// on to the next step.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when the number is not positive.
    pub(crate) fn take(&self, context: &Context, required: i32) -> Result<HostTensor> {
        let (sum, count) = self.take_sum(required)?;
        if self.mean { divided(context, sum, count) } else { Ok(sum) }
    }
}

fn divided(context: &Context, sum: HostTensor, count: i32) -> Result<HostTensor> {
    let attrs = Attrs::new().with("DstT", sum.dtype());
    let count =
        execute(context, names::CAST, attrs, &[HostTensor::scalar(count).into()])?.remove(0);
    let op = if sum.dtype().is_integer() { names::DIV } else { names::REAL_DIV };
    execute(context, op, Attrs::new(), &[sum.into(), count])?.remove(0).into_host()
}

/// Sparse gradients: rows, their indices in the first dimension, and the number of gradients that
/// each row is the sum of.
#[derive(Debug)]
pub(crate) struct SparseSum {
    indices: Vec<i64>,
    counts: Vec<i32>,
    rows: HostTensor,
}

/// A sparse gradient as the argument of an op.
#[derive(Debug)]
pub(crate) struct SparseGradient<'a> {
    pub(crate) indices: &'a [i64],
    pub(crate) rows: HostTensor,
    /// The shape, where it is known.
    pub(crate) shape: Option<&'a [i64]>,
}

fn misshapen(argument: &'static str, expected: String, found: impl fmt::Display) -> crate::Error {
    IrError::argument("an accumulator", argument, expected, found).into()
}

/// Source: `sparse_conditional_accumulator.h` of TensorFlow. Rows are merged as of sorted lists.
impl Accumulator<SparseSum> {
    /// Adds a gradient; one of an earlier step is left out.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when it is of another dtype or shape.
    pub(crate) fn apply_sparse(
        &self,
        context: &Context,
        step: i64,
        gradient: SparseGradient<'_>,
    ) -> Result<()> {
        gradient.rows.check(self.dtype)?;
        let mut state = self.state.lock();
        if step < state.step {
            return Ok(());
        }
        self.check(state.value.as_ref().map(|sum| &sum.value.rows), &gradient)?;
        let sum = match state.value.take() {
            None => SparseSum {
                indices: gradient.indices.to_vec(),
                counts: vec![1; gradient.indices.len()],
                rows: gradient.rows,
            },
            Some(sum) => merged(context, self.dtype, sum.value, &gradient)?,
        };
        state.value = Some(KeptTensors::new(sum, 3)?);
        state.count = state.count.saturating_add(1);
        self.changed.notify_all();
        Ok(())
    }

    fn check(&self, sum: Option<&HostTensor>, gradient: &SparseGradient<'_>) -> Result<()> {
        let SparseGradient { indices, rows, shape } = gradient;
        let Some((n_rows, row)) = rows.shape().split_first() else {
            return Err(misshapen("gradient_values", "of rows".into(), rows.shape()));
        };
        if *n_rows != indices.len() {
            return Err(misshapen("gradient_values", format!("{} rows", indices.len()), n_rows));
        }
        let own = self.shape.dims().unwrap_or_default();
        let fits = |own: &Option<usize>, size: i64| own.is_none_or(|own| own as i64 == size);
        if let Some(shape) = shape {
            let is_alike = own.len() <= shape.len()
                && own.iter().zip(shape.iter()).all(|(own, &size)| fits(own, size));
            if !is_alike {
                let expected = format!("of shape {}", self.shape);
                return Err(misshapen("gradient_shape", expected, format!("{shape:?}")));
            }
        }
        let limit = own.first().copied().flatten().map(|limit| limit as i64);
        let is_outside = |index: &&i64| limit.is_some_and(|limit| **index >= limit) || **index < 0;
        if let Some(index) = indices.iter().find(is_outside) {
            let expected = format!("rows of shape {}", self.shape);
            return Err(misshapen("gradient_indices", expected, index));
        }
        let is_alike = match sum {
            Some(sum) => sum.shape()[1..] == *row,
            None => {
                let own = own.get(1..).unwrap_or_default();
                own.len() <= row.len()
                    && own.iter().zip(row).all(|(own, &size)| fits(own, size as i64))
            }
        };
        if !is_alike {
            let expected = format!("rows of shape {}", self.shape);
            return Err(misshapen("gradient_values", expected, rows.shape()));
        }
        Ok(())
    }

    /// The indices, the means or sums of their rows, and the shape, once there are so many
    /// gradients. A mean is that of the gradients that have the row.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when the number is not positive.
    pub(crate) fn take_sparse(
        &self,
        context: &Context,
        required: i32,
    ) -> Result<(Vec<i64>, HostTensor, Vec<i64>)> {
        let (sum, _) = self.take_sum(required)?;
        let first = self.shape.dims().and_then(|dims| dims.first().copied().flatten());
        let mut shape = sum.rows.shape().to_i64();
        shape[0] = first.map_or(-1, |size| size as i64);
        let rows = if self.mean {
            let mut parts = Vec::with_capacity(sum.counts.len());
            for (at, &count) in sum.counts.iter().enumerate() {
                parts.push(divided(context, row(&sum.rows, at)?, count)?);
            }
            let runs: Vec<RowRun<'_>> = parts.iter().map(RowRun::Tensor).collect();
            join(context, self.dtype, sum.rows.shape().clone(), &runs)?
        } else {
            sum.rows
        };
        Ok((sum.indices, rows, shape))
    }
}

fn merged(
    context: &Context,
    dtype: DType,
    sum: SparseSum,
    gradient: &SparseGradient<'_>,
) -> Result<SparseSum> {
    let (mut indices, mut counts, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while i < sum.indices.len() || j < gradient.indices.len() {
        let (old, new) = (sum.indices.get(i), gradient.indices.get(j));
        let order = match (old, new) {
            (Some(old), Some(new)) => old.cmp(new),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let found = match order {
            Ordering::Less => (sum.indices[i], sum.counts[i], row(&sum.rows, i)?),
            Ordering::Greater => (gradient.indices[j], 1, row(&gradient.rows, j)?),
            Ordering::Equal => {
                let inputs = [row(&sum.rows, i)?.into(), row(&gradient.rows, j)?.into()];
                let both = execute(context, names::ADD_V2, Attrs::new(), &inputs)?.remove(0);
                (sum.indices[i], sum.counts[i].saturating_add(1), both.into_host()?)
            }
        };
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
        indices.push(found.0);
        counts.push(found.1);
        rows.push(found.2);
    }
    let shape = stacked(rows.len(), &sum.rows.shape()[1..])?;
    let parts: Vec<RowRun<'_>> = rows.iter().map(RowRun::Tensor).collect();
    let rows = join(context, dtype, shape, &parts)?;
    Ok(SparseSum { indices, counts, rows })
}

impl<G: fmt::Debug + Send + 'static> Resource for Accumulator<G> {
    fn kind(&self) -> &'static str {
        "an accumulator"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_of_earlier_steps_are_left_out() {
        let context = Context::new();
        let accumulator = Accumulator::<HostTensor>::new(DType::F32, PartialShape::Unknown, true);
        let gradient = |value: f32| HostTensor::vector(&[value, 1.0]).unwrap();
        accumulator.apply(&context, 0, gradient(1.0)).unwrap();
        accumulator.apply(&context, 0, gradient(3.0)).unwrap();
        assert_eq!(accumulator.count(), 2);
        assert_eq!(accumulator.take(&context, 2).unwrap(), gradient(2.0));
        accumulator.apply(&context, 0, gradient(9.0)).unwrap();
        assert_eq!(accumulator.count(), 0);
        accumulator.apply(&context, 1, gradient(5.0)).unwrap();
        let other = HostTensor::scalar(1.0f32);
        assert!(accumulator.apply(&context, 1, other).is_err());
        assert_eq!(accumulator.take(&context, 1).unwrap(), gradient(5.0));
        assert!(accumulator.take(&context, 0).is_err());
    }
}
