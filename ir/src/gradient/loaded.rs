//! Gradients that a program brings along: of nodes that name one, and of functions that have one.
//!
//! TensorFlow notes the name of a gradient of its own in the attribute `_gradient_op_type` of a
//! node. Its function takes the gradients of the results of the node, then values of the function
//! around the node, and gives gradients of the inputs. On the way into a form that keeps what
//! gradients need, nodes get other names: which values a node's gradient takes is noted on it.

use super::{
    control::record,
    custom::{LoadedCapture, LoadedGradient},
    sketch::{call_attrs, type_of},
    walk::{Cotangent, CustomGradient, RecordedCall, Refused},
};
use crate::{
    attr::{AttrValue, Attrs},
    emit::{Emit, ValueId},
    error::{Error, Result},
    function::{FunctionDef, FunctionLibrary, functions_of},
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::{CallKind as Calls, OpDef},
    passthrough::argument_of_callee,
};
use std::{collections::HashSet, sync::Arc};

/// The custom gradient of a node.
#[derive(Debug, Clone)]
pub struct FoundGradient {
    /// The gradient.
    pub gradient: Arc<LoadedGradient>,
    /// The values of the function around the node that it takes after the gradients of results.
    pub captures: Vec<Outlet>,
}

/// The custom gradient that a node of a function names, if it names one. Calls of functions have
/// names of gradients too, which say no more than that functions are differentiated.
///
/// # Errors
///
/// [`Error::Unsupported`] where the program does not have the gradient, or the error that tracing
/// it was.
pub fn custom_gradient(
    library: &FunctionLibrary,
    def: &FunctionDef,
    node: &NodeDef,
) -> Result<Option<FoundGradient>> {
    of_node(library, def, node).transpose()
}

/// As [`custom_gradient`].
pub(super) fn of_node(
    library: &FunctionLibrary,
    def: &FunctionDef,
    node: &NodeDef,
) -> Option<Result<FoundGradient>> {
    node.op.def().filter(|op| op.call == Calls::None)?;
    let name = node.attrs.string(LoadedGradient::ATTRIBUTE).ok()?;
    let absent = || {
        let what = format!("its own gradient `{name}`, which is not part of the model");
        Error::Unsupported { op: node.op.name().to_string().into(), what: what.into() }
    };
    let found = || {
        let refused = || library.refused_gradient(name).unwrap_or_else(absent);
        let gradient = library.loaded_gradient(name).ok_or_else(refused)?;
        let captures = match node.attrs.get(LoadedGradient::CAPTURES) {
            Some(AttrValue::Strings(names)) => noted(&def.graph, names)?,
            _ => {
                let captures = gradient.captures.iter();
                captures
                    .map(|capture| capture_of(library, def, node, capture))
                    .collect::<Result<_>>()?
            }
        };
        Ok(FoundGradient { gradient, captures })
    };
    Some(found())
}

/// The value of a function that a capture of the gradient of a node is: its own, or an argument by
/// which it has that of a caller. TensorFlow has copies of functions besides (the body of a loop that
/// keeps what a gradient takes): their values have the names of those of the original.
fn capture_of(
    library: &FunctionLibrary,
    def: &FunctionDef,
    node: &NodeDef,
    capture: &LoadedCapture,
) -> Result<Outlet> {
    if capture.function == def.name {
        return value(&def.graph, &capture.node, capture.index);
    }
    let caller = library.get(&capture.function)?;
    let own_type = |node: &NodeDef| node.attrs.get(LoadedGradient::ATTRIBUTE).cloned();
    let original = caller.graph.find(&node.name).map(|id| own_type(&caller.graph[id]));
    if original.is_some_and(|original| original == own_type(node)) {
        return value(&def.graph, &capture.node, capture.index);
    }
    let outlet = value(&caller.graph, &capture.node, capture.index)?;
    let index = argument_of_callee(library, &caller, outlet, &def.name);
    index.and_then(|index| def.args.get(index)).map(|&arg| Outlet::new(arg, 0)).ok_or_else(|| {
        let what = format!(
            "a gradient that takes `{}` of the function `{}` around it, which is not an argument in every call of it",
            capture.node, capture.function
        );
        Error::Unsupported { op: def.name.to_string().into(), what: what.into() }
    })
}

fn noted(graph: &Graph, names: &[impl AsRef<[u8]>]) -> Result<Vec<Outlet>> {
    let outlet = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        let absent = || Error::NotFound { kind: "value", name: name.to_string() };
        let (node, index) = name.rsplit_once(':').ok_or_else(absent)?;
        value(graph, node, index.parse().map_err(|_| absent())?)
    };
    names.iter().map(|name| outlet(name.as_ref())).collect()
}

fn value(graph: &Graph, node: &str, index: usize) -> Result<Outlet> {
    let absent = || Error::NotFound { kind: "value", name: format!("{node}:{index}") };
    let outlet = Outlet::new(graph.find(node).ok_or_else(absent)?, index);
    graph.ty(outlet).map(|_| outlet).ok_or_else(absent)
}

/// Whether a function, or one that it calls, has gradients of its own: zero gradients of its
/// results may be others of its arguments.
pub(super) fn has_custom_gradient(library: &FunctionLibrary, def: &FunctionDef) -> bool {
    let (mut waiting, mut seen) = (Vec::new(), HashSet::from([def.name.clone()]));
    let has_own = |def: &FunctionDef, waiting: &mut Vec<Arc<str>>| {
        def.graph.iter().any(|(_, node)| {
            if let Some(op) = node.op.def() {
                waiting.extend(functions_of(op, &node.attrs));
            }
            of_node(library, def, node).is_some()
        })
    };
    if has_own(def, &mut waiting) {
        return true;
    }
    while let Some(name) = waiting.pop() {
        if library.gradient_of(&name).is_some() {
            return true;
        }
        let Some(callee) = seen.insert(name.clone()).then(|| library.get(&name).ok()).flatten()
        else {
            continue;
        };
        if has_own(&callee, &mut waiting) {
            return true;
        }
    }
    false
}

/// The nodes that gradients take values of.
pub(super) fn captured_nodes<'a>(
    library: &'a FunctionLibrary,
    def: &'a FunctionDef,
) -> impl Iterator<Item = NodeId> + 'a {
    let found = def.graph.iter().filter_map(|(_, node)| of_node(library, def, node)?.ok());
    found.flat_map(|found| found.captures.into_iter().map(|outlet| outlet.node))
}

/// Notes on a copied node which values of the copy its gradient takes.
pub(super) fn note(attrs: &Attrs, graph: &Graph, captures: &[Outlet]) -> Attrs {
    let name = |outlet: &Outlet| format!("{}:{}", graph[outlet.node].name, outlet.index);
    with_captures(attrs.clone(), captures.iter().map(name))
}

/// The attributes of a node whose gradient takes these values of the graph it is in, named as in
/// `Mul:0`.
pub fn with_captures(attrs: Attrs, names: impl IntoIterator<Item = String>) -> Attrs {
    let names = names.into_iter().map(|name| name.into_bytes().into()).collect();
    attrs.with(LoadedGradient::CAPTURES, AttrValue::Strings(names))
}

/// Cotangents of a node with a custom gradient.
pub(super) fn custom(
    library: &FunctionLibrary,
    op: &'static OpDef,
    found: &Result<FoundGradient>,
) -> Arc<dyn CustomGradient> {
    let made = found.as_ref().map_err(Error::clone).and_then(|found| {
        let function = library.get(&found.gradient.function)?;
        Ok(OfNode { op, function, gradient: found.gradient.clone() })
    });
    match made {
        Ok(gradient) => Arc::new(gradient),
        Err(error) => Arc::new(Refused(error)),
    }
}

/// The gradient of a node; the call has what the function takes besides after its own inputs.
struct OfNode {
    op: &'static OpDef,
    function: Arc<FunctionDef>,
    gradient: Arc<LoadedGradient>,
}

impl CustomGradient for OfNode {
    fn backward(
        &self,
        emit: &mut dyn Emit,
        call: &RecordedCall,
        dys: &[Option<ValueId>],
    ) -> Result<Vec<Option<Cotangent>>> {
        let n_captures = self.gradient.captures.len();
        let own = call.inputs.len().saturating_sub(n_captures);
        let mut inputs = dense_dys(emit, call, dys)?;
        inputs.extend(&call.inputs[own..]);
        let found = call_function(emit, &self.function, &inputs)?;
        let operand_index = |index: &Option<usize>| match *index {
            None => Ok(None),
            Some(index) => {
                found.get(index).map(|&id| Some(Cotangent::Dense(id))).ok_or_else(|| {
                    let name = format!("{index} of `{}`, for {}", self.function.name, self.op.name);
                    Error::NotFound { kind: "result", name }
                })
            }
        };
        self.gradient.gradients.iter().take(own).map(operand_index).collect()
    }
}

/// The gradient of a call of a function that has one: it takes the inputs of the call and the
/// gradients of its results, and gives the gradients of the inputs.
pub(super) struct OfFunction(pub(super) Arc<FunctionDef>);

impl CustomGradient for OfFunction {
    fn backward(
        &self,
        emit: &mut dyn Emit,
        call: &RecordedCall,
        dys: &[Option<ValueId>],
    ) -> Result<Vec<Option<Cotangent>>> {
        let mut inputs: Vec<ValueId> = call.inputs.to_vec();
        inputs.extend(dense_dys(emit, call, dys)?);
        let found = call_function(emit, &self.0, &inputs)?;
        Ok(found.into_iter().map(|id| Some(Cotangent::Dense(id))).collect())
    }
}

/// The gradients of all results; zeros where nothing depends on one.
fn dense_dys(
    emit: &mut dyn Emit,
    call: &RecordedCall,
    dys: &[Option<ValueId>],
) -> Result<Vec<ValueId>> {
    let mut dense = Vec::with_capacity(dys.len());
    for (dy, &output) in dys.iter().zip(&call.outputs) {
        dense.push(match dy {
            Some(dy) => *dy,
            None => emit.emit(record("ZerosLike"), Attrs::new(), &[output])?[0],
        });
    }
    Ok(dense)
}

fn call_function(
    emit: &mut dyn Emit,
    function: &FunctionDef,
    inputs: &[ValueId],
) -> Result<Vec<ValueId>> {
    if function.args.len() != inputs.len() {
        let expected = format!("{} tensors", inputs.len());
        let found = function.args.len();
        return Err(Error::argument(function.name.to_string(), "arguments", expected, found));
    }
    let results = function.results.iter().map(|(_, outlet)| type_of(&function.graph, *outlet));
    let attrs = call_attrs(function, &results.collect::<Result<Vec<_>>>()?);
    Ok(emit.emit(record("StatefulPartitionedCall"), attrs, inputs)?.into_vec())
}
