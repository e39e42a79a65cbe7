//! Views that read other windows from call to call, all of one size: a slice that begins where a loop counter
//! says.

use super::Way;
use crate::{
    cpu::{dispatch::with_cell, moving_call::MovingCall},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{
    DType, Error, Shape, StridedView, infer::OpContext, strided_slice::MovingSlice,
};
use std::sync::Arc;

/// The windows of a call.
type ViewRule = fn(&OpContext<'_>) -> ferroflow_ir::Result<Vec<StridedView>>;

/// Copies a window to an output of those of these shapes.
type CopyWindow = fn(&Way, &mut Io<'_>, (usize, DType), &[Shape]) -> Result<()>;

/// Compiles a view op of which some host inputs are not known; `None` where the shape of a result is not
/// either.
pub(super) fn compile(call: &OpCall<'_>, rule: ViewRule) -> Result<Option<Arc<dyn Kernel>>> {
    let shapes = call.outputs.iter().map(|output| output.shape.known());
    let Some(shapes) = shapes.collect::<Option<Vec<Shape>>>() else { return Ok(None) };
    let dtype = call.dtype(0);
    let Some(copy) = with_cell!(dtype, T => Way::copy::<T> as CopyWindow) else {
        return Ok(None);
    };
    let slice = moving_slice(call, &shapes)?;
    Ok(Some(Arc::new(MovingView { call: MovingCall::of(call)?, rule, slice, dtype, shapes, copy })))
}

/// The slice that a call is, if its bounds alone tell where it is.
fn moving_slice(call: &OpCall<'_>, shapes: &[Shape]) -> Result<Option<MovingSlice>> {
    let [sliced] = shapes else { return Ok(None) };
    match call.op.name {
        "Slice" => Ok(MovingSlice::of_slice(call.shape(0), sliced)),
        "StridedSlice" => call.with_context(|context| {
            Ok(MovingSlice::of_strided_slice(context, call.shape(0), sliced))
        }),
        _ => Ok(None),
    }
}

/// A view whose windows follow from values that are there when it runs.
struct MovingView {
    call: MovingCall,
    rule: ViewRule,
    slice: Option<MovingSlice>,
    dtype: DType,
    shapes: Vec<Shape>,
    copy: CopyWindow,
}

impl Kernel for MovingView {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        if let Some(slice) = &self.slice {
            let [begin, end] = self.call.bounds(io);
            if let Some(view) = slice.view(&begin, &end) {
                return (self.copy)(&Way::InOrder(view), io, (0, self.dtype), &self.shapes);
            }
            // What is wrong, the rule tells.
        }
        let views = self.call.with_context(io, |context| {
            for (output, shape) in self.shapes.iter().enumerate() {
                let found = context.output(output);
                if found.known().as_ref() != Some(shape) {
                    let (expected, found) = (shape.to_string(), found.to_string());
                    return Err(Error::argument(self.call.name(), "result", expected, found));
                }
            }
            (self.rule)(context)
        })?;
        for (index, view) in views.into_iter().enumerate() {
            let way = Way::InOrder(view.simplified());
            (self.copy)(&way, io, (index, self.dtype), &self.shapes)?;
        }
        Ok(())
    }
}
