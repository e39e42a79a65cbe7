//! Temporary memory whose size comes from shapes and attributes: reserved fallibly, never beyond a
//! limit.
//!
//! A shape is checked where it is made, but a workspace may be a multiple of it, or belong to a
//! tensor that has no elements. `vec![value; n]` ends the process when the system refuses; these
//! functions return an error.

use crate::{
    budget,
    error::{Error, Result},
};

/// The most bytes one workspace may take: as many as the largest tensor under default limits.
pub const LIMIT: usize = crate::limits::addressable(8 << 30);

/// Checks that `n` elements are no more than a workspace may take.
///
/// # Errors
///
/// [`Error::Limit`] beyond [`LIMIT`], or beyond what the budget of the call in progress has left.
pub fn check<T>(n: usize) -> Result<()> {
    match n.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= LIMIT) {
        Some(bytes) => budget::check_memory(bytes),
        None => Err(refused::<T>(n)),
    }
}

fn refused<T>(n: usize) -> Error {
    let needed = format!("{n} elements of {} bytes", size_of::<T>());
    Error::Limit { what: "a workspace".into(), needed, limit: LIMIT as u64 }
}

/// An empty vector with room for `n` elements.
///
/// # Errors
///
/// [`Error::Limit`] beyond [`LIMIT`], or when the system refuses the memory.
pub fn reserve<T>(n: usize) -> Result<Vec<T>> {
    check::<T>(n)?;
    let mut room = Vec::new();
    room.try_reserve_exact(n).map_err(|_| refused::<T>(n))?;
    Ok(room)
}

/// A vector of `n` clones of `value`.
///
/// # Errors
///
/// As [`reserve`].
pub fn filled<T: Clone>(value: T, n: usize) -> Result<Vec<T>> {
    let mut room = reserve(n)?;
    room.resize(n, value);
    Ok(room)
}

/// The values of an iterator that announces at least how many there are.
///
/// # Errors
///
/// As [`reserve`].
pub fn collected<T>(values: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let values = values.into_iter();
    let mut room = reserve(values.size_hint().0)?;
    room.extend(values);
    Ok(room)
}

/// Adds values to the end of a vector whose length is not known before.
///
/// # Errors
///
/// As [`reserve`].
pub fn extend<T>(room: &mut Vec<T>, values: impl IntoIterator<Item = T>) -> Result<()> {
    for value in values {
        if room.len() == room.capacity() {
            let more = room.len().max(16);
            check::<T>(room.len() + more)?;
            room.try_reserve_exact(more).map_err(|_| refused::<T>(more))?;
        }
        room.push(value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_are_bounded() {
        assert_eq!(filled(7, 3).unwrap(), [7; 3]);
        assert_eq!(collected(0..4).unwrap(), [0, 1, 2, 3]);
        let mut room = vec![0; 2];
        extend(&mut room, 1..100).unwrap();
        assert_eq!((room.len(), room[2], room[100]), (101, 1, 99));
        for n in [LIMIT / 8 + 1, 1 << 60, usize::MAX] {
            assert!(matches!(reserve::<u64>(n), Err(Error::Limit { .. })), "{n}");
            assert!(
                filled(0u64, n).is_err() && collected((0..n).map(|n| n as u64)).is_err(),
                "{n}"
            );
        }
    }
}
