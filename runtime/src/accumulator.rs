//! Accumulators: sums of gradients that wait until there are enough of them.
//!
//! Source: `conditional_accumulator_base.h` of TensorFlow.

use crate::{
    budget::{KeptTensors, wait},
    context::Context,
    error::Result,
    execute::execute,
    resource::Resource,
};
use ferroflow_ir::{Attrs, DType, Error as IrError, HostTensor, PartialShape};
use parking_lot::{Condvar, Mutex};
use std::{any::Any, sync::Arc};

/// An accumulator of dense gradients.
#[derive(Debug)]
pub(crate) struct Accumulator {
    dtype: DType,
    shape: PartialShape,
    /// Whether it returns the mean of what it took, and not the sum.
    mean: bool,
    state: Mutex<Sum>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Sum {
    value: Option<KeptTensors<HostTensor>>,
    count: i32,
    step: i64,
}

impl Accumulator {
    /// An empty accumulator.
    pub(crate) fn new(dtype: DType, shape: PartialShape, mean: bool) -> Accumulator {
        Accumulator { dtype, shape, mean, state: Mutex::default(), changed: Condvar::new() }
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
                execute(context, "AddV2", Attrs::new(), &inputs)?.remove(0).into_host()?
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
                return if self.mean { divided(context, sum.value, count) } else { Ok(sum.value) };
            }
            wait(&self.changed, &mut state)?;
        }
    }
}

fn divided(context: &Context, sum: HostTensor, count: i32) -> Result<HostTensor> {
    let attrs = Attrs::new().with("DstT", sum.dtype());
    let count = execute(context, "Cast", attrs, &[HostTensor::scalar(count).into()])?.remove(0);
    let op = if sum.dtype().is_integer() { "Div" } else { "RealDiv" };
    execute(context, op, Attrs::new(), &[sum.into(), count])?.remove(0).into_host()
}

impl Resource for Accumulator {
    fn kind(&self) -> &'static str {
        "an accumulator"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_of_earlier_steps_are_left_out() {
        let context = Context::new();
        let accumulator = Accumulator::new(DType::F32, PartialShape::Unknown, true);
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
