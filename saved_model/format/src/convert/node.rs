//! Nodes: what graphs and the bodies of functions have in common.

use super::{
    attr::attrs,
    definitions::Definitions,
    dtype,
    handles::resource_twin,
    onednn::{plain_attrs, plain_twin},
};
use crate::proto::{self, op_def::ArgDef};
use ferroflow_ir::{
    AttrValue, Attrs, DType, Error, Graph, NameAttrList, NodeDef, NodeId, OpDef, OpRef, OpRegistry,
    Outlet, PartialShape, Result, ValueType, op::CallKind,
};
use smallvec::SmallVec;

/// Shapes of results that a writer may note on a node.
pub(super) const OUTPUT_SHAPES: &str = "_output_shapes";

/// Adds a node to a graph, without its inputs but with the types of its results as far as
/// attributes tell them.
pub(super) fn add(
    graph: &mut Graph,
    proto: &proto::NodeDef,
    definitions: &Definitions,
) -> Result<NodeId> {
    if proto.name.is_empty() {
        return Err(malformed(proto, "every node has a name"));
    }
    if !is_name(&proto.name) {
        return Err(malformed(
            proto,
            "names of nodes are made of letters, digits and any of _.-/>",
        ));
    }
    definitions.budget.take_values(1)?;
    let (op, attrs) = match definitions.function(&proto.op) {
        Some(function) => call(proto, function, definitions)?,
        None => plain(proto, definitions)?,
    };
    let outputs = match op.def() {
        Some(op) if !is_generic(&attrs) => {
            for arg in op.outputs {
                definitions.budget.take_values(arg.count(&attrs)?)?;
            }
            result_types(op, &attrs)?
        }
        _ => SmallVec::new(),
    };
    let mut node = NodeDef::new(proto.name.as_str(), op, attrs).with_outputs(outputs);
    node.device = proto.device.as_str().into();
    graph.add(node)
}

/// Whether a node may have this name: parts joined by `>`, each of which begins with a letter, a
/// digit, a dot or, for the first, an underscore. Source: `IsValidNodeName` in TensorFlow's
/// `graph_constructor.cc`.
fn is_name(name: &str) -> bool {
    name.split('>').enumerate().all(|(index, part)| {
        let begins = part.starts_with(|c: char| {
            c.is_ascii_alphanumeric() || c == '.' || (index == 0 && c == '_')
        });
        begins && part.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/".contains(c))
    })
}

fn plain(proto: &proto::NodeDef, definitions: &Definitions) -> Result<(OpRef, Attrs)> {
    let op = op_of_file(&definitions.registry, &proto.op);
    if let (ARG | DEVICE_ARG, Some(op)) = (&*proto.op, op) {
        return Ok((op.into(), op.complete_attrs(placeholder_attrs(proto, definitions)?)?));
    }
    let mut attrs = attrs(&proto.attr, op, &definitions.budget)?;
    if op.is_some_and(|op| op.call == CallKind::Inline) {
        choose_implementation(&mut attrs, definitions);
    }
    match op {
        Some(op) => Ok((op.into(), op.complete_attrs(plain_attrs(&proto.op, op, attrs)?)?)),
        None => Ok((OpRef::Foreign(proto.op.as_str().into()), attrs)),
    }
}

/// Makes a call one of the implementation that runs.
fn choose_implementation(attrs: &mut Attrs, definitions: &Definitions) {
    let Some(AttrValue::Func(callee)) = attrs.get("f") else { return };
    let chosen = definitions.implementation(&callee.name);
    if chosen != &*callee.name {
        let chosen = NameAttrList::with_attrs(chosen, callee.attrs.clone());
        attrs.set("f", chosen);
    }
}

/// The op of a graph that stands for what is fed, as TensorFlow's quantizer writes it.
const ARG: &str = "_Arg";

/// The same, in the memory of a device.
const DEVICE_ARG: &str = "_DeviceArg";

/// The record of an op as files name it. Internal ops have no meaning in a file; an argument of a
/// graph is a placeholder, ops on handles of strings are those on resources, and ops for oneDNN those
/// that they were made of.
pub fn op_of_file(registry: &OpRegistry, name: &str) -> Option<&'static OpDef> {
    match name {
        ARG | DEVICE_ARG | "PlaceholderV2" => registry.find("Placeholder"),
        name if ferroflow_ir::ops::is_internal(name) => None,
        name => registry.find(resource_twin(name).or_else(|| plain_twin(name)).unwrap_or(name)),
    }
}

/// The attributes of an argument of a graph as those of a placeholder.
fn placeholder_attrs(proto: &proto::NodeDef, definitions: &Definitions) -> Result<Attrs> {
    let mut attrs = attrs(&proto.attr, None, &definitions.budget)?;
    let dtype = attrs.dtype("T")?;
    let noted = attrs.shapes(OUTPUT_SHAPES).ok().and_then(|shapes| shapes.first().cloned());
    attrs.remove("T");
    attrs.remove("index");
    Ok(attrs.with("dtype", dtype).with("shape", noted.unwrap_or(PartialShape::Unknown)))
}

/// A node whose op is the name of a function: a call of it.
fn call(
    proto: &proto::NodeDef,
    function: &proto::FunctionDef,
    definitions: &Definitions,
) -> Result<(OpRef, Attrs)> {
    let signature = function.signature.as_ref();
    let (inputs, outputs, is_stateful) = match signature {
        Some(signature) => (&*signature.input_arg, &*signature.output_arg, signature.is_stateful),
        None => (&[][..], &[][..], false),
    };
    let name = if is_stateful { "StatefulPartitionedCall" } else { "PartitionedCall" };
    let op = definitions.registry.find(name);
    let op = op.ok_or_else(|| Error::NotFound { kind: "op", name: name.into() })?;
    let node_attrs = attrs(&proto.attr, None, &definitions.budget)?;
    let dtypes = |args| arg_list_dtypes(args, &node_attrs, definitions);
    let (tin, tout) = (dtypes(inputs)?, dtypes(outputs)?);
    let mut f = NameAttrList::new(definitions.implementation(&proto.op));
    let mut call = Attrs::new().with("Tin", tin).with("Tout", tout);
    for (name, value) in node_attrs.iter() {
        let attrs = if name.starts_with('_') { &mut call } else { &mut f.attrs };
        attrs.set(name, value.clone());
    }
    call.set("f", f);
    Ok((op.into(), op.complete_attrs(call)?))
}

/// Whether an attribute waits for the value that a call of the function around it returns.
fn is_generic(attrs: &Attrs) -> bool {
    attrs.iter().any(|(_, value)| matches!(value, AttrValue::Placeholder(_)))
}

fn result_types(op: &'static OpDef, attrs: &Attrs) -> Result<SmallVec<[ValueType; 2]>> {
    if let ("Const", Some(AttrValue::Tensor(value))) = (op.name, attrs.get("value")) {
        value.check(attrs.dtype("dtype")?)?;
        return Ok(SmallVec::from_iter([ValueType::new(value.dtype(), value.shape())]));
    }
    let dtypes = op.output_dtypes(attrs)?;
    let noted = attrs.shapes(OUTPUT_SHAPES).ok().filter(|shapes| shapes.len() == dtypes.len());
    let types = dtypes.iter().enumerate().map(|(index, &dtype)| {
        let shape = noted.map_or(PartialShape::Unknown, |shapes| shapes[index].clone());
        ValueType::new(dtype, shape)
    });
    Ok(types.collect())
}

/// Checks number and dtypes of a connected node's inputs, and that each is a result of its node.
pub(super) fn check_inputs(graph: &Graph, id: NodeId) -> Result<()> {
    let node = &graph[id];
    let expected = match node.op.def() {
        Some(op) if !is_generic(&node.attrs) => Some((op, op.input_dtypes(&node.attrs)?)),
        _ => None,
    };
    if let Some((op, expected)) = &expected
        && expected.len() != node.inputs().len()
    {
        let n_inputs = node.inputs().len();
        return Err(Error::argument(op.name, "inputs", format!("{}", expected.len()), n_inputs));
    }
    for (index, &input) in node.inputs().iter().enumerate() {
        let Some(found) = result_dtype(graph, input)? else { continue };
        if let Some((op, expected)) = &expected
            && expected[index] != found
        {
            let argument = format!("input {index}");
            return Err(Error::argument(op.name, argument, expected[index].name(), found));
        }
    }
    Ok(())
}

/// The dtype of a result; `None` when nothing is known of its node's results.
fn result_dtype(graph: &Graph, outlet: Outlet) -> Result<Option<DType>> {
    let source = &graph[outlet.node];
    if source.op.def().is_none() || is_generic(&source.attrs) {
        return Ok(None);
    }
    match graph.ty(outlet) {
        Some(ty) => Ok(Some(ty.dtype)),
        None => Err(Error::Index {
            what: format!("result of node `{}`", source.name).into(),
            index: i64::from(outlet.index),
            low: 0,
            high: source.outputs().len() as i64,
        }),
    }
}

/// The dtypes of all arguments of a signature, flattened.
fn arg_list_dtypes(
    args: &[ArgDef],
    attrs: &Attrs,
    definitions: &Definitions,
) -> Result<Vec<DType>> {
    let mut dtypes = Vec::new();
    for arg in args {
        let more = arg_dtypes(arg, attrs)?;
        definitions.budget.take_values(more.len())?;
        dtypes.extend(more);
    }
    Ok(dtypes)
}

/// The dtypes of the tensors that an argument of a signature stands for.
pub(super) fn arg_dtypes(arg: &ArgDef, attrs: &Attrs) -> Result<Vec<DType>> {
    if !arg.type_list_attr.is_empty() {
        return Ok(attrs.types(&arg.type_list_attr)?.to_vec());
    }
    let of = match arg.type_attr.as_str() {
        "" => dtype(arg.r#type)?.0,
        name => attrs.dtype(name)?,
    };
    if arg.number_attr.is_empty() {
        return Ok(vec![of]);
    }
    let n = attrs.int(&arg.number_attr)?;
    match usize::try_from(n) {
        Ok(n) if n <= MAX_TENSORS => Ok(vec![of; n]),
        _ => Err(Error::argument("attribute", arg.number_attr.clone(), "a count of tensors", n)),
    }
}

/// No argument stands for more tensors than this; a file that says so is damaged.
const MAX_TENSORS: usize = 1 << 12;

/// The error that a node breaks a rule.
pub(super) fn malformed(proto: &proto::NodeDef, rule: impl Into<String>) -> Error {
    Error::Malformed { node: proto.name.clone(), rule: rule.into().into() }
}
