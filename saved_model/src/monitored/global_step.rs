//! The global step: the variable that counts the steps of a training.

use super::error::MonitoredError;
use crate::{error::Result, session::Session};
use ferroflow_ir::{DType, HostTensor, tensor_name};
use ferroflow_runtime::{ResourceHandle, VariableState};

/// Counter of the steps of a training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalStep {
    variable: String,
    tensor: String,
}

impl GlobalStep {
    /// The counter in a variable of this name.
    pub fn new(variable: impl Into<String>) -> GlobalStep {
        let variable = variable.into();
        let variable = tensor_name::parse(&variable).0.to_string();
        GlobalStep { tensor: format!("{variable}:0"), variable }
    }

    /// The counter in a variable of this name, of which this tensor is the value.
    pub(super) fn read_by(variable: &str, tensor: &str) -> GlobalStep {
        let counter = GlobalStep::new(variable);
        let tensor = if tensor.is_empty() { counter.tensor } else { tensor.into() };
        GlobalStep { tensor, ..counter }
    }

    /// The name of the variable.
    pub fn variable(&self) -> &str {
        &self.variable
    }

    /// The value in a session.
    ///
    /// # Errors
    ///
    /// When it has none, or is no integer.
    pub fn read(&self, session: &Session) -> Result<i64> {
        let fetched = session.run(&[], &[&self.tensor], &[])?;
        let value = fetched.into_iter().next().map(|value| value.into_host()).transpose()?;
        let value = match value {
            Some(handle) if handle.dtype() == DType::Resource => {
                let handle = ResourceHandle::of(&handle)?;
                Some(handle.downcast::<VariableState>("a variable")?.read()?)
            }
            value => value,
        };
        value.as_ref().and_then(integer).ok_or_else(|| {
            let found = value.map_or("none".into(), |value| {
                format!("{} of shape {}", value.dtype(), value.shape())
            });
            MonitoredError::BadGlobalStep { tensor: self.tensor.clone(), found }.into()
        })
    }
}

fn integer(value: &HostTensor) -> Option<i64> {
    let values = value.to_i64s().ok()?;
    match values[..] {
        [step] => Some(step),
        _ => None,
    }
}
