//! Views that read other windows from call to call, all of one size: a slice that begins where a loop counter
//! says.

use super::Way;
use crate::{
    cpu::{dispatch::with_cell, moving_call::MovingCall},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape, StridedView, infer::OpContext};
use std::sync::Arc;

/// The windows of a call.
type ViewRule = fn(&OpContext<'_>) -> ferroflow_ir::Result<Vec<StridedView>>;

/// Copies a window to an output.
type CopyWindow = fn(&Way, &mut Io<'_>, (usize, DType, &Shape)) -> Result<()>;

/// Compiles a view op of which some host inputs are not known; `None` where the shape of a result is not
/// either.
pub(super) fn compile(call: &OpCall<'_>, rule: ViewRule) -> Result<Option<Arc<dyn Kernel>>> {
    let shapes = call.outputs.iter().map(|output| output.shape.known());
    let Some(shapes) = shapes.collect::<Option<Vec<Shape>>>() else { return Ok(None) };
    let dtype = call.dtype(0);
    let Some(copy) = with_cell!(dtype, T => Way::copy::<T> as CopyWindow) else {
        return Ok(None);
    };
    Ok(Some(Arc::new(MovingView { call: MovingCall::of(call)?, rule, dtype, shapes, copy })))
}

/// A view whose windows follow from values that are there when it runs.
struct MovingView {
    call: MovingCall,
    rule: ViewRule,
    dtype: DType,
    shapes: Vec<Shape>,
    copy: CopyWindow,
}

impl Kernel for MovingView {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
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
            (self.copy)(&way, io, (index, self.dtype, &self.shapes[index]))?;
        }
        Ok(())
    }
}
