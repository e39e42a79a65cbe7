//! Calls of kernels whose inputs and results are known, and where those lie.

use super::{
    draft::{Body, Draft, DraftAction, DraftSink, SlotKind, origin},
    planner::Planner,
    scalar::ScalarCall,
};
use crate::{error::Result, kernel_call::compile};
use ferroflow_ir::{Lowering, NodeDef, NodeId, Outlet, ValueType, host_tensor::byte_len};
use ferroflow_kernels::{OpCall, check_size};
use smallvec::SmallVec;

impl Planner<'_> {
    pub(super) fn kernel(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) -> Result<()> {
        let Some(op) = node.op.def() else { return Ok(()) };
        let specs = body.specs(node)?;
        let call = OpCall::new(op, &node.attrs, &specs, node.expr.as_deref())?;
        if let Some(device) = self.device(&node.device) {
            return self.device_kernel(body, id, node, call, device);
        }
        if let Lowering::View(rule) = op.lowering
            && let Some(places) = self.windows(body, node, &call, rule)?
        {
            for (index, place) in places.into_iter().enumerate() {
                body.places.insert(Outlet::new(id, index), place);
            }
            return Ok(());
        }
        let kernel = match compile(self.context, &call) {
            Ok(kernel) => kernel,
            Err(error) => {
                let error = origin(id, node).locate(error);
                if self.depth == 0 {
                    return Err(error);
                }
                self.push(body, DraftAction::Fail(error));
                self.op(body, id, node); // Never reached; it gives the results a place.
                return Ok(());
            }
        };
        let sources: SmallVec<[Draft; 3]> =
            node.inputs().iter().map(|input| body.places[input].clone()).collect();
        let mut sinks = SmallVec::new();
        for (index, ty) in call.outputs.iter().enumerate() {
            let outlet = Outlet::new(id, index);
            let (sink, place) = self.sink(body, outlet, ty)?;
            sinks.push(sink);
            body.places.insert(outlet, place);
        }
        let scalar = ScalarCall::of(&call, &node.attrs, &node.expr).map(Box::new);
        let origin = origin(id, node);
        self.push(body, DraftAction::Kernel { kernel, scalar, sources, sinks, origin });
        Ok(())
    }

    /// Where the windows of a view lie, if all of them are contiguous.
    fn windows(
        &mut self,
        body: &Body<'_>,
        node: &NodeDef,
        call: &OpCall<'_>,
        rule: fn(
            &ferroflow_ir::infer::OpContext<'_>,
        ) -> ferroflow_ir::Result<Vec<ferroflow_ir::StridedView>>,
    ) -> Result<Option<Vec<Draft>>> {
        let Some(size) = call.dtype(0).size() else { return Ok(None) };
        let views = call.with_context(rule)?;
        if !views.iter().all(ferroflow_ir::StridedView::is_contiguous) {
            return Ok(None);
        }
        let source = &body.places[&node.inputs()[0]];
        let place = |view: &ferroflow_ir::StridedView| {
            let start = if view.num_elements() == 0 { 0 } else { view.offset as usize * size };
            let bytes = start..start + view.num_elements() * size;
            match source {
                Draft::Buffer(id, own) => {
                    Draft::Buffer(*id, own.start + bytes.start..own.start + bytes.end)
                }
                Draft::Slot(slot, own) => {
                    let base = own.as_ref().map_or(0, |own| own.start);
                    Draft::Slot(*slot, Some(base + bytes.start..base + bytes.end))
                }
                Draft::Device(slot) => Draft::Device(*slot),
            }
        };
        Ok(Some(views.iter().map(place).collect()))
    }

    /// The value that a kernel's output becomes: a tensor in a slot where one is wanted, or where the
    /// size is unknown; otherwise a buffer.
    fn sink(
        &mut self,
        body: &Body<'_>,
        outlet: Outlet,
        ty: &ValueType,
    ) -> Result<(DraftSink, Draft)> {
        let Some(shape) = ty.shape.known().filter(|_| ty.dtype.size().is_some()) else {
            let slot = self.slot(SlotKind::Plain);
            return Ok((DraftSink::Unknown(slot), Draft::Slot(slot, None)));
        };
        check_size(ty.dtype, &shape, self.context.limits().tensor_bytes)?;
        if body.wanted.contains(&outlet) {
            let slot = self.slot(SlotKind::Plain);
            return Ok((DraftSink::Slot(slot, ty.clone(), shape), Draft::Slot(slot, None)));
        }
        let bytes = byte_len(ty.dtype, &shape)?;
        let buffer = self.buffer(bytes);
        Ok((DraftSink::Buffer(buffer, bytes), Draft::Buffer(buffer, 0..bytes)))
    }
}
