//! Hook that watches a tensor for NaN.

use crate::{
    error::Result,
    monitored::{
        error::MonitoredError,
        hook::{SessionRunArgs, SessionRunContext, SessionRunHook},
    },
};
use ferroflow_ir::{Attrs, DType};
use ferroflow_runtime::{EagerTensor, execute};

/// Watches a tensor, mostly the loss: a NaN is an error, or stops the session.
#[derive(Debug, Clone)]
pub struct NanTensorHook {
    tensor: String,
    fail_on_nan: bool,
}

impl NanTensorHook {
    /// A hook that fails with [`MonitoredError::NanLoss`].
    pub fn failing(tensor: impl Into<String>) -> NanTensorHook {
        NanTensorHook { tensor: tensor.into(), fail_on_nan: true }
    }

    /// A hook that asks the session to stop.
    pub fn stopping(tensor: impl Into<String>) -> NanTensorHook {
        NanTensorHook { tensor: tensor.into(), fail_on_nan: false }
    }
}

impl SessionRunHook for NanTensorHook {
    fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        Ok(SessionRunArgs::fetching([&self.tensor]))
    }

    fn after_run(
        &mut self,
        context: &mut SessionRunContext<'_>,
        values: &[EagerTensor],
    ) -> Result<()> {
        if !has_nan(context, values)? {
            return Ok(());
        }
        if self.fail_on_nan {
            return Err(MonitoredError::NanLoss { tensor: self.tensor.clone() }.into());
        }
        tracing::warn!("tensor `{}` is NaN: the session stops", self.tensor);
        context.request_stop();
        Ok(())
    }
}

fn has_nan(context: &SessionRunContext<'_>, values: &[EagerTensor]) -> Result<bool> {
    let attrs = Attrs::new().with("DstT", DType::F64);
    let numbers = execute(context.session().context(), "Cast", attrs, values)?;
    let mut found = false;
    for numbers in &numbers {
        found |= numbers.host()?.as_slice::<f64>()?.iter().any(|number| number.is_nan());
    }
    Ok(found)
}
