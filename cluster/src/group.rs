//! Collectives of a group: reductions and gathers around a ring, broadcasts down a tree, and exchanges
//! of each member with each.
//!
//! A member puts what another one wants where that one fetches it (`RecvBuf`), under a key that both
//! derive from the call. All that a member is going to fetch is asked for at the start, so that a chunk
//! travels while the one before it is reduced.

use crate::{
    engine::{LONGEST, Shared},
    error::Result as ClusterResult,
    messages::{
        BROADCAST, CompleteInstanceRequest, CompleteInstanceResponse, DeviceAttributes, OURS,
        RecvBufRequest, RecvBufRespExtra, RecvBufResponse,
    },
    ring::{Turn, chunks, turns},
    state::CallBuffer,
    tree::{children, parent},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error as IrError, HostTensor, PartialShape, Shape};
use ferroflow_runtime::{
    Result,
    collective::{
        Broadcast, CollectiveCall, CollectiveError, Group, GroupKey, InstanceKey, Reduction,
        join_rows, rows_per_member,
    },
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
};
use tokio::task::JoinHandle;

/// Bytes of a chunk that are enough to hide what a message costs, and stay in caches.
const CHUNK_BYTES: usize = 1 << 20;

/// A group on the side of this process.
#[derive(Debug)]
pub(crate) struct ClusterGroup {
    shared: Arc<Shared>,
    key: GroupKey,
    /// The group in the keys of buffers.
    name: String,
    rank: usize,
    members: Arc<Vec<DeviceAttributes>>,
}

/// The elements of a tensor as bytes.
struct TensorBytes(HostTensor);

impl AsRef<[u8]> for TensorBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The names by which members meet in a call.
struct CallNames {
    /// The beginning of the keys of its buffers.
    prefix: String,
    /// The call in words: members that call something else under the same keys are told.
    signature: String,
}

/// A buffer of another member that is on its way.
struct Fetch {
    answer: JoinHandle<ClusterResult<RecvBufResponse>>,
    from: usize,
    bytes: usize,
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.answer.abort();
    }
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

    /// The names of a call, `what` with a tensor of this type.
    fn names(
        &self,
        call: &CollectiveCall<'_>,
        what: &str,
        dtype: DType,
        shape: &PartialShape,
    ) -> CallNames {
        let prefix = match &call.key {
            InstanceKey::Number(number) => format!("{}:{number}:0:0", self.name),
            InstanceKey::Name(name) => format!("{}:{name}:0:0", self.name),
        };
        CallNames { prefix, signature: format!("{what} of {dtype}{shape}") }
    }

    /// Puts a tensor where another member fetches it.
    fn put(&self, names: &CallNames, key: String, tensor: &HostTensor) {
        // It shares the memory of the tensor, which is copied before it is written to.
        let bytes = Bytes::from_owner(TensorBytes(tensor.clone()));
        self.shared.state.put(key, CallBuffer { bytes, signature: names.signature.clone() });
    }

    /// Asks another member for a buffer.
    fn fetch(&self, names: &CallNames, from: usize, key: String, bytes: usize) -> Result<Fetch> {
        let device = &self.members[from];
        let peer = self.shared.member(device)?.clone();
        let request = RecvBufRequest {
            step_id: 0,
            buf_rendezvous_key: key,
            num_bytes: bytes as i64,
            src_device: device.name.clone(),
            dst_device: self.shared.state.device.name.clone(),
            request_id: self.shared.requests.fetch_add(1, Ordering::Relaxed),
            src_incarnation: device.incarnation,
            signature: names.signature.clone(),
        };
        let method = "/tensorflow.WorkerService/RecvBuf";
        let call = async move { peer.call(method, request, LONGEST).await };
        Ok(Fetch { answer: self.shared.runtime.spawn(call), from, bytes })
    }

    /// Waits for a buffer.
    fn fetched(&self, call: &CollectiveCall<'_>, mut fetch: Fetch) -> Result<Bytes> {
        let peer = self.shared.member(&self.members[fetch.from])?;
        let missing = || vec![peer.name().to_string()];
        let answer = async {
            let answer = (&mut fetch.answer).await;
            answer.unwrap_or_else(|error| Err(peer.lost("RecvBuf", &error.to_string())))
        };
        let response = self.shared.wait(call, self.key, &missing, answer)?;
        let extra: Option<RecvBufRespExtra> =
            response.transport_options.and_then(|options| options.to());
        let mut content = extra.map(|extra| extra.tensor_content).unwrap_or_default();
        // Long buffers come in pieces.
        let content = if content.len() == 1 { content.remove(0) } else { content.concat().into() };
        if content.len() == fetch.bytes {
            return Ok(content);
        }
        let expected = format!("{} bytes", fetch.bytes);
        let found = format!("{} bytes", content.len());
        let (call, member) = (call.name(self.key), peer.name().to_string());
        Err(CollectiveError::Mismatch { call, member, expected, found }.into())
    }

    /// As [`fetched`](Self::fetched), a tensor.
    fn fetched_tensor(
        &self,
        call: &CollectiveCall<'_>,
        fetch: Fetch,
        dtype: DType,
        shape: &Shape,
    ) -> Result<HostTensor> {
        let bytes = self.fetched(call, fetch)?;
        Ok(HostTensor::from_bytes(dtype, shape.clone(), &bytes)?)
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

    /// The rank of the member that sends in a broadcast, as the leader knows it.
    fn source(&self, call: &CollectiveCall<'_>, instance: i32, sent: &Broadcast) -> Result<usize> {
        let is_source = matches!(sent, Broadcast::Send(_));
        let shared = &*self.shared;
        let known = shared.sources.lock().get(&(self.key, instance)).copied();
        let source = match known {
            Some(source) => source,
            None => self.ask_source(call, instance, sent, is_source)?,
        };
        if is_source != (source == self.rank) {
            let found = self.members.get(source).map_or("none", |member| member.name.as_str());
            let expected = if is_source { "this member" } else { "another member" };
            return Err(CollectiveError::Group {
                group: self.key,
                what: "the member that sends",
                expected: expected.into(),
                found: found.into(),
            }
            .into());
        }
        Ok(source)
    }

    fn ask_source(
        &self,
        call: &CollectiveCall<'_>,
        instance: i32,
        sent: &Broadcast,
        is_source: bool,
    ) -> Result<usize> {
        let shared = &*self.shared;
        let (dtype, shape) = match sent {
            Broadcast::Send(tensor) => (tensor.dtype(), PartialShape::from(tensor.shape())),
            Broadcast::Receive(dtype, shape) => (*dtype, shape.clone()),
        };
        let request = CompleteInstanceRequest {
            name: call.op.into(),
            r#type: BROADCAST,
            data_type: dtype.number(),
            shape: Some(ferroflow_format::convert::partial_shape_message(&shape)),
            group_key: self.key,
            group_size: self.members.len() as i32,
            instance_key: instance,
            device_type: "CPU".into(),
            device: shared.state.device.name.clone(),
            is_source,
        };
        let method = "/tensorflow.WorkerService/CompleteInstance";
        let missing = || vec!["the member that sends".into()];
        let answer = shared.peers[0].call::<_, CompleteInstanceResponse>(method, request, LONGEST);
        let rank = shared.wait(call, self.key, &missing, answer)?.source_rank;
        let source = usize::try_from(rank).ok().filter(|rank| *rank < self.members.len());
        let source = source.ok_or_else(|| CollectiveError::Group {
            group: self.key,
            what: "the rank of the member that sends",
            expected: format!("below {}", self.members.len()),
            found: rank.to_string(),
        })?;
        shared.sources.lock().insert((self.key, instance), source);
        Ok(source)
    }

    /// Checks that a tensor can travel.
    fn check(call: &CollectiveCall<'_>, dtype: DType) -> Result<()> {
        if dtype.size().is_some() {
            return Ok(());
        }
        let what = format!("{dtype} between processes").into();
        Err(IrError::Unsupported { op: call.op.to_string().into(), what }.into())
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
        Self::check(call, tensor.dtype())?;
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
        Self::check(call, tensor.dtype())?;
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
                Self::check(call, dtype)?;
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
        Self::check(call, tensor.dtype())?;
        if !tensor.is_empty() {
            for child in children(self.rank, source, self.members.len()) {
                self.put(&names, name(self.rank, child), &tensor);
            }
        }
        Ok(tensor)
    }

    fn all_to_all(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor> {
        Self::check(call, tensor.dtype())?;
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
        Self::check(call, tensor.dtype())?;
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

    fn part(&self, members: &[usize]) -> Result<Arc<dyn Group>> {
        let devices: Option<Vec<DeviceAttributes>> =
            members.iter().map(|&member| self.members.get(member).cloned()).collect();
        let rank = members.iter().position(|&member| member == self.rank);
        let (Some(devices), Some(rank)) = (devices, rank) else {
            return Err(CollectiveError::Group {
                group: self.key,
                what: "a part of it",
                expected: format!("of members below {}, {} among them", self.size(), self.rank),
                found: format!("{members:?}"),
            }
            .into());
        };
        let (shared, name) = (self.shared.clone(), format!("{}{members:?}", self.name));
        let members = Arc::new(devices);
        Ok(Arc::new(ClusterGroup { shared, key: self.key, name, rank, members }))
    }
}
