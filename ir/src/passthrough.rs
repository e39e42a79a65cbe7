//! Values that pass through functions as they are: results that are arguments (loop invariants are
//! found by it), and arguments of callees that are values of the caller.

use crate::{
    function::{FunctionDef, FunctionLibrary, functions_of},
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::{AliasKind, CallKind, Lowering},
};
use std::{collections::HashMap, sync::Arc};

/// The nodes that one question may visit, and the calls it may go into: functions of a file may
/// call each other without end.
const VISITED_NODES: usize = 1 << 12;
const NESTED_CALLS: usize = 64;

/// The nodes of functions among which calls of one are looked for.
const CALLING_NODES: usize = 1 << 14;

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

/// The argument of a function that is a value of a caller, as it is, in each call that the caller
/// and the functions it calls make of it. Arguments of loops count if they are invariants.
pub(crate) fn argument_of_callee(
    library: &FunctionLibrary,
    caller: &Arc<FunctionDef>,
    value: Outlet,
    callee: &str,
) -> Option<usize> {
    let n_args = library.get(callee).ok()?.args.len();
    let sites = call_sites(library, caller)?;
    let sites = &sites;
    let mut passing = Passing { library, caller, value, sites, known: HashMap::new(), depth: 0 };
    (0..n_args).find(|&index| passing.is_value(callee, index))
}

/// The calls of each function in a function and those that it calls: the function around each, and
/// its node. `None` where these have too many nodes, or are not there.
fn call_sites(library: &FunctionLibrary, caller: &Arc<FunctionDef>) -> Option<CallSites> {
    let mut sites = CallSites::new();
    let (mut waiting, mut left) = (vec![caller.clone()], CALLING_NODES);
    while let Some(around) = waiting.pop() {
        left = left.checked_sub(around.graph.len())?;
        for (id, node) in around.graph.iter() {
            let callees = node.op.def().map(|op| functions_of(op, &node.attrs));
            for name in callees.into_iter().flatten() {
                if *name != *caller.name && !sites.contains_key(&name) {
                    waiting.push(library.get(&name).ok()?);
                }
                sites.entry(name).or_default().push((around.clone(), id));
            }
        }
    }
    Some(sites)
}

type CallSites = HashMap<Arc<str>, Vec<(Arc<FunctionDef>, NodeId)>>;

/// A value of a caller on its way into the functions inside.
struct Passing<'a> {
    library: &'a FunctionLibrary,
    caller: &'a FunctionDef,
    value: Outlet,
    sites: &'a CallSites,
    /// The arguments that were asked about; those in question are not the value.
    known: HashMap<(Arc<str>, usize), bool>,
    depth: usize,
}

impl Passing<'_> {
    /// Whether an argument of a function is the value in all calls.
    fn is_value(&mut self, function: &str, index: usize) -> bool {
        let key = (Arc::from(function), index);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        if self.known.len() == VISITED_NODES || self.depth == NESTED_CALLS {
            return false;
        }
        self.known.insert(key.clone(), false);
        self.depth += 1;
        let is_value = self.sites.get(function).is_some_and(|sites| {
            sites.iter().all(|(around, id)| {
                let operand = operand_of_callee(self.library, &around.graph[*id], index);
                operand.is_some_and(|operand| self.is_value_in(around, operand))
            })
        });
        self.depth -= 1;
        self.known.insert(key, is_value);
        is_value
    }

    fn is_value_in(&mut self, around: &FunctionDef, mut outlet: Outlet) -> bool {
        for _ in 0..NESTED_CALLS {
            if around.name == self.caller.name && outlet == self.value {
                return true;
            }
            if let Some(index) = argument_index(&around.graph, &around.args, outlet.node) {
                return self.is_value(&around.name, index);
            }
            let node = &around.graph[outlet.node];
            match (node.op.def().map(|op| op.lowering), node.inputs()) {
                (Some(Lowering::Alias(AliasKind::Identity)), &[input]) => outlet = input,
                _ => return false,
            }
        }
        false
    }
}

/// The input of a call that its callees have as an argument whenever they are called.
fn operand_of_callee(library: &FunctionLibrary, node: &NodeDef, index: usize) -> Option<Outlet> {
    let (op, inputs) = (node.op.def()?, node.inputs());
    match op.call {
        CallKind::None | CallKind::Module => None,
        CallKind::Inline => op.handed_on(inputs).get(index).copied(),
        CallKind::If | CallKind::Case => inputs.get(index + 1).copied(),
        CallKind::While => {
            let body = library.get(functions_of(op, &node.attrs).get(1)?).ok()?;
            inputs.get(index).copied().filter(|_| is_invariant(library, &body, index))
        }
    }
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
            argument_of_callee(&library, &caller, value, callee)
        };
        assert_eq!(argument("b", "middle"), Some(1));
        assert_eq!(argument("b", "inner"), Some(0));
        assert_eq!(argument("other", "inner"), Some(1));
        assert_eq!(argument("a", "inner"), None);
    }

    #[test]
    fn arguments_that_are_other_values_in_other_calls_are_none() {
        let library = FunctionLibrary::new();
        library.insert(function("inner", |_, [a, b]| vec![a, b])).unwrap();
        let caller = Arc::new(function("caller", |builder, [a, b]| {
            let attrs = || calling("inner");
            let first = builder.call_with("PartitionedCall", "first", attrs(), &[a, b]).unwrap();
            builder.call_with("PartitionedCall", "second", attrs(), &[first[0], b]).unwrap()
        }));
        let argument = |name: &str| {
            let value = Outlet::new(caller.graph.find(name).unwrap(), 0);
            argument_of_callee(&library, &caller, value, "inner")
        };
        assert_eq!((argument("a"), argument("b")), (None, Some(1)));
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
        assert_eq!(argument_of_callee(&library, &own, argument, "own"), Some(0));
    }
}
