//! Accounts of memory: what calls hold of a bounded number of bytes.

use crate::{
    error::{Error, Result},
    sync::atomic::{AtomicUsize, Ordering},
};
use std::sync::Arc;

/// The accounts that a charge counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChargePart {
    /// All that the account is within.
    All,
    /// Those of calls: bytes that a call uses and that the shared accounts know already.
    Calls,
    /// Those that calls share: bytes that outlive the call.
    Shared,
}

/// An account of bytes in use, within other accounts.
#[derive(Debug)]
pub struct MemoryAccount {
    what: &'static str,
    limit: usize,
    used: AtomicUsize,
    parents: Vec<Arc<MemoryAccount>>,
    /// Whether it is that of one call.
    is_of_call: bool,
}

/// Bytes in use, until this is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<MemoryAccount>,
    bytes: usize,
    part: ChargePart,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.release(self.bytes, self.part);
    }
}

impl MemoryAccount {
    /// An account that calls share, of no more than `limit` bytes.
    pub fn new(what: &'static str, limit: usize) -> MemoryAccount {
        let (used, parents) = (AtomicUsize::new(0), Vec::new());
        MemoryAccount { what, limit, used, parents, is_of_call: false }
    }

    /// An account of a call, whose bytes count in others too.
    pub(super) fn of_call(limit: usize, parents: Vec<Arc<MemoryAccount>>) -> MemoryAccount {
        let (what, used) = ("the memory of the call", AtomicUsize::new(0));
        MemoryAccount { what, limit, used, parents, is_of_call: true }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether bytes of this account count in another one.
    pub(super) fn includes(&self, other: &Arc<MemoryAccount>) -> bool {
        std::ptr::eq(self, Arc::as_ptr(other))
            || self.parents.iter().any(|parent| parent.includes(other))
    }

    /// Uses so many bytes, if there are as many left.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when there are not.
    pub(super) fn charge(
        self: &Arc<MemoryAccount>,
        bytes: usize,
        part: ChargePart,
    ) -> Result<Charge> {
        self.take(bytes, part)?;
        Ok(Charge { account: self.clone(), bytes, part })
    }

    /// Uses so many bytes, whether they are left or not.
    pub(super) fn charge_made(self: &Arc<MemoryAccount>, bytes: usize) -> Charge {
        self.add(bytes);
        Charge { account: self.clone(), bytes, part: ChargePart::All }
    }

    fn counts(&self, part: ChargePart) -> bool {
        match part {
            ChargePart::All => true,
            ChargePart::Calls => self.is_of_call,
            ChargePart::Shared => !self.is_of_call,
        }
    }

    fn take_here(&self, bytes: usize) -> Result<()> {
        let take = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= self.limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(drop).map_err(|used| {
            let needed = format!("{bytes} bytes besides {used} in use");
            Error::Limit { what: self.what.into(), needed, limit: self.limit as u64 }
        })
    }

    fn release_here(&self, bytes: usize, part: ChargePart) {
        if self.counts(part) {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    fn take(&self, bytes: usize, part: ChargePart) -> Result<()> {
        if self.counts(part) {
            self.take_here(bytes)?;
        }
        for (index, parent) in self.parents.iter().enumerate() {
            if let Err(error) = parent.take(bytes, part) {
                self.parents[..index].iter().for_each(|parent| parent.release(bytes, part));
                self.release_here(bytes, part);
                return Err(error);
            }
        }
        Ok(())
    }

    fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.parents.iter().for_each(|parent| parent.add(bytes));
    }

    fn release(&self, bytes: usize, part: ChargePart) {
        self.release_here(bytes, part);
        self.parents.iter().for_each(|parent| parent.release(bytes, part));
    }
}
