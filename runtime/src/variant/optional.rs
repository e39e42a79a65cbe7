//! Optional values: tensors, or nothing.

use crate::error::Result;
use ferroflow_ir::{Error as IrError, Handle, HostTensor, ops::names};
use std::any::Any;

/// Some tensors or nothing, as a value of dtype variant.
#[derive(Debug, Clone)]
pub(crate) struct Optional(pub(crate) Option<Vec<HostTensor>>);

impl Handle for Optional {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Optional {
    /// The same variant in which `change` has replaced every tensor.
    ///
    /// # Errors
    ///
    /// Those of `change`.
    pub(crate) fn map(
        &self,
        change: &dyn Fn(&HostTensor) -> Result<HostTensor>,
    ) -> Result<Optional> {
        let change = |tensors: &Vec<HostTensor>| tensors.iter().map(change).collect();
        Ok(Optional(self.0.as_ref().map(change).transpose()?))
    }

    /// The sums of the tensors.
    ///
    /// # Errors
    ///
    /// When only one of the two has tensors, or the numbers differ, and those of `sum`.
    pub(crate) fn add(
        &self,
        other: &Optional,
        sum: &dyn Fn(&HostTensor, &HostTensor) -> Result<HostTensor>,
    ) -> Result<Optional> {
        let count = |optional: &Optional| optional.0.as_ref().map(Vec::len);
        if count(self) != count(other) {
            let expected = format!("of {:?} tensors, as the other", count(self));
            let found = format!("{:?}", count(other));
            return Err(IrError::argument(names::ADD_N, "an optional", expected, found).into());
        }
        let pairs = self.0.iter().flatten().zip(other.0.iter().flatten());
        let sums = pairs.map(|(a, b)| sum(a, b)).collect::<Result<_>>()?;
        Ok(Optional(self.0.as_ref().map(|_| sums)))
    }
}
