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

/// When the components of a variable are brought into line, as TensorFlow numbers it in files.
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

/// What the values of replicas become together, as TensorFlow numbers it in files.
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

/// What is said of a variable that replicas have values of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Annotations {
    /// When its components are brought into line.
    pub synchronization: VariableSynchronization,
    /// What values of replicas become together.
    pub aggregation: VariableAggregation,
}

/// Which component a thread sees; none outside replicas.
pub(crate) fn component() -> Option<usize> {
    Replica::with_current(|replica| replica.component)
}
