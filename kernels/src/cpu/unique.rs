//! `Unique…` and `ListDiff`.
//!
//! Elements are looked up in a hash table with open addressing. Floats are equal by value: zeros of
//! either sign and subnormal numbers are, NaN never is. Of 16 bits, whose hashes are those of their
//! bits in TensorFlow, zeros of different signs are not.

use super::{Build, cell::Cell, dispatch::with_stored, index::put_integers};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Ordered,
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape, budget, infer::normalize_axis};
use std::{
    hash::{DefaultHasher, Hasher},
    sync::Arc,
};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("ListDiff", list_diff),
    ("Unique", unique),
    ("UniqueV2", unique),
    ("UniqueWithCounts", unique),
    ("UniqueWithCountsV2", unique),
];

/// An element that can be looked up.
trait Key: Cell {
    /// Equal for elements that are equal.
    fn hash(&self) -> u64;
    /// Whether two elements of equal hash are equal.
    fn same(&self, other: &Self) -> bool;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Key for $type {
            #[inline(always)]
            fn hash(&self) -> u64 {
                *self as u64
            }
            #[inline(always)]
            fn same(&self, _: &Self) -> bool {
                true // The hash is the element.
            }
        }
    )*};
}

integers! { u8 u16 u32 u64 }

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Key for $type {
            #[inline(always)]
            fn hash(&self) -> u64 {
                u64::from(self.flushed().to_bits())
            }
            #[inline(always)]
            fn same(&self, other: &Self) -> bool {
                self.flushed() == other.flushed()
            }
        }
    )*};
}

floats! { f32 f64 }

macro_rules! halves {
    ($($type:ty)*) => {$(
        impl Key for $type {
            #[inline(always)]
            fn hash(&self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline(always)]
            fn same(&self, other: &Self) -> bool {
                self == other
            }
        }
    )*};
}

halves! { half::f16 half::bf16 }

impl Key for [u64; 2] {
    fn hash(&self) -> u64 {
        mix(self[0]) ^ self[1]
    }
    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Key for Bytes {
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(self);
        hasher.finish()
    }
    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

/// The type in which elements of a dtype are looked up: by value or, where that is the same, by
/// their bits.
macro_rules! with_key {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = half::f16;
                Some($body)
            }
            DType::BF16 => {
                type $T = half::bf16;
                Some($body)
            }
            DType::F32 => {
                type $T = f32;
                Some($body)
            }
            DType::F64 => {
                type $T = f64;
                Some($body)
            }
            dtype => with_stored!(dtype, $T => $body),
        }
    };
}

/// Distributes the bits of a hash (the finaliser of MurmurHash3, Austin Appleby).
#[inline(always)]
fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash
}

/// Numbers by hash. It grows as they come.
struct Table {
    /// A hash and a number; free where the number is [`FREE`].
    slots: Vec<(u64, u32)>,
    len: usize,
}

const FREE: u32 = u32::MAX;

impl Table {
    fn new() -> Table {
        Table { slots: vec![(0, FREE); 64], len: 0 }
    }

    /// The number with this hash for which `same` holds; where there is none, `number` is added.
    #[inline]
    fn find_or_add(&mut self, hash: u64, number: u32, same: impl Fn(u32) -> bool) -> u32 {
        let slot = self.slot(hash, same);
        if self.slots[slot].1 != FREE {
            return self.slots[slot].1;
        }
        self.slots[slot] = (hash, number);
        self.len += 1;
        if self.len * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    /// Whether there is a number with this hash for which `same` holds.
    fn contains(&self, hash: u64, same: impl Fn(u32) -> bool) -> bool {
        self.slots[self.slot(hash, same)].1 != FREE
    }

    /// Where the number is, or where it would be added.
    #[inline]
    fn slot(&self, hash: u64, same: impl Fn(u32) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = mix(hash) as usize & mask;
        loop {
            let (own, number) = self.slots[slot];
            if number == FREE || (own == hash && same(number)) {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let larger = vec![(0, FREE); self.slots.len() * 4];
        for (hash, number) in std::mem::replace(&mut self.slots, larger) {
            if number != FREE {
                let slot = self.slot(hash, |_| false);
                self.slots[slot] = (hash, number);
            }
        }
    }
}

/// The input is seen as `[outer, size, inner]`; slices along the middle are compared.
struct Plan {
    dtype: DType,
    index_dtype: DType,
    shape: Shape,
    axis: usize,
    counts: bool,
}

fn unique(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let shape = call.shape(0).clone();
    let axis = match call.inputs.len() {
        1 => 0,
        _ => match call.ints(1)?[..] {
            [axis] => normalize_axis(axis, shape.rank())?,
            _ => 0,
        },
    };
    let (dtype, index_dtype) = (call.dtype(0), call.outputs[1].dtype);
    let plan = Plan { dtype, index_dtype, shape, axis, counts: call.outputs.len() > 2 };
    Ok(with_key!(dtype, T => kernel::<T>(plan)))
}

fn kernel<T: Key>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let source = T::read(io, 0)?;
        let size = plan.shape[plan.axis];
        check_count(size)?;
        let outer: usize = plan.shape[..plan.axis].iter().product();
        let inner: usize = plan.shape[plan.axis + 1..].iter().product();
        // For each slice, which distinct one it is; for each distinct one, the first such slice.
        let (numbers, firsts) = if outer * inner == 1 {
            distinct(size, |n| source[n].hash(), |a, b| source[a].same(&source[b]))
        } else {
            let slice =
                |n: usize| (0..outer).flat_map(move |o| &source[(o * size + n) * inner..][..inner]);
            let hash = |n| slice(n).fold(0, |hash, x: &T| mix(hash).wrapping_add(x.hash()));
            distinct(size, hash, |a, b| {
                slice(a).zip(slice(b)).all(|(a, b)| a.hash() == b.hash() && a.same(b))
            })
        };
        let mut dims = plan.shape.to_vec();
        dims[plan.axis] = firsts.len();
        T::write(io, 0, plan.dtype, &Shape::new(dims)?, |out| {
            for (n, out) in out.chunks_exact_mut(inner.max(1)).enumerate() {
                let (row, first) = (n / firsts.len(), firsts[n % firsts.len()] as usize);
                out.clone_from_slice(&source[(row * size + first) * inner..][..inner]);
            }
            Ok(())
        })?;
        let all = numbers.iter().map(|&number| number as usize);
        put_integers(io, 1, plan.index_dtype, &Shape::new([size])?, all)?;
        if plan.counts {
            let mut counts = vec![0usize; firsts.len()];
            numbers.iter().for_each(|&number| counts[number as usize] += 1);
            let shape = Shape::new([counts.len()])?;
            put_integers(io, 2, plan.index_dtype, &shape, counts.into_iter())?;
        }
        Ok(())
    })
}

/// Numbers are 32 bits wide.
fn check_count(n: usize) -> Result<()> {
    if n < FREE as usize {
        return Ok(());
    }
    let (what, needed) = ("a lookup of elements".into(), format!("{n} elements"));
    Err(Error::Limit { what, needed, limit: FREE.into() }.into())
}

/// For each of `n` things, the number of the distinct one it equals; for each distinct one, the
/// first that equals it.
fn distinct(
    n: usize,
    hash: impl Fn(usize) -> u64,
    same: impl Fn(usize, usize) -> bool,
) -> (Vec<u32>, Vec<u32>) {
    let mut table = Table::new();
    let mut firsts: Vec<u32> = Vec::new();
    let number = |index: usize| {
        budget::tick();
        let next = firsts.len() as u32;
        let equals = |number: u32| same(firsts[number as usize] as usize, index);
        // What does not equal itself is not worth looking up.
        let number =
            if same(index, index) { table.find_or_add(hash(index), next, equals) } else { next };
        if number == next {
            firsts.push(index as u32);
        }
        number
    };
    let numbers = (0..n).map(number).collect();
    (numbers, firsts)
}

fn list_diff(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Key>(dtype: DType, index_dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, y) = (T::read(io, 0)?, T::read(io, 1)?);
            check_count(y.len())?;
            let mut table = Table::new();
            let mut entries: Vec<&T> = Vec::new();
            for element in y {
                budget::tick();
                let next = entries.len() as u32;
                let same = |number: u32| entries[number as usize].same(element);
                if element.same(element) && table.find_or_add(element.hash(), next, same) == next {
                    entries.push(element);
                }
            }
            let absent = |element: &T| {
                !table.contains(element.hash(), |number| entries[number as usize].same(element))
            };
            let kept: Vec<usize> =
                (0..x.len()).inspect(|_| budget::tick()).filter(|&i| absent(&x[i])).collect();
            let shape = Shape::new([kept.len()])?;
            T::write(io, 0, dtype, &shape, |out| {
                out.iter_mut().zip(&kept).for_each(|(out, &index)| out.clone_from(&x[index]));
                Ok(())
            })?;
            put_integers(io, 1, index_dtype, &shape, kept.iter().copied())
        })
    }
    let (dtype, index_dtype) = (call.dtype(0), call.outputs[1].dtype);
    Ok(with_key!(dtype, T => kernel::<T>(dtype, index_dtype)))
}
