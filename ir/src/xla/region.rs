//! Functions of scalars that primitives apply to elements: what is known of them, and their calls.

use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    dtype::DType,
    emit::{Value, calls_with},
    function::{FunctionDef, FunctionLibrary},
    graph::{NodeId, Outlet},
    op::{CallKind, Lowering},
};

/// A function of two scalars that ops have a name for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Monoid {
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bitwise or logical and.
    And,
    /// Bitwise or logical or.
    Or,
    /// The first argument.
    First,
    /// The second argument.
    Second,
}

impl Monoid {
    /// The function that an op computes, by its name.
    pub fn of_op(op: &str) -> Option<Monoid> {
        Some(match op {
            "Add" | "AddV2" => Monoid::Add,
            "Mul" => Monoid::Mul,
            "Minimum" => Monoid::Min,
            "Maximum" => Monoid::Max,
            "LogicalAnd" | "BitwiseAnd" => Monoid::And,
            "LogicalOr" | "BitwiseOr" => Monoid::Or,
            _ => return None,
        })
    }

    /// The function of a graph of two arguments, if it is one of these.
    pub fn of_function(def: &FunctionDef) -> Option<Monoid> {
        let ([a, b], [(_, result)]) = (&def.args[..], &def.results[..]) else { return None };
        let source = through_identities(def, *result);
        if source.node == *a {
            return Some(Monoid::First);
        }
        if source.node == *b {
            return Some(Monoid::Second);
        }
        let node = &def.graph[source.node];
        let monoid = Monoid::of_op(node.op.name())?;
        let [x, y] = node.inputs() else { return None };
        let inputs: [NodeId; 2] = [x, y].map(|input| through_identities(def, *input).node);
        (inputs == [*a, *b] || inputs == [*b, *a]).then_some(monoid)
    }
}

fn through_identities(def: &FunctionDef, outlet: Outlet) -> Outlet {
    let mut outlet = outlet;
    while matches!(def.graph[outlet.node].op.name(), "Identity" | "StopGradient" | "Snapshot") {
        match def.graph[outlet.node].inputs() {
            [input] => outlet = *input,
            _ => break,
        }
    }
    outlet
}

/// Greatest depth of nested calls of functions of scalars.
const DEPTH: usize = 32;

/// Whether a function computes each element of its results from the same elements of its
/// arguments, so that it may be called on tensors as well as on scalars.
pub fn is_elementwise(library: &FunctionLibrary, def: &FunctionDef) -> bool {
    is_elementwise_below(library, def, DEPTH)
}

fn is_elementwise_below(library: &FunctionLibrary, def: &FunctionDef, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    def.graph.iter().all(|(_, node)| {
        let Some(op) = node.op.def() else { return false };
        if op.call == CallKind::Inline {
            let callee = op.attrs.iter().find_map(|attr| match node.attrs.get(attr.name) {
                Some(AttrValue::Func(callee)) => library.get(&callee.name).ok(),
                _ => None,
            });
            return callee.is_some_and(|callee| is_elementwise_below(library, &callee, depth));
        }
        match op.lowering {
            Lowering::Elementwise(_) => true,
            Lowering::Composite(_) => ELEMENTWISE_FORMULAS.contains(&op.name),
            _ => match op.name {
                "Const" => node.attrs.tensor("value").is_ok_and(|value| value.shape().rank() == 0),
                name => PASSING.contains(&name),
            },
        }
    })
}

/// Ops that pass elements on.
const PASSING: &[&str] = &["_Arg", "Identity", "IdentityN", "NoOp", "StopGradient", "Snapshot"];

/// Composite ops that compute elements from the same elements.
const ELEMENTWISE_FORMULAS: &[&str] = &["ClipByValue", "Select", "SelectV2", "XlaReducePrecision"];

/// The results of a call of a function.
pub fn call_function<'e>(
    function: &NameAttrList,
    args: &[Value<'e>],
    results: &[DType],
) -> Vec<Value<'e>> {
    let dtypes: Vec<DType> = args.iter().map(|arg| arg.dtype()).collect();
    let attrs = Attrs::new()
        .with("Tin", dtypes)
        .with("Tout", results.to_vec())
        .with("f", AttrValue::Func(function.clone()));
    let called = calls_with("PartitionedCall", attrs, args);
    (0..results.len()).map(|index| called.at(index)).collect()
}

/// Whether no axis occurs twice.
pub fn distinct(axes: &[usize]) -> bool {
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}
