//! Elements of string tensors, whose memory is recycled.

use crate::{
    budget::{self, Charge},
    error::Result,
    workspace,
};
use bytes::Bytes;
use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

/// The elements of a string tensor. Bytes that strings share count for each of them.
pub(crate) struct StringElements {
    elements: Vec<Bytes>,
    _charge: Option<Charge>,
}

impl StringElements {
    fn bytes(elements: &[Bytes]) -> usize {
        let texts = elements.iter().map(Bytes::len).fold(0, usize::saturating_add);
        texts.saturating_add(size_of_val(elements))
    }

    /// Elements that are there, whatever the budget says of them.
    pub(crate) fn made(elements: Vec<Bytes>) -> Arc<StringElements> {
        let charge = budget::is_bounded()
            .then(|| budget::charge_made(StringElements::bytes(&elements)))
            .flatten();
        Arc::new(StringElements { elements: fitted(elements), _charge: charge })
    }

    pub(crate) fn new(elements: Vec<Bytes>) -> Result<Arc<StringElements>> {
        let charge = match budget::is_bounded() {
            true => budget::charge(StringElements::bytes(&elements))?,
            false => None,
        };
        Ok(Arc::new(StringElements { elements: fitted(elements), _charge: charge }))
    }

    pub(crate) fn as_slice(&self) -> &[Bytes] {
        &self.elements
    }
}

/// The list, without room for many times more: a tensor may live for long.
fn fitted(mut elements: Vec<Bytes>) -> Vec<Bytes> {
    if elements.capacity() >= LEAST_RECYCLED && elements.capacity() / 4 > elements.len() {
        elements.shrink_to_fit();
    }
    elements
}

impl Drop for StringElements {
    fn drop(&mut self) {
        let room = self.elements.capacity();
        if (LEAST_RECYCLED..=MOST_RECYCLED).contains(&room) {
            let mut elements = mem::take(&mut self.elements);
            elements.clear();
            pool().put(elements);
        }
    }
}

/// The least strings that a list has room for which is kept: smaller ones are no whole page.
const LEAST_RECYCLED: usize = 128;

/// The most strings that a list has room for which is kept, 8 MiB of them.
const MOST_RECYCLED: usize = 1 << 18;

/// The most empty lists that are kept.
const MOST_LISTS: usize = 8;

/// Empty lists with room for strings, the one that was used last at the end.
struct Pool(Vec<Vec<Bytes>>);

fn pool() -> std::sync::MutexGuard<'static, Pool> {
    static POOL: Mutex<Pool> = Mutex::new(Pool(Vec::new()));
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn put(&mut self, list: Vec<Bytes>) {
        if self.0.len() == MOST_LISTS {
            self.0.remove(0);
        }
        self.0.push(list);
    }

    /// A list with room for `n` strings, and not for many times more.
    fn take(&mut self, n: usize) -> Option<Vec<Bytes>> {
        let fits = |list: &Vec<Bytes>| (n..=n.saturating_mul(8)).contains(&list.capacity());
        let index = self.0.iter().rposition(fits)?;
        Some(self.0.remove(index))
    }
}

/// An empty list with room for `n` strings: fresh pages cost more than writing strings to them, so lists of
/// tensors that were dropped serve again.
///
/// # Errors
///
/// As [`workspace::reserve`].
///
/// ```
/// let mut strings = ferroflow_ir::string_room(2)?;
/// strings.push(bytes::Bytes::from("a"));
/// assert!(strings.capacity() >= 2);
/// # Ok::<(), ferroflow_ir::Error>(())
/// ```
pub fn string_room(n: usize) -> Result<Vec<Bytes>> {
    workspace::check::<Bytes>(n)?;
    let pooled = if n < LEAST_RECYCLED { None } else { pool().take(n) };
    pooled.map_or_else(|| workspace::reserve(n), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_serve_again() {
        let mut pool = Pool(Vec::new());
        for n in [200, 1000, 300] {
            pool.put(Vec::with_capacity(n));
        }
        assert!(pool.take(100).is_some_and(|list| list.capacity() == 300), "the last that fits");
        assert!(pool.take(500).is_some_and(|list| list.capacity() == 1000));
        assert!(pool.take(500).is_none() && pool.take(3).is_none(), "200 is too few, and too many");
        for n in 0..20 {
            pool.put(Vec::with_capacity(n + 128));
        }
        assert_eq!(pool.0.len(), MOST_LISTS);
        assert!(pool.take(128).is_some_and(|list| list.capacity() >= 128));
    }

    #[test]
    fn tensors_hold_no_room_for_many_more() {
        let mut elements = Vec::with_capacity(5000);
        elements.resize(1000, Bytes::new());
        assert!(fitted(elements).capacity() < 2000);
        let mut elements = Vec::with_capacity(1500);
        elements.resize(1000, Bytes::new());
        assert!(fitted(elements).capacity() >= 1500);
    }

    #[test]
    fn dropped_elements_leave_nothing_in_their_list() {
        let text = Bytes::from(vec![1, 2, 3]);
        let elements = StringElements::made(vec![text.clone(); 5000]);
        assert!(!text.is_unique());
        drop(elements);
        assert!(text.is_unique());
        let room = string_room(4000).unwrap();
        assert!(room.is_empty() && room.capacity() >= 4000);
    }
}
