//! Reference variables of TensorFlow 1 as resource variables.
//!
//! A reference is a variable's memory itself, passed along edges. Here the variable becomes a
//! handle; ops that change it become those that work on handles; whoever uses the value gets a
//! read of its own, after the op the reference came from. The value that `Identity` or `Reshape` hands on is
//! the variable's memory, too: a node that comes after a write sees what was written, though they came
//! before it.

mod aliases;
mod writes;

pub use aliases::FetchedValue;
use aliases::References;
use ferroflow_ir::{
    Attrs, DType, Error, FunctionDef, Graph, NodeDef, NodeId, OpDef, Outlet, PartialShape, Result,
    TensorSpec, ValueType,
    hash::FastMap,
    op::{ArgKind, ArgType},
    pass::functionalize,
    registry,
};
use writes::OrderedWrites;

/// The ops on references and the ops on handles that do the same.
const OPS: &[(&str, &str)] = &[
    ("ApplyAdaMax", "ResourceApplyAdaMax"),
    ("ApplyAdadelta", "ResourceApplyAdadelta"),
    ("ApplyAdagrad", "ResourceApplyAdagrad"),
    ("ApplyAdagradDA", "ResourceApplyAdagradDA"),
    ("ApplyAdagradV2", "ResourceApplyAdagradV2"),
    ("ApplyAdam", "ResourceApplyAdam"),
    ("ApplyAddSign", "ResourceApplyAddSign"),
    ("ApplyCenteredRMSProp", "ResourceApplyCenteredRMSProp"),
    ("ApplyFtrl", "ResourceApplyFtrl"),
    ("ApplyFtrlV2", "ResourceApplyFtrlV2"),
    ("ApplyGradientDescent", "ResourceApplyGradientDescent"),
    ("ApplyMomentum", "ResourceApplyMomentum"),
    ("ApplyPowerSign", "ResourceApplyPowerSign"),
    ("ApplyProximalAdagrad", "ResourceApplyProximalAdagrad"),
    ("ApplyProximalGradientDescent", "ResourceApplyProximalGradientDescent"),
    ("ApplyRMSProp", "ResourceApplyRMSProp"),
    ("Assign", "AssignVariableOp"),
    ("AssignAdd", "AssignAddVariableOp"),
    ("AssignSub", "AssignSubVariableOp"),
    ("CountUpTo", "ResourceCountUpTo"),
    ("DestroyTemporaryVariable", "ReadVariableOp"),
    ("IsVariableInitialized", "VarIsInitializedOp"),
    ("ScatterAdd", "ResourceScatterAdd"),
    ("ScatterDiv", "ResourceScatterDiv"),
    ("ScatterMax", "ResourceScatterMax"),
    ("ScatterMin", "ResourceScatterMin"),
    ("ScatterMul", "ResourceScatterMul"),
    ("ScatterNdAdd", "ResourceScatterNdAdd"),
    ("ScatterNdMax", "ResourceScatterNdMax"),
    ("ScatterNdMin", "ResourceScatterNdMin"),
    ("ScatterNdSub", "ResourceScatterNdSub"),
    ("ScatterNdUpdate", "ResourceScatterNdUpdate"),
    ("ScatterSub", "ResourceScatterSub"),
    ("ScatterUpdate", "ResourceScatterUpdate"),
    ("SdcaShrinkL1", "_SdcaShrinkL1"),
    ("SparseApplyAdadelta", "ResourceSparseApplyAdadelta"),
    ("SparseApplyAdagrad", "ResourceSparseApplyAdagrad"),
    ("SparseApplyAdagradDA", "ResourceSparseApplyAdagradDA"),
    ("SparseApplyAdagradV2", "ResourceSparseApplyAdagradV2"),
    ("SparseApplyCenteredRMSProp", "ResourceSparseApplyCenteredRMSProp"),
    ("SparseApplyFtrl", "ResourceSparseApplyFtrl"),
    ("SparseApplyFtrlV2", "ResourceSparseApplyFtrlV2"),
    ("SparseApplyMomentum", "ResourceSparseApplyMomentum"),
    ("SparseApplyProximalAdagrad", "ResourceSparseApplyProximalAdagrad"),
    ("SparseApplyProximalGradientDescent", "ResourceSparseApplyProximalGradientDescent"),
    ("SparseApplyRMSProp", "ResourceSparseApplyRMSProp"),
    ("StridedSliceAssign", "ResourceStridedSliceAssign"),
    ("_ParallelConcatUpdate", "_WriteRow"),
];

/// The ops that make a variable for one run, and those that make its handle.
const TEMPORARY: &[(&str, &str)] =
    &[("TemporaryVariable", "_TemporaryVariable"), ("_ParallelConcatStart", "_TemporaryZeros")];

/// The ops that let references through or stop them, and those that do so with values.
const FLOW: &[(&str, &str)] = &[
    ("RefEnter", "Enter"),
    ("RefExit", "Exit"),
    ("RefMerge", "Merge"),
    ("RefNextIteration", "NextIteration"),
    ("RefSelect", "_SelectHandle"),
    ("RefSwitch", "Switch"),
];

/// The op on handles that does what an op on references does.
pub fn reference_twin(op: &str) -> Option<&'static str> {
    let others = [
        ("DebugGradientRefIdentity", "Identity"),
        ("RefIdentity", "Identity"),
        ("Variable", "VarHandleOp"),
        ("VariableV2", "VarHandleOp"),
    ];
    OPS.iter()
        .chain(FLOW)
        .chain(TEMPORARY)
        .chain(&others)
        .find(|(name, _)| *name == op)
        .map(|(_, twin)| *twin)
}

/// A reference: the handle of its variable, and the op after which it may be read.
#[derive(Clone, Copy)]
struct Reference {
    handle: Outlet,
    after: Option<NodeId>,
}

/// The graph with reference variables made into resource variables, and with names for variables
/// that had none of their own; and for each outlet that was a reference or is the memory of a variable that the
/// graph writes, what is fetched instead: the value at the end of a run.
///
/// # Errors
///
/// When a reference comes from an op that is not known to pass one on.
pub fn resource_variables(mut graph: Graph) -> Result<(Graph, FastMap<Outlet, FetchedValue>)> {
    name_resources(&mut graph);
    let has_references = graph.iter().any(|(_, node)| returns_reference(node));
    if !has_references {
        return Ok((graph, FastMap::default()));
    }
    forget_shapes(&mut graph);
    let order = functionalize::order(&graph)?;
    let mut known = References::new(OrderedWrites::of(&graph, &order)?);
    for id in order {
        convert(&mut graph, id, &mut known)?;
    }
    let mut reads: FastMap<Outlet, FetchedValue> = FastMap::default();
    let mut outlets: Vec<(Outlet, Reference)> =
        known.references.iter().map(|(outlet, reference)| (*outlet, *reference)).collect();
    outlets.sort_by_key(|(outlet, _)| *outlet);
    for (outlet, reference) in outlets {
        let value = read(&mut graph, outlet, reference, Vec::new())?;
        reads.insert(outlet, FetchedValue::read(value));
    }
    known.fetched(&mut graph, &mut reads)?;
    Ok((graph, reads))
}

/// A function with its reference variables made into resource variables, which are there from call to
/// call; as it is if it has none.
///
/// # Errors
///
/// As [`resource_variables`].
pub(super) fn resource_function(mut function: FunctionDef) -> Result<FunctionDef> {
    if !function.graph.iter().any(|(_, node)| returns_reference(node)) {
        return Ok(function);
    }
    let (graph, reads) = resource_variables(function.graph)?;
    function.graph = graph;
    for (_, outlet) in &mut function.results {
        *outlet = reads.get(outlet).map_or(*outlet, |read| read.value);
    }
    Ok(function)
}

fn op(name: &str) -> Result<&'static OpDef> {
    let found = registry::find(name).or_else(|| ferroflow_ir::ops::interface(name));
    found.ok_or_else(|| Error::NotFound { kind: "op", name: name.into() })
}

/// A variable, queue or table whose `shared_name` is empty goes by the name of its node: it is
/// there from run to run of a session (`ContainerInfo::Init` in TensorFlow's `resource_mgr.cc`).
fn name_resources(graph: &mut Graph) {
    let ids: Vec<NodeId> = graph.ids().collect();
    for id in ids {
        let node = &graph[id];
        let named = node.attrs.string("shared_name").is_ok_and(|name| !name.is_empty());
        let is_state = makes_resource(node) || is_variable(node);
        if is_state && !named {
            let name = node.name.to_string();
            let attrs = (*node.attrs).clone().with("shared_name", name.as_str());
            *graph.node_mut(id).attrs = attrs.into();
        }
    }
}

/// A variable that is set without a look at its shape may come to have any.
fn forget_shapes(graph: &mut Graph) {
    let takes_any = |node: &NodeDef| {
        node.op.name() == "Assign" && node.attrs.bool("validate_shape").is_ok_and(|check| !check)
    };
    let set: Vec<NodeId> =
        graph.iter().filter(|(_, node)| takes_any(node)).map(|(id, _)| id).collect();
    for id in set {
        if let Some(variable) = variable_behind(graph, id) {
            let attrs = (*graph[variable].attrs).clone().with("shape", PartialShape::Unknown);
            *graph.node_mut(variable).attrs = attrs.into();
        }
    }
}

/// The variable whose reference a node takes, also through nodes that pass it on.
fn variable_behind(graph: &Graph, mut id: NodeId) -> Option<NodeId> {
    // In a loop of references there are no more steps than nodes.
    for _ in 0..graph.len() {
        let node = &graph[id];
        if is_variable(node) {
            return Some(id);
        }
        let by_reference = takes_reference(node);
        let reference = node.inputs().iter().zip(by_reference).find(|(_, is_ref)| *is_ref)?;
        id = reference.0.node;
    }
    None
}

fn is_variable(node: &NodeDef) -> bool {
    matches!(node.op.name(), "VariableV2" | "Variable" | "AutoReloadVariable")
}

/// Whether a node makes a resource that has a name, or finds it.
fn makes_resource(node: &NodeDef) -> bool {
    let Some(op) = node.op.def() else { return false };
    let is_handle = |kind: &ArgKind| matches!(kind, ArgKind::One(ArgType::Fixed(DType::Resource)));
    let has_name = ["container", "shared_name"].iter().all(|name| op.attr(name).is_some());
    has_name && matches!(op.outputs, [output] if is_handle(&output.kind))
}

/// Whether results of a node are references. The rows of a tensor that is put together in parallel
/// are written where the node of its start says, without any reference in the interface.
fn returns_reference(node: &NodeDef) -> bool {
    is_parallel_concat(node)
        || node.op.def().is_some_and(|op| op.outputs.iter().any(|output| output.is_ref))
}

fn is_parallel_concat(node: &NodeDef) -> bool {
    matches!(node.op.name(), "_ParallelConcatStart" | "_ParallelConcatUpdate")
}

/// For each input, whether it takes a reference.
fn takes_reference(node: &NodeDef) -> Vec<bool> {
    let Some(op) = node.op.def() else { return vec![false; node.inputs().len()] };
    let mut flags = Vec::new();
    for arg in op.inputs {
        let count = arg.count(&node.attrs).unwrap_or(0);
        let is_start = arg.name == "value" && is_parallel_concat(node);
        flags.extend(std::iter::repeat_n(arg.is_ref || is_start, count));
    }
    flags.resize(node.inputs().len(), false);
    flags
}

fn convert(graph: &mut Graph, id: NodeId, known: &mut References) -> Result<()> {
    known.note(graph, id);
    let references = &mut known.references;
    if is_variable(&graph[id]) {
        return variable(graph, id, references);
    }
    let name = graph[id].op.name();
    if let Some((_, twin)) = TEMPORARY.iter().find(|(on_references, _)| *on_references == name) {
        return temporary(graph, id, op(twin)?, references);
    }
    if let Some((_, twin)) = FLOW.iter().find(|(on_references, _)| *on_references == name) {
        return let_through(graph, id, op(twin)?, references);
    }
    let node = &graph[id];
    let (by_reference, gives) = (takes_reference(node), returns_reference(node));
    let inputs = node.inputs().to_vec();
    let mut controls = node.controls().to_vec();
    let mut converted = Vec::with_capacity(inputs.len());
    let mut passed: Option<Reference> = None;
    for (&input, &by_reference) in inputs.iter().zip(&by_reference) {
        converted.push(match known.references.get(&input).copied() {
            None => known.read_again(graph, id, input)?.unwrap_or(input),
            Some(reference) if by_reference => {
                controls.extend(reference.after);
                passed = passed.or(Some(reference));
                reference.handle
            }
            Some(reference) => read(graph, input, reference, graph[id].controls().to_vec())?,
        });
    }
    if passed.is_some() {
        let name = graph[id].op.name();
        let twin = OPS.iter().find(|(on_references, _)| *on_references == name);
        match twin.filter(|_| !changes_nothing(graph, &graph[id])) {
            Some((_, on_handles)) => {
                replace(graph, id, op(on_handles)?)?;
            }
            // `RefIdentity` and the like pass the reference on and do nothing else.
            None if gives => replace(graph, id, op("NoOp")?)?,
            None => {}
        }
    }
    let is_no_op = graph[id].op.name() == "NoOp" && gives;
    graph.connect(id, if is_no_op { Vec::new() } else { converted }, controls)?;
    if let (true, Some(reference)) = (gives, passed) {
        known.references.insert(id.into(), Reference { after: Some(id), ..reference });
    }
    Ok(())
}

/// Makes a node that lets a reference through or stops it do so with the handle.
fn let_through(
    graph: &mut Graph,
    id: NodeId,
    twin: &'static OpDef,
    references: &mut FastMap<Outlet, Reference>,
) -> Result<()> {
    let flags = takes_reference(&graph[id]);
    let inputs = graph[id].inputs().to_vec();
    let mut controls = graph[id].controls().to_vec();
    let mut converted = Vec::with_capacity(inputs.len());
    let mut handle = None;
    for (&input, by_reference) in inputs.iter().zip(flags) {
        converted.push(match references.get(&input).copied() {
            None => input,
            Some(reference) if by_reference => {
                controls.extend(reference.after);
                handle = handle.or_else(|| graph.ty(reference.handle).cloned());
                reference.handle
            }
            Some(reference) => read(graph, input, reference, graph[id].controls().to_vec())?,
        });
    }
    let Some(handle) = handle else { return Ok(()) };
    let attrs = (*graph[id].attrs).clone().with("T", DType::Resource);
    let passed = graph[id].op.def().into_iter().flat_map(|op| op.outputs);
    let passed: Vec<bool> = passed.map(|output| output.is_ref).collect();
    let node = graph.node_mut(id);
    *node.op = twin.into();
    *node.attrs = attrs.into();
    for (index, (ty, is_reference)) in node.outputs.iter_mut().zip(passed).enumerate() {
        if is_reference {
            *ty = handle.clone();
            let handle = Outlet::new(id, index);
            references.insert(handle, Reference { handle, after: None });
        }
    }
    graph.connect(id, converted, controls)
}

/// Whether an op adds constant zeros to parts of a variable. TensorFlow's sessions leave such ops
/// out, even where the indices are wrong (`constant_folding.cc`).
fn changes_nothing(graph: &Graph, node: &NodeDef) -> bool {
    const ADD: &[&str] = &["ScatterAdd", "ScatterNdAdd", "ScatterNdSub", "ScatterSub"];
    const UPDATES: usize = 2;
    let updates = node.inputs().get(UPDATES).filter(|_| ADD.contains(&node.op.name()));
    let constant = updates.map(|updates| &graph[updates.node]).and_then(|source| {
        (source.op.name() == "Const").then(|| source.attrs.tensor("value").ok()).flatten()
    });
    constant.is_some_and(|zeros| zeros.is_plain() && zeros.bytes().iter().all(|&byte| byte == 0))
}

/// The variable itself becomes a handle.
fn variable(
    graph: &mut Graph,
    id: NodeId,
    references: &mut FastMap<Outlet, Reference>,
) -> Result<()> {
    let node = &graph[id];
    let dtype = node.attrs.dtype("dtype")?;
    // A scalar of the first kind of variable stands for a shape that is not known.
    let shape = match (node.attrs.shape("shape")?, node.op.name()) {
        (shape, "Variable") if shape.rank() == Some(0) => PartialShape::Unknown,
        (shape, _) => shape.clone(),
    };
    let attrs = Attrs::new()
        .with("container", node.attrs.string("container").unwrap_or("").to_string().as_str())
        .with("shared_name", node.attrs.string("shared_name")?.to_string().as_str())
        .with("dtype", dtype)
        .with("shape", shape.clone());
    let handle_op = op("VarHandleOp")?;
    let attrs = handle_op.complete_attrs(attrs)?;
    let ty = ValueType::handle(DType::Resource, TensorSpec::new(dtype, shape));
    let changed = graph.node_mut(id);
    *changed.op = handle_op.into();
    *changed.attrs = attrs.into();
    *changed.outputs = [ty].into_iter().collect();
    references.insert(id.into(), Reference { handle: id.into(), after: None });
    Ok(())
}

/// A variable of one run becomes the handle of one that every run makes anew.
fn temporary(
    graph: &mut Graph,
    id: NodeId,
    twin: &'static OpDef,
    references: &mut FastMap<Outlet, Reference>,
) -> Result<()> {
    let attrs = &graph[id].attrs;
    let (dtype, shape) = (attrs.dtype("dtype")?, attrs.shape("shape")?.clone());
    replace(graph, id, twin)?;
    let ty = ValueType::handle(DType::Resource, TensorSpec::new(dtype, shape));
    *graph.node_mut(id).outputs = [ty].into_iter().collect();
    references.insert(id.into(), Reference { handle: id.into(), after: None });
    Ok(())
}

/// Makes a node call another op, with the attributes that has.
fn replace(graph: &mut Graph, id: NodeId, op: &'static OpDef) -> Result<()> {
    let node = &graph[id];
    let mut attrs = Attrs::new();
    for (name, value) in node.attrs.iter().filter(|(name, _)| op.attr(name).is_some()) {
        attrs.set(name, value.clone());
    }
    // Ops on references call the variable's dtype `T`, those on handles `dtype`.
    if let (Some(_), Ok(dtype)) = (op.attr("dtype"), node.attrs.dtype("T"))
        && attrs.get("dtype").is_none()
    {
        attrs.set("dtype", dtype);
    }
    let attrs = op.complete_attrs(attrs)?;
    let outputs = op.output_dtypes(&attrs)?;
    let changed = graph.node_mut(id);
    *changed.op = op.into();
    *changed.attrs = attrs.into();
    *changed.outputs =
        outputs.iter().map(|&dtype| ValueType::new(dtype, PartialShape::Unknown)).collect();
    Ok(())
}

/// A read of a variable, through the reference `source`, after whatever its user runs `after`.
fn read(
    graph: &mut Graph,
    source: Outlet,
    reference: Reference,
    mut after: Vec<NodeId>,
) -> Result<Outlet> {
    let handle = graph.ty(reference.handle).and_then(|ty| ty.pointee.clone());
    let spec = handle.ok_or_else(|| Error::Malformed {
        node: graph[source.node].name.to_string(),
        rule: "a reference refers to a variable".into(),
    })?;
    after.extend(reference.after);
    let base = format!("{}/read_value", graph[source.node].name);
    let attrs = Attrs::new().with("dtype", spec.dtype);
    let node = NodeDef::new(graph.unique_name(&base), op("ReadVariableOp")?, attrs)
        .with_inputs([reference.handle])
        .with_controls(after)
        .with_outputs([ValueType::new(spec.dtype, spec.shape)]);
    graph.add(node).map(Outlet::from)
}
