//! Writing strided windows: `StridedSliceGrad`, `TensorStridedSliceUpdate`.

use super::{Build, cell::Cell, dispatch::with_cell, moving_call::MovingCall};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::{broadcast, strided},
};
use ferroflow_ir::{
    DType, Shape, StridedView,
    infer::OpContext,
    strided_slice::{MovingSlice, strided_slice},
    workspace,
};
use std::{marker::PhantomData, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("StridedSliceGrad", |call| compile(call, None)),
    ("TensorStridedSliceUpdate", |call| compile(call, Some(0))),
];

/// A call that writes into a window.
struct Window<T> {
    dtype: DType,
    shape: Shape,
    bounds: Bounds,
    /// The input that is there before; zeros if none.
    before: Option<usize>,
    types: PhantomData<fn() -> T>,
}

/// Knowledge of where a window is.
#[expect(clippy::large_enum_variant, reason = "there is one for each kernel")]
enum Bounds {
    Known(Target),
    /// It turns out in each call, for elements of this shape; where it is as large as these, by its bounds alone.
    Moving(MovingCall, Shape, Option<MovingSlice>),
}

/// The elements that a call writes.
struct Target {
    view: StridedView,
    /// The elements as the window has them, where they are repeated.
    repeated: Option<StridedView>,
}

/// The position of the input that is written into the window.
const ELEMENTS: usize = 4;

impl Target {
    /// The window of a tensor of this shape that elements of another are written to.
    fn of(
        context: &OpContext<'_>,
        shape: &Shape,
        elements: &Shape,
    ) -> ferroflow_ir::Result<Target> {
        let (view, sliced) = strided_slice(context, shape)?;
        if !elements.broadcast(&sliced).is_ok_and(|both| both == sliced) {
            let expected = format!("of a shape that broadcasts to {sliced}, as the slice");
            return Err(context.wrong(ELEMENTS, expected, elements));
        }
        let repeated = (*elements != sliced).then(|| broadcast::view(elements, &sliced));
        Ok(Target { view: view.simplified(), repeated })
    }
}

fn compile(call: &OpCall<'_>, before: Option<usize>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, shape) = (call.dtype(ELEMENTS), call.output_shape(0)?);
    let elements = call.shape(ELEMENTS);
    let bounds = if call.with_context(|context| Ok(context.host_values_known()))? {
        Bounds::Known(call.with_context(|context| Target::of(context, &shape, elements))?)
    } else {
        let slice = call
            .with_context(|context| Ok(MovingSlice::of_strided_slice(context, &shape, elements)))?;
        Bounds::Moving(MovingCall::of(call)?, elements.clone(), slice)
    };
    Ok(with_cell!(dtype, T => {
        let types = PhantomData;
        Arc::new(Window::<T> { dtype, shape, bounds, before, types }) as Arc<dyn Kernel>
    }))
}

impl<T: Cell> Kernel for Window<T> {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let found;
        let Target { view, repeated } = match &self.bounds {
            Bounds::Known(target) => target,
            Bounds::Moving(call, elements, slice) => {
                let view = slice.as_ref().and_then(|slice| {
                    let [begin, end] = call.bounds(io);
                    slice.view(&begin, &end)
                });
                found = match view {
                    Some(view) => Target { view, repeated: None },
                    None => {
                        call.with_context(io, |context| Target::of(context, &self.shape, elements))?
                    }
                };
                &found
            }
        };
        let mut elements = T::read(io, ELEMENTS)?;
        let mut all: Vec<T>;
        if let Some(repeated) = repeated {
            all = workspace::filled(T::blank(), repeated.num_elements())?;
            strided::read(repeated, elements, 0, &mut all);
            elements = &all;
        }
        let before = match self.before {
            Some(input) if !io.is_in_place(input) => Some(T::read(io, input)?),
            _ => None,
        };
        T::write(io, 0, self.dtype, &self.shape, |out| {
            match before {
                Some(before) => out.clone_from_slice(before),
                None if self.before.is_none() => out.fill(T::blank()),
                None => {}
            }
            strided::write(view, out, elements);
            Ok(())
        })
    }

    fn in_place(&self, index: usize) -> bool {
        self.before == Some(index)
    }
}
