//! What follows a call on a device, as part of it: a bias, a scale, a rectifier, whatever elementwise
//! formula its result goes through.
//!
//! When the elementwise call that follows is planned, the first call has been planned already. If
//! nothing else needs its result and the device has a kernel for both, that kernel takes its place.

use super::{
    device::{DeviceDraft, DevicePlace},
    draft::{Body, Draft, DraftAction, origin},
    planner::Planner,
};
use crate::error::Result;
use ferroflow_ir::{
    DType, Expr, Lowering, NodeDef, NodeId, Outlet, Shape, ValueType, expr::Replacement,
};
use ferroflow_kernels::{OpCall, OperandSpec, Then};
use smallvec::SmallVec;

/// A call that only does this to the result of one other.
struct Following {
    first: Outlet,
    /// The element of `first` is input 0.
    expr: Expr,
    others: SmallVec<[Outlet; 4]>,
}

impl Planner<'_> {
    /// Plans a call as part of one that it follows, if the device can do both at once.
    pub(super) fn follow(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        device: usize,
    ) -> Result<bool> {
        for &first in node.inputs() {
            if is_free(body, first, id, node)
                && let Some(following) = following(body, first, node)?
                && self.follow_one(body, (id, node), &following, device)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn follow_one(
        &mut self,
        body: &mut Body<'_>,
        (id, node): (NodeId, &NodeDef),
        Following { first, expr, others }: &Following,
        device: usize,
    ) -> Result<bool> {
        let Some(&place) = body.device_places.get(first) else { return Ok(false) };
        let gives = |action: &DraftAction| match action {
            DraftAction::Device(call) => call.sinks.iter().any(|(slot, ..)| *slot == place.slot),
            _ => false,
        };
        let found = body.actions.iter().rposition(|action| gives(&action.action));
        let (Some(at), Some(placing)) = (found, &self.placing) else { return Ok(false) };
        let DraftAction::Device(draft) = &body.actions[at].action else { return Ok(false) };
        let before = &body.function.graph[first.node];
        let (Some(op), true) = (before.op.def(), draft.device == device) else { return Ok(false) };
        let specs = body.specs(before)?;
        let call = OpCall::new(op, &before.attrs, &specs, before.expr.as_deref())?
            .with_precision(self.context.precision());
        let Some(types) = known_types(body, others) else { return Ok(false) };
        let inputs: SmallVec<[OperandSpec; 4]> =
            types.into_iter().map(|(dtype, shape)| OperandSpec::new(dtype, shape)).collect();
        let then = Then { expr, others: &inputs };
        let Some(kernel) = placing.devices[device].followed(&call, &then)? else {
            return Ok(false);
        };
        let shape = call.output_shape(0)?;
        let mut sources = draft.sources.clone();
        body.actions.remove(at);
        body.device_places.remove(first);
        for &other in others {
            sources.push(Some(self.send(body, other, device)?));
        }
        sources.iter().flatten().for_each(|&slot| self.read(&Draft::Device(slot)));
        let slot = self.device_slot(device);
        body.device_places.insert(Outlet::new(id, 0), DevicePlace { device, slot });
        self.consumed(body, node);
        let origin = origin(node);
        self.note(&origin, device);
        let sinks = [(slot, expr.dtype(), shape)].into_iter().collect();
        let draft = DeviceDraft { device, kernel, sources, sinks, origin };
        self.push(body, DraftAction::Device(draft));
        Ok(true)
    }
}

/// Whether a call's only result is of a node's shape, and needed by that node alone.
fn is_free(body: &Body<'_>, first: Outlet, id: NodeId, node: &NodeDef) -> bool {
    let (graph, [own]) = (&body.function.graph, node.outputs()) else { return false };
    let before = &graph[first.node];
    let is_call = before.op.def().is_some_and(|op| matches!(op.lowering, Lowering::Kernel));
    is_call
        && before.outputs().len() == 1
        && graph.ty(first).is_some_and(|ty| ty.shape == own.shape)
        && graph.data_consumers(first.node).all(|consumer| consumer == id)
        && !body.function.results.contains(&first)
        && !body.wanted.contains(&first)
}

/// What an elementwise call does to one of its inputs.
fn following(body: &Body<'_>, first: Outlet, node: &NodeDef) -> Result<Option<Following>> {
    let (Some(op), [own]) = (node.op.def(), node.outputs()) else { return Ok(None) };
    if !matches!(op.lowering, Lowering::Elementwise(_) | Lowering::Fused) {
        return Ok(None);
    }
    let types: Option<SmallVec<[&ValueType; 4]>> =
        node.inputs().iter().map(|&input| body.function.graph.ty(input)).collect();
    let Some(types) = types else { return Ok(None) };
    let dtypes: SmallVec<[DType; 4]> = types.iter().map(|ty| ty.dtype).collect();
    let expr = match &node.expr {
        Some(expr) => (**expr).clone(),
        None => Expr::of(op, &node.attrs, &dtypes, own.dtype)?,
    };
    let mut others = SmallVec::new();
    let mut replacements = Vec::with_capacity(dtypes.len());
    for (&input, &dtype) in node.inputs().iter().zip(&dtypes) {
        let number = if input == first {
            0
        } else {
            others.push(input);
            others.len()
        };
        replacements.push(Replacement::Input(number, dtype));
    }
    Ok(Some(Following { first, expr: expr.substitute(&replacements), others }))
}

/// Dtypes and shapes, if all are known.
fn known_types(body: &Body<'_>, outlets: &[Outlet]) -> Option<SmallVec<[(DType, Shape); 4]>> {
    let ty = |&outlet: &Outlet| {
        let ty = body.function.graph.ty(outlet)?;
        Some((ty.dtype, ty.shape.known()?))
    };
    outlets.iter().map(ty).collect()
}
