//! Common subexpressions: pure calls with equal ops, attributes and inputs are one call.

use crate::{
    attr::{AttrValue, Attrs},
    expr::Expr,
    function::FunctionDef,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastMap,
    op::{Effect, Lowering},
};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// Makes users of repeated calls use the first of them, and redirects the results of the graph;
/// [`prune`](super::prune) removes the rest.
pub fn cse(graph: &mut Graph, results: &mut [Outlet]) {
    let mut first: HashMap<Key, Vec<NodeId>> = HashMap::new();
    let mut moved: FastMap<Outlet, Outlet> = FastMap::default();
    let ids: Vec<NodeId> = graph.ids().collect();
    for &id in &ids {
        graph.replace_inputs(id, &moved);
        let node = &graph[id];
        if !is_mergeable(node) {
            continue;
        }
        let same_key = first.entry(Key::of(node)).or_default();
        match same_key.iter().find(|&&other| is_same(node, &graph[other])) {
            None => same_key.push(id),
            Some(&other) => {
                for index in 0..node.outputs().len() {
                    moved.insert(Outlet::new(id, index), Outlet::new(other, index));
                }
            }
        }
    }
    // Nodes that come before those that they use.
    ids.into_iter().for_each(|id| graph.replace_inputs(id, &moved));
    for outlet in results {
        *outlet = moved.get(outlet).copied().unwrap_or(*outlet);
    }
}

/// Like [`cse`] on the body of a function.
pub fn cse_function(function: &mut FunctionDef) {
    let mut outlets: Vec<Outlet> = function.results.iter().map(|(_, outlet)| *outlet).collect();
    cse(&mut function.graph, &mut outlets);
    for ((_, outlet), own) in function.results.iter_mut().zip(outlets) {
        *outlet = own;
    }
}

/// Constants are compared by value only if they are small.
const LARGE_CONSTANT: usize = 1024;

fn is_mergeable(node: &NodeDef) -> bool {
    let Some(op) = node.op.def() else { return false };
    let is_source = op.inputs.is_empty();
    let small_constant =
        || node.attrs.tensor("value").is_ok_and(|value| value.bytes().len() <= LARGE_CONSTANT);
    op.effect == Effect::Pure
        && !matches!(op.lowering, Lowering::Interface)
        && (!matches!(op.lowering, Lowering::Runtime) || is_source && small_constant())
        && node.controls().is_empty()
}

/// Hashable part of equal nodes.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    op: *const str,
    inputs: Vec<Outlet>,
    attrs: u64,
}

impl Key {
    fn of(node: &NodeDef) -> Key {
        Key {
            op: node.op.name() as *const str,
            inputs: node.inputs().to_vec(),
            attrs: fingerprint(&node.attrs),
        }
    }
}

/// A number that equal attributes share, and others hardly: a graph may have a hundred thousand constants.
fn fingerprint(attrs: &Attrs) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, value) in attrs.iter() {
        name.hash(&mut hasher);
        match value {
            AttrValue::Int(int) => int.hash(&mut hasher),
            AttrValue::Float(float) => float.to_bits().hash(&mut hasher),
            AttrValue::Ints(ints) => ints.hash(&mut hasher),
            AttrValue::String(string) => string.hash(&mut hasher),
            AttrValue::Tensor(tensor) if tensor.is_plain() => {
                let bytes = tensor.bytes();
                bytes[..bytes.len().min(LARGE_CONSTANT)].hash(&mut hasher);
            }
            _ => {}
        }
    }
    hasher.finish()
}

fn is_same(a: &NodeDef, b: &NodeDef) -> bool {
    let same_attrs = |a: &Arc<Attrs>, b: &Arc<Attrs>| Arc::ptr_eq(a, b) || a == b;
    let same_expr = |a: &Option<Arc<Expr>>, b: &Option<Arc<Expr>>| match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        _ => false,
    };
    a.op == b.op
        && a.inputs() == b.inputs()
        && a.device == b.device
        && same_attrs(&a.attrs, &b.attrs)
        && same_expr(&a.expr, &b.expr)
}
