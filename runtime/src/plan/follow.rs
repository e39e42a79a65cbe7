//! What follows a call on a device, as part of it: a bias, a scale, a rectifier, whatever elementwise
//! formula its result goes through.
//!
//! When the elementwise call that follows is planned, the first call has been planned already. If
//! nothing else needs its result and the device has a kernel for both, that kernel takes its place.
//! Small calls that only the formula needs, such as the factors of a normalisation, become part of it,
//! too: computing them for each element costs less than starting them.

use super::{
    Covers,
    device::DeviceDraft,
    draft::{Body, DraftAction, origin},
    placing::DevicePlace,
    planner::Planner,
};
use crate::error::Result;
use ferroflow_ir::{
    DType, Expr, Lowering, NodeDef, NodeId, Outlet, Shape, expr::Replacement, pass::fuse::formula,
};
use ferroflow_kernels::{OpCall, OperandSpec, Then};

/// How many times larger what follows must be than a small call that becomes part of it.
const MANY_TIMES: usize = 8;

/// A call that only does this to the result of one other.
struct Following {
    first: Outlet,
    /// The element of `first` is input 0.
    expr: Expr,
    others: Vec<Outlet>,
    /// Calls that are part of the formula, and nobody else's.
    taken: Vec<Outlet>,
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
            let Some(following) = following(body, first, id, node) else { continue };
            let larger = with_small(body, &following, id, device);
            for following in larger.iter().chain([&following]) {
                if self.follow_one(body, (id, node), following, device)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn follow_one(
        &mut self,
        body: &mut Body<'_>,
        (id, node): (NodeId, &NodeDef),
        Following { first, expr, others, taken }: &Following,
        device: usize,
    ) -> Result<bool> {
        let (Some(draft), Some(placing)) = (draft_of(body, *first, device), &self.placing) else {
            return Ok(false);
        };
        let before = &body.function.graph[first.node];
        let Some(op) = before.op.def() else { return Ok(false) };
        let specs = body.specs(before)?;
        let call = OpCall::new(op, &before.attrs, &specs, before.expr.as_deref())?
            .with_precision(self.context.precision());
        let spec = |&other: &Outlet| {
            known_type(body, other).map(|(dtype, shape)| OperandSpec::new(dtype, shape))
        };
        let inputs: Option<Vec<OperandSpec>> = others.iter().map(spec).collect();
        let Some(inputs) = inputs else { return Ok(false) };
        let then = Then { expr, others: &inputs };
        let Some(kernel) = placing.devices[device].followed(&call, &then)? else {
            return Ok(false);
        };
        let shape = call.output_shape(0)?;
        let mut sources = draft.sources.clone();
        for gone in taken.iter().chain([first]) {
            let Some(place) = body.device_places.remove(gone) else { continue };
            if let Some(at) = body.actions.iter().rposition(|draft| gives(&draft.action, place)) {
                body.actions.remove(at);
            }
        }
        for &other in others {
            sources.push(Some(self.send(body, other, device)?));
        }
        let slot = self.device_slot(device);
        body.device_places.insert(Outlet::new(id, 0), DevicePlace { device, slot });
        let origin = origin(Covers::Merged(id), node);
        self.note(&origin, device);
        let sinks = [(slot, expr.dtype(), shape)].into_iter().collect();
        let draft = DeviceDraft { device, kernel, sources, sinks, origin };
        self.push(body, DraftAction::Device(draft));
        Ok(true)
    }
}

/// Whether an action puts a value in a place.
fn gives(action: &DraftAction, place: DevicePlace) -> bool {
    match action {
        DraftAction::Device(call) => call.sinks.iter().any(|(slot, ..)| *slot == place.slot),
        _ => false,
    }
}

/// The call on a device that gives a value, if it is planned for this scope.
fn draft_of<'b>(body: &'b Body<'_>, outlet: Outlet, device: usize) -> Option<&'b DeviceDraft> {
    let &place = body.device_places.get(&outlet)?;
    let action = body.actions.iter().rfind(|action| gives(&action.action, place))?;
    match &action.action {
        DraftAction::Device(draft) => (draft.device == device).then_some(draft),
        _ => None,
    }
}

fn known_type(body: &Body<'_>, outlet: Outlet) -> Option<(DType, Shape)> {
    let ty = body.function.graph.ty(outlet)?;
    Some((ty.dtype, ty.shape.known()?))
}

/// Whether a value is the only result of its call, and needed by one node alone.
fn is_free(body: &Body<'_>, outlet: Outlet, id: NodeId) -> bool {
    let graph = &body.function.graph;
    graph[outlet.node].outputs().len() == 1
        && graph.data_consumers(outlet.node).all(|consumer| consumer == id)
        && !body.function.results.contains(&outlet)
        && !body.wanted.contains(&outlet)
}

fn is_somewhere(body: &Body<'_>, outlet: &Outlet) -> bool {
    body.places.contains_key(outlet) || body.device_places.contains_key(outlet)
}

/// What an elementwise call does to one of its inputs, if that is nobody else's and of its shape.
fn following(body: &Body<'_>, first: Outlet, id: NodeId, node: &NodeDef) -> Option<Following> {
    let (graph, [own]) = (&body.function.graph, node.outputs()) else { return None };
    let is_kernel = matches!(graph[first.node].op.def()?.lowering, Lowering::Kernel);
    if !is_kernel || graph.ty(first)?.shape != own.shape || !is_free(body, first, id) {
        return None;
    }
    let (expr, inputs) = formula(graph, id)?;
    let mut others = Vec::new();
    let replacements = inputs.iter().map(|&input| {
        let number = if input == first { 0 } else { number_of(&mut others, input) + 1 };
        Some(Replacement::Input(number, graph.ty(input)?.dtype))
    });
    let replacements: Vec<Replacement<'_>> = replacements.collect::<Option<_>>()?;
    let expr = expr.substitute(&replacements);
    Some(Following { first, expr, others, taken: Vec::new() })
}

/// The place of a value among others, to which it is added if it is new.
fn number_of(others: &mut Vec<Outlet>, outlet: Outlet) -> usize {
    others.iter().position(|&other| other == outlet).unwrap_or_else(|| {
        others.push(outlet);
        others.len() - 1
    })
}

/// The same with small calls as part of the formula; `None` if there are none.
fn with_small(
    body: &Body<'_>,
    Following { first, expr, others, .. }: &Following,
    id: NodeId,
    device: usize,
) -> Option<Following> {
    let graph = &body.function.graph;
    let large = known_type(body, *first)?.1.num_elements();
    let small = |&other: &Outlet| {
        let is_small = known_type(body, other)?.1.num_elements() <= large / MANY_TIMES;
        let is_call = draft_of(body, other, device).is_some() && is_free(body, other, id);
        let found = (is_small && is_call).then(|| formula(graph, other.node)).flatten()?;
        // What became part of another call is nowhere any more.
        found.1.iter().all(|input| is_somewhere(body, input)).then_some(found)
    };
    let found: Vec<Option<(Expr, Vec<Outlet>)>> = others.iter().map(small).collect();
    let (mut all, mut taken, mut exprs) = (Vec::new(), Vec::new(), Vec::new());
    for (&other, found) in others.iter().zip(&found) {
        exprs.push(match found {
            None => Err((number_of(&mut all, other) + 1, graph.ty(other)?.dtype)),
            Some((expr, inputs)) => {
                taken.push(other);
                let inputs = inputs.iter().map(|&input| {
                    let number = number_of(&mut all, input) + 1;
                    Some(Replacement::Input(number, graph.ty(input)?.dtype))
                });
                Ok(expr.substitute(&inputs.collect::<Option<Vec<_>>>()?))
            }
        });
    }
    let inputs = exprs.iter().map(|found| match found {
        Ok(expr) => Replacement::Expr(expr),
        &Err((number, dtype)) => Replacement::Input(number, dtype),
    });
    let element = Replacement::Input(0, graph.ty(*first)?.dtype);
    let replacements: Vec<Replacement<'_>> = [element].into_iter().chain(inputs).collect();
    let expr = expr.substitute(&replacements);
    (!taken.is_empty()).then_some(Following { first: *first, expr, others: all, taken })
}
