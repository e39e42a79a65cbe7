//! Verification of specialised functions, between the passes that rewrite them.
//!
//! **Invariants:**
//! - a node reads what nodes before it give;
//! - the types that a node's op infers from its inputs agree with the recorded ones: dtypes are equal,
//!   and there is a shape that both describe;
//! - loops and branches take and give what their bodies do;
//! - a function returns values of the types that it returned before the passes;
//! - nodes that read or change state are in the order in which they were: no edge holds two writes to a variable;
//! - an alias was dropped only if both types were known and equal, or if it never changes the type;
//! - a node reads its operands on the device it runs on, but for constants, for copies, and for ops on
//!   devices that take tensors wherever they are; loops and branches pass on values where they are.

use super::{
    execution::{Execution, constant},
    placement::{location, own_location},
    specialize::{DroppedAlias, Specialized},
};
use crate::{
    error::{Error, Result},
    graph::{NodeDef, NodeId, Outlet},
    hash::FastSet,
    host_tensor::HostTensor,
    infer::{InputFacts, infer},
    op::{AliasKind, CallKind, Effect, Lowering, OpDef},
    spec::ValueType,
};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Checks a specialised function and the bodies inside it. `after` is the pass that made it.
///
/// # Errors
///
/// [`Error::Pass`], naming the pass and the node, when an invariant does not hold.
pub fn verify(function: &Specialized, after: &'static str) -> Result<()> {
    let mut defined: FastSet<NodeId> = function.args.iter().map(|arg| arg.node).collect();
    let wrong =
        |node: &str, problem: String| Error::Pass { pass: after, node: node.into(), problem };
    let fail = |node: &NodeDef, problem: String| wrong(&node.name, problem);
    for dropped in &function.dropped {
        check_dropped(dropped).map_err(|problem| wrong(&dropped.node, problem))?;
    }
    for (id, node) in function.graph.iter() {
        let is_defined = |input: &&Outlet| !defined.contains(&input.node);
        if let Some(input) = node.inputs().iter().find(is_defined) {
            let name = &function.graph[input.node].name;
            return Err(fail(node, format!("reads `{name}`, which comes later")));
        }
        check_node(function, id, node).map_err(|problem| fail(node, problem))?;
        defined.insert(id);
    }
    for body in function.nested.values().flatten() {
        verify(body, after)?;
    }
    Ok(())
}

/// Checks where the nodes of a placed function and of the bodies inside it read their operands.
///
/// # Errors
///
/// As [`verify`].
pub fn verify_devices(function: &Specialized, after: &'static str) -> Result<()> {
    for (id, node) in function.graph.iter() {
        check_devices(function, id, node).map_err(|problem| Error::Pass {
            pass: after,
            node: node.name.to_string(),
            problem,
        })?;
    }
    function.nested.values().flatten().try_for_each(|body| verify_devices(body, after))
}

/// Checks that a function returns what it did before the passes: results of these types.
///
/// # Errors
///
/// As [`verify`].
pub fn verify_results(
    function: &Specialized,
    types: &[ValueType],
    after: &'static str,
) -> Result<()> {
    check_results(function, types).map_err(|problem| Error::Pass {
        pass: after,
        node: "the results".into(),
        problem,
    })
}

type Check = std::result::Result<(), String>;

fn check_dropped(dropped: &DroppedAlias) -> Check {
    let Lowering::Alias(kind) = dropped.op.lowering else {
        return Err(format!("{} was dropped, which is no alias", dropped.op.name));
    };
    let is_exact = dropped.input == dropped.output;
    if is_exact && (kind == AliasKind::Identity || dropped.output.shape.is_known()) {
        return Ok(());
    }
    Err(format!(
        "{} from {} to {} was dropped, which may change the shape",
        dropped.op.name, dropped.input, dropped.output
    ))
}

fn check_node(function: &Specialized, id: NodeId, node: &NodeDef) -> Check {
    let Some(op) = node.op.def() else { return Ok(()) };
    let bodies = function.nested.get(&id).map_or(&[][..], Vec::as_slice);
    match (op.call, op.lowering) {
        (CallKind::While, _) => check_loop(function, node, bodies),
        (CallKind::If | CallKind::Case, _) => check_branch(function, node, bodies),
        (CallKind::Inline | CallKind::Module, _) => Err("a call is not inlined".into()),
        (CallKind::None, Lowering::Fused) => check_expr(node),
        (CallKind::None, _) if op.inputs.is_empty() => Ok(()),
        (CallKind::None, _) if node.expr.is_some() => {
            check_expr(node).and_then(|()| check_types(function, op, node))
        }
        (CallKind::None, _) => check_types(function, op, node),
    }
}

fn check_devices(function: &Specialized, id: NodeId, node: &NodeDef) -> Check {
    let graph = &function.graph;
    let execution = Execution::of(graph, node).map_err(|error| error.to_string())?;
    let on_host = node.device.is_empty();
    let reads_there = match execution {
        Execution::Source | Execution::Copy => return Ok(()),
        Execution::Call => return check_passed(function, id, node),
        Execution::Op => on_host,
        Execution::Alias | Execution::Kernel | Execution::MovingWindow => true,
    };
    for (index, &input) in node.inputs().iter().enumerate() {
        let at = location(graph, input);
        if reads_there && at != &*node.device && constant(graph, input).is_none() {
            return Err(format!("input {index} is on `{at}`, the node on `{}`", node.device));
        }
    }
    Ok(())
}

/// The values that a loop or branch passes on are where its bodies have them.
fn check_passed(function: &Specialized, id: NodeId, node: &NodeDef) -> Check {
    let is_loop = node.op.def().is_some_and(|op| op.call == CallKind::While);
    let bodies = function.nested.get(&id).map_or(&[][..], Vec::as_slice);
    let passed = &node.inputs()[usize::from(!is_loop)..];
    for (index, body) in bodies.iter().enumerate() {
        for (&arg, &input) in body.args.iter().zip(passed) {
            let (inside, outside) = (location(&body.graph, arg), location(&function.graph, input));
            if inside != outside && constant(&body.graph, arg).is_none() {
                return Err(format!("an argument on `{outside}` is taken on `{inside}`"));
            }
        }
        let is_condition = is_loop && index == 0;
        for (index, &result) in body.results.iter().enumerate() {
            let expected = if is_condition { "" } else { own_location(node, index) };
            let found = location(&body.graph, result);
            if found != expected {
                return Err(format!("result {index} on `{expected}` is given on `{found}`"));
            }
        }
    }
    Ok(())
}

/// A node that holds an expression has a result of it for each output.
fn check_expr(node: &NodeDef) -> Check {
    let found = node.outputs().iter().map(|ty| ty.dtype);
    let is_computed = node.expr.as_ref().is_some_and(|expr| {
        let results = expr.results().map(|result| expr.nodes()[result.index()].dtype);
        results.eq(found.clone())
    });
    match is_computed {
        true => Ok(()),
        false => Err(format!("the expression does not compute {:?}", found.collect::<Vec<_>>())),
    }
}

fn check_types(function: &Specialized, op: &'static OpDef, node: &NodeDef) -> Check {
    let graph = &function.graph;
    let types: Option<SmallVec<[&ValueType; 4]>> =
        node.inputs().iter().map(|&input| graph.ty(input)).collect();
    let types = types.ok_or("an input has no type")?;
    let values: SmallVec<[Option<&HostTensor>; 4]> =
        node.inputs().iter().map(|input| graph[input.node].constant()).collect();
    let facts: SmallVec<[InputFacts<'_>; 4]> =
        types.iter().zip(values).map(|(ty, value)| InputFacts { ty, value }).collect();
    let inferred = infer(op, &node.attrs, &facts).map_err(|error| error.to_string())?;
    if inferred.len() != node.outputs().len() {
        return Err(format!("{} results, found {}", inferred.len(), node.outputs().len()));
    }
    for (index, (inferred, recorded)) in inferred.iter().zip(node.outputs()).enumerate() {
        let agree =
            inferred.dtype == recorded.dtype && inferred.shape.is_compatible_with(&recorded.shape);
        if !agree {
            return Err(format!("result {index} is {inferred}, recorded as {recorded}"));
        }
    }
    Ok(())
}

/// Whether a value of the first type may be taken for one of the second.
fn fits(ty: &ValueType, as_ty: &ValueType) -> bool {
    ty.dtype == as_ty.dtype && ty.shape.is_subtype_of(&as_ty.shape)
}

fn check_loop(function: &Specialized, node: &NodeDef, bodies: &[Specialized]) -> Check {
    let [condition, body] = bodies else { return Err("a loop has two bodies".into()) };
    check_args(function, node.inputs(), node.outputs(), condition)?;
    check_args(function, node.inputs(), node.outputs(), body)?;
    for (index, ty) in node.outputs().iter().enumerate() {
        let passed = node.inputs().get(index).and_then(|&input| function.graph.ty(input));
        if !passed.is_some_and(|given| fits(given, ty)) {
            return Err(format!("variable {index} is {ty}, given another type"));
        }
    }
    check_results(body, node.outputs())
}

fn check_branch(function: &Specialized, node: &NodeDef, bodies: &[Specialized]) -> Check {
    let args = node.inputs().get(1..).unwrap_or_default();
    let types: Option<Vec<ValueType>> =
        args.iter().map(|&arg| function.graph.ty(arg).cloned()).collect();
    let types = types.ok_or("an argument has no type")?;
    for body in bodies {
        check_args(function, args, &types, body)?;
        check_results(body, node.outputs())?;
    }
    Ok(())
}

fn check_args(
    function: &Specialized,
    given: &[Outlet],
    types: &[ValueType],
    body: &Specialized,
) -> Check {
    if body.args.len() != types.len() || given.len() != types.len() {
        return Err(format!("{} values for {} arguments", given.len(), body.args.len()));
    }
    for (index, ((&arg, ty), &given)) in body.args.iter().zip(types).zip(given).enumerate() {
        let arg = body.graph.ty(arg);
        let passed = function.graph.ty(given);
        let agree = arg.is_some_and(|arg| {
            arg.dtype == ty.dtype
                && fits(ty, arg)
                && passed.is_some_and(|given| given.dtype == ty.dtype)
        });
        if !agree {
            return Err(format!("argument {index} is {ty}, the body takes another type"));
        }
    }
    Ok(())
}

fn check_results(body: &Specialized, types: &[ValueType]) -> Check {
    if body.failure.is_some() {
        return Ok(());
    }
    if body.results.len() < types.len() {
        return Err(format!("{} results of {}", body.results.len(), types.len()));
    }
    for (index, ty) in types.iter().enumerate() {
        if !body.result_type(index).is_some_and(|result| fits(result, ty)) {
            return Err(format!("result {index} is not {ty}"));
        }
    }
    Ok(())
}

/// The nodes of a body that read state, change it, or have other effects, in the order in which they run.
pub fn effect_order(body: &Specialized) -> Vec<Box<str>> {
    let effects = body.graph.iter().filter(|(_, node)| node.op.effect() != Effect::Pure);
    effects.map(|(_, node)| node.name.clone()).collect()
}

/// Checks that what is left of the nodes of [`effect_order`] is in that order.
///
/// # Errors
///
/// [`Error::Pass`], naming the pass and a node that runs too early.
pub fn verify_order(before: &[Box<str>], body: &Specialized, after: &'static str) -> Result<()> {
    let positions: HashMap<&str, usize> =
        before.iter().enumerate().map(|(position, name)| (&**name, position)).collect();
    let mut last = 0;
    for node in effect_order(body) {
        let Some(&position) = positions.get(&*node) else { continue };
        if position < last {
            let problem = format!("runs after `{}`, which it comes before", before[last]);
            return Err(Error::Pass { pass: after, node: node.into(), problem });
        }
        last = position;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attr::Attrs, dtype::DType, graph::Graph, hash::FastMap, registry, shape::PartialShape,
    };

    fn dropped(op: &str, shape: PartialShape) -> Specialized {
        let ty = ValueType::new(DType::F32, shape);
        let op = registry::find(op).unwrap();
        let dropped = DroppedAlias { node: "x".into(), op, input: ty.clone(), output: ty };
        let graph = Graph::new();
        let (args, results, nested) = (Vec::new(), Vec::new(), FastMap::default());
        let (dropped, reasons) = (vec![dropped], FastMap::default());
        Specialized { graph, args, results, nested, failure: None, dropped, reasons }
    }

    /// Two writes to a variable have no edge between them.
    #[test]
    fn writes_in_another_order_are_found() {
        let names = ["first", "second", "third"];
        let body = |order: [usize; 3]| {
            let mut body = dropped("Identity", PartialShape::scalar());
            let op = registry::find("AssignVariableOp").unwrap();
            for index in order {
                body.graph.add(NodeDef::new(names[index], op, Attrs::new())).unwrap();
            }
            body
        };
        let before = effect_order(&body([0, 1, 2]));
        assert!(verify_order(&before, &body([0, 1, 2]), "fusion").is_ok());
        assert!(verify_order(&before[..2], &body([0, 2, 1]), "fusion").is_ok(), "a new node");
        let error = verify_order(&before, &body([1, 0, 2]), "fusion").unwrap_err().to_string();
        assert!(error.contains("first") && error.contains("second"), "{error}");
    }

    #[test]
    fn a_dropped_reshape_of_unknown_sizes_is_found() {
        let known = PartialShape::ranked([Some(2), Some(3)]);
        assert!(verify(&dropped("Reshape", known), "specialization").is_ok());
        for shape in [PartialShape::of_rank(2), PartialShape::Unknown] {
            assert!(verify(&dropped("Identity", shape.clone()), "specialization").is_ok());
            for op in ["Reshape", "ExpandDims", "Squeeze", "Bitcast"] {
                let error = verify(&dropped(op, shape.clone()), "specialization").unwrap_err();
                assert!(error.to_string().contains("which may change the shape"), "{error}");
            }
        }
    }
}
