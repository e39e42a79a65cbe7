//! Collectives: what replicas of a program compute together.
//!
//! - `replica.rs`: the replica that a thread runs. `run.rs`: all replicas of a process, and their steps.
//! - This file: the traits of engines ([`Engine`], [`Group`]), and the keys by which members meet.
//! - `threads.rs`: the engine of one process, a replica in each thread.
//! - `pending.rs`: reductions in the background.
//! - `agreement.rs`: first values of variables. `reduction.rs`: how tensors of members become one. `error.rs`: who is missing.
//!
//! The ops are in `ops/collective.rs`. Members meet by the key of their group, that of the call, and by
//! how often a member has used the key: a program that runs a node again meets the others at theirs.
//!
//! **Invariant:** a call of a collective ends: with a result, when its deadline passes, when the call
//! around it is cancelled, or when a member that it waits for has ended.

mod agreement;
mod error;
mod pending;
mod reduction;
mod replica;
mod run;
mod threads;

pub use agreement::{agree_on_variables, agreed_value};
pub use error::{CallName, CollectiveError};
pub use pending::CommunicationThreads;
pub(crate) use pending::PendingReduction;
pub use reduction::{MergeOp, Reduction};
pub use replica::{Replica, ReplicaGuard};
pub(crate) use run::FIRST_KEY;
pub use run::{Replicas, run_replicas};
pub use threads::{ThreadsEngine, threads, threads_in_groups};

use crate::{context::Context, error::Result};
use ferroflow_ir::{DType, Error as IrError, HostTensor, PartialShape, Shape, clock::Instant};
use std::{fmt, sync::Arc, time::Duration};

/// The key of a group of replicas.
pub type GroupKey = i32;

/// The key of a group's call. Calls of one key are told apart by their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InstanceKey {
    /// A number that the program says.
    Number(i32),
    /// A name.
    Name(Arc<str>),
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstanceKey::Number(number) => write!(f, "instance {number}"),
            InstanceKey::Name(name) => write!(f, "`{name}`"),
        }
    }
}

/// A call of a collective by one member.
pub struct CollectiveCall<'a> {
    /// The context.
    pub context: &'a Context,
    /// The name of the op, for messages.
    pub op: &'a str,
    /// The key of the call.
    pub key: InstanceKey,
    /// The time of its start.
    pub begun: Instant,
    /// The time it waits for the others; as long as they live if `None`.
    pub timeout: Option<Duration>,
    /// Fails when the call around this one is to end.
    pub check: &'a dyn Fn() -> Result<()>,
}

impl fmt::Debug for CollectiveCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.op, self.key)
    }
}

impl<'a> CollectiveCall<'a> {
    /// A call without a deadline, that nothing ends.
    pub fn new(context: &'a Context, op: &'a str, key: InstanceKey) -> CollectiveCall<'a> {
        CollectiveCall { context, op, key, begun: Instant::now(), timeout: None, check: &|| Ok(()) }
    }

    /// The call with the time it waits for the others.
    #[must_use]
    pub fn within(self, timeout: Duration) -> CollectiveCall<'a> {
        CollectiveCall { timeout: Some(timeout), ..self }
    }

    /// The rest of its time.
    pub fn left(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout.saturating_sub(self.begun.elapsed()))
    }

    /// Its name in messages.
    pub fn name(&self, group: GroupKey) -> CallName {
        CallName { op: self.op.into(), keys: format!("group {group}, {}", self.key) }
    }
}

/// The tensor of a broadcast, on the side of one member.
#[derive(Debug, Clone)]
pub enum Broadcast {
    /// This member sends it.
    Send(HostTensor),
    /// This member takes it, and expects this.
    Receive(DType, PartialShape),
}

/// The way in which one replica meets others.
pub trait Engine: Send + Sync + fmt::Debug {
    /// The replica's number among all.
    fn rank(&self) -> usize;

    /// The number of all replicas.
    fn size(&self) -> usize;

    /// The group of `size` members under a key: all that ask for it.
    ///
    /// # Errors
    ///
    /// [`CollectiveError`] when members do not come, or ask for something else.
    fn resolve(
        &self,
        key: GroupKey,
        size: usize,
        call: &CollectiveCall<'_>,
    ) -> Result<Arc<dyn Group>>;

    /// The size, in bytes, of the buckets in which it pays to join tensors; `None` where a small tensor costs
    /// no more than its part of a large one.
    fn bucket_bytes(&self) -> Option<usize> {
        None
    }

    /// The threads on which reductions run beside the program of the replica; `None` where the program waits
    /// for each.
    fn communication_threads(&self) -> Option<&CommunicationThreads> {
        None
    }

    /// Tells the others that this replica will not come any more.
    fn leave(&self, reason: &str);
}

/// Some replicas that compute together.
///
/// # Errors
///
/// All of its calls fail with [`CollectiveError`] when members do not come, are gone, or come with
/// something else.
pub trait Group: Send + Sync + fmt::Debug {
    /// The key.
    fn key(&self) -> GroupKey;

    /// This member's number in it.
    fn rank(&self) -> usize;

    /// The number of members.
    fn size(&self) -> usize;

    /// The reduction of the tensors of all members, the same for each of them.
    ///
    /// # Errors
    ///
    /// As all calls of a group.
    fn all_reduce(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        reduction: Reduction,
    ) -> Result<HostTensor>;

    /// The tensors of all members, joined along the first dimension in the order of the ranks.
    ///
    /// # Errors
    ///
    /// As all calls of a group.
    fn all_gather(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor>;

    /// The tensor of the one member that sends.
    ///
    /// # Errors
    ///
    /// As all calls of a group.
    fn broadcast(&self, call: &CollectiveCall<'_>, tensor: Broadcast) -> Result<HostTensor>;

    /// Part `rank` of the tensors of all members, joined along the first dimension.
    ///
    /// # Errors
    ///
    /// As all calls of a group; when the first dimension does not divide.
    fn all_to_all(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor>;

    /// The tensor of the member that sends to this one; zeros if none does. The pairs are sources and
    /// targets.
    ///
    /// # Errors
    ///
    /// As all calls of a group.
    fn permute(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        pairs: &[(usize, usize)],
    ) -> Result<HostTensor>;

    /// This member's part, by the first dimension, of the reduction of the tensors of all.
    ///
    /// # Errors
    ///
    /// As all calls of a group; when the first dimension does not divide.
    fn reduce_scatter(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        reduction: Reduction,
    ) -> Result<HostTensor> {
        let rows = rows_per_member(call, tensor.shape(), self.size())?;
        let whole = self.all_reduce(call, tensor, reduction)?;
        Ok(whole.rows(self.rank() * rows..(self.rank() + 1) * rows)?)
    }

    /// Returns when all members have called it.
    ///
    /// # Errors
    ///
    /// As all calls of a group.
    fn barrier(&self, call: &CollectiveCall<'_>) -> Result<()>;

    /// The group of some of the members, for a call of all: each asks for the part that it is in.
    ///
    /// # Errors
    ///
    /// When this member is not among them; as all calls of a group, where members meet for it.
    fn part(&self, call: &CollectiveCall<'_>, members: &[usize]) -> Result<Arc<dyn Group>>;
}

/// The error of a part of a group that is none, or that the member which asks for it is not in.
pub fn no_part(group: &dyn Group, members: &[usize]) -> CollectiveError {
    CollectiveError::Group {
        group: group.key(),
        what: "a part of it",
        expected: format!("of members below {}, {} among them", group.size(), group.rank()),
        found: format!("{members:?}"),
    }
}

/// Checks that tensors of a dtype travel between processes: as bytes.
///
/// # Errors
///
/// When their elements have no size, as strings.
pub fn check_travels(call: &CollectiveCall<'_>, dtype: DType) -> Result<()> {
    if dtype.size().is_some() {
        return Ok(());
    }
    let what = format!("{dtype} between processes").into();
    Err(IrError::Unsupported { op: call.op.to_string().into(), what }.into())
}

/// The rows of a member's part of the first dimension.
///
/// # Errors
///
/// When the members do not share it evenly.
pub fn rows_per_member(call: &CollectiveCall<'_>, shape: &Shape, members: usize) -> Result<usize> {
    match shape.dims().first() {
        Some(rows) if rows % members == 0 => Ok(rows / members),
        _ => {
            let expected = format!("of rows that {members} members share evenly");
            Err(IrError::argument(call.op.to_string(), "input", expected, shape).into())
        }
    }
}

/// Tensors joined along the first dimension.
///
/// # Errors
///
/// When there are none, or their rows differ in dtype or shape.
pub fn join_rows(op: &str, tensors: &[HostTensor]) -> Result<HostTensor> {
    let wrong = |expected: &'static str, found: String| {
        IrError::argument(op.to_string(), "input", expected, found)
    };
    let first = tensors.first().ok_or_else(|| wrong("the tensors of members", "none".into()))?;
    let [_, row @ ..] = first.shape().dims() else {
        return Err(wrong("a tensor with rows", first.shape().to_string()).into());
    };
    let (mut rows, mut bytes) = (0, Vec::new());
    for tensor in tensors {
        let fits = tensor.dtype() == first.dtype()
            && tensor.shape().dims().get(1..) == Some(row)
            && tensor.is_plain();
        if !fits {
            return Err(wrong("of the same rows", tensor.shape().to_string()).into());
        }
        rows += tensor.shape().dims()[0];
        bytes.extend_from_slice(tensor.bytes());
    }
    let shape = Shape::new(std::iter::once(rows).chain(row.iter().copied()))?;
    Ok(HostTensor::from_bytes(first.dtype(), shape, &bytes)?)
}

/// The key of the group of all replicas, as TensorFlow's strategies number it.
pub const WORLD: GroupKey = 1;
