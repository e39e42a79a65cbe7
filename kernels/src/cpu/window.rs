//! Writing strided windows: `StridedSliceGrad`, `TensorStridedSliceUpdate`.

use super::{Build, cell::Cell, dispatch::with_cell};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::{broadcast, strided},
};
use ferroflow_ir::{DType, Shape, StridedView, strided_slice::strided_slice, workspace};
use std::{marker::PhantomData, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("StridedSliceGrad", |call| compile(call, None)),
    ("TensorStridedSliceUpdate", |call| compile(call, Some(0))),
];

/// Bounds of a window position.
struct Window<T> {
    dtype: DType,
    shape: Shape,
    view: StridedView,
    /// The elements as the window has them, where they are repeated.
    repeated: Option<StridedView>,
    /// The input that is there before; zeros if none.
    before: Option<usize>,
    types: PhantomData<fn() -> T>,
}

/// The position of the input that is written into the window.
const ELEMENTS: usize = 4;

fn compile(call: &OpCall<'_>, before: Option<usize>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, shape) = (call.dtype(ELEMENTS), call.output_shape(0)?);
    let (view, sliced) = call.with_context(|context| strided_slice(context, &shape))?;
    let view = view.simplified();
    let elements = call.shape(ELEMENTS);
    if !elements.broadcast(&sliced).is_ok_and(|both| both == sliced) {
        let expected = format!("of a shape that broadcasts to {sliced}, as the slice");
        return Err(call.wrong("value", expected, elements));
    }
    let repeated = (*elements != sliced).then(|| broadcast::view(elements, &sliced));
    Ok(with_cell!(dtype, T => {
        let types = PhantomData;
        Arc::new(Window::<T> { dtype, shape, view, repeated, before, types }) as Arc<dyn Kernel>
    }))
}

impl<T: Cell> Kernel for Window<T> {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let mut elements = T::read(io, ELEMENTS)?;
        let mut all: Vec<T>;
        if let Some(repeated) = &self.repeated {
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
            strided::write(&self.view, out, elements);
            Ok(())
        })
    }

    fn in_place(&self, index: usize) -> bool {
        self.before == Some(index)
    }
}
