//! Reductions along any axes.
//!
//! The input is seen as loops that alternate between kept and reduced dimensions, neighbours of one
//! kind being one loop. The innermost loop is either folded into one element or added onto a row of
//! elements; both run over contiguous memory. Long folds keep many partial results, and rows of a
//! fold are combined in blocks, so that rounding errors grow with the logarithm of the length.

use super::{
    dispatch::{with_complex, with_real},
    lanes::{LANES, pairwise, settled},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered},
    simd::{Vectorized, vectorize},
};
use ferroflow_ir::{DType, ReduceKind, Shape, infer::reduced_axes};
use smallvec::SmallVec;
use std::{
    ops::{BitAnd, BitOr},
    sync::Arc,
};

/// Compiles a reduction.
pub(super) fn compile(call: &OpCall<'_>, kind: ReduceKind) -> Result<Option<Arc<dyn Kernel>>> {
    let shape = call.shape(0);
    let reduced = reduced_axes(&call.ints(1)?, shape.rank())?;
    let plan = Plan::new(shape, &reduced);
    let dtype = call.dtype(0);
    Ok(match kind {
        ReduceKind::All if dtype == DType::Bool => Some(kernel::<u8, AndOf>(plan)),
        ReduceKind::Any if dtype == DType::Bool => Some(kernel::<u8, OrOf>(plan)),
        ReduceKind::All | ReduceKind::Any => None,
        ReduceKind::Max => with_real!(dtype, T => kernel::<T, MaxOf>(plan)),
        ReduceKind::Min => with_real!(dtype, T => kernel::<T, MinOf>(plan)),
        ReduceKind::Sum => number::<SumOf>(dtype, plan),
        ReduceKind::Mean => number::<MeanOf>(dtype, plan),
        ReduceKind::Prod => number::<ProdOf>(dtype, plan),
        ReduceKind::EuclideanNorm => number::<NormOf>(dtype, plan),
    })
}

/// For types with arithmetic.
fn number<R>(dtype: DType, plan: Plan) -> Option<Arc<dyn Kernel>>
where
    R: Rule<i8>
        + Rule<i16>
        + Rule<i32>
        + Rule<i64>
        + Rule<u8>
        + Rule<u16>
        + Rule<u32>
        + Rule<u64>
        + Rule<half::f16>
        + Rule<half::bf16>
        + Rule<f32>
        + Rule<f64>
        + Rule<num_complex::Complex<f32>>
        + Rule<num_complex::Complex<f64>>,
{
    if dtype.is_complex() {
        return with_complex!(dtype, T => kernel::<T, R>(plan));
    }
    with_real!(dtype, T => kernel::<T, R>(plan))
}

/// A loop of a reduction.
#[derive(Debug, Clone, Copy)]
struct Loop {
    size: usize,
    reduced: bool,
}

/// The loops of a reduction, outermost first.
#[derive(Debug, Clone)]
struct Plan {
    loops: SmallVec<[Loop; 4]>,
    /// Elements that become one.
    count: usize,
}

impl Plan {
    fn new(shape: &Shape, reduced: &[bool]) -> Plan {
        let mut loops: SmallVec<[Loop; 4]> = SmallVec::new();
        for (&size, &reduced) in shape.iter().zip(reduced).filter(|(size, _)| **size != 1) {
            match loops.last_mut() {
                Some(last) if last.reduced == reduced => last.size *= size,
                _ => loops.push(Loop { size, reduced }),
            }
        }
        let count = shape.iter().zip(reduced).filter(|(_, reduced)| **reduced).map(|(n, _)| n);
        Plan { loops, count: count.product() }
    }
}

/// Reduction of the elements.
trait Rule<T: Number>: Send + Sync + 'static {
    /// The type of partial results.
    type Acc: Number;
    /// Initial value of a result.
    fn start() -> Self::Acc;
    /// Contribution of an element.
    fn contribution(element: T) -> Self::Acc;
    /// Two partial results as one.
    fn combine(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// The result, of `count` elements.
    fn finish(acc: Self::Acc, count: usize) -> T;
}

macro_rules! rules {
    ($($name:ident<$bound:ident> { $start:expr, $combine:expr })*) => {$(
        struct $name;
        impl<T: $bound<Acc: $bound>> Rule<T> for $name {
            type Acc = T::Acc;
            fn start() -> T::Acc { $start }
            #[inline(always)]
            fn contribution(element: T) -> T::Acc { element.to_acc() }
            #[inline(always)]
            fn combine(a: T::Acc, b: T::Acc) -> T::Acc {
                let combine: fn(T::Acc, T::Acc) -> T::Acc = $combine;
                combine(a, b)
            }
            fn finish(acc: T::Acc, _: usize) -> T { T::from_acc(acc) }
        }
    )*};
}

rules! {
    SumOf<Number> { T::Acc::ZERO, |a, b| a.plus(b) }
    ProdOf<Number> { T::Acc::ONE, |a, b| a.times(b) }
    MaxOf<Ordered> { T::Acc::LOWEST, |a, b| a.larger(b) }
    MinOf<Ordered> { T::Acc::HIGHEST, |a, b| a.smaller(b) }
}

struct MeanOf;

impl<T: Number> Rule<T> for MeanOf {
    type Acc = T::Wide;
    fn start() -> T::Wide {
        T::Wide::ZERO
    }
    #[inline(always)]
    fn contribution(element: T) -> T::Wide {
        element.to_wide()
    }
    #[inline(always)]
    fn combine(a: T::Wide, b: T::Wide) -> T::Wide {
        a.plus(b)
    }
    fn finish(acc: T::Wide, count: usize) -> T {
        if count == 0 { T::MEAN_OF_NOTHING } else { T::from_wide(acc.over(T::Wide::count(count))) }
    }
}

struct NormOf;

impl<T: Number> Rule<T> for NormOf {
    type Acc = T::Acc;
    fn start() -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn contribution(element: T) -> T::Acc {
        element.to_acc().squared()
    }
    #[inline(always)]
    fn combine(a: T::Acc, b: T::Acc) -> T::Acc {
        a.plus(b)
    }
    fn finish(acc: T::Acc, _: usize) -> T {
        T::from_acc(acc.root())
    }
}

macro_rules! truths {
    ($($name:ident { $start:literal, $combine:path })*) => {$(
        struct $name;
        impl Rule<u8> for $name {
            type Acc = u8;
            fn start() -> u8 { $start }
            #[inline(always)]
            fn contribution(element: u8) -> u8 { element }
            #[inline(always)]
            fn combine(a: u8, b: u8) -> u8 { $combine(a, b) }
            fn finish(acc: u8, _: usize) -> u8 { acc }
        }
    )*};
}

truths! {
    AndOf { 1, BitAnd::bitand }
    OrOf { 0, BitOr::bitor }
}

/// Elements per piece of work.
const PIECE: usize = 1 << 16;

fn kernel<T: Number, R: Rule<T>>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let source: &[T] = io.input(0);
        let out: &mut [T] = io.output(0);
        let threads = io.threads();
        match plan.loops.first() {
            None => {
                let of = |element: &T| R::combine(R::start(), R::contribution(*element));
                out.iter_mut().zip(source).for_each(|(out, x)| *out = R::finish(of(x), plan.count));
            }
            _ if source.is_empty() => out.fill(R::finish(R::start(), plan.count)),
            // The outermost kept loop is shared between threads.
            Some(outer) if !outer.reduced => {
                let (rows, inner) = (outer.size, &plan.loops[1..]);
                let (row_in, row_out) = (source.len() / rows, out.len() / rows);
                let rows_per_piece = (PIECE / row_in.max(1)).max(1);
                threads.for_each_piece(out, rows_per_piece * row_out, |start, out| {
                    let first = start / row_out;
                    for (row, out) in out.chunks_mut(row_out).enumerate() {
                        let source = &source[(first + row) * row_in..][..row_in];
                        reduce_into::<T, R>(inner, source, out, plan.count);
                    }
                });
            }
            // Everything else is cut along the outermost reduced loop, always at the same places.
            Some(outer) => {
                let slice = source.len() / outer.size;
                let slices_per_piece = (PIECE / slice.max(1)).max(1);
                let n_pieces = outer.size.div_ceil(slices_per_piece);
                let mut partials = vec![vec![R::start(); out.len()]; n_pieces];
                threads.for_each_piece(&mut partials, 1, |piece, partial| {
                    let first = piece * slices_per_piece;
                    let size = slices_per_piece.min(outer.size - first);
                    let mut loops = plan.loops.clone();
                    loops[0].size = size;
                    let source = &source[first * slice..(first + size) * slice];
                    accumulate::<T, R>(&loops, source, &mut partial[0]);
                });
                let total = partials.into_iter().reduce(|mut a, b| {
                    a.iter_mut().zip(b).for_each(|(a, b)| *a = R::combine(*a, b));
                    a
                });
                let total = total.unwrap_or_default();
                out.iter_mut().zip(total).for_each(|(out, acc)| *out = R::finish(acc, plan.count));
            }
        }
        Ok(())
    })
}

fn reduce_into<T: Number, R: Rule<T>>(loops: &[Loop], source: &[T], out: &mut [T], count: usize) {
    if let [only] = loops
        && only.reduced
    {
        out[0] = R::finish(fold::<T, R>(source), count);
        return;
    }
    let mut accs = vec![R::start(); out.len()];
    accumulate::<T, R>(loops, source, &mut accs);
    out.iter_mut().zip(accs).for_each(|(out, acc)| *out = R::finish(acc, count));
}

/// Adds `source`, seen as `loops`, onto `accs`, which hold one element for each kept position.
fn accumulate<T: Number, R: Rule<T>>(loops: &[Loop], source: &[T], accs: &mut [R::Acc]) {
    match loops {
        [] => accs[0] = R::combine(accs[0], R::contribution(source[0])),
        [only] if only.reduced => accs[0] = R::combine(accs[0], fold::<T, R>(source)),
        [_] => add_rows::<T, R>(source, accs),
        [outer, inner @ ..] => {
            let slice = source.len() / outer.size;
            if !outer.reduced {
                let row = accs.len() / outer.size;
                for (source, accs) in source.chunks(slice).zip(accs.chunks_mut(row)) {
                    accumulate::<T, R>(inner, source, accs);
                }
                return;
            }
            let onto = |block: &[T], accs: &mut [R::Acc]| match inner {
                [only] if !only.reduced => add_rows::<T, R>(block, accs),
                _ => block.chunks(slice).for_each(|row| accumulate::<T, R>(inner, row, accs)),
            };
            // Blocks of rows get sums of their own.
            for block in source.chunks(slice * BLOCK_OF_ROWS) {
                if block.len() == source.len() {
                    onto(block, accs);
                    return;
                }
                let mut partial = vec![R::start(); accs.len()];
                onto(block, &mut partial);
                accs.iter_mut().zip(partial).for_each(|(acc, x)| *acc = R::combine(*acc, x));
            }
        }
    }
}

const BLOCK_OF_ROWS: usize = 256;

/// Results of rows that stay in registers while the rows are added.
const IN_REGISTERS: usize = 32;

/// Rows that are read side by side: many that are a power of two apart would not all stay in a cache.
const AT_ONCE: usize = 4;

/// Adds rows that are as long as `sums` onto them.
pub(super) fn add_float_rows(rows: &[f32], sums: &mut [f32]) {
    add_rows::<f32, SumOf>(rows, sums);
}

/// Combines rows that are as long as `accs` with them.
fn add_rows<T: Number, R: Rule<T>>(rows: &[T], accs: &mut [R::Acc]) {
    struct AddRows<'a, T: Number, R: Rule<T>>(
        &'a [T],
        &'a mut [R::Acc],
        std::marker::PhantomData<R>,
    );
    impl<T: Number, R: Rule<T>> Vectorized for AddRows<'_, T, R> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            let cols = self.1.len();
            let (wide, rest) = self.1.as_chunks_mut::<IN_REGISTERS>();
            let first = cols - rest.len();
            for rows in self.0.chunks(cols * AT_ONCE) {
                for (index, wide) in wide.iter_mut().enumerate() {
                    let mut accs = *wide;
                    for row in rows.chunks_exact(cols) {
                        if let Some(row) = row[index * IN_REGISTERS..].first_chunk::<IN_REGISTERS>()
                        {
                            for (acc, &element) in accs.iter_mut().zip(row) {
                                *acc = R::combine(*acc, R::contribution(element));
                            }
                        }
                    }
                    *wide = accs;
                }
                for row in rows.chunks_exact(cols) {
                    for (acc, &element) in rest.iter_mut().zip(&row[first..]) {
                        *acc = R::combine(*acc, R::contribution(element));
                    }
                }
            }
        }
    }
    vectorize(AddRows::<T, R>(rows, accs, std::marker::PhantomData));
}

/// Elements that are folded before partial results are combined.
const FOLD_BLOCK: usize = 4096;

fn fold<T: Number, R: Rule<T>>(source: &[T]) -> R::Acc {
    struct Fold<'a, T, R>(&'a [T], std::marker::PhantomData<R>);
    impl<T: Number, R: Rule<T>> Vectorized for Fold<'_, T, R> {
        type Output = R::Acc;
        #[inline(always)]
        fn run(self) -> R::Acc {
            let mut lanes = [R::start(); LANES];
            let (chunks, rest) = self.0.as_chunks::<LANES>();
            for chunk in chunks {
                for (lane, &element) in lanes.iter_mut().zip(chunk) {
                    *lane = R::combine(*lane, R::contribution(element));
                }
            }
            let mut lanes = settled(lanes);
            for (lane, &element) in lanes.iter_mut().zip(rest) {
                *lane = R::combine(*lane, R::contribution(element));
            }
            pairwise(lanes, R::combine)
        }
    }
    let blocks = source.chunks(FOLD_BLOCK);
    let folded = blocks.map(|block| vectorize(Fold::<T, R>(block, std::marker::PhantomData)));
    folded.fold(R::start(), |a, b| R::combine(a, b))
}
