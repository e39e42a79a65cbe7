//! Collectives of a group: reductions and gathers around a ring, broadcasts down a tree, and exchanges
//! of each member with each.
//!
//! All that a member is going to fetch is asked for at the start, so that a chunk travels while the one
//! before it is reduced.

use crate::{
    buffers::{CallNames, Fetch},
    engine::Shared,
    messages::{DeviceAttributes, OURS},
    ring::{Turn, chunks, turns},
    tree::{children, parent},
};
use ferroflow_ir::{DType, Error as IrError, HostTensor, Shape};
use ferroflow_runtime::{
    Result,
    collective::{
        Broadcast, CollectiveCall, Group, GroupKey, InstanceKey, Reduction, check_travels,
        join_rows, no_part, rows_per_member,
    },
};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Bytes of a chunk that are enough to hide what a message costs, and stay in caches.
const CHUNK_BYTES: usize = 1 << 20;

/// A group on the side of this process.
#[derive(Debug)]
pub(crate) struct ClusterGroup {
    pub(crate) shared: Arc<Shared>,
    pub(crate) key: GroupKey,
    /// The group in the keys of buffers.
    pub(crate) name: String,
    pub(crate) rank: usize,
    pub(crate) members: Arc<Vec<DeviceAttributes>>,
}

impl ClusterGroup {
    pub(crate) fn new(
        shared: Arc<Shared>,
        key: GroupKey,
        rank: usize,
        members: Arc<Vec<DeviceAttributes>>,
    ) -> ClusterGroup {
        ClusterGroup { shared, key, name: key.to_string(), rank, members }
    }

    /// Runs the turns of rings on chunks. A chunk that comes goes through `take` with the one that is
    /// there, and each goes through `end` before it is sent on.
    ///
    /// The rings are segments of one tensor: they take each turn one after the other, so that chunks of
    /// the next one travel while those of one are reduced.
    fn around(
        &self,
        call: &CollectiveCall<'_>,
        names: &CallNames,
        turns: &[Turn],
        segments: &mut [Vec<HostTensor>],
        mut take: impl FnMut(&Turn, &mut HostTensor, HostTensor) -> Result<()>,
        mut end: impl FnMut(&Turn, &mut HostTensor) -> Result<()>,
    ) -> Result<()> {
        let (prefix, is_one) = (&names.prefix, segments.len() == 1);
        let name = |segment: usize, turn: &Turn, rank: usize| {
            let name = format!("{prefix}:{}:{}:{rank}", turn.pass, turn.chunk);
            // Keys of whole tensors are TensorFlow's.
            if is_one { name } else { format!("{name}:{segment}") }
        };
        let before = (self.rank + self.members.len() - 1) % self.members.len();
        let all = || turns.iter().flat_map(|turn| (0..segments.len()).map(move |n| (n, *turn)));
        let mut fetches = VecDeque::new();
        for (segment, turn) in all() {
            let bytes = segments[segment][turn.chunk].bytes().len();
            // Empty chunks do not travel (`RingAlg::InitRingField`).
            if turn.receives && bytes > 0 {
                fetches.push_back(self.fetch(
                    names,
                    before,
                    name(segment, &turn, before),
                    bytes,
                )?);
            }
        }
        for (segment, turn) in all().collect::<Vec<_>>() {
            let part = &mut segments[segment][turn.chunk];
            if part.is_empty() {
                continue;
            }
            if let Some(fetch) = turn.receives.then(|| fetches.pop_front()).flatten() {
                let got = self.fetched_tensor(call, fetch, part.dtype(), part.shape())?;
                take(&turn, part, got)?;
            }
            end(&turn, part)?;
            if turn.sends {
                self.put(names, name(segment, &turn, self.rank), part);
            }
        }
        Ok(())
    }

    /// The segments of a tensor, each with its chunks: small ones where no member asks for TensorFlow's.
    fn segments(&self, tensor: &HostTensor) -> Result<Vec<Vec<HostTensor>>, IrError> {
        let (members, size) = (self.members.len(), tensor.dtype().size().unwrap_or(1));
        let is_ours = self.members.iter().all(|member| member.physical_device_desc == OURS);
        let most = if is_ours { members * CHUNK_BYTES / size } else { usize::MAX };
        let starts = (0..tensor.len().max(1)).step_by(most);
        let segment = |start: usize| {
            let len = (tensor.len() - start).min(most);
            let cut = |range: std::ops::Range<usize>| {
                tensor.window(start + range.start..start + range.end, Shape::new([range.len()])?)
            };
            chunks(len, size, members).into_iter().map(cut).collect()
        };
        starts.map(segment).collect()
    }
}

impl Group for ClusterGroup {
    fn key(&self) -> GroupKey {
        self.key
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.members.len()
    }

    fn all_reduce(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        reduction: Reduction,
    ) -> Result<HostTensor> {
        let members = self.members.len();
        if members == 1 {
            return Ok(tensor);
        }
        check_travels(call, tensor.dtype())?;
        let mut segments = self.segments(&tensor)?;
        let take = |turn: &Turn, part: &mut HostTensor, got: HostTensor| match turn.pass {
            0 => reduction.merge(call.context, part, &got),
            _ => {
                *part = got;
                Ok(())
            }
        };
        let end = |turn: &Turn, part: &mut HostTensor| match turn.pass == 1 && !turn.receives {
            true => reduction.finish(call.context, part, members),
            false => Ok(()),
        };
        let what = format!("a reduction ({reduction:?})");
        let names = self.names(call, &what, tensor.dtype(), &tensor.shape().into());
        self.around(call, &names, &turns(self.rank, members), &mut segments, take, end)?;
        let mut joined = HostTensor::recycled(tensor.dtype(), tensor.shape().clone())?;
        let mut rest = joined.bytes_mut();
        for part in segments.iter().flatten() {
            let (own, others) = rest.split_at_mut(part.bytes().len());
            own.copy_from_slice(part.bytes());
            rest = others;
        }
        Ok(joined)
    }

    fn all_gather(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor> {
        check_travels(call, tensor.dtype())?;
        let members = self.members.len();
        let names = self.names(call, "a gather", tensor.dtype(), &tensor.shape().into());
        let mut parts = [vec![tensor; members]];
        let mut turns = turns(self.rank, members);
        turns.retain(|turn| turn.pass == 0 && members > 1);
        let take = |_: &Turn, part: &mut HostTensor, got: HostTensor| {
            *part = got;
            Ok(())
        };
        self.around(call, &names, &turns, &mut parts, take, |_, _| Ok(()))?;
        join_rows(call.op, &parts[0])
    }

    fn broadcast(&self, call: &CollectiveCall<'_>, sent: Broadcast) -> Result<HostTensor> {
        let InstanceKey::Number(instance) = call.key else {
            let what = "a broadcast by name between processes".into();
            return Err(IrError::Unsupported { op: call.op.to_string().into(), what }.into());
        };
        let source = self.source(call, instance, &sent)?;
        let names = match &sent {
            Broadcast::Send(tensor) => {
                self.names(call, "a broadcast", tensor.dtype(), &tensor.shape().into())
            }
            Broadcast::Receive(dtype, shape) => self.names(call, "a broadcast", *dtype, shape),
        };
        let name = |from: usize, to: usize| format!("{}:0:{from}:{to}", names.prefix);
        let tensor = match (sent, parent(self.rank, source)) {
            (Broadcast::Send(tensor), _) => tensor,
            (Broadcast::Receive(dtype, shape), from) => {
                check_travels(call, dtype)?;
                let wrong = || IrError::argument(call.op.to_string(), "shape", "known", &shape);
                let shape = shape.known().ok_or_else(wrong)?;
                let bytes = ferroflow_ir::host_tensor::byte_len(dtype, &shape)?;
                match from.filter(|_| bytes > 0) {
                    Some(from) => {
                        let fetch = self.fetch(&names, from, name(from, self.rank), bytes)?;
                        self.fetched_tensor(call, fetch, dtype, &shape)?
                    }
                    None => HostTensor::zeros(dtype, shape)?,
                }
            }
        };
        check_travels(call, tensor.dtype())?;
        if !tensor.is_empty() {
            for child in children(self.rank, source, self.members.len()) {
                self.put(&names, name(self.rank, child), &tensor);
            }
        }
        Ok(tensor)
    }

    fn all_to_all(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor> {
        check_travels(call, tensor.dtype())?;
        let members = self.members.len();
        let rows = rows_per_member(call, tensor.shape(), members)?;
        let part = |rank: usize| tensor.rows(rank * rows..(rank + 1) * rows);
        let mine = part(self.rank)?;
        let names = self.names(call, "an exchange", tensor.dtype(), &tensor.shape().into());
        let name = |from: usize, to: usize| format!("{}{from}{to}", names.prefix);
        let bytes = mine.bytes().len();
        let others = (0..members).filter(|&rank| rank != self.rank && bytes > 0);
        for to in others.clone() {
            self.put(&names, name(self.rank, to), &part(to)?);
        }
        let fetch = |from| Ok((from, self.fetch(&names, from, name(from, self.rank), bytes)?));
        let mut fetches: HashMap<usize, Fetch> = others.map(fetch).collect::<Result<_>>()?;
        let take = |from| match fetches.remove(&from) {
            Some(fetch) => self.fetched_tensor(call, fetch, mine.dtype(), mine.shape()),
            None => Ok(mine.clone()),
        };
        join_rows(call.op, &(0..members).map(take).collect::<Result<Vec<_>>>()?)
    }

    fn permute(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        pairs: &[(usize, usize)],
    ) -> Result<HostTensor> {
        check_travels(call, tensor.dtype())?;
        let what = format!("a permutation {pairs:?}");
        let names = self.names(call, &what, tensor.dtype(), &tensor.shape().into());
        let name = |from: usize, to: usize| format!("{}{from}{to}", names.prefix);
        let bytes = tensor.bytes().len();
        let travels = |&&(from, to): &&(usize, usize)| from != to && bytes > 0;
        if let Some(&(_, to)) = pairs.iter().filter(travels).find(|(from, _)| *from == self.rank) {
            self.put(&names, name(self.rank, to), &tensor);
        }
        match pairs.iter().find(|(_, to)| *to == self.rank) {
            Some(&(from, _)) if from != self.rank && bytes > 0 => {
                let fetch = self.fetch(&names, from, name(from, self.rank), bytes)?;
                self.fetched_tensor(call, fetch, tensor.dtype(), tensor.shape())
            }
            Some(_) => Ok(tensor),
            None => Ok(HostTensor::zeros(tensor.dtype(), tensor.shape().clone())?),
        }
    }

    fn barrier(&self, call: &CollectiveCall<'_>) -> Result<()> {
        let one = HostTensor::zeros(DType::I32, Shape::new([self.members.len()])?)?;
        self.all_reduce(call, one, Reduction::SUM).map(drop)
    }

    fn part(&self, _: &CollectiveCall<'_>, members: &[usize]) -> Result<Arc<dyn Group>> {
        let devices: Option<Vec<DeviceAttributes>> =
            members.iter().map(|&member| self.members.get(member).cloned()).collect();
        let rank = members.iter().position(|&member| member == self.rank);
        let (Some(devices), Some(rank)) = (devices, rank) else {
            return Err(no_part(self, members).into());
        };
        let (shared, name) = (self.shared.clone(), format!("{}{members:?}", self.name));
        let members = Arc::new(devices);
        Ok(Arc::new(ClusterGroup { shared, key: self.key, name, rank, members }))
    }
}
