//! Running a formula over the elements of a variable and its slots.
//!
//! Work is cut at places that depend on sizes and indices alone, and an element is changed by one
//! thread only, so results do not depend on the number of threads.

use crate::{
    number::Number,
    simd::{Vectorized, vectorize},
    threads::Threads,
};
use std::{array, mem};

/// Elements per piece of work.
const PIECE: usize = 1 << 14;

/// Changes all elements.
pub(super) fn all<T, S, const N: usize>(
    mut state: [&mut [T]; N],
    gradient: &[T],
    step: &S,
    threads: &Threads,
) where
    T: Number,
    S: Fn([T; N], T) -> [T; N] + Sync,
{
    let pieces = gradient.chunks(PIECE).map(|gradient| (cut(&mut state, gradient.len()), gradient));
    threads.for_each(pieces, |(state, gradient)| vectorize(Run { state, gradient, step }));
}

/// Changes the rows that `rows` names, with a row of the gradient for each. A row that is named
/// more than once is changed as often, in the order of the gradient.
pub(super) fn rows<T, S, const N: usize>(
    mut state: [&mut [T]; N],
    gradient: &[T],
    rows: &[usize],
    step: &S,
    threads: &Threads,
) where
    T: Number,
    S: Fn([T; N], T) -> [T; N] + Sync,
{
    let size = gradient.len() / rows.len().max(1);
    let mut order: Vec<(usize, usize)> = rows.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let mut seen = 0;
    let pieces = pieces(&order, PIECE.div_ceil(size.max(1))).map(|piece| {
        let (first, end) = (piece[0].0, piece[piece.len() - 1].0 + 1);
        cut(&mut state, (first - seen) * size);
        seen = end;
        (first, cut(&mut state, (end - first) * size), piece)
    });
    threads.for_each(pieces, |(first, mut state, piece)| {
        for &(row, position) in piece {
            let start = (row - first) * size;
            let state = state.each_mut().map(|slice| &mut slice[start..start + size]);
            let gradient = &gradient[position * size..][..size];
            vectorize(Run { state, gradient, step });
        }
    });
}

/// Sorted entries in pieces of about `length`; those of one row stay together.
fn pieces(
    mut entries: &[(usize, usize)],
    length: usize,
) -> impl Iterator<Item = &[(usize, usize)]> {
    std::iter::from_fn(move || {
        let last = entries.get(..length.min(entries.len()))?.last()?.0;
        let end = entries.partition_point(|entry| entry.0 <= last);
        let (piece, rest) = entries.split_at(end);
        entries = rest;
        Some(piece)
    })
}

/// Cuts the first `count` elements off each slice.
fn cut<'a, T, const N: usize>(slices: &mut [&'a mut [T]; N], count: usize) -> [&'a mut [T]; N] {
    array::from_fn(|index| {
        let (head, tail) = mem::take(&mut slices[index]).split_at_mut(count);
        slices[index] = tail;
        head
    })
}

/// A formula over slices of one length.
struct Run<'a, T, S, const N: usize> {
    state: [&'a mut [T]; N],
    gradient: &'a [T],
    step: &'a S,
}

impl<T, S, const N: usize> Vectorized for Run<'_, T, S, N>
where
    T: Number,
    S: Fn([T; N], T) -> [T; N],
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.gradient.len();
        let state = self.state.map(|slice| &mut slice[..n]);
        for (position, &gradient) in self.gradient.iter().enumerate() {
            let new = (self.step)(array::from_fn(|index| state[index][position]), gradient);
            for index in 0..N {
                state[index][position] = new[index];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    #[test]
    fn rows_are_changed_as_often_as_they_are_named() {
        for count in [1, 3] {
            let threads = Threads::new(NonZeroUsize::new(count).unwrap());
            let n_rows = 3 * PIECE;
            let named: Vec<usize> = (0..2 * n_rows).map(|entry| entry * 7 % (n_rows / 2)).collect();
            let gradient: Vec<f64> = (0..named.len()).map(|entry| entry as f64).collect();
            let (mut sums, mut last) = (vec![0.0; n_rows], vec![0.0; n_rows]);
            let (mut found, mut latest) = (sums.clone(), last.clone());
            for (&row, &gradient) in named.iter().zip(&gradient) {
                sums[row] += gradient;
                last[row] = gradient;
            }
            let step = |[sum, _]: [f64; 2], gradient: f64| [sum + gradient, gradient];
            rows([&mut found, &mut latest], &gradient, &named, &step, &threads);
            assert_eq!((found, latest), (sums, last));
        }
    }
}
