//! Collectives of a group of ranks.

use crate::world::{Meeting, Member, World};
use ferroflow_ir::{DType, Element, Error as IrError, HostTensor, Shape, host_tensor::byte_len};
use ferroflow_runtime::{
    Result,
    collective::{
        Broadcast, CollectiveCall, Group, GroupKey, MergeOp, Reduction, check_travels, join_rows,
        no_part, rows_per_member,
    },
};
use mpi::{
    collective::SystemOperation,
    topology::SimpleCommunicator,
    traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Root, Source},
};
use std::sync::Arc;

/// Elements of a message: MPI counts with 32 bits.
const MOST: usize = 1 << 30;

/// A group on the side of this process.
#[derive(Debug)]
pub(crate) struct MpiGroup {
    world: Arc<World>,
    key: GroupKey,
    member: Member,
    /// Whether its communicator is freed with it.
    is_part: bool,
}

impl Drop for MpiGroup {
    fn drop(&mut self) {
        if self.is_part {
            self.world.release(self.member);
        }
    }
}

impl MpiGroup {
    pub(crate) fn new(world: Arc<World>, key: GroupKey, member: Member) -> MpiGroup {
        MpiGroup { world, key, member, is_part: false }
    }

    /// The members that ask for the same key, all at the same point of the program.
    pub(crate) fn split(&self, call: &CollectiveCall<'_>, key: GroupKey) -> Result<Member> {
        let meeting = Meeting { what: "groups".into(), sends: false };
        let made =
            self.world.together(call, self.key, self.member, meeting, move |ranks, all, _| {
                Ok(ranks.split(all, key))
            })?;
        let none = || IrError::NotFound { kind: "group of ranks", name: key.to_string() };
        Ok(made.ok_or_else(none)?)
    }

    /// The text that is the same for all members of a call.
    fn described(&self, call: &CollectiveCall<'_>, what: &str) -> String {
        format!("{what} (group {}, {})", self.key, call.key)
    }

    /// Runs `body` when all members have come with the same.
    fn together<R: Send + 'static>(
        &self,
        call: &CollectiveCall<'_>,
        what: String,
        body: impl FnOnce(&SimpleCommunicator) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let meeting = Meeting { what: self.described(call, &what), sends: false };
        self.world.together(call, self.key, self.member, meeting, |_, all, _| body(all))
    }
}

impl Group for MpiGroup {
    fn key(&self) -> GroupKey {
        self.key
    }

    fn rank(&self) -> usize {
        self.member.rank
    }

    fn size(&self) -> usize {
        self.member.size
    }

    /// Reductions that MPI has are its own, of which it promises the same results to all. Of others, every member
    /// reduces the tensors of all in the order of the ranks.
    fn all_reduce(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        reduction: Reduction,
    ) -> Result<HostTensor> {
        check_travels(call, tensor.dtype())?;
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        let what = format!("a reduction ({reduction:?}) of {dtype}{shape}");
        if !is_reduced(dtype, reduction.merge) {
            let parts = self.together(call, what, move |all| gathered(all, &tensor))?;
            let parts = parts.chunks(byte_len(dtype, &shape)?.max(1));
            let parts = parts.map(|part| HostTensor::from_bytes(dtype, shape.clone(), part));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            let reduced = reduction.reduce(call.context, &parts)?;
            return Ok(reduced.map_or_else(|| HostTensor::zeros(dtype, shape.clone()), Ok)?);
        }
        let reduce = move |all: &SimpleCommunicator| reduced(all, &tensor, reduction.merge);
        let mut reduced = self.together(call, what, reduce)?;
        reduction.finish(call.context, &mut reduced, self.member.size)?;
        Ok(reduced)
    }

    fn all_gather(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor> {
        check_travels(call, tensor.dtype())?;
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        let &[rows, ref row @ ..] = shape.dims() else {
            return join_rows(call.op, &[tensor]);
        };
        let whole = Shape::new(
            std::iter::once(rows.saturating_mul(self.member.size)).chain(row.iter().copied()),
        )?;
        let what = format!("a gather of {dtype}{shape}");
        let all = self.together(call, what, move |all| gathered(all, &tensor))?;
        Ok(HostTensor::from_bytes(dtype, whole, &all)?)
    }

    fn broadcast(&self, call: &CollectiveCall<'_>, sent: Broadcast) -> Result<HostTensor> {
        let sends = matches!(sent, Broadcast::Send(_));
        let mut tensor = match sent {
            Broadcast::Send(tensor) => tensor,
            Broadcast::Receive(dtype, shape) => {
                let wrong = || IrError::argument(call.op.to_string(), "shape", "known", &shape);
                check_travels(call, dtype)?;
                HostTensor::zeros(dtype, shape.known().ok_or_else(wrong)?)?
            }
        };
        check_travels(call, tensor.dtype())?;
        let what = format!("a broadcast of {}{}", tensor.dtype(), tensor.shape());
        let what = self.described(call, &what);
        let (op, meeting) = (call.op.to_string(), Meeting { what, sends });
        self.world.together(call, self.key, self.member, meeting, move |_, all, sender| {
            let none = || IrError::argument(op, "input", "a member that sends", "none");
            let root = all.process_at_rank(sender.ok_or_else(none)? as i32);
            for part in tensor.bytes_mut().chunks_mut(MOST) {
                root.broadcast_into(part);
            }
            Ok(tensor)
        })
    }

    fn all_to_all(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor> {
        check_travels(call, tensor.dtype())?;
        let rows = rows_per_member(call, tensor.shape(), self.member.size)?;
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        let (members, what) = (self.member.size, format!("an exchange of {dtype}{shape}"));
        self.together(call, what, move |all| {
            let mut parts = HostTensor::zeros(dtype, shape)?;
            let part = tensor.bytes().len() / members.max(1);
            if part == 0 {
                return Ok(parts);
            }
            if part <= MOST {
                all.all_to_all_into(tensor.bytes(), parts.bytes_mut());
                return Ok(parts);
            }
            let what = format!("{rows} rows for each member, {part} bytes").into();
            Err(IrError::Unsupported { op: "an exchange by MPI".into(), what }.into())
        })
    }

    fn permute(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        pairs: &[(usize, usize)],
    ) -> Result<HostTensor> {
        check_travels(call, tensor.dtype())?;
        let own = self.member.rank;
        let what = format!("a permutation {pairs:?} of {}{}", tensor.dtype(), tensor.shape());
        let to = pairs.iter().find(|(from, _)| *from == own).map(|&(_, to)| to);
        let from = pairs.iter().find(|(_, to)| *to == own).map(|&(from, _)| from);
        self.together(call, what, move |all| {
            let mut got = HostTensor::zeros(tensor.dtype(), tensor.shape().clone())?;
            let parts = tensor.bytes().chunks(MOST).zip(got.bytes_mut().chunks_mut(MOST));
            for (sent, taken) in parts {
                mpi::request::scope(|scope| {
                    let to =
                        to.map(|to| all.process_at_rank(to as i32).immediate_send(scope, sent));
                    if let Some(from) = from {
                        all.process_at_rank(from as i32).receive_into(taken);
                    }
                    if let Some(sent) = to {
                        sent.wait();
                    }
                });
            }
            Ok(got)
        })
    }

    fn barrier(&self, call: &CollectiveCall<'_>) -> Result<()> {
        self.together(call, "a barrier".into(), |_| Ok(()))
    }

    fn part(&self, call: &CollectiveCall<'_>, members: &[usize]) -> Result<Arc<dyn Group>> {
        let (rank, size) = (self.member.rank, self.member.size);
        if !members.contains(&rank) || members.iter().any(|&member| member >= size) {
            return Err(no_part(self, members).into());
        }
        // Parts do not overlap: the first members tell them apart.
        let member = self.split(call, members[0] as GroupKey)?;
        let part = MpiGroup { world: self.world.clone(), key: self.key, member, is_part: true };
        if member.size != members.len() {
            return Err(no_part(self, members).into());
        }
        Ok(Arc::new(part))
    }
}

/// Whether MPI reduces numbers as TensorFlow does: it knows none of 16 bits, and may lose NaN among others in the
/// least and the largest.
fn is_reduced(dtype: DType, merge: MergeOp) -> bool {
    use DType::*;
    match dtype {
        F32 | F64 => matches!(merge, MergeOp::Add | MergeOp::Mul),
        I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64 => true,
        _ => false,
    }
}

/// The reduction of the numbers of all members.
fn reduced(all: &SimpleCommunicator, tensor: &HostTensor, merge: MergeOp) -> Result<HostTensor> {
    match tensor.dtype() {
        DType::F32 => reduced_as::<f32>(all, tensor, merge),
        DType::F64 => reduced_as::<f64>(all, tensor, merge),
        DType::I8 => reduced_as::<i8>(all, tensor, merge),
        DType::I16 => reduced_as::<i16>(all, tensor, merge),
        DType::I32 => reduced_as::<i32>(all, tensor, merge),
        DType::I64 => reduced_as::<i64>(all, tensor, merge),
        DType::U8 => reduced_as::<u8>(all, tensor, merge),
        DType::U16 => reduced_as::<u16>(all, tensor, merge),
        DType::U32 => reduced_as::<u32>(all, tensor, merge),
        _ => reduced_as::<u64>(all, tensor, merge),
    }
}

fn reduced_as<T: Element + Equivalence>(
    all: &SimpleCommunicator,
    tensor: &HostTensor,
    merge: MergeOp,
) -> Result<HostTensor> {
    let mut reduced = HostTensor::recycled(tensor.dtype(), tensor.shape().clone())?;
    let parts = tensor.as_slice::<T>()?.chunks(MOST);
    for (own, reduced) in parts.zip(reduced.as_mut_slice::<T>()?.chunks_mut(MOST)) {
        let op = match merge {
            MergeOp::Add => SystemOperation::sum(),
            MergeOp::Mul => SystemOperation::product(),
            MergeOp::Min => SystemOperation::min(),
            MergeOp::Max => SystemOperation::max(),
        };
        all.all_reduce_into(own, reduced, op);
    }
    Ok(reduced)
}

/// The bytes of the tensors of all members, in the order of the ranks.
fn gathered(all: &SimpleCommunicator, tensor: &HostTensor) -> Result<Vec<u8>> {
    let (own, members) = (tensor.bytes(), all.size() as usize);
    let mut whole = vec![0; own.len() * members];
    // Open MPI takes empty buffers, whose addresses are the same, for one.
    if own.is_empty() {
        return Ok(whole);
    }
    if own.len() <= MOST {
        all.all_gather_into(own, &mut whole[..]);
        return Ok(whole);
    }
    for start in (0..own.len()).step_by(MOST) {
        let piece = &own[start..own.len().min(start + MOST)];
        let mut pieces = vec![0; piece.len() * members];
        all.all_gather_into(piece, &mut pieces[..]);
        for (whole, piece) in whole.chunks_mut(own.len()).zip(pieces.chunks(piece.len())) {
            whole[start..start + piece.len()].copy_from_slice(piece);
        }
    }
    Ok(whole)
}
