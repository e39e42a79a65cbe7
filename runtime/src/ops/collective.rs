//! Collective ops, run by the engine of the thread's replica.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    collective::{
        Broadcast, CollectiveCall, CollectiveError, FIRST_KEY, Group, InstanceKey,
        PendingReduction, Reduction, Replica, WORLD, threads,
    },
    eager_tensor::Results,
    error::Result,
    resource::{Resource, ResourceHandle},
};
use ferroflow_ir::{Error as IrError, HostTensor, budget, clock::Instant, ops::names};
use smallvec::SmallVec;
use std::{sync::Arc, time::Duration};

/// The keys of a call: of its group, and of itself in it.
struct Keys {
    size: i64,
    group: i32,
    instance: InstanceKey,
}

/// Keys in attributes.
fn keys_of_attrs(call: &RuntimeCall<'_>) -> Result<Keys> {
    let small = |name: &'static str| -> Result<i32> {
        let value = call.attrs.int(name)?;
        let wrong = || IrError::argument(call.op.name, name, "a 32-bit integer", value);
        Ok(i32::try_from(value).map_err(|_| wrong())?)
    };
    let instance = InstanceKey::Number(small("instance_key")?);
    Ok(Keys { size: call.attrs.int("group_size")?, group: small("group_key")?, instance })
}

/// Keys in the scalar inputs from `first` on.
fn keys_of_inputs(call: &RuntimeCall<'_>, first: usize) -> Result<Keys> {
    let [size, group, instance] = [0, 1, 2].map(|offset| scalar(call, first + offset));
    Ok(Keys { size: size?.into(), group: group?, instance: InstanceKey::Number(instance?) })
}

fn keys(call: &RuntimeCall<'_>) -> Result<Keys> {
    if call.op.attr("group_key").is_some() { keys_of_attrs(call) } else { keys_of_inputs(call, 1) }
}

/// The integer in scalar input `index`.
fn scalar(call: &RuntimeCall<'_>, index: usize) -> Result<i32> {
    let tensor = call.host(index)?;
    if tensor.shape().rank() != 0 {
        let name = format!("input {index}");
        return Err(IrError::argument(call.op.name, name, "a scalar", tensor.shape()).into());
    }
    Ok(tensor.as_scalar::<i32>()?)
}

/// Runs `body` with the call as engines take it.
fn with_call<R>(
    call: &RuntimeCall<'_>,
    key: InstanceKey,
    body: impl FnOnce(&CollectiveCall<'_>) -> Result<R>,
) -> Result<R> {
    let check = || Ok(budget::check()?);
    let timeout = match call.op.attr("timeout_seconds") {
        Some(_) => timeout(call.attrs.float("timeout_seconds")?),
        None => None,
    };
    let (context, op, begun) = (call.context(), call.op.name, Instant::now());
    body(&CollectiveCall { context, op, key, begun, timeout, check: &check })
}

/// A time in seconds; none if it is not positive.
fn timeout(seconds: f32) -> Option<Duration> {
    if seconds > 0.0 { Duration::try_from_secs_f32(seconds).ok() } else { None }
}

/// The group of `size` members under a key. A thread without a replica is a group of its own.
fn resolve(call: &CollectiveCall<'_>, group: i32, size: i64) -> Result<Arc<dyn Group>> {
    let wrong = || IrError::argument(call.op.to_string(), "group_size", "1 or more", size);
    let size = usize::try_from(size).ok().filter(|size| *size > 0).ok_or_else(wrong)?;
    match Replica::current() {
        Some(replica) => replica.engine.resolve(group, size, call),
        None if size == 1 => alone(call, group),
        None => Err(CollectiveError::NoReplica { call: call.name(group), size }.into()),
    }
}

/// The group of this thread alone.
fn alone(call: &CollectiveCall<'_>, group: i32) -> Result<Arc<dyn Group>> {
    use crate::collective::Engine;
    threads(&["replica 0".into()])[0].resolve(group, 1, call)
}

/// The group of all replicas.
fn world(call: &CollectiveCall<'_>) -> Result<Arc<dyn Group>> {
    match Replica::current() {
        Some(replica) => replica.engine.resolve(WORLD, replica.engine.size(), call),
        None => alone(call, WORLD),
    }
}

/// Runs `body` with the tensor of input 0 in the group of the call.
fn grouped(
    call: &mut RuntimeCall<'_>,
    body: impl FnOnce(&dyn Group, &CollectiveCall<'_>, HostTensor) -> Result<HostTensor>,
) -> Result<Results> {
    let Keys { size, group, instance } = keys(call)?;
    let tensor = call.taken(0)?;
    one(with_call(call, instance, |call| body(&*resolve(call, group, size)?, call, tensor))?)
}

/// The reduction that an attribute names.
fn reduction(call: &RuntimeCall<'_>, attr: &'static str) -> Result<Reduction> {
    let name = call.attrs.string(attr)?;
    let wrong = || IrError::argument(call.op.name, attr, "a reduction", name);
    Ok(Reduction::named(name).ok_or_else(wrong)?)
}

/// The reduction that `merge_op` and `final_op` say.
fn merge_and_final(call: &RuntimeCall<'_>) -> Result<Reduction> {
    let mean = call.attrs.string("final_op")? == "Div";
    Ok(Reduction { mean, ..reduction(call, "merge_op")? })
}

fn reduce(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reduction = merge_and_final(call)?;
    grouped(call, |group, call, tensor| group.all_reduce(call, tensor, reduction))
}

/// Starts a reduction; where the engine has no thread for it, it is complete before this returns.
fn reduce_start(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reduction = merge_and_final(call)?;
    let Keys { size, group, instance } = keys(call)?;
    let tensor = call.taken(0)?;
    let pending = with_call(call, instance, |call| {
        let (op, key, begun, timeout) =
            (names::COLLECTIVE_REDUCE_V2, call.key.clone(), call.begun, call.timeout);
        let call = CollectiveCall { op, key: key.clone(), ..*call };
        let group = resolve(&call, group, size)?;
        let replica = Replica::current();
        match replica.as_ref().and_then(|replica| replica.engine.communication_threads()) {
            None => Ok(PendingReduction::complete(group.all_reduce(&call, tensor, reduction)?)),
            Some(threads) => {
                let context = call.context.clone();
                PendingReduction::start(threads, move |check| {
                    let context = &context;
                    let call = CollectiveCall { context, op, key, begun, timeout, check };
                    group.all_reduce(&call, tensor, reduction)
                })
            }
        }
    })?;
    one(ResourceHandle::owning("reduction", Arc::new(pending)).to_tensor())
}

fn reduce_wait(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let pending = call.resource::<PendingReduction>(0, PendingReduction::KIND)?;
    let results = one(pending.wait()?)?;
    declared(call, results)
}

fn reduce_scatter(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reduction = merge_and_final(call)?;
    grouped(call, |group, call, tensor| group.reduce_scatter(call, tensor, reduction))
}

fn gather(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let results = grouped(call, |group, call, tensor| group.all_gather(call, tensor))?;
    match call.op.attr("shape") {
        Some(_) => declared(call, results),
        None => Ok(results),
    }
}

fn all_to_all(call: &mut RuntimeCall<'_>) -> Result<Results> {
    grouped(call, |group, call, tensor| group.all_to_all(call, tensor))
}

/// Checks a result against the shape in attribute `shape`.
fn declared(call: &RuntimeCall<'_>, results: Results) -> Result<Results> {
    let expected = call.attrs.shape("shape")?;
    match results.first() {
        Some(result) if !expected.is_compatible_with(&result.shape().into()) => {
            let expected = format!("{expected}, as the result is");
            Err(IrError::argument(call.op.name, "shape", expected, result.shape()).into())
        }
        Some(_) | None => Ok(results),
    }
}

fn send(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let results =
        grouped(call, |group, call, tensor| group.broadcast(call, Broadcast::Send(tensor)))?;
    match call.op.attr("shape") {
        Some(_) => declared(call, results),
        None => Ok(results),
    }
}

fn receive(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let Keys { size, group, instance } = keys_of_attrs(call)?;
    let expected = Broadcast::Receive(call.attrs.dtype("T")?, call.attrs.shape("shape")?.clone());
    one(with_call(call, instance, |call| resolve(call, group, size)?.broadcast(call, expected))?)
}

fn receive_v2(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let Keys { size, group, instance } = keys_of_inputs(call, 0)?;
    let shape = ferroflow_ir::PartialShape::from_i64(&call.host(3)?.to_i64s()?)?;
    let expected = Broadcast::Receive(call.attrs.dtype("T")?, shape);
    one(with_call(call, instance, |call| resolve(call, group, size)?.broadcast(call, expected))?)
}

/// Size and key of the group that a device is assigned to: the row of its number.
fn assign_group(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (rows, index, base) = (call.host(0)?, scalar(call, 1)?, scalar(call, 2)?);
    let rows = assignment(call.op.name, rows)?;
    let found = rows.iter().position(|row| usize::try_from(index).is_ok_and(|i| row.contains(&i)));
    let wrong =
        || IrError::argument(call.op.name, "device_index", "a number in `group_assignment`", index);
    let row = found.ok_or_else(wrong)?;
    let key = i32::try_from(row).ok().and_then(|row| base.checked_add(row)).ok_or_else(|| {
        IrError::argument(call.op.name, "base_key", "a key below the largest integers", base)
    })?;
    let size = rows[row].len() as i32;
    Ok(SmallVec::from_iter([size, key].map(|value| HostTensor::scalar(value).into())))
}

/// The rows of a matrix of members, none of which is in it twice.
fn assignment(op: &'static str, matrix: &HostTensor) -> Result<Vec<Vec<usize>>> {
    let wrong = |found: String| {
        IrError::argument(op, "group_assignment", "a matrix of members, each of them once", found)
    };
    let &[_, columns] = matrix.shape().dims() else {
        return Err(wrong(format!("shape {}", matrix.shape())).into());
    };
    let mut members = Vec::new();
    for &member in matrix.as_slice::<i32>()? {
        let member = usize::try_from(member).map_err(|_| wrong(member.to_string()))?;
        members.push(member);
    }
    let mut sorted = members.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(wrong(format!("{} twice", twice[0])).into());
    }
    Ok(members.chunks(columns.max(1)).map(<[usize]>::to_vec).collect())
}

/// The part of a group that an assignment puts this member in; the whole of it if there is none.
fn assigned(
    call: &CollectiveCall<'_>,
    group: Arc<dyn Group>,
    rows: &[Vec<usize>],
) -> Result<Arc<dyn Group>> {
    if rows.is_empty() {
        return Ok(group);
    }
    let row = rows.iter().find(|row| row.contains(&group.rank()));
    let wrong = || {
        let expected = format!("rows with replica {} in one of them", group.rank());
        IrError::argument(call.op.to_string(), "group_assignment", expected, format!("{rows:?}"))
    };
    let row = row.ok_or_else(wrong)?;
    let is_whole = row.iter().copied().eq(0..group.size());
    if is_whole { Ok(group) } else { group.part(call, row) }
}

/// A group with this member's rank, as ops hold it.
#[derive(Debug)]
struct Communicator(Arc<dyn Group>);

const A_COMMUNICATOR: &str = "a communicator";

impl Resource for Communicator {
    fn kind(&self) -> &'static str {
        A_COMMUNICATOR
    }
}

fn initialize_communicator(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (key, rank, size) = (scalar(call, 0)?, scalar(call, 1)?, scalar(call, 2)?);
    let name = InstanceKey::Name("communicator".into());
    let group = with_call(call, name, |call| resolve(call, key, size.into()))?;
    if usize::try_from(rank) != Ok(group.rank()) {
        let expected = format!("{}, this replica's number in the group", group.rank());
        return Err(IrError::argument(call.op.name, "rank", expected, rank).into());
    }
    one(ResourceHandle::owning("communicator", Arc::new(Communicator(group))).to_tensor())
}

/// Runs `body` with the part of the communicator's group that input 2 puts this member in.
fn communicated(
    call: &mut RuntimeCall<'_>,
    body: impl FnOnce(&dyn Group, &CollectiveCall<'_>, HostTensor) -> Result<HostTensor>,
) -> Result<Results> {
    let communicator = call.resource::<Communicator>(1, A_COMMUNICATOR)?;
    let rows = assignment(call.op.name, call.host(2)?)?;
    let tensor = call.taken(0)?;
    let name = InstanceKey::Name(call.op.name.into());
    one(with_call(call, name, |call| {
        body(&*assigned(call, communicator.0.clone(), &rows)?, call, tensor)
    })?)
}

fn reduce_v3(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reduction = reduction(call, "reduction")?;
    communicated(call, |group, call, tensor| group.all_reduce(call, tensor, reduction))
}

fn all_to_all_v3(call: &mut RuntimeCall<'_>) -> Result<Results> {
    communicated(call, |group, call, tensor| group.all_to_all(call, tensor))
}

fn cross_replica_sum(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let op = call.op.name;
    let rows = assignment(op, call.host(1)?)?;
    let tensor = call.taken(0)?;
    one(with_call(call, InstanceKey::Name(op.into()), |call| {
        let size = rows.first().map_or(0, Vec::len);
        if Replica::current().is_none() && size > 1 {
            return Err(CollectiveError::NoReplica { call: call.name(WORLD), size }.into());
        }
        assigned(call, world(call)?, &rows)?.all_reduce(call, tensor, Reduction::SUM)
    })?)
}

/// Pairs of members, of which no member sends or takes twice.
fn pairs(call: &RuntimeCall<'_>, members: usize) -> Result<Vec<(usize, usize)>> {
    let wrong = |found: String| {
        let expected = format!("pairs of replicas below {members}, none of them twice");
        IrError::argument(call.op.name, "source_target_pairs", expected, found)
    };
    let matrix = call.host(1)?;
    if matrix.shape().rank() != 2 || matrix.shape().dims()[1] != 2 {
        return Err(wrong(format!("shape {}", matrix.shape())).into());
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for pair in matrix.as_slice::<i32>()?.chunks(2) {
        let member = |value: i32| usize::try_from(value).ok().filter(|value| *value < members);
        let (Some(source), Some(target)) = (member(pair[0]), member(pair[1])) else {
            return Err(wrong(format!("{pair:?}")).into());
        };
        if pairs.iter().any(|(a, b)| *a == source || *b == target) {
            return Err(wrong(format!("{pair:?} again")).into());
        }
        pairs.push((source, target));
    }
    Ok(pairs)
}

fn permute(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let members = Replica::current().map_or(1, |replica| replica.engine.size());
    let pairs = pairs(call, members)?;
    let tensor = call.taken(0)?;
    let name = InstanceKey::Name(call.op.name.into());
    one(with_call(call, name, |call| world(call)?.permute(call, tensor, &pairs))?)
}

/// The key of the next collective of this thread's replica; of a thread without a replica, the first.
fn next_key(_: &mut RuntimeCall<'_>) -> Result<Results> {
    let key = Replica::with_current(Replica::take_key).unwrap_or(FIRST_KEY);
    one(HostTensor::scalar(key))
}

fn nccl_all_reduce(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (reduction, size) = (reduction(call, "reduction")?, call.attrs.int("num_devices")?);
    let name = InstanceKey::Name(call.attrs.string("shared_name")?.into());
    let tensor = call.taken(0)?;
    one(with_call(call, name, |call| {
        resolve(call, WORLD, size)?.all_reduce(call, tensor, reduction)
    })?)
}

/// The devices of one graph share the memory of the host.
fn nccl_broadcast(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(call.taken(0)?)
}

fn nccl_reduce(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reduction = reduction(call, "reduction")?;
    let tensors: Result<Vec<HostTensor>> =
        call.inputs.iter().map(|input| Ok(input.host()?.clone())).collect();
    let reduced = reduction.reduce(call.context(), &tensors?)?;
    let none = || IrError::argument(call.op.name, "num_devices", "1 or more", 0);
    one(reduced.ok_or_else(none)?)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("CollectiveAllToAllV2", all_to_all),
    ("CollectiveAllToAllV3", all_to_all_v3),
    ("CollectiveAssignGroupV2", assign_group),
    ("CollectiveBcastRecv", receive),
    ("CollectiveBcastRecvV2", receive_v2),
    ("CollectiveBcastSend", send),
    ("CollectiveBcastSendV2", send),
    ("CollectiveGather", gather),
    ("CollectiveGatherV2", gather),
    ("CollectiveInitializeCommunicator", initialize_communicator),
    ("CollectivePermute", permute),
    ("CollectiveReduce", reduce),
    ("CollectiveReduceScatterV2", reduce_scatter),
    ("CollectiveReduceV2", reduce),
    ("CollectiveReduceV3", reduce_v3),
    ("CrossReplicaSum", cross_replica_sum),
    ("NcclAllReduce", nccl_all_reduce),
    ("NcclBroadcast", nccl_broadcast),
    ("NcclReduce", nccl_reduce),
    ("_CollectiveKey", next_key),
    ("_CollectiveReduceStart", reduce_start),
    ("_CollectiveReduceWait", reduce_wait),
];
