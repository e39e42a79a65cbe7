//! Writing slices by index: `ScatterNd`, `TensorScatter…`.
//!
//! All indices are checked before anything is written. Work is cut along the result, so that the
//! updates of one place are made in their order, by one thread.

use super::{
    Build,
    cell::Cell,
    dispatch::{with_cell, with_number, with_real},
    index::{Bad, checked_index, checked_indices},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered},
    threads::Threads,
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape};
use std::{marker::PhantomData, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("ScatterNd", scatter_nd),
    ("ScatterNdNonAliasingAdd", |call| onto(call, Rule::Add)),
    ("TensorScatterAdd", |call| onto(call, Rule::Add)),
    ("TensorScatterMax", |call| onto(call, Rule::Max)),
    ("TensorScatterMin", |call| onto(call, Rule::Min)),
    ("TensorScatterSub", |call| onto(call, Rule::Sub)),
    ("TensorScatterUpdate", |call| onto(call, Rule::Update)),
    ("_TensorScatterDiv", |call| onto(call, Rule::Div)),
    ("_TensorScatterMul", |call| onto(call, Rule::Mul)),
];

/// Combination of an update with the element before it.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Update,
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

/// The result is seen as `[dims…, inner]`, the updates as `[count, inner]`.
struct Plan {
    dtype: DType,
    index_dtype: DType,
    shape: Shape,
    dims: Vec<usize>,
    inner: usize,
    count: usize,
    bad: Bad,
    /// The positions of the inputs: what is there before (zeros if none), indices, updates.
    before: Option<usize>,
    indices: usize,
    updates: usize,
}

fn scatter_nd(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    compile(Plan::new(call, None, 0)?, Rule::Add)
}

fn onto(call: &OpCall<'_>, rule: Rule) -> Result<Option<Arc<dyn Kernel>>> {
    compile(Plan::new(call, Some(0), 1)?, rule)
}

impl Plan {
    fn new(call: &OpCall<'_>, before: Option<usize>, indices: usize) -> Result<Plan> {
        let (shape, places) = (call.output_shape(0)?, call.shape(indices));
        let (count, depth) = match &places[..] {
            [n] => (*n, 1),
            [rows @ .., depth] => (rows.iter().product(), *depth),
            [] => (0, 0),
        };
        Ok(Plan {
            dtype: call.outputs[0].dtype,
            index_dtype: call.dtype(indices),
            dims: shape[..depth].to_vec(),
            inner: shape[depth..].iter().product(),
            shape,
            count,
            bad: Bad::of(call)?,
            before,
            indices,
            updates: indices + 1,
        })
    }

    /// The number of rows of the result, if one of them changes and that is little work.
    fn single_row(&self) -> Option<usize> {
        match self.dims[..] {
            [size] if self.count == 1 && self.inner <= PIECE && self.bad == Bad::Fail => Some(size),
            _ => None,
        }
    }
}

fn compile(plan: Plan, rule: Rule) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = plan.dtype;
    Ok(match (rule, dtype) {
        (Rule::Update, _) => with_cell!(dtype, T => kernel::<T, Assign>(plan)),
        (Rule::Add, DType::String) => Some(kernel::<Bytes, Append>(plan)),
        (Rule::Add, DType::Bool) => Some(kernel::<u8, Or>(plan)),
        (Rule::Add, _) => with_number!(dtype, T => kernel::<T, Plus>(plan)),
        (Rule::Sub, _) => with_number!(dtype, T => kernel::<T, Minus>(plan)),
        (Rule::Mul, _) => with_number!(dtype, T => kernel::<T, Times>(plan)),
        (Rule::Div, _) => with_number!(dtype, T => kernel::<T, Over>(plan)),
        (Rule::Min, _) => with_real!(dtype, T => kernel::<T, Smaller>(plan)),
        (Rule::Max, _) => with_real!(dtype, T => kernel::<T, Larger>(plan)),
    })
}

/// A [`Rule`] for one element type.
pub(super) trait Combine<T>: Send + Sync + 'static {
    /// Fails if no such updates can be made.
    fn check(updates: &[T], dtype: DType) -> Result<()> {
        let _ = (updates, dtype);
        Ok(())
    }

    /// Makes an update.
    fn apply(place: &mut T, update: &T);
}

macro_rules! arithmetic {
    ($($name:ident<$bound:ident> $combine:ident;)*) => {$(
        pub(super) struct $name;
        impl<T: $bound> Combine<T> for $name {
            #[inline(always)]
            fn apply(place: &mut T, update: &T) {
                *place = place.$combine(*update);
            }
        }
    )*};
}

arithmetic! {
    Plus<Number> plus;
    Minus<Number> minus;
    Times<Number> times;
}

/// Combinations by a comparison. TensorFlow's functors compare an element with an update, or an update with an
/// element: so NaN of updates is left out of scattered ones, and NaN of either goes with the next row of a
/// segment.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident |$place:ident, $update:ident| $takes:expr;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name;
        impl<T: Ordered> Combine<T> for $name {
            #[inline(always)]
            fn apply($place: &mut T, $update: &T) {
                if $takes {
                    *$place = *$update;
                }
            }
        }
    )*};
}

choices! {
    Smaller |place, update| *update < *place;
    Larger |place, update| *place < *update;
    /// Of the rows of a segment.
    SmallestRow |place, update| !(*place < *update);
    /// Of the rows of a segment.
    LargestRow |place, update| !(*update < *place);
}

struct Assign;

impl<T: Clone> Combine<T> for Assign {
    #[inline(always)]
    fn apply(place: &mut T, update: &T) {
        place.clone_from(update);
    }
}

struct Append;

impl Combine<Bytes> for Append {
    fn apply(place: &mut Bytes, update: &Bytes) {
        *place = [&place[..], &update[..]].concat().into();
    }
}

struct Or;

impl Combine<u8> for Or {
    fn apply(place: &mut u8, update: &u8) {
        *place |= *update;
    }
}

struct Over;

impl<T: Number> Combine<T> for Over {
    fn check(updates: &[T], dtype: DType) -> Result<()> {
        match dtype.is_integer() && updates.contains(&T::ZERO) {
            true => Err(Error::DivisionByZero.into()),
            false => Ok(()),
        }
    }

    fn apply(place: &mut T, update: &T) {
        *place = place.over(*update);
    }
}

/// Updates per piece of work, in elements.
const PIECE: usize = 1 << 16;

/// Every piece looks at all indices, so there are not more of them than this.
const MAX_PIECES: usize = 8;

struct Scatter<T, C> {
    plan: Plan,
    types: PhantomData<fn() -> (T, C)>,
}

fn kernel<T: Cell, C: Combine<T>>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(Scatter::<T, C> { plan, types: PhantomData })
}

impl<T: Cell, C: Combine<T>> Kernel for Scatter<T, C> {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let plan = &self.plan;
        if let Some(size) = plan.single_row()
            && io.is_in_place(0)
        {
            let start = checked_index(io, plan.indices, plan.index_dtype, size)? * plan.inner;
            let update = T::read(io, plan.updates)?;
            C::check(update, plan.dtype)?;
            return T::write(io, 0, plan.dtype, &plan.shape, |out| {
                let row = out[start..][..plan.inner].iter_mut();
                row.zip(update).for_each(|(place, update)| C::apply(place, update));
                Ok(())
            });
        }
        let indices =
            checked_indices(io, plan.indices, plan.index_dtype, plan.count, &plan.dims, plan.bad)?;
        let updates = T::read(io, plan.updates)?;
        C::check(updates, plan.dtype)?;
        let before = match plan.before {
            Some(input) if !io.is_in_place(input) => Some(T::read(io, input)?),
            _ => None,
        };
        let zeroed = plan.before.is_none();
        let threads = io.threads();
        T::write(io, 0, plan.dtype, &plan.shape, |out| {
            let prepared = if before.is_some() || zeroed { out.len() } else { 0 };
            let changes = Changes { places: &indices, updates, inner: plan.inner };
            changes.make::<C>(threads, out, prepared, |start, out| {
                if let Some(before) = before {
                    out.clone_from_slice(&before[start..start + out.len()]);
                } else if zeroed {
                    out.fill(T::blank());
                }
            });
            Ok(())
        })
    }

    fn in_place(&self, index: usize) -> bool {
        self.plan.before == Some(index)
    }
}

/// Updates of the rows of a tensor: the position and the elements of each.
pub(super) struct Changes<'a, T> {
    pub(super) places: &'a [usize],
    pub(super) updates: &'a [T],
    /// Elements of a row.
    pub(super) inner: usize,
}

impl<T: Sync + Send> Changes<'_, T> {
    /// Makes the updates, after `prepare` has brought `prepared` elements of the rows into the
    /// state they are to have before.
    pub(super) fn make<C: Combine<T>>(
        &self,
        threads: &Threads,
        out: &mut [T],
        prepared: usize,
        prepare: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let rows = out.len() / self.inner.max(1);
        let n_pieces = ((self.updates.len() + prepared) / PIECE).clamp(1, MAX_PIECES);
        threads.for_each_piece(out, rows.div_ceil(n_pieces) * self.inner, |start, out| {
            prepare(start, out);
            self.make_here::<C>(out, start / self.inner);
        });
    }

    /// Makes the updates of the rows in `out`, the first of which is row `first`.
    fn make_here<C: Combine<T>>(&self, out: &mut [T], first: usize) {
        let inner = self.inner;
        if inner == 1 {
            for (&place, update) in self.places.iter().zip(self.updates) {
                if let Some(place) = out.get_mut(place.wrapping_sub(first)) {
                    C::apply(place, update);
                }
            }
            return;
        }
        let rows = out.len() / inner;
        for (&place, update) in self.places.iter().zip(self.updates.chunks_exact(inner)) {
            let row = place.wrapping_sub(first);
            if row < rows {
                let out = &mut out[row * inner..][..inner];
                out.iter_mut().zip(update).for_each(|(place, update)| C::apply(place, update));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The element after these updates, in order.
    fn after<C: Combine<f32>>(place: f32, updates: &[f32]) -> f32 {
        updates.iter().fold(place, |mut place, update| {
            C::apply(&mut place, update);
            place
        })
    }

    /// The results of TensorFlow 2.21.
    #[test]
    fn extremes_treat_nan_as_tensorflow_does() {
        let nan = f32::NAN;
        for updates in [&[nan, 1.0][..], &[1.0, nan]] {
            assert_eq!(after::<Larger>(0.0, updates), 1.0);
            assert_eq!(after::<Smaller>(5.0, updates), 1.0);
            assert!(after::<Larger>(nan, updates).is_nan());
            assert!(after::<Smaller>(nan, updates).is_nan());
        }
        for (rows, largest, smallest) in
            [([nan, 1.0, 2.0], 2.0, 1.0), ([1.0, nan, 2.0], 2.0, 2.0), ([2.0, nan, 1.0], 1.0, 1.0)]
        {
            assert_eq!(after::<LargestRow>(f32::MIN, &rows), largest);
            assert_eq!(after::<SmallestRow>(f32::MAX, &rows), smallest);
        }
        assert!(after::<LargestRow>(f32::MIN, &[1.0, 2.0, nan]).is_nan());
        assert!(after::<SmallestRow>(f32::MAX, &[1.0, 2.0, nan]).is_nan());
    }
}
