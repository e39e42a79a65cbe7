//! Segments in order: `Segment…`, `SparseSegment…`.

use super::{
    Build,
    cell::Cell,
    dispatch::{with_float, with_number, with_real},
    index::{Bad, checked_indices, integers},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered},
    simd::{Vectorized, vectorize},
};
use ferroflow_ir::{DType, Error, Shape, shape::counted};
use std::{marker::PhantomData, ops::Range, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("SegmentMax", max),
    ("SegmentMean", mean),
    ("SegmentMin", min),
    ("SegmentProd", prod),
    ("SegmentSum", sum),
    ("SparseSegmentMean", mean),
    ("SparseSegmentMeanWithNumSegments", mean),
    ("SparseSegmentSqrtN", sum_over_root),
    ("SparseSegmentSqrtNWithNumSegments", sum_over_root),
    ("SparseSegmentSum", sum),
    ("SparseSegmentSumWithNumSegments", sum),
];

/// Reduction of the elements of a segment.
trait Rule<T: Number>: Send + Sync + 'static {
    /// The result where the segment is empty.
    const NONE: T = T::ZERO;
    /// Accumulates a further element.
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc;
    /// The result, of `count` elements.
    fn finish(acc: T::Acc, count: usize) -> T {
        let _ = count;
        T::from_acc(acc)
    }
}

struct Sum;

impl<T: Number> Rule<T> for Sum {
    #[inline(always)]
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        acc.plus(x)
    }
}

struct Mean;

impl<T: Number> Rule<T> for Mean {
    #[inline(always)]
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        acc.plus(x)
    }
    fn finish(acc: T::Acc, count: usize) -> T {
        T::from_acc(acc.over(T::Acc::count(count)))
    }
}

struct SumOverRoot;

impl<T: Number> Rule<T> for SumOverRoot {
    #[inline(always)]
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        acc.plus(x)
    }
    fn finish(acc: T::Acc, count: usize) -> T {
        T::from_acc(acc.over(T::Acc::count(count).root()))
    }
}

struct ProductReduction;

impl<T: Number> Rule<T> for ProductReduction {
    const NONE: T = T::ONE;
    #[inline(always)]
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        acc.times(x)
    }
}

struct Largest;

impl<T: Ordered<Acc: Ordered>> Rule<T> for Largest {
    #[inline(always)]
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        if x < acc { acc } else { x }
    }
}

struct Smallest;

impl<T: Ordered<Acc: Ordered>> Rule<T> for Smallest {
    #[inline(always)]
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        if x > acc { acc } else { x }
    }
}

struct Plan {
    op: &'static str,
    dtype: DType,
    id_dtype: DType,
    /// The position of the segment ids.
    ids: usize,
    /// The dtype of the indices that choose rows, if they do.
    chosen: Option<DType>,
    /// The number of segments, where it is passed.
    n_segments: Option<usize>,
    /// The number of rows of the data, and their shape.
    n_rows: usize,
    row: Shape,
}

impl Plan {
    fn new(call: &OpCall<'_>) -> Result<Plan> {
        let data = call.shape(0);
        let ids = if call.op.inputs.len() > 2 { 2 } else { 1 };
        Ok(Plan {
            op: call.op.name,
            dtype: call.dtype(0),
            id_dtype: call.dtype(ids),
            ids,
            chosen: (ids == 2).then(|| call.dtype(1)),
            n_segments: match call.inputs.len() {
                4 => Some(call.output_shape(0)?[0]),
                _ => None,
            },
            n_rows: data[0],
            row: Shape::new(data[1..].iter().copied())?,
        })
    }
}

fn sum(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_number!(plan.dtype, T => kernel::<T, Sum>(plan)))
}

fn prod(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_number!(plan.dtype, T => kernel::<T, ProductReduction>(plan)))
}

fn mean(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_number!(plan.dtype, T => kernel::<T, Mean>(plan)))
}

fn max(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_real!(plan.dtype, T => kernel::<T, Largest>(plan)))
}

fn min(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_real!(plan.dtype, T => kernel::<T, Smallest>(plan)))
}

fn sum_over_root(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_float!(plan.dtype, T => kernel::<T, SumOverRoot>(plan)))
}

/// The rows of a segment.
struct Segment {
    id: usize,
    rows: Range<usize>,
}

/// The segments that ids in order name.
///
/// # Errors
///
/// [`Error::Argument`] where they are not in order, [`Error::Index`] for negative ones.
fn segments(op: &'static str, ids: &[i64]) -> Result<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut last = -1;
    for (row, &id) in ids.iter().enumerate() {
        match segments.last_mut() {
            Some(segment) if id == last => segment.rows.end = row + 1,
            _ if id > last => segments.push(Segment { id: counted(id), rows: row..row + 1 }),
            None => {
                let (what, high) = ("segment id".into(), i64::MAX);
                return Err(Error::Index { what, index: id, low: 0, high }.into());
            }
            Some(_) => {
                let found = format!("{id} after {last}");
                return Err(Error::argument(op, "segment_ids", "in order", found).into());
            }
        }
        last = id;
    }
    Ok(segments)
}

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

fn kernel<T: Number + Cell, R: Rule<T>>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let ids = integers(io, plan.ids, plan.id_dtype);
        let segments = segments(plan.op, &ids)?;
        let used = segments.last().map_or(Ok(0), |segment| match segment.id.checked_add(1) {
            Some(n) => Ok(n),
            None => Err(too_many(plan.op, segment.id)),
        })?;
        let n = plan.n_segments.unwrap_or(used);
        if used > n {
            let found = format!("segment {}", used - 1);
            return Err(Error::argument(plan.op, "segment_ids", format!("below {n}"), found).into());
        }
        let chosen = match plan.chosen {
            Some(dtype) => {
                Some(checked_indices(io, 1, dtype, ids.len(), &[plan.n_rows], Bad::Fail)?)
            }
            None => None,
        };
        let source: &[T] = io.input(0);
        let threads = io.threads();
        let inner = plan.row.num_elements();
        let shape = Shape::new([n].into_iter().chain(plan.row.iter().copied()))?;
        T::write(io, 0, plan.dtype, &shape, |out| {
            let work_per_segment = (ids.len() * inner).div_ceil(n.max(1));
            let rows_per_piece = (PIECE / work_per_segment.max(1)).max(1);
            threads.for_each_piece(out, rows_per_piece * inner, |start, out| {
                let first = start / inner;
                let end = first + out.len() / inner;
                let from = segments.partition_point(|segment| segment.id < first);
                let own = segments[from..].iter().take_while(|segment| segment.id < end);
                out.fill(R::NONE);
                let mut accs = vec![T::Acc::ZERO; inner];
                for segment in own {
                    let rows = segment.rows.clone().map(|row| {
                        let row = chosen.as_ref().map_or(row, |chosen| chosen[row]);
                        &source[row * inner..][..inner]
                    });
                    combine::<T, R>(rows, &mut accs);
                    let out = &mut out[(segment.id - first) * inner..][..inner];
                    let count = segment.rows.len();
                    out.iter_mut().zip(&accs).for_each(|(out, &acc)| *out = R::finish(acc, count));
                }
            });
            Ok(())
        })
    })
}

fn too_many(op: &'static str, id: usize) -> Error {
    Error::argument(op, "segment_ids", "countable", id)
}

/// Combines rows, of which there is at least one.
fn combine<'a, T: Number, R: Rule<T>>(
    mut rows: impl Iterator<Item = &'a [T]>,
    accs: &mut [T::Acc],
) {
    struct Combine<'a, T: Number, R>(&'a [T], &'a mut [T::Acc], PhantomData<R>);
    impl<T: Number, R: Rule<T>> Vectorized for Combine<'_, T, R> {
        type Output = ();
        #[inline(always)]
        fn run(self) {
            for (acc, x) in self.1.iter_mut().zip(self.0) {
                *acc = R::combine(*acc, x.to_acc());
            }
        }
    }
    if let Some(first) = rows.next() {
        accs.iter_mut().zip(first).for_each(|(acc, x)| *acc = x.to_acc());
    }
    rows.for_each(|row| vectorize(Combine::<T, R>(row, accs, PhantomData)));
}
