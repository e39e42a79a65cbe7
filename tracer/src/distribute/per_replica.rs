//! A value for each replica of this process.

use crate::error::{Error, Result};
use std::ops::Index;

/// A value for each replica of this process, in the order of the ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerReplica<T>(Vec<T>);

impl<T> PerReplica<T> {
    /// These values.
    pub fn new(values: impl IntoIterator<Item = T>) -> PerReplica<T> {
        PerReplica(values.into_iter().collect())
    }

    /// The values.
    pub fn values(&self) -> &[T] {
        &self.0
    }

    /// The values, released.
    pub fn into_values(self) -> Vec<T> {
        self.0
    }

    /// Checks that there is a value for each of `replicas`.
    pub(super) fn check(&self, replicas: usize) -> Result<()> {
        let found = self.0.len();
        if found == replicas { Ok(()) } else { Err(Error::PerReplica { replicas, found }) }
    }
}

impl<T> Index<usize> for PerReplica<T> {
    type Output = T;

    fn index(&self, replica: usize) -> &T {
        &self.0[replica]
    }
}
