//! Staging areas: tuples of tensors that wait under a name. Who finds one empty, or full, waits for
//! others.

use crate::{
    budget::{KeptTensors, wait},
    error::Result,
    resource::Resource,
    sync::{Condvar, Mutex},
};
use ferroflow_ir::{Error as IrError, HostTensor};
use std::collections::VecDeque;

type Tuple = Vec<HostTensor>;

/// A staging area.
#[derive(Debug)]
pub(crate) struct StagingArea {
    /// The most tuples it holds.
    capacity: Option<usize>,
    /// The most bytes of elements it holds.
    limit: Option<usize>,
    tuples: Mutex<VecDeque<KeptTensors<Tuple>>>,
    changed: Condvar,
}

impl StagingArea {
    /// An empty staging area for so many tuples and bytes.
    pub(crate) fn new(capacity: Option<usize>, limit: Option<usize>) -> StagingArea {
        StagingArea { capacity, limit, tuples: Mutex::default(), changed: Condvar::new() }
    }

    /// The number of tuples in it.
    pub(crate) fn len(&self) -> usize {
        self.tuples.lock().len()
    }

    /// Forgets all tuples.
    pub(crate) fn clear(&self) {
        self.tuples.lock().clear();
        self.changed.notify_all();
    }

    /// Puts a tuple in, once there is room.
    ///
    /// # Errors
    ///
    /// [`IrError::Limit`] when there never will be.
    pub(crate) fn put(&self, tuple: Tuple) -> Result<()> {
        let own = bytes(&tuple);
        if let Some(limit) = self.limit.filter(|&limit| own > limit) {
            let (what, needed) = ("a staging area".into(), format!("{own} bytes"));
            return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
        }
        let mut tuples = self.tuples.lock();
        let is_full = |tuples: &mut VecDeque<KeptTensors<Tuple>>| {
            let held = || tuples.iter().map(|tuple| bytes(&tuple.value)).sum::<usize>();
            self.capacity.is_some_and(|capacity| tuples.len() >= capacity)
                || self.limit.is_some_and(|limit| held() > limit - own)
        };
        while is_full(&mut tuples) {
            wait(&self.changed, &mut tuples)?;
        }
        let n_tensors = tuple.len();
        tuples.push_back(KeptTensors::new(tuple, n_tensors)?);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes the oldest tuple out, once there is one.
    pub(crate) fn take(&self) -> Result<Tuple> {
        let mut tuples = self.tuples.lock();
        loop {
            if let Some(tuple) = tuples.pop_front() {
                self.changed.notify_all();
                return Ok(tuple.value);
            }
            wait(&self.changed, &mut tuples)?;
        }
    }

    /// The tuple at this position from the oldest on, once there is one.
    pub(crate) fn peek(&self, position: usize) -> Result<Tuple> {
        let mut tuples = self.tuples.lock();
        loop {
            if let Some(tuple) = tuples.get(position) {
                return Ok(tuple.value.clone());
            }
            wait(&self.changed, &mut tuples)?;
        }
    }
}

fn bytes(tuple: &Tuple) -> usize {
    tuple.iter().map(|tensor| tensor.bytes().len()).sum()
}

impl Resource for StagingArea {
    fn kind(&self) -> &'static str {
        "a staging area"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_wait_in_order() {
        let area = StagingArea::new(Some(2), Some(8));
        let tuple = |value: i32| vec![HostTensor::scalar(value)];
        area.put(tuple(1)).unwrap();
        area.put(tuple(2)).unwrap();
        assert_eq!(area.peek(1).unwrap(), tuple(2));
        let taken = || area.take().unwrap();
        assert_eq!((taken(), taken()), (tuple(1), tuple(2)));
        assert!(area.put(vec![HostTensor::vector(&[0i32; 3]).unwrap()]).is_err());
        assert_eq!(area.len(), 0);
    }
}
