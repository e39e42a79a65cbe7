//! Staging maps: tuples of tensors that wait under numbers. A tuple may come in parts, and be taken
//! in parts. Who does not find a number, or finds no room, waits for others.
//!
//! Source: `map_stage_op.cc` of TensorFlow. Both kinds of maps give the tuple of the smallest
//! number first where none is named.

use crate::{
    budget::{KeptTensors, wait},
    error::{Error, Result},
    resource::Resource,
    sync::{Condvar, Mutex, MutexGuard},
};
use ferroflow_ir::{Code, Error as IrError, HostTensor};
use std::collections::BTreeMap;

/// A tuple of which some tensors may be missing.
type Parts = Vec<Option<HostTensor>>;

/// A staging map.
#[derive(Debug)]
pub(crate) struct StagingMap {
    /// The number of tensors in a tuple.
    n_tensors: usize,
    /// The most tuples it holds.
    capacity: Option<usize>,
    /// The most bytes of elements it holds.
    limit: Option<usize>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    complete: BTreeMap<i64, KeptTensors<Parts>>,
    incomplete: BTreeMap<i64, KeptTensors<Parts>>,
}

impl State {
    fn bytes(&self) -> usize {
        self.complete.values().map(|parts| bytes(&parts.value)).sum()
    }
}

fn wrong(argument: &'static str, expected: String, found: impl std::fmt::Display) -> Error {
    IrError::argument("a staging map", argument, expected, found).into()
}

fn bytes(parts: &Parts) -> usize {
    parts.iter().flatten().map(|tensor| tensor.bytes().len()).sum()
}

impl StagingMap {
    /// An empty map of tuples of so many tensors.
    pub(crate) fn new(
        n_tensors: usize,
        capacity: Option<usize>,
        limit: Option<usize>,
    ) -> StagingMap {
        let (state, changed) = (Mutex::default(), Condvar::new());
        StagingMap { n_tensors, capacity, limit, state, changed }
    }

    /// The number of tuples that are complete.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().complete.len()
    }

    /// The number of tuples that are not.
    pub(crate) fn n_incomplete(&self) -> usize {
        self.state.lock().incomplete.len()
    }

    /// Forgets all tuples.
    pub(crate) fn clear(&self) {
        *self.state.lock() = State::default();
        self.changed.notify_all();
    }

    /// Puts the tensors of a tuple that have these positions under a number.
    ///
    /// # Errors
    ///
    /// When positions are not those of a tuple, or were filled before; a limit when there never is
    /// room.
    pub(crate) fn put(&self, key: i64, places: &[i64], tensors: Vec<HostTensor>) -> Result<()> {
        let indices = self.check(places)?;
        if indices.len() != tensors.len() {
            let expected = format!("{} tensors, one for each of `indices`", indices.len());
            return Err(wrong("values", expected, tensors.len()));
        }
        let mut state = self.state.lock();
        let mut parts: Parts = match state.incomplete.remove(&key) {
            Some(parts) => parts.value,
            None => vec![None; self.n_tensors],
        };
        for (&place, tensor) in indices.iter().zip(tensors) {
            if parts[place].is_some() {
                let found = format!("{place} of {key}, which has one");
                state.incomplete.insert(key, KeptTensors::new(parts, self.n_tensors)?);
                return Err(wrong("indices", "of tensors that are missing".into(), found));
            }
            parts[place] = Some(tensor);
        }
        if parts.iter().any(Option::is_none) {
            state.incomplete.insert(key, KeptTensors::new(parts, self.n_tensors)?);
            return Ok(());
        }
        self.wait_for_room(&mut state, bytes(&parts))?;
        let parts = KeptTensors::new(parts, self.n_tensors)?;
        state.complete.entry(key).or_insert(parts);
        self.changed.notify_all();
        Ok(())
    }

    fn wait_for_room(&self, state: &mut MutexGuard<'_, State>, own: usize) -> Result<()> {
        if let Some(limit) = self.limit.filter(|&limit| own > limit) {
            let (what, needed) = ("a staging map".into(), format!("{own} bytes"));
            return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
        }
        let is_full = |state: &State| {
            self.capacity.is_some_and(|capacity| state.complete.len() >= capacity)
                || self.limit.is_some_and(|limit| state.bytes() > limit - own)
        };
        while is_full(state) {
            wait(&self.changed, state)?;
        }
        Ok(())
    }

    /// The tensors at these positions of the tuple of a number, once there is one; all without
    /// positions.
    ///
    /// # Errors
    ///
    /// When one is not there.
    pub(crate) fn peek(&self, key: i64, places: &[i64]) -> Result<Vec<HostTensor>> {
        let indices = self.check(places)?;
        let state = self.wait_for(Some(key))?.1;
        let Some(parts) = state.complete.get(&key) else { return Ok(Vec::new()) };
        self.chosen(indices).map(|place| found(&parts.value, key, place)).collect()
    }

    /// As [`peek`](StagingMap::peek), but takes the tensors out, by default those of the smallest
    /// number; gives the number, too.
    ///
    /// # Errors
    ///
    /// When one is not there.
    pub(crate) fn take(&self, key: Option<i64>, places: &[i64]) -> Result<(i64, Vec<HostTensor>)> {
        let indices = self.check(places)?;
        let (key, mut state) = self.wait_for(key)?;
        let Some(parts) = state.complete.get_mut(&key) else { return Ok((key, Vec::new())) };
        let indices: Vec<usize> = self.chosen(indices).collect();
        let tensors: Result<Vec<HostTensor>> =
            indices.iter().map(|&place| found(&parts.value, key, place)).collect();
        let tensors = tensors?;
        indices.into_iter().for_each(|place| parts.value[place] = None);
        if parts.value.iter().all(Option::is_none) {
            state.complete.remove(&key);
        }
        self.changed.notify_all();
        Ok((key, tensors))
    }

    /// The number, or the smallest, once there is a tuple.
    fn wait_for(&self, key: Option<i64>) -> Result<(i64, MutexGuard<'_, State>)> {
        let mut state = self.state.lock();
        loop {
            let found = match key {
                Some(key) => state.complete.contains_key(&key).then_some(key),
                None => state.complete.keys().next().copied(),
            };
            if let Some(key) = found {
                return Ok((key, state));
            }
            wait(&self.changed, &mut state)?;
        }
    }

    fn chosen(&self, places: Vec<usize>) -> impl Iterator<Item = usize> {
        let all = if places.is_empty() { 0..self.n_tensors } else { 0..0 };
        all.chain(places)
    }

    /// Positions as they may be passed: rising, within a tuple.
    fn check(&self, places: &[i64]) -> Result<Vec<usize>> {
        let rises = places.windows(2).all(|pair| pair[0] < pair[1]);
        let fit = |&place: &i64| usize::try_from(place).ok().filter(|&at| at < self.n_tensors);
        let found: Option<Vec<usize>> = places.iter().map(fit).collect();
        found.filter(|_| rises).ok_or_else(|| {
            let message = format!("{places:?} are no rising positions below {}", self.n_tensors);
            Error::Status { code: Code::InvalidArgument, message }
        })
    }
}

fn found(parts: &Parts, key: i64, place: usize) -> Result<HostTensor> {
    parts[place].clone().ok_or_else(|| {
        let found = format!("{place} of {key}, which was taken");
        wrong("indices", "of tensors that are there".into(), found)
    })
}

impl Resource for StagingMap {
    fn kind(&self) -> &'static str {
        "a staging map"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(value: i32) -> HostTensor {
        HostTensor::scalar(value)
    }

    #[test]
    fn tuples_come_and_go_in_parts() {
        let map = StagingMap::new(2, None, None);
        map.put(7, &[1], vec![tensor(2)]).unwrap();
        assert_eq!((map.len(), map.n_incomplete()), (0, 1));
        assert!(map.put(7, &[1], vec![tensor(2)]).is_err());
        map.put(7, &[0], vec![tensor(1)]).unwrap();
        map.put(3, &[0, 1], vec![tensor(8), tensor(9)]).unwrap();
        assert_eq!((map.len(), map.n_incomplete()), (2, 0));
        assert_eq!(map.peek(7, &[1]).unwrap(), [tensor(2)]);
        assert_eq!(map.take(None, &[]).unwrap(), (3, vec![tensor(8), tensor(9)]));
        assert_eq!(map.take(Some(7), &[0]).unwrap(), (7, vec![tensor(1)]));
        assert!(map.take(Some(7), &[0]).is_err());
        assert_eq!(map.take(Some(7), &[1]).unwrap(), (7, vec![tensor(2)]));
        assert_eq!(map.len(), 0);
        assert!(map.put(1, &[1, 0], vec![tensor(1), tensor(2)]).is_err());
        assert!(map.put(1, &[2], vec![tensor(1)]).is_err());
    }
}
