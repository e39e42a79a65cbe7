//! Calls of kernels whose inputs and results are known, and the memory of those.

use super::{
    action::{Action, KernelAction, ScalarCall, ValueLocation},
    body::{PlannedBody, origin},
    device,
    planner::Planner,
};
use crate::{error::Result, kernel_call::compile};
use ferroflow_ir::{
    Lowering, NodeDef, NodeId, Outlet, ValueType, host_tensor::byte_len, pass::execution::Execution,
};
use ferroflow_kernels::{
    OpCall, check_size,
    cost::OpCost,
    frame::{LaunchStep, StepSink, StepSource},
};
use smallvec::SmallVec;

pub(super) fn kernel(
    planner: &mut Planner<'_>,
    body: &mut PlannedBody<'_>,
    id: NodeId,
    node: &NodeDef,
) -> Result<()> {
    let Some(op) = node.op.def() else { return Ok(()) };
    let specs = body.specs(node)?;
    let call = OpCall::new(op, &node.attrs, &specs, node.expr.as_deref())?;
    let call = call.with_precision(planner.context.precision());
    if let Some(device) = planner.device(&node.device) {
        return device::kernel(planner, body, id, node, call, device);
    }
    let moves = body.executions[&id] == Execution::MovingWindow;
    if moves && call.outputs.iter().any(|ty| ty.shape.known().is_none()) {
        // The graph knows more of the shapes than the kernel would.
        planner.op(body, id, node, None);
        return Ok(());
    }
    if let Lowering::View(rule) = op.lowering
        && !moves
        && let Some(places) = windows(body, node, &call, rule)?
    {
        for (index, place) in places.into_iter().enumerate() {
            body.places.insert(Outlet::new(id, index), place);
        }
        return Ok(());
    }
    let kernel = match compile(planner.context, &call) {
        Ok(kernel) => kernel,
        Err(error) => {
            let error = origin(id, node).locate(error);
            if planner.depth == 0 {
                return Err(error);
            }
            planner.push(body, Action::Fail(error));
            planner.op(body, id, node, None); // Never reached; it gives the results a place.
            return Ok(());
        }
    };
    let sources = node.inputs().iter().map(|input| match body.places[input].clone() {
        ValueLocation::Arena(region) => StepSource::Arena(region),
        ValueLocation::Slot(slot, None) => StepSource::Slot(slot),
        ValueLocation::Slot(slot, Some(bytes)) => StepSource::SlotBytes(slot, bytes),
    });
    let sources: SmallVec<[StepSource; 3]> = sources.collect();
    let mut sinks: SmallVec<[StepSink; 1]> = SmallVec::new();
    for (index, ty) in call.outputs.iter().enumerate() {
        let outlet = Outlet::new(id, index);
        let sink = sink(planner, body, outlet, ty)?;
        if let Some(place) = ValueLocation::of_sink(&sink) {
            body.places.insert(outlet, place);
        }
        sinks.push(sink);
    }
    let cost = OpCost::of(&call);
    let scalar = ScalarCall::of(&call, &node.attrs, &node.expr).map(Box::new);
    let (step, origin) = (LaunchStep::new(kernel, sources, sinks), origin(id, node));
    planner.push(body, Action::Kernel(KernelAction { cost, step, scalar, origin }));
    Ok(())
}

/// The locations of the windows of a view, if all of them are contiguous.
fn windows(
    body: &PlannedBody<'_>,
    node: &NodeDef,
    call: &OpCall<'_>,
    rule: fn(
        &ferroflow_ir::infer::OpContext<'_>,
    ) -> ferroflow_ir::Result<Vec<ferroflow_ir::StridedView>>,
) -> Result<Option<Vec<ValueLocation>>> {
    let Some(size) = call.dtype(0).size() else { return Ok(None) };
    let views = call.with_context(rule)?;
    if !views.iter().all(ferroflow_ir::StridedView::is_contiguous) {
        return Ok(None);
    }
    let source = &body.places[&node.inputs()[0]];
    let offset = |view: &ferroflow_ir::StridedView| {
        let start = if view.num_elements() == 0 { 0 } else { view.offset as usize * size };
        let bytes = start..start + view.num_elements() * size;
        match source {
            ValueLocation::Arena(own) => {
                ValueLocation::Arena(own.start + bytes.start..own.start + bytes.end)
            }
            ValueLocation::Slot(slot, own) => {
                let base = own.as_ref().map_or(0, |own| own.start);
                ValueLocation::Slot(*slot, Some(base + bytes.start..base + bytes.end))
            }
        }
    };
    Ok(Some(views.iter().map(offset).collect()))
}

/// The value that a kernel's output becomes: a tensor in a slot where one is wanted, or where
/// the size is unknown and something reads it; otherwise a buffer.
fn sink(
    planner: &mut Planner<'_>,
    body: &PlannedBody<'_>,
    outlet: Outlet,
    ty: &ValueType,
) -> Result<StepSink> {
    let Some(shape) = ty.shape.known().filter(|_| ty.dtype.size().is_some()) else {
        return Ok(match body.is_read(outlet) {
            true => StepSink::Unknown(planner.slot(None)),
            false => StepSink::Unread,
        });
    };
    check_size(ty.dtype, &shape, planner.context.limits().tensor_bytes)?;
    if body.wanted.contains(&outlet) {
        return Ok(StepSink::Slot(planner.slot(None), ty.dtype, shape));
    }
    Ok(StepSink::Arena(planner.buffers.add(byte_len(ty.dtype, &shape)?)?))
}
