//! Hoisting: what a loop computes anew each time round, though nothing it depends on changes, is
//! computed once before the loop.
//!
//! Only what cannot fail moves, as the loop may not run at all.

use super::{
    place::{Reason, location, own_location, set_locations},
    specialize::Specialized,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    expr::Expr,
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::{CallKind, Effect, Lowering},
    registry,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Moves nodes out of the loops of a body, from conditions and bodies of loops alike. What they
/// compute becomes a variable of the loop that never changes.
///
/// # Errors
///
/// None on a well-formed body.
pub fn hoist(body: &mut Specialized) -> Result<()> {
    let moves: HashMap<NodeId, Moves> = body
        .nested
        .iter()
        .filter(|(id, _)| body.graph[**id].op.def().is_some_and(|op| op.call == CallKind::While))
        .filter_map(|(&id, functions)| Some((id, Moves::of(functions)?)))
        .collect();
    if moves.is_empty() {
        return Ok(());
    }
    let source = std::mem::take(&mut body.graph);
    let mut nested = std::mem::take(&mut body.nested);
    let mut rebuilt =
        Rebuilt { graph: Graph::new(), moved: HashMap::new(), reasons: HashMap::new() };
    for id in source.ids() {
        let node = &source[id];
        let inputs: SmallVec<[Outlet; 4]> =
            node.inputs().iter().map(|input| rebuilt.outlet(*input)).collect();
        let controls: SmallVec<[NodeId; 2]> =
            node.controls().iter().map(|control| rebuilt.moved[control]).collect();
        let mut node = node.clone().with_inputs(inputs).with_controls(controls);
        node.name = rebuilt.graph.unique_name(&node.name).into();
        let mut functions = nested.remove(&id);
        let new = match (moves.get(&id), &mut functions) {
            (Some(moves), Some(functions)) => rebuilt.add_loop(node, functions, moves)?,
            _ => rebuilt.graph.add(node)?,
        };
        rebuilt.moved.insert(id, new);
        if let Some(&reason) = body.reasons.get(&id) {
            rebuilt.reasons.insert(new, reason);
        }
        if let Some(functions) = functions {
            body.nested.insert(new, functions);
        }
    }
    for outlet in body.args.iter_mut().chain(&mut body.results) {
        *outlet = rebuilt.outlet(*outlet);
    }
    (body.graph, body.reasons) = (rebuilt.graph, rebuilt.reasons);
    Ok(())
}

/// The nodes that leave the functions of a loop: those of the condition, those of the body.
struct Moves([BTreeSet<NodeId>; 2]);

impl Moves {
    fn of(functions: &[Specialized]) -> Option<Moves> {
        let [condition, body] = functions else { return None };
        if condition.failure.is_some() || body.failure.is_some() {
            return None;
        }
        let fixed: Vec<bool> = body.args.iter().zip(&body.results).map(|(a, b)| a == b).collect();
        let moves = Moves([movable(condition, &fixed), movable(body, &fixed)]);
        moves.0.iter().any(|nodes| !nodes.is_empty()).then_some(moves)
    }
}

/// The nodes that depend on arguments that are `fixed` and on constants, and can be computed
/// whatever those are.
fn movable(function: &Specialized, fixed: &[bool]) -> BTreeSet<NodeId> {
    let graph = &function.graph;
    let is_fixed = |input: &Outlet| {
        let arg = function.args.iter().position(|arg| arg == input);
        arg.is_some_and(|arg| fixed.get(arg) == Some(&true))
    };
    let mut nodes = BTreeSet::new();
    for (id, node) in graph.iter() {
        let mut inputs = node.inputs().iter();
        let known = inputs.all(|input| {
            is_constant(&graph[input.node]) || nodes.contains(&input.node) || is_fixed(input)
        });
        let varies = node.inputs().iter().any(|input| !is_constant(&graph[input.node]));
        if known && varies && cannot_fail(graph, node) {
            nodes.insert(id);
        }
    }
    nodes
}

fn is_constant(node: &NodeDef) -> bool {
    node.op.def().is_some_and(|op| op.inputs.is_empty()) && node.attrs.tensor("value").is_ok()
}

fn cannot_fail(graph: &Graph, node: &NodeDef) -> bool {
    let Some(op) = node.op.def() else { return false };
    let plain = |ty: &ValueType| ty.shape.is_known() && ty.dtype.size().is_some();
    let inputs = node.inputs().iter().map(|&input| graph.ty(input));
    let inputs: Option<SmallVec<[&ValueType; 4]>> = inputs.collect();
    let Some(inputs) = inputs.filter(|inputs| inputs.iter().all(|ty| plain(ty))) else {
        return false;
    };
    if op.effect != Effect::Pure || op.call != CallKind::None || !node.outputs().iter().all(plain) {
        return false;
    }
    match op.lowering {
        Lowering::Elementwise(_) => {
            let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|ty| ty.dtype).collect();
            let expr = Expr::of(op, &node.attrs, &dtypes, node.outputs()[0].dtype);
            expr.is_ok_and(|expr| !expr.is_fallible())
        }
        Lowering::Reduce(_) | Lowering::Alias(_) | Lowering::View(_) => true,
        Lowering::Fused
        | Lowering::Composite(_)
        | Lowering::Kernel
        | Lowering::Runtime
        | Lowering::Interface => false,
    }
}

/// The body around the loops, built anew: what is moved comes before the loop.
struct Rebuilt {
    graph: Graph,
    moved: HashMap<NodeId, NodeId>,
    reasons: HashMap<NodeId, Reason>,
}

impl Rebuilt {
    fn outlet(&self, outlet: Outlet) -> Outlet {
        Outlet { node: self.moved[&outlet.node], index: outlet.index }
    }

    fn add_loop(
        &mut self,
        mut node: NodeDef,
        functions: &mut [Specialized],
        moves: &Moves,
    ) -> Result<NodeId> {
        let mut inputs: Vec<Outlet> = node.inputs().to_vec();
        let mut types: Vec<ValueType> = node.outputs().to_vec();
        let mut locations: Vec<Box<str>> =
            (0..types.len()).map(|index| own_location(&node, index).into()).collect();
        for (side, nodes) in moves.0.iter().enumerate() {
            for (inside, outside) in self.add_moved(&node, &functions[side], nodes)? {
                let graph = &functions[side].graph;
                let ty = graph.ty(inside).cloned().unwrap_or_else(|| types[0].clone());
                let device: Box<str> = location(graph, inside).into();
                inputs.push(outside);
                types.push(ty.clone());
                locations.push(device.clone());
                for (other, function) in functions.iter_mut().enumerate() {
                    let arg = add_argument(function, &ty, &device)?;
                    if other == side {
                        function.graph.replace_uses(inside, arg);
                        let results = function.results.iter_mut();
                        results.filter(|result| **result == inside).for_each(|x| *x = arg);
                    }
                }
                let body = &mut functions[1];
                let arg = body.args[body.args.len() - 1];
                body.results.push(arg);
            }
        }
        let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
        node.attrs = Arc::new((*node.attrs).clone().with("T", dtypes));
        set_locations(&mut node, &locations);
        self.graph.add(node.with_inputs(inputs).with_outputs(types))
    }

    /// Adds copies of `nodes`; gives the outlets that others use, and those that stand for them.
    fn add_moved(
        &mut self,
        call: &NodeDef,
        function: &Specialized,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<Vec<(Outlet, Outlet)>> {
        let graph = &function.graph;
        let mut outside: HashMap<Outlet, Outlet> =
            function.args.iter().copied().zip(call.inputs().iter().copied()).collect();
        for &id in nodes {
            let node = &graph[id];
            for input in node.inputs() {
                if !outside.contains_key(input) {
                    let constant = self.copy(call, &graph[input.node], &outside)?;
                    outside.insert(*input, constant.into());
                }
            }
            let copy = self.copy(call, node, &outside)?;
            if let Some(&reason) = function.reasons.get(&id) {
                self.reasons.insert(copy, reason);
            }
            for index in 0..node.outputs().len() {
                outside.insert(Outlet::new(id, index), Outlet::new(copy, index));
            }
        }
        let is_used = |outlet: &Outlet| {
            let mut users = graph.data_consumers(outlet.node).filter(|user| !nodes.contains(user));
            function.results.contains(outlet)
                || users.any(|user| graph[user].inputs().contains(outlet))
        };
        let outlets = nodes.iter().flat_map(|&id| {
            (0..graph[id].outputs().len()).map(move |index| Outlet::new(id, index))
        });
        Ok(outlets.filter(is_used).map(|outlet| (outlet, outside[&outlet])).collect())
    }

    fn copy(
        &mut self,
        call: &NodeDef,
        node: &NodeDef,
        outside: &HashMap<Outlet, Outlet>,
    ) -> Result<NodeId> {
        let inputs: SmallVec<[Outlet; 4]> =
            node.inputs().iter().map(|input| outside[input]).collect();
        let mut copy = node.clone().with_inputs(inputs).with_controls([]);
        copy.name = self.graph.unique_name(&format!("{}/{}", call.name, node.name)).into();
        self.graph.add(copy)
    }
}

fn add_argument(function: &mut Specialized, ty: &ValueType, device: &str) -> Result<Outlet> {
    let op = registry::find("_Arg").expect("a built-in record");
    let attrs = Attrs::new().with("T", ty.dtype).with("index", function.args.len() as i64);
    let name = function.graph.unique_name("hoisted");
    let mut node = NodeDef::new(name, op, attrs).with_outputs([ty.clone()]);
    node.device = device.into();
    let arg = Outlet::from(function.graph.add(node)?);
    function.args.push(arg);
    Ok(arg)
}
