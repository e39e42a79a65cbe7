//! Remaining budget of a program while it is converted.
//!
//! A few bytes can stand for a constant of gigabytes or for a million results, and a file can hold
//! many such. So what they amount to is limited for all nodes of a program together.

use ferroflow_ir::{Error, Limits, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A program has at most this many values (nodes, their results, and inputs passed as lists) for
/// each node that one function may have.
const VALUES_PER_NODE: usize = 4;

pub(super) struct Budget {
    bytes: Account,
    values: Account,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Budget {
        Budget {
            bytes: Account::new(limits.tensor_bytes),
            values: Account::new(limits.nodes.saturating_mul(VALUES_PER_NODE)),
        }
    }

    /// Accounts for a tensor of `bytes`.
    pub(super) fn take_bytes(&self, bytes: usize) -> Result<()> {
        self.bytes.take(bytes, "tensor", "bytes")
    }

    /// Accounts for `count` nodes, results or inputs.
    pub(super) fn take_values(&self, count: usize) -> Result<()> {
        self.values.take(count, "program", "values")
    }
}

struct Account {
    limit: usize,
    left: AtomicUsize,
}

impl Account {
    fn new(limit: usize) -> Account {
        Account { limit, left: AtomicUsize::new(limit) }
    }

    fn take(&self, amount: usize, what: &'static str, unit: &str) -> Result<()> {
        let order = Ordering::Relaxed;
        let taken = self.left.fetch_update(order, order, |left| left.checked_sub(amount));
        taken.map(drop).map_err(|left| {
            let total = amount.saturating_add(self.limit - left);
            Error::Limit {
                what: what.into(),
                needed: format!("{total} {unit}"),
                limit: self.limit as u64,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_add_up() {
        let budget = Budget::new(&Limits { tensor_bytes: 100, ..Limits::default() });
        budget.take_bytes(60).unwrap();
        let error = budget.take_bytes(60).unwrap_err().to_string();
        assert_eq!(error, "tensor needs 120 bytes, the limit is 100");
        budget.take_bytes(40).unwrap();
        assert!(budget.take_bytes(1).is_err());
        assert!(budget.take_bytes(usize::MAX).is_err());
    }
}
