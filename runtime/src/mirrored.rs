//! Components of variables: a value for each replica of this process.
//!
//! A mirrored variable is one variable with one name and one handle. A thread that runs a replica sees
//! the component of its replica; any other thread sees the first one, and what it assigns goes to all.
//! Functions that capture the variable need no change: which component a call means is decided when it
//! looks at the variable, on the thread that runs the call.

use crate::collective::Replica;
use std::cell::Cell;

thread_local! {
    /// The number of replicas that variables made on this thread have values for.
    static REPLICAS: Cell<usize> = const { Cell::new(1) };
}

/// Makes variables that are created on this thread have a value for each of `replicas` replicas, until
/// the guard is dropped: those of Rust, of loaded models, and of ops.
pub fn mirror_variables(replicas: usize) -> impl Drop {
    MirrorGuard(REPLICAS.replace(replicas.max(1)))
}

struct MirrorGuard(usize);

impl Drop for MirrorGuard {
    fn drop(&mut self) {
        REPLICAS.set(self.0);
    }
}

/// The number of replicas that a variable made now has values for.
pub(crate) fn replicas() -> usize {
    REPLICAS.get()
}

/// The time at which components of a variable are synchronised, numbered as in TensorFlow's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum VariableSynchronization {
    /// The strategy decides: at assignments.
    #[default]
    Auto,
    /// Never.
    None,
    /// At assignments.
    OnWrite,
    /// When it is read or saved outside replicas; between, each replica has a value of its own.
    OnRead,
}

/// The aggregation of the values of replicas, numbered as in TensorFlow's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum VariableAggregation {
    /// Nothing is said.
    #[default]
    None,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The value of the first replica.
    OnlyFirstReplica,
}

impl VariableSynchronization {
    /// The mode of this number in files; `None` if there is none.
    pub fn from_number(number: i32) -> Option<VariableSynchronization> {
        use VariableSynchronization::{Auto, None, OnRead, OnWrite};
        [Auto, None, OnWrite, OnRead].into_iter().find(|mode| mode.number() == number)
    }

    /// Its number in files.
    pub fn number(self) -> i32 {
        self as i32
    }
}

impl VariableAggregation {
    /// The mode of this number in files; `None` if there is none.
    pub fn from_number(number: i32) -> Option<VariableAggregation> {
        use VariableAggregation::{Mean, None, OnlyFirstReplica, Sum};
        [None, Sum, Mean, OnlyFirstReplica].into_iter().find(|mode| mode.number() == number)
    }

    /// Its number in files.
    pub fn number(self) -> i32 {
        self as i32
    }
}

/// Annotations of a variable of which replicas have values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The time at which its components are synchronised.
    pub synchronization: VariableSynchronization,
    /// The aggregation of the values of replicas.
    pub aggregation: VariableAggregation,
}

/// The number of the component that this thread sees; `None` outside replicas.
pub(crate) fn component() -> Option<usize> {
    Replica::with_current(|replica| replica.component)
}
