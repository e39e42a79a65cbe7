//! Loops and branches: bodies that run more than once, or not at all.

use super::{
    action::{
        Action, BranchAction, CopyAction, Scheduled, TensorOperand, ValueLocation, WhileAction,
    },
    body::{PlannedBody, Root, origin},
    faults::{PlanFault, is_planted},
    planner::Planner,
};
use crate::{error::Result, kernel_call::DONATED_BYTES};
use ferroflow_ir::{
    NodeDef, NodeId, Outlet,
    host_tensor::byte_len,
    op::CallKind,
    pass::{execution::Execution, specialize::Specialized},
};
use ferroflow_kernels::check_size;
use smallvec::SmallVec;
use std::collections::HashMap;

pub(super) fn call(
    planner: &mut Planner<'_>,
    body: &mut PlannedBody<'_>,
    id: NodeId,
    node: &NodeDef,
) -> Result<()> {
    let Some(op) = node.op.def() else { return Ok(()) };
    let function = body.function;
    let bodies = function.nested.get(&id).map_or(&[][..], Vec::as_slice);
    if op.call == CallKind::While {
        let [condition, repeated] = bodies else { return Ok(()) };
        repeat(planner, body, id, node, condition, repeated)?;
    } else {
        branch(planner, body, id, node, op.call, bodies)?;
    }
    Ok(())
}

fn branch(
    planner: &mut Planner<'_>,
    body: &mut PlannedBody<'_>,
    id: NodeId,
    node: &NodeDef,
    call: CallKind,
    bodies: &[Specialized],
) -> Result<()> {
    let index = body.operand(node.inputs()[0]);
    let args: Vec<ValueLocation> =
        node.inputs()[1..].iter().map(|input| body.places[input].clone()).collect();
    let mut targets: Vec<ValueLocation> = Vec::new();
    for index in 0..node.outputs().len() {
        targets.push(variable_location(planner, body, Outlet::new(id, index))?);
    }
    let mut branches = Vec::with_capacity(bodies.len());
    for arm in bodies {
        planner.depth += 1;
        let wants = |index: usize| targets[index].slot().is_some();
        let (mut actions, results) = planner.body(arm, args.clone(), &wants)?;
        for (result, target) in results.into_iter().zip(&targets) {
            copy(planner, &mut actions, result, target.clone());
        }
        planner.depth -= 1;
        branches.push(actions);
    }
    let results = targets.clone();
    for (index, target) in targets.into_iter().enumerate() {
        body.places.insert(Outlet::new(id, index), target);
    }
    let origin = origin(id, node);
    let action = BranchAction { call, index, branches, results, origin };
    planner.push(body, Action::Branch(Box::new(action)));
    Ok(())
}

/// A location for a value that is written more than once: a loop variable, a branch's result.
fn variable_location(
    planner: &mut Planner<'_>,
    body: &PlannedBody<'_>,
    outlet: Outlet,
) -> Result<ValueLocation> {
    if let Some(device) = planner.location(body, outlet) {
        return Ok(ValueLocation::Slot(planner.slot(Some(device)), None));
    }
    let ty = &body.function.graph[outlet.node].outputs()[outlet.index as usize];
    match ty.shape.known().filter(|_| ty.dtype.size().is_some()) {
        Some(shape) => {
            check_size(ty.dtype, &shape, planner.context.limits().tensor_bytes)?;
            Ok(ValueLocation::Arena(planner.buffers.add(byte_len(ty.dtype, &shape)?)?))
        }
        None => Ok(ValueLocation::Slot(planner.slot(None), None)),
    }
}

fn copy(
    planner: &mut Planner<'_>,
    actions: &mut Vec<Scheduled>,
    from: TensorOperand,
    to: ValueLocation,
) {
    let device = planner.device_of(&to).map(|device| planner.devices[device].clone());
    let action = planner.scheduled(Action::Copy(CopyAction { from, to, device }));
    actions.push(action);
}

fn repeat(
    planner: &mut Planner<'_>,
    body: &mut PlannedBody<'_>,
    id: NodeId,
    node: &NodeDef,
    condition: &Specialized,
    repeated: &Specialized,
) -> Result<()> {
    let n = node.inputs().len();
    let fixed = |index: usize| {
        repeated.failure.is_some() || repeated.results[index] == repeated.args[index]
    };
    let mut inner: Vec<ValueLocation> = Vec::with_capacity(n);
    for (index, &input) in node.inputs().iter().enumerate() {
        if fixed(index) {
            inner.push(body.places[&input].clone());
            continue;
        }
        let outlet = Outlet::new(id, index);
        let location = match planner.location(body, outlet) {
            None if is_made_by_op(repeated, index)? => {
                ValueLocation::Slot(planner.slot(None), None)
            }
            _ => variable_location(planner, body, outlet)?,
        };
        let from = body.operand(input);
        copy(planner, &mut body.actions, from, location.clone());
        inner.push(location);
    }
    planner.depth += 1;
    let (tests, test) = planner.body(condition, inner.clone(), &|_| false)?;
    let Some(test) = test.into_iter().next() else {
        if let Some(error) = &condition.failure {
            return Err(error.clone().into());
        }
        let (expected, found) = ("a truth value", "nothing");
        let op = node.op.name().to_string();
        return Err(ferroflow_ir::Error::argument(op, "condition", expected, found).into());
    };
    let wants = |index: usize| inner[index].slot().is_some();
    let (mut actions, results) = planner.body(repeated, inner.clone(), &wants)?;
    assign_variables(planner, &mut actions, &inner, results, &fixed)?;
    planner.depth -= 1;
    let variables = inner.iter().enumerate();
    let variables =
        variables.map(|(index, place)| (!fixed(index)).then(|| place.clone())).collect();
    for (index, place) in inner.into_iter().enumerate() {
        body.places.insert(Outlet::new(id, index), place);
    }
    let origin = origin(id, node);
    let condition = tests;
    let action = WhileAction { condition, test, body: actions, variables, origin };
    planner.push(body, Action::While(Box::new(action)));
    Ok(())
}

/// Assigns the variables at the end of an iteration, all at once: a result that is a view of
/// another variable is copied aside before that variable is written.
fn assign_variables(
    planner: &mut Planner<'_>,
    actions: &mut Vec<Scheduled>,
    variables: &[ValueLocation],
    results: Vec<TensorOperand>,
    fixed: &dyn Fn(usize) -> bool,
) -> Result<()> {
    let mut results: Vec<(usize, TensorOperand)> =
        results.into_iter().enumerate().filter(|(index, _)| !fixed(*index)).collect();
    let mut by_root: HashMap<Root, SmallVec<[usize; 1]>> = HashMap::new();
    for (variable, place) in variables.iter().enumerate().filter(|(index, _)| !fixed(*index)) {
        by_root.entry(Root::of(place, &planner.buffers)).or_default().push(variable);
    }
    for (index, result) in &mut results {
        let written = by_root.get(&Root::of(&result.place, &planner.buffers));
        let other = written.is_some_and(|written| written.iter().any(|other| other != index));
        if !other || is_planted(PlanFault::AssignInOrder) {
            continue;
        }
        let aside = match &result.place {
            ValueLocation::Arena(region) => {
                ValueLocation::Arena(planner.buffers.add(region.len())?)
            }
            ValueLocation::Slot(slot, _) => {
                ValueLocation::Slot(planner.slot(planner.slots[*slot].device), None)
            }
        };
        copy(planner, actions, result.clone(), aside.clone());
        result.place = aside;
    }
    for (index, result) in results {
        copy(planner, actions, result, variables[index].clone());
    }
    Ok(())
}

/// Whether a large value of a loop's variable is made by an op, which returns a tensor: another op takes it in
/// the next round, and may write over it, where a buffer would be copied each time.
fn is_made_by_op(repeated: &Specialized, index: usize) -> Result<bool> {
    let Some(&result) = repeated.results.get(index) else { return Ok(false) };
    let (graph, node) = (&repeated.graph, &repeated.graph[result.node]);
    let ty = &node.outputs()[result.index as usize];
    let shape = ty.shape.known().filter(|_| ty.dtype.size().is_some());
    let bytes = shape.map(|shape| byte_len(ty.dtype, &shape)).transpose()?;
    let is_large = bytes.is_some_and(|bytes| bytes >= DONATED_BYTES);
    Ok(is_large && Execution::of(graph, node)? == Execution::Op)
}
