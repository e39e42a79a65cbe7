//! Values that pass through functions as they are: results that are arguments (loop invariants are
//! found by it), and arguments of callees that are values of the caller.

use crate::{
    function::{FunctionDef, FunctionLibrary, functions_of},
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::{AliasKind, ArgKind, CallKind, Lowering, OpDef},
};
use std::{collections::HashSet, sync::Arc};

/// The nodes that one question may visit, and the calls it may go into: functions of a file may
/// call each other without end.
const VISITED_NODES: usize = 1 << 12;
const NESTED_CALLS: usize = 64;

/// Whether the body of a loop returns its argument `index` unchanged.
pub(crate) fn is_invariant(library: &FunctionLibrary, body: &FunctionDef, index: usize) -> bool {
    let result = body.results.get(index).map(|(_, outlet)| *outlet);
    result.is_some_and(|outlet| {
        passed_argument(library, &body.graph, &body.args, outlet) == Some(index)
    })
}

/// The argument that a value of a function is, as it is: through aliases, calls of functions,
/// branches that agree, and loops that give the value on.
pub(crate) fn passed_argument(
    library: &FunctionLibrary,
    graph: &Graph,
    args: &[NodeId],
    value: Outlet,
) -> Option<usize> {
    Search { library, left: VISITED_NODES, depth: 0 }.origin(graph, args, value)
}

/// The argument of a function that a value of a caller is, as it is: of a function that the caller
/// calls, or one that its callees call. Arguments of loops count if they are invariants.
pub(crate) fn argument_of_callee(
    library: &FunctionLibrary,
    caller: Arc<FunctionDef>,
    value: Outlet,
    callee: &str,
) -> Option<usize> {
    let mut waiting = vec![(caller, value)];
    let mut seen = HashSet::new();
    while let Some((function, value)) = waiting.pop() {
        if seen.len() == VISITED_NODES || !seen.insert((function.name.clone(), value)) {
            continue;
        }
        for id in function.graph.consumers(value.node) {
            let node = &function.graph[id];
            let Some(op) = node.op.def() else { continue };
            if matches!(op.lowering, Lowering::Alias(AliasKind::Identity)) {
                waiting.push((function.clone(), Outlet::new(id, 0)));
            }
            let positions = node.inputs().iter().enumerate().filter(|(_, input)| **input == value);
            for (name, index) in positions.flat_map(|(at, _)| arguments_at(library, op, node, at)) {
                if &*name == callee {
                    return Some(index);
                }
                let called = library.get(&name).ok();
                let argument = called.and_then(|called| Some((*called.args.get(index)?, called)));
                waiting.extend(argument.map(|(arg, called)| (called, Outlet::new(arg, 0))));
            }
        }
    }
    None
}

/// The arguments of callees that input `position` of a call is, whenever they are called.
fn arguments_at(
    library: &FunctionLibrary,
    op: &OpDef,
    node: &NodeDef,
    position: usize,
) -> Vec<(Arc<str>, usize)> {
    let callees = functions_of(op, &node.attrs);
    let index = match op.call {
        CallKind::None | CallKind::Module => None,
        CallKind::Inline => {
            let before = op.inputs.iter().take_while(|arg| matches!(arg.kind, ArgKind::One(_)));
            let index = position.checked_sub(before.count());
            index.filter(|&index| index < op.handed_on(node.inputs()).len())
        }
        CallKind::If | CallKind::Case => position.checked_sub(1),
        CallKind::While => {
            let body = callees.get(1).and_then(|name| library.get(name).ok());
            body.filter(|body| is_invariant(library, body, position)).map(|_| position)
        }
    };
    index.map_or_else(Vec::new, |index| callees.into_iter().map(|name| (name, index)).collect())
}

/// The position of a node among the arguments. Most have it as their attribute.
fn argument_index(graph: &Graph, args: &[NodeId], id: NodeId) -> Option<usize> {
    let node = &graph[id];
    let noted = node.attrs.int("index").ok().and_then(|index| usize::try_from(index).ok());
    match noted.filter(|&index| args.get(index) == Some(&id)) {
        Some(index) => Some(index),
        None if node.inputs().is_empty() => args.iter().position(|&arg| arg == id),
        None => None,
    }
}

struct Search<'a> {
    library: &'a FunctionLibrary,
    left: usize,
    depth: usize,
}

impl Search<'_> {
    fn argument_of(&mut self, function: &FunctionDef, result: usize) -> Option<usize> {
        if self.depth == NESTED_CALLS {
            return None;
        }
        let value = function.results.get(result)?.1;
        self.depth += 1;
        let found = self.origin(&function.graph, &function.args, value);
        self.depth -= 1;
        found
    }

    fn origin(&mut self, graph: &Graph, args: &[NodeId], mut value: Outlet) -> Option<usize> {
        loop {
            if let Some(index) = argument_index(graph, args, value.node) {
                return Some(index);
            }
            self.left = self.left.checked_sub(1)?;
            value = self.input_of(graph, value)?;
        }
    }

    /// The input of a node that its output is, as it is.
    fn input_of(&mut self, graph: &Graph, outlet: Outlet) -> Option<Outlet> {
        let node = &graph[outlet.node];
        let op = node.op.def()?;
        let (index, inputs) = (outlet.index as usize, node.inputs());
        let callees: Vec<Arc<FunctionDef>> = match op.call {
            CallKind::None => Vec::new(),
            _ => functions_of(op, &node.attrs)
                .iter()
                .map(|name| self.library.get(name).ok())
                .collect::<Option<_>>()?,
        };
        let position = match (op.call, &callees[..]) {
            (CallKind::None, _) => match (op.lowering, inputs) {
                (Lowering::Alias(AliasKind::Identity), [_]) => 0,
                _ => return None,
            },
            (CallKind::Inline, [callee]) => {
                let argument = self.argument_of(callee, index)?;
                return op.handed_on(inputs).get(argument).copied();
            }
            (CallKind::While, [_, body]) => {
                (self.argument_of(body, index)? == index).then_some(index)?
            }
            (CallKind::If | CallKind::Case, [first, others @ ..]) => {
                let found = self.argument_of(first, index)?;
                let agrees = |other| self.argument_of(other, index) == Some(found);
                others.iter().map(|other| &**other).all(agrees).then_some(found + 1)?
            }
            _ => return None,
        };
        inputs.get(position).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attr::{Attrs, NameAttrList},
        build::GraphBuilder,
        dtype::DType,
        shape::PartialShape,
        spec::ValueType,
    };

    /// `f(a, b)` with results made by `body` of its arguments.
    fn function(
        name: &'static str,
        body: impl FnOnce(&mut GraphBuilder, [Outlet; 2]) -> Vec<Outlet>,
    ) -> FunctionDef {
        let mut builder = GraphBuilder::new();
        let scalar = ValueType::new(DType::F32, PartialShape::scalar());
        let arguments = ["a", "b"].map(|name| builder.arg(name, scalar.clone()).unwrap());
        let results = body(&mut builder, arguments);
        let named: Vec<(&str, Outlet)> = results.iter().map(|&outlet| ("r", outlet)).collect();
        builder.finish_function(name, &named)
    }

    fn calling(callee: &str) -> Attrs {
        let types = vec![DType::F32; 2];
        Attrs::new()
            .with("f", NameAttrList::new(callee))
            .with("Tin", types.clone())
            .with("Tout", types)
    }

    #[test]
    fn results_are_traced_through_aliases_and_calls() {
        let library = FunctionLibrary::new();
        library
            .insert(function("swap", |builder, [a, b]| {
                let same = builder.call("Identity", "same", &[a]).unwrap()[0];
                vec![b, same]
            }))
            .unwrap();
        let outer = function("outer", |builder, inputs| {
            let once = builder.call_with("PartitionedCall", "once", calling("swap"), &inputs);
            let once = once.unwrap();
            let twice = builder.call_with("PartitionedCall", "twice", calling("swap"), &once);
            let other = builder.call("Neg", "other", &[inputs[1]]).unwrap()[0];
            vec![once[0], twice.unwrap()[1], other]
        });
        let passed = |(_, value): &(String, Outlet)| {
            passed_argument(&library, &outer.graph, &outer.args, *value)
        };
        let found: Vec<Option<usize>> = outer.results.iter().map(passed).collect();
        assert_eq!(found, [Some(1), Some(1), None]);
        assert!(is_invariant(&library, &outer, 1) && !is_invariant(&library, &outer, 0));
    }

    #[test]
    fn values_of_callers_are_arguments_of_functions_inside() {
        let library = FunctionLibrary::new();
        library.insert(function("inner", |_, [a, b]| vec![a, b])).unwrap();
        let middle = function("middle", |builder, [a, b]| {
            let same = builder.call("Identity", "same", &[b]).unwrap()[0];
            builder.call_with("PartitionedCall", "in", calling("inner"), &[same, a]).unwrap()
        });
        library.insert(middle).unwrap();
        let caller = Arc::new(function("caller", |builder, [a, b]| {
            let other = builder.call("Neg", "other", &[a]).unwrap()[0];
            builder.call_with("PartitionedCall", "call", calling("middle"), &[other, b]).unwrap()
        }));
        let argument = |name: &str, callee: &str| {
            let value = Outlet::new(caller.graph.find(name).unwrap(), 0);
            argument_of_callee(&library, caller.clone(), value, callee)
        };
        assert_eq!(argument("b", "middle"), Some(1));
        assert_eq!(argument("b", "inner"), Some(0));
        assert_eq!(argument("other", "inner"), Some(1));
        assert_eq!(argument("a", "inner"), None);
    }

    #[test]
    fn functions_that_call_themselves_have_no_answer() {
        let library = FunctionLibrary::new();
        library
            .insert(function("own", |builder, inputs| {
                builder.call_with("PartitionedCall", "call", calling("own"), &inputs).unwrap()
            }))
            .unwrap();
        let own = library.get("own").unwrap();
        assert!(!is_invariant(&library, &own, 0));
        let argument = Outlet::new(own.args[0], 0);
        assert_eq!(argument_of_callee(&library, own, argument, "other"), None);
    }
}
