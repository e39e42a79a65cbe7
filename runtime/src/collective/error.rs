//! Errors of collectives: who did not come, or came with something else.

use ferroflow_ir::Code;
use std::fmt;

/// Why members of a group have not computed something together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CollectiveError {
    /// Members did not come in time.
    #[error("{call}: waited {waited_ms} ms for {}", missing.join(", "))]
    Deadline {
        /// The call.
        call: CallName,
        /// The time it has waited, in milliseconds.
        waited_ms: u64,
        /// The members that did not come.
        missing: Vec<String>,
    },
    /// Members that will not come any more.
    #[error("{call}: {member} is gone: {reason}")]
    Unavailable {
        /// The call.
        call: CallName,
        /// The member.
        member: String,
        /// Why it is gone.
        reason: String,
    },
    /// A member that calls something else under the same keys.
    #[error("{call}: {member} came with {found}, others with {expected}")]
    Mismatch {
        /// The call.
        call: CallName,
        /// The member.
        member: String,
        /// The value of the others.
        expected: String,
        /// The value of this member.
        found: String,
    },
    /// A group that is not what the call takes it for.
    #[error("group {group}: {what} must be {expected}, found {found}")]
    Group {
        /// The key of the group.
        group: i32,
        /// The property that is wrong.
        what: &'static str,
        /// The expected value.
        expected: String,
        /// The value found.
        found: String,
    },
    /// A call for several members, on a thread that belongs to no replica of a strategy.
    #[error(
        "{call}: a group of {size} meets in the replicas of a strategy, and this thread runs none"
    )]
    NoReplica {
        /// The call.
        call: CallName,
        /// The number of members it asks for.
        size: usize,
    },
    /// The group was released.
    #[error("the collectives of this group were aborted: {reason}")]
    Aborted {
        /// Why.
        reason: String,
    },
}

/// The name of a collective call in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallName {
    /// The op.
    pub op: String,
    /// The key of the group, and that of the call in it.
    pub keys: String,
}

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.op, self.keys)
    }
}

impl CollectiveError {
    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            CollectiveError::Deadline { .. } => Code::DeadlineExceeded,
            CollectiveError::Unavailable { .. } => Code::Unavailable,
            CollectiveError::Mismatch { .. } | CollectiveError::Group { .. } => {
                Code::InvalidArgument
            }
            CollectiveError::NoReplica { .. } => Code::FailedPrecondition,
            CollectiveError::Aborted { .. } => Code::Aborted,
        }
    }
}
