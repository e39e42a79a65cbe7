//! The engine of one process: replicas in threads that meet in one table.
//!
//! Members bring a tensor each to a slot of the table. The last one to come computes the result, in the
//! order of the ranks; all take it from there. A slot is known by group, key, and how often a member
//! has used the key.

use super::{
    Broadcast, CollectiveCall, CollectiveError, Engine, Group, GroupKey, InstanceKey, Reduction,
    join_rows, no_part, rows_per_member,
};
use crate::{
    error::{Error, Result},
    panics::caught,
    sync::{Condvar, Mutex, MutexGuard},
};
use ferroflow_ir::{DType, HostTensor};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// The time between two checks whether a waiting call is to end.
const NAP: Duration = Duration::from_millis(5);

/// The side of one replica.
#[derive(Debug)]
pub struct ThreadsEngine {
    rank: usize,
    table: Arc<Table>,
}

/// The sides of replicas of these names, each to be used by a thread of its own.
pub fn threads(names: &[String]) -> Vec<Arc<ThreadsEngine>> {
    threads_in_groups(names, &[])
}

/// The sides of replicas of which some groups are known ahead, by their keys: members that are gone before
/// they asked for a group are missed by the others.
pub fn threads_in_groups(
    names: &[String],
    groups: &[(GroupKey, Vec<usize>)],
) -> Vec<Arc<ThreadsEngine>> {
    let pending = |(key, ranks): &(GroupKey, Vec<usize>)| {
        (*key, Pending { size: ranks.len(), ranks: ranks.clone() })
    };
    let (gone, groups) = (vec![None; names.len()], groups.iter().map(pending).collect());
    let table = Arc::new(Table {
        names: names.to_vec(),
        state: Mutex::new(State { gone, groups, ..State::default() }),
        changed: Condvar::new(),
    });
    (0..names.len()).map(|rank| Arc::new(ThreadsEngine { rank, table: table.clone() })).collect()
}

#[derive(Debug)]
struct Table {
    names: Vec<String>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    groups: HashMap<GroupKey, Pending>,
    slots: HashMap<SlotKey, Slot>,
    /// The number of uses of keys by members.
    uses: HashMap<(GroupId, InstanceKey, usize), u64>,
    /// Why replicas will not come any more.
    gone: Vec<Option<String>>,
}

/// A group that members ask for.
#[derive(Debug, Default)]
struct Pending {
    size: usize,
    ranks: Vec<usize>,
}

/// A group, and its members among all replicas.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct GroupId {
    key: GroupKey,
    members: Arc<[usize]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SlotKey {
    group: GroupId,
    key: InstanceKey,
    use_count: u64,
}

/// A tensor that a member brings.
type Part = Option<HostTensor>;

#[derive(Debug)]
struct Slot {
    /// The call of the first member, and its number.
    signature: String,
    parts: Vec<Option<Part>>,
    result: Option<Result<Arc<Vec<HostTensor>>>>,
    /// The members that have not taken the result.
    left: usize,
}

impl Table {
    /// Waits for a change of the table.
    fn wait(&self, state: &mut MutexGuard<'_, State>, call: &CollectiveCall<'_>) -> Result<bool> {
        (call.check)()?;
        let nap = call.left().map_or(NAP, |left| left.min(NAP));
        self.changed.wait_for(state, nap);
        Ok(call.left() != Some(Duration::ZERO))
    }

    fn named(&self, ranks: impl IntoIterator<Item = usize>) -> Vec<String> {
        ranks.into_iter().map(|rank| self.names[rank].clone()).collect()
    }

    /// The error of a call that waits for these replicas, when one of them is gone or the time is over.
    fn hopeless(
        &self,
        state: &State,
        call: &CollectiveCall<'_>,
        group: GroupKey,
        missing: &[usize],
        in_time: bool,
    ) -> Option<Error> {
        let name = || call.name(group);
        let gone = missing.iter().find_map(|&rank| Some((rank, state.gone[rank].clone()?)));
        if let Some((rank, reason)) = gone {
            let member = self.names[rank].clone();
            return Some(CollectiveError::Unavailable { call: name(), member, reason }.into());
        }
        let waited_ms = call.begun.elapsed().as_millis() as u64;
        let missing = self.named(missing.iter().copied());
        let error = || CollectiveError::Deadline { call: name(), waited_ms, missing };
        (!in_time).then(|| error().into())
    }
}

impl Engine for ThreadsEngine {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.table.names.len()
    }

    fn resolve(
        &self,
        key: GroupKey,
        size: usize,
        call: &CollectiveCall<'_>,
    ) -> Result<Arc<dyn Group>> {
        let table = &*self.table;
        let wrong = |expected: String, found: usize| CollectiveError::Group {
            group: key,
            what: "the number of members",
            expected,
            found: found.to_string(),
        };
        if size == 0 || size > self.size() {
            return Err(wrong(format!("1 to {}", self.size()), size).into());
        }
        let mut state = table.state.lock();
        let pending = state.groups.entry(key).or_insert_with(|| match size == self.size() {
            true => Pending { size, ranks: (0..size).collect() },
            false => Pending { size, ranks: Vec::new() },
        });
        if pending.size != size {
            return Err(wrong(pending.size.to_string(), size).into());
        }
        if !pending.ranks.contains(&self.rank) {
            if pending.ranks.len() == size {
                let others = table.named(pending.ranks.iter().copied()).join(", ");
                return Err(wrong(format!("{size} ({others})"), size + 1).into());
            }
            pending.ranks.push(self.rank);
            pending.ranks.sort_unstable();
            table.changed.notify_all();
        }
        let mut in_time = true;
        loop {
            let ranks = &state.groups[&key].ranks;
            if ranks.len() == size {
                let id = GroupId { key, members: ranks.as_slice().into() };
                return Ok(Arc::new(ThreadsGroup::new(&self.table, id, self.rank)));
            }
            let missing: Vec<usize> =
                (0..self.size()).filter(|rank| !ranks.contains(rank)).collect();
            let alive = missing.iter().filter(|&&rank| state.gone[rank].is_none()).count();
            if (ranks.len() + alive < size || !in_time)
                && let Some(error) = table.hopeless(&state, call, key, &missing, in_time)
            {
                return Err(error);
            }
            in_time = table.wait(&mut state, call)?;
        }
    }

    fn leave(&self, reason: &str) {
        let mut state = self.table.state.lock();
        state.gone[self.rank].get_or_insert_with(|| reason.into());
        self.table.changed.notify_all();
    }
}

/// A group on the side of one member.
#[derive(Debug)]
struct ThreadsGroup {
    table: Arc<Table>,
    id: GroupId,
    /// The member's number in the group.
    rank: usize,
}

impl ThreadsGroup {
    fn new(table: &Arc<Table>, id: GroupId, replica: usize) -> ThreadsGroup {
        let rank = id.members.iter().position(|&member| member == replica).unwrap_or(0);
        ThreadsGroup { table: table.clone(), id, rank }
    }

    /// Brings a tensor and takes what `finish` makes of all of them.
    fn exchange(
        &self,
        call: &CollectiveCall<'_>,
        signature: String,
        part: Part,
        finish: impl FnOnce(&[Part]) -> Result<Vec<HostTensor>>,
    ) -> Result<Arc<Vec<HostTensor>>> {
        let (key, parts) = self.bring(call, signature, part)?;
        if let Some(parts) = parts {
            let result = caught(call.context, || finish(&parts)).map(Arc::new);
            let mut state = self.table.state.lock();
            if let Some(slot) = state.slots.get_mut(&key) {
                slot.result = Some(result);
            }
            self.table.changed.notify_all();
        }
        self.take(call, &key)
    }

    /// Puts a tensor into the slot of the call. The last member gets all of them.
    fn bring(
        &self,
        call: &CollectiveCall<'_>,
        signature: String,
        part: Part,
    ) -> Result<(SlotKey, Option<Vec<Part>>)> {
        let mut state = self.table.state.lock();
        let uses = state.uses.entry((self.id.clone(), call.key.clone(), self.rank)).or_default();
        let (group, use_count) = (self.id.clone(), *uses);
        *uses += 1;
        let key = SlotKey { group, key: call.key.clone(), use_count };
        let size = self.size();
        let slot = state.slots.entry(key.clone()).or_insert_with(|| Slot {
            signature: signature.clone(),
            parts: vec![None; size],
            result: None,
            left: size,
        });
        if slot.signature != signature {
            let expected = slot.signature.clone();
            let member = self.table.names[self.id.members[self.rank]].clone();
            let call = call.name(self.id.key);
            let error = CollectiveError::Mismatch { call, member, expected, found: signature };
            slot.result = Some(Err(error.into()));
        }
        slot.parts[self.rank] = Some(part);
        let complete = slot.result.is_none() && slot.parts.iter().all(Option::is_some);
        let parts =
            complete.then(|| slot.parts.iter_mut().filter_map(|part| part.clone()).collect());
        self.table.changed.notify_all();
        Ok((key, parts))
    }

    /// Waits for the result of a slot.
    fn take(&self, call: &CollectiveCall<'_>, key: &SlotKey) -> Result<Arc<Vec<HostTensor>>> {
        let mut state = self.table.state.lock();
        let mut in_time = true;
        loop {
            let Some(slot) = state.slots.get_mut(key) else {
                let reason = "its slot is gone".into();
                return Err(CollectiveError::Aborted { reason }.into());
            };
            if let Some(result) = slot.result.clone() {
                slot.left -= 1;
                if slot.left == 0 {
                    state.slots.remove(key);
                }
                return result;
            }
            let absent = slot.parts.iter().zip(&*self.id.members);
            let missing: Vec<usize> =
                absent.filter(|(part, _)| part.is_none()).map(|(_, &rank)| rank).collect();
            let error = self.table.hopeless(&state, call, self.id.key, &missing, in_time);
            // The last member computes; it ends by itself.
            if let Some(error) = error.filter(|_| !missing.is_empty()) {
                return Err(error);
            }
            in_time = self.table.wait(&mut state, call)?;
        }
    }

    /// Brings tensors of one dtype and shape.
    fn exchange_alike(
        &self,
        call: &CollectiveCall<'_>,
        what: &str,
        tensor: HostTensor,
        finish: impl FnOnce(&[HostTensor]) -> Result<Vec<HostTensor>>,
    ) -> Result<Arc<Vec<HostTensor>>> {
        let signature = format!("{what} of {}{}", tensor.dtype(), tensor.shape());
        self.exchange(call, signature, Some(tensor), |parts| {
            finish(&parts.iter().flatten().cloned().collect::<Vec<_>>())
        })
    }
}

fn first(results: &[HostTensor]) -> Result<HostTensor> {
    let none = || CollectiveError::Aborted { reason: "it has no result".into() };
    Ok(results.first().cloned().ok_or_else(none)?)
}

impl Group for ThreadsGroup {
    fn key(&self) -> GroupKey {
        self.id.key
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.id.members.len()
    }

    fn all_reduce(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        reduction: Reduction,
    ) -> Result<HostTensor> {
        let what = format!("a reduction ({reduction:?})");
        let results = self.exchange_alike(call, &what, tensor, |parts| {
            Ok(reduction.reduce(call.context, parts)?.into_iter().collect())
        })?;
        first(&results)
    }

    fn all_gather(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor> {
        let joined = |parts: &[HostTensor]| Ok(vec![join_rows(call.op, parts)?]);
        first(&self.exchange_alike(call, "a gather", tensor, joined)?)
    }

    fn broadcast(&self, call: &CollectiveCall<'_>, tensor: Broadcast) -> Result<HostTensor> {
        let (part, dtype) = match &tensor {
            Broadcast::Send(tensor) => (Some(tensor.clone()), tensor.dtype()),
            Broadcast::Receive(dtype, _) => (None, *dtype),
        };
        let group = self.id.key;
        let sent = self.exchange(call, format!("a broadcast of {dtype}"), part, |parts| {
            let sent: Vec<HostTensor> = parts.iter().flatten().cloned().collect();
            match sent.len() {
                1 => Ok(sent),
                found => Err(CollectiveError::Group {
                    group,
                    what: "the number of members that send",
                    expected: "1".into(),
                    found: found.to_string(),
                }
                .into()),
            }
        })?;
        let sent = first(&sent)?;
        check_received(group, &sent, &tensor)?;
        Ok(sent)
    }

    fn all_to_all(&self, call: &CollectiveCall<'_>, tensor: HostTensor) -> Result<HostTensor> {
        let rows = rows_per_member(call, tensor.shape(), self.size())?;
        let parts = self.exchange_alike(call, "an exchange", tensor, |parts| Ok(parts.to_vec()))?;
        let mine = self.rank * rows..(self.rank + 1) * rows;
        let mine: ferroflow_ir::Result<Vec<HostTensor>> =
            parts.iter().map(|part| part.rows(mine.clone())).collect();
        join_rows(call.op, &mine?)
    }

    fn permute(
        &self,
        call: &CollectiveCall<'_>,
        tensor: HostTensor,
        pairs: &[(usize, usize)],
    ) -> Result<HostTensor> {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        let what = format!("a permutation {pairs:?}");
        let parts = self.exchange_alike(call, &what, tensor, |parts| Ok(parts.to_vec()))?;
        match pairs.iter().find(|(_, target)| *target == self.rank) {
            Some(&(source, _)) => Ok(parts[source].clone()),
            None => Ok(HostTensor::zeros(dtype, shape)?),
        }
    }

    fn barrier(&self, call: &CollectiveCall<'_>) -> Result<()> {
        let nothing = HostTensor::zeros(DType::U8, ferroflow_ir::Shape::new([0])?)?;
        self.exchange_alike(call, "a barrier", nothing, |_| Ok(Vec::new())).map(drop)
    }

    fn part(&self, _: &CollectiveCall<'_>, members: &[usize]) -> Result<Arc<dyn Group>> {
        let replicas: Option<Arc<[usize]>> =
            members.iter().map(|&member| self.id.members.get(member).copied()).collect();
        let replica = self.id.members[self.rank];
        match replicas.filter(|replicas| replicas.contains(&replica)) {
            Some(members) => {
                let id = GroupId { key: self.id.key, members };
                Ok(Arc::new(ThreadsGroup::new(&self.table, id, replica)))
            }
            None => Err(no_part(self, members).into()),
        }
    }
}

/// Checks that a member takes what was sent.
fn check_received(group: GroupKey, sent: &HostTensor, taken: &Broadcast) -> Result<()> {
    match taken {
        Broadcast::Receive(_, shape) if !shape.is_compatible_with(&sent.shape().into()) => {
            let (expected, found) = (format!("{shape}"), sent.shape().to_string());
            let what = "the shape of a broadcast";
            Err(CollectiveError::Group { group, what, expected, found }.into())
        }
        Broadcast::Receive(..) | Broadcast::Send(_) => Ok(()),
    }
}
