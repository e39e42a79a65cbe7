//! The largest elements of rows: `TopK`, `TopKV2`, `NthElement`, `InTopK`.
//!
//! Elements are compared as integers whose order is that of the elements; NaN is larger than
//! anything, and subnormal numbers are zeros. Of equal elements the first one comes first.

use super::{
    Build,
    dispatch::{with_index, with_real},
    index::{PositionElement, integer, integers},
    top_k_heap::heaped,
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Ordered,
    simd::{Vectorized, vectorize},
};
use ferroflow_ir::{DType, Error, budget, workspace};
use std::{cmp::Reverse, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("InTopK", in_top_k),
    ("InTopKV2", in_top_k),
    ("NthElement", nth_element),
    ("TopK", top_k),
    ("TopKV2", top_k),
];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// An element type with a total order.
trait Ranked: Ordered {
    /// The order as that of unsigned integers.
    fn rank(self) -> u64;
}

macro_rules! signed {
    ($($type:ty as $unsigned:ty;)*) => {$(
        impl Ranked for $type {
            #[inline(always)]
            fn rank(self) -> u64 {
                u64::from((self as $unsigned) ^ (1 << (<$unsigned>::BITS - 1)))
            }
        }
    )*};
}

signed! { i8 as u8; i16 as u16; i32 as u32; i64 as u64; }

macro_rules! unsigned {
    ($($type:ty)*) => {$(
        impl Ranked for $type {
            #[inline(always)]
            fn rank(self) -> u64 {
                u64::from(self)
            }
        }
    )*};
}

unsigned! { u8 u16 u32 u64 }

macro_rules! floats {
    ($($type:ty as $bits:ty;)*) => {$(
        impl Ranked for $type {
            #[inline(always)]
            fn rank(self) -> u64 {
                let sign: $bits = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                // Zeros of either sign are equal, and so are all NaN.
                let bits = if self.flushed() == <$type>::default() { 0 } else { bits };
                let bits = if self.is_nan() { !sign } else { bits };
                u64::from(if bits & sign == 0 { bits | sign } else { !bits })
            }
        }
    )*};
}

floats! { half::f16 as u16; half::bf16 as u16; f32 as u32; f64 as u64; }

fn top_k(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Ranked, I: PositionElement>(
        row: usize,
        k: usize,
        in_order: bool,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let source: &[T] = io.input(0);
            let (values, indices): (&mut [T], &mut [I]) = (io.output(0), io.output(1));
            if k == 0 {
                return Ok(());
            }
            let rows_per_piece = (PIECE / row).max(1);
            let pieces = values
                .chunks_mut(rows_per_piece * k)
                .zip(indices.chunks_mut(rows_per_piece * k))
                .zip(source.chunks(rows_per_piece * row));
            io.threads().for_each(pieces, |((values, indices), source)| {
                let outs = values.chunks_mut(k).zip(indices.chunks_mut(k));
                for ((values, indices), source) in outs.zip(source.chunks(row)) {
                    let visit = |n: usize, index: usize| {
                        values[n] = source[index];
                        indices[n] = I::from_position(index);
                    };
                    if in_order || k >= row {
                        largest(source, k, visit);
                    } else {
                        let elements = source.iter().enumerate();
                        heaped(elements.map(|(index, x)| (!x.rank(), index)), k, visit);
                    }
                }
            });
            Ok(())
        })
    }
    let row = call.shape(0).last().copied().unwrap_or(0);
    let k = call.output_shape(0)?.last().copied().unwrap_or(0);
    let (dtype, index_dtype) = (call.dtype(0), call.outputs[1].dtype);
    let in_order = call.attrs.bool("sorted")?;
    let kernel =
        with_real!(dtype, T => with_index!(index_dtype, I => kernel::<T, I>(row, k, in_order)));
    Ok(kernel.flatten())
}

/// Calls `visit` with 0, 1, …, `k - 1` and the position of the largest element, the second largest
/// and so on.
fn largest<T: Ranked>(row: &[T], k: usize, visit: impl FnMut(usize, usize)) {
    if k * 8 <= row.len() && k <= 256 {
        return few_largest(row, k, visit);
    }
    if size_of::<T>() <= 4 && row.len() <= u32::MAX as usize {
        // One integer holds an element's order, reversed, and its position.
        let key = |(index, x): (usize, &T)| (u64::from(!(x.rank() as u32)) << 32) | index as u64;
        let keys = row.iter().enumerate().map(key).collect();
        return sorted(keys, k, |key: u64| key as u32 as usize, visit);
    }
    let keys = row.iter().enumerate().map(|(index, x)| (!x.rank(), index)).collect();
    sorted(keys, k, |(_, index)| index, visit);
}

fn sorted<K: Ord + Copy>(
    mut keys: Vec<K>,
    k: usize,
    position: impl Fn(K) -> usize,
    mut visit: impl FnMut(usize, usize),
) {
    if k < keys.len() {
        budget::select_nth_unstable(&mut keys, k - 1);
    }
    let keys = &mut keys[..k];
    budget::sort_unstable(keys);
    keys.iter().enumerate().for_each(|(n, &key)| visit(n, position(key)));
}

/// Keeps the largest elements seen so far in order; most others are smaller than all of these.
fn few_largest<T: Ranked>(row: &[T], k: usize, mut visit: impl FnMut(usize, usize)) {
    let mut maxima = Vec::with_capacity(row.len() / BLOCK + 1);
    vectorize(BlockMaxima { row, maxima: &mut maxima });
    // As many blocks as are asked for have an element at least as large as this.
    let mut least = match maxima.len() {
        n if n < k => 0,
        n => *maxima.clone().select_nth_unstable(n - k).1,
    };
    let mut kept: Vec<(u64, usize)> = Vec::with_capacity(k + 1);
    for (block, elements) in row.chunks(BLOCK).enumerate() {
        if maxima[block] < least {
            continue;
        }
        for (index, x) in elements.iter().enumerate() {
            let rank = x.rank();
            if rank < least {
                continue;
            }
            let at = kept.partition_point(|&(own, _)| own >= rank);
            if at == k {
                continue;
            }
            if kept.len() == k {
                kept.pop();
            }
            kept.insert(at, (rank, block * BLOCK + index));
            if let Some(&(rank, _)) = kept.get(k - 1) {
                least = rank;
            }
        }
    }
    kept.iter().enumerate().for_each(|(n, &(_, index))| visit(n, index));
}

/// Elements that are looked at together.
const BLOCK: usize = 16;

/// The largest rank of each block of a row.
struct BlockMaxima<'a, T> {
    row: &'a [T],
    maxima: &'a mut Vec<u64>,
}

impl<T: Ranked> Vectorized for BlockMaxima<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (blocks, rest) = self.row.as_chunks::<BLOCK>();
        for block in blocks {
            // Vectors hold twice as many ranks of four bytes.
            let largest = if size_of::<T>() <= 4 {
                let mut ranks = [0u32; BLOCK];
                for (rank, x) in ranks.iter_mut().zip(block) {
                    *rank = x.rank() as u32;
                }
                u64::from(ranks.iter().fold(0, |largest, &rank| largest.max(rank)))
            } else {
                block.iter().fold(0, |largest, x| largest.max(x.rank()))
            };
            self.maxima.push(largest);
        }
        if !rest.is_empty() {
            self.maxima.push(rest.iter().fold(0, |largest, x| largest.max(x.rank())));
        }
    }
}

fn nth_element(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Ranked>(row: usize, reverse: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = integer(io, 1, DType::I32);
            let (source, out): (&[T], &mut [T]) = (io.input(0), io.output(0));
            let inside = usize::try_from(n).ok().filter(|&n| n < row);
            let Some(n) = inside else {
                let (what, high) = ("position".into(), row as i64);
                return Err(Error::Index { what, index: n, low: 0, high }.into());
            };
            let mut keys: Vec<u64> = workspace::reserve(row)?;
            for (out, source) in out.iter_mut().zip(source.chunks(row)) {
                keys.clear();
                keys.extend(source.iter().map(|x| x.rank()));
                let rank = if reverse {
                    *keys.select_nth_unstable_by_key(n, |&rank| Reverse(rank)).1
                } else {
                    *keys.select_nth_unstable(n).1
                };
                let found = source.iter().find(|x| x.rank() == rank);
                *out = *found.expect("the rank is that of an element");
            }
            Ok(())
        })
    }
    let row = call.shape(0).last().copied().unwrap_or(0);
    let reverse = call.attrs.bool("reverse")?;
    Ok(with_real!(call.dtype(0), T => kernel::<T>(row, reverse)))
}

/// Whether fewer than `k` scores of a row are larger than that of its target
/// (`tensorflow/core/kernels/in_topk_op.h`): rows with scores that are not finite say no.
fn in_top_k(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, classes) = (call.dtype(1), call.shape(0)[1]);
    let k = if call.inputs.len() > 2 { None } else { Some(call.attrs.int("k")?) };
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let scores: &[f32] = io.input(0);
        let targets = integers(io, 1, dtype);
        let k = k.unwrap_or_else(|| integer(io, 2, dtype));
        let out = io.output_bytes(0);
        for (row, (out, &target)) in out.iter_mut().zip(targets.iter()).enumerate() {
            let scores = &scores[row * classes..][..classes];
            let score = usize::try_from(target).ok().and_then(|target| scores.get(target));
            *out = u8::from(score.is_some_and(|&score| among_largest(scores, score, k)));
        }
        Ok(())
    })))
}

fn among_largest(scores: &[f32], score: f32, k: i64) -> bool {
    let mut larger = 0;
    for &other in scores {
        if !other.is_finite() {
            return false;
        }
        larger += i64::from(other.flushed() > score.flushed());
        if larger > k {
            return false;
        }
    }
    score.is_finite() && larger < k
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_in_the_order_of_the_elements() {
        let floats = [f32::NEG_INFINITY, -2.0, -1e-37, 0.0, 1e-37, 3.0, f32::INFINITY, f32::NAN];
        assert!(floats.is_sorted_by(|a, b| a.rank() < b.rank()));
        assert_eq!((-0.0f64).rank(), 0.0f64.rank());
        assert_eq!([-1e-40f32, 1e-40].map(Ranked::rank), [0.0f32.rank(); 2]);
        assert!(half::f16::from_f32(6e-8).rank() > half::f16::ZERO.rank());
        assert!([i8::MIN, -1, 0, 1, i8::MAX].is_sorted_by(|a, b| a.rank() < b.rank()));
    }

    #[test]
    fn the_first_of_equal_elements_comes_first() {
        let row: Vec<i32> = (0..200).map(|n| (n * 7) % 10).collect();
        let of = |k: usize| {
            let mut found = Vec::new();
            largest(&row, k, |_, index| found.push(index));
            found
        };
        assert_eq!(of(3), [7, 17, 27]);
        assert_eq!(of(25)[20..], [4, 14, 24, 34, 44]);
        assert_eq!(of(200)[..25], of(25));
        assert_eq!(of(150), of(200)[..150]);
    }

    #[test]
    fn few_elements_are_those_of_a_sort() {
        let mut state = 1u64;
        for case in 0..200 {
            let mut next = |bound: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99_991);
                (state >> 33) % bound
            };
            let (n, k, kinds) = (8 + next(400) as usize, 1 + next(12) as usize, 1 + next(300));
            let row: Vec<f32> = (0..n).map(|_| next(kinds) as f32 - 20.0).collect();
            let wide: Vec<u64> = row.iter().map(|&x| (x + 20.0) as u64).collect();
            let k = k.min(n);
            let mut expected: Vec<usize> = (0..n).collect();
            expected.sort_by_key(|&index| Reverse(row[index].rank()));
            let mut found = [Vec::new(), Vec::new()];
            few_largest(&row, k, |_, index| found[0].push(index));
            few_largest(&wide, k, |_, index| found[1].push(index));
            assert_eq!(found, [&expected[..k], &expected[..k]], "case {case}: {k} of {n}");
        }
    }
}
