//! Functions.

use super::{attr::attr_messages, node::node_message};
use crate::{
    convert::{OUTPUT_NAMES, node::OUTPUT_SHAPES, partial_shape_message},
    proto::{self, function_def::ArgAttrs, op_def::ArgDef, resource_handle_proto::DtypeAndShape},
};
use ferroflow_ir::{
    Attrs, Effect, Error, FunctionDef, FunctionLibrary, Graph, NodeId, Outlet, Result, ValueType,
    free_name::free_name,
    function::callees,
    hash::{FastMap, FastSet},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet, btree_map::Entry},
    sync::Arc,
};

/// The message of a function.
///
/// Names of arguments and results become what the format allows: lower case letters, digits and
/// underscores, none given twice.
///
/// # Errors
///
/// [`Error::Unsupported`], naming the node, for an internal op and for a value that has no name:
/// a result of an op without a record that no file has named.
pub fn function_message(
    function: &FunctionDef,
    library: &FunctionLibrary,
) -> Result<proto::FunctionDef> {
    let body = Body::new(function);
    let results = body.result_names(function);
    let mut ret = BTreeMap::new();
    for (name, (_, outlet)) in results.iter().zip(&function.results) {
        ret.insert(name.clone(), body.value(*outlet)?);
    }
    let effects = effects(function, library);
    let controls: BTreeSet<&str> = effects.iter().map(|&id| &*function.graph[id].name).collect();
    let signature = proto::OpDef {
        name: function.name.to_string(),
        input_arg: body.input_args(function),
        output_arg: results
            .into_iter()
            .zip(&function.results)
            .map(|(name, (_, outlet))| result_arg(&function.graph, name, *outlet))
            .collect::<Result<_>>()?,
        control_output: controls.iter().map(|name| name.to_string()).collect(),
        is_stateful: is_stateful(function, library),
        ..proto::OpDef::default()
    };
    Ok(proto::FunctionDef {
        signature: Some(signature),
        attr: attr_messages(&function.attrs)?,
        arg_attr: arg_attrs(function)?,
        node_def: body.nodes(&function.name)?,
        ret,
        control_ret: controls.iter().map(|name| (name.to_string(), name.to_string())).collect(),
        ..proto::FunctionDef::default()
    })
}

/// The name that a value has in the graph of a function that was loaded from its message: `Mul:0`.
pub fn tensor_name(function: &FunctionDef, outlet: Outlet) -> String {
    format!("{}:{}", Body::new(function).node(outlet.node), outlet.index)
}

/// The messages of the functions of these names and of all that those call, sorted by name.
///
/// # Errors
///
/// [`Error::NotFound`] for a function that the library does not have, and those of
/// [`function_message`].
pub fn library_message(
    roots: impl IntoIterator<Item = Arc<str>>,
    library: &FunctionLibrary,
) -> Result<proto::FunctionDefLibrary> {
    let mut waiting: Vec<Arc<str>> = roots.into_iter().collect();
    let mut found: BTreeMap<Arc<str>, proto::FunctionDef> = BTreeMap::new();
    while let Some(name) = waiting.pop() {
        if let Entry::Vacant(entry) = found.entry(name) {
            let function = library.get(entry.key())?;
            waiting.extend(called(&function.graph));
            entry.insert(function_message(&function, library)?);
        }
    }
    let function = found.into_values().collect();
    Ok(proto::FunctionDefLibrary { function, ..Default::default() })
}

/// The names of the functions that the nodes of a graph refer to.
pub(super) fn called(graph: &Graph) -> impl Iterator<Item = Arc<str>> {
    graph.iter().flat_map(|(_, node)| callees(&node.attrs))
}

/// The nodes that a call runs although no result needs them.
pub(super) fn effects(function: &FunctionDef, library: &FunctionLibrary) -> Vec<NodeId> {
    let (graph, mut effects) = (&function.graph, function.control_results.clone());
    let results = function.results.iter().map(|(_, outlet)| outlet.node);
    let needed = graph.reachable_from(results.chain(effects.iter().copied()));
    effects.extend(library.effectful_nodes(graph).filter(|id| !needed.contains(id)));
    effects
}

fn is_stateful(function: &FunctionDef, library: &FunctionLibrary) -> bool {
    let mut nodes = function.graph.iter();
    nodes.any(|(_, node)| library.effect_of(&node.op, &node.attrs) != Effect::Pure)
}

/// A function's body and the names of its arguments in the message.
struct Body<'a> {
    graph: &'a Graph,
    args: FastMap<NodeId, String>,
}

impl<'a> Body<'a> {
    fn new(function: &'a FunctionDef) -> Body<'a> {
        let graph = &function.graph;
        let is_arg: FastSet<NodeId> = function.args.iter().copied().collect();
        let nodes = graph.iter().filter(|(id, _)| !is_arg.contains(id));
        let mut taken: HashSet<String> = nodes.map(|(_, node)| node.name.to_string()).collect();
        let mut args = FastMap::default();
        for &arg in &function.args {
            args.insert(arg, arg_name(&graph[arg].name, &mut taken));
        }
        Body { graph, args }
    }

    fn result_names(&self, function: &FunctionDef) -> Vec<String> {
        let mut taken = HashSet::new();
        function.results.iter().map(|(name, _)| arg_name(name, &mut taken)).collect()
    }

    fn input_args(&self, function: &FunctionDef) -> Vec<ArgDef> {
        let arg = |(index, id): (usize, &NodeId)| {
            let ty = function.arg_type(index);
            let handle_data = handle_data(ty).into_iter().collect();
            let (name, r#type) = (self.args[id].clone(), ty.dtype.number());
            ArgDef { name, r#type, handle_data, ..ArgDef::default() }
        };
        function.args.iter().enumerate().map(arg).collect()
    }

    fn nodes(&self, function: &str) -> Result<Vec<proto::NodeDef>> {
        let nodes = self.graph.iter().filter(|(id, _)| !self.args.contains_key(id));
        let message = |(id, node): (NodeId, &ferroflow_ir::NodeDef)| {
            let message = node_message(self.graph, id, |x| self.value(x), |id| self.node(id));
            message.map_err(node.locate(function))
        };
        nodes.map(message).collect()
    }

    fn node(&self, id: NodeId) -> String {
        self.args.get(&id).cloned().unwrap_or_else(|| self.graph[id].name.to_string())
    }

    /// The name of a value: that of an argument, or `node:output:index`.
    fn value(&self, outlet: Outlet) -> Result<String> {
        if let Some(arg) = self.args.get(&outlet.node) {
            return Ok(arg.clone());
        }
        let node = &self.graph[outlet.node];
        let position = outlet.index as usize;
        let unnamed = || Error::Unsupported {
            op: node.op.name().to_string().into(),
            what: format!("result {position} of node `{}` has no name", node.name).into(),
        };
        let Some(op) = node.op.def() else {
            let noted = node.attrs.strings(OUTPUT_NAMES).unwrap_or_default();
            let output = noted.get(position).ok_or_else(unnamed)?;
            return Ok(format!("{}:{}", node.name, String::from_utf8_lossy(output)));
        };
        let mut start = 0;
        for arg in op.outputs {
            let count = arg.count(&node.attrs)?;
            if position < start + count {
                return Ok(format!("{}:{}:{}", node.name, arg.name, position - start));
            }
            start += count;
        }
        Err(unnamed())
    }
}

fn result_arg(graph: &Graph, name: String, outlet: Outlet) -> Result<ArgDef> {
    let ty = graph.ty(outlet).ok_or_else(|| Error::Unsupported {
        op: graph[outlet.node].op.name().to_string().into(),
        what: format!("the dtype of result `{name}` is not known").into(),
    })?;
    let (r#type, handle_data) = (ty.dtype.number(), handle_data(ty).into_iter().collect());
    Ok(ArgDef { name, r#type, handle_data, ..ArgDef::default() })
}

fn handle_data(ty: &ValueType) -> Option<DtypeAndShape> {
    let behind = ty.pointee.as_ref()?;
    let shape = Some(partial_shape_message(&behind.shape));
    Some(DtypeAndShape { dtype: behind.dtype.number(), shape })
}

/// Attributes of the arguments besides their dtypes.
fn arg_attrs(function: &FunctionDef) -> Result<BTreeMap<u32, ArgAttrs>> {
    let mut all = BTreeMap::new();
    for (index, &arg) in function.args.iter().enumerate() {
        let mut noted = Attrs::clone(&function.graph[arg].attrs);
        noted.remove("T");
        noted.remove("index");
        let shape = &function.arg_type(index).shape;
        if shape.rank().is_some() {
            noted.set(OUTPUT_SHAPES, vec![shape.clone()]);
        }
        if !noted.is_empty() {
            all.insert(index as u32, ArgAttrs { attr: attr_messages(&noted)? });
        }
    }
    Ok(all)
}

/// A name for an argument or a result that is not `taken` yet, and is from then on.
fn arg_name(name: &str, taken: &mut HashSet<String>) -> String {
    let lower = name.chars().map(|c| c.to_ascii_lowercase());
    let clean: String = lower
        .skip_while(|c| !c.is_ascii_lowercase())
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let base = if clean.is_empty() { "unknown".into() } else { clean };
    let free = free_name(&base, |name| taken.contains(name));
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::{DType, NodeDef, OpRef, PartialShape, TensorSpec, build::GraphBuilder};

    fn scalar() -> ValueType {
        ValueType::new(DType::F32, PartialShape::scalar())
    }

    fn message(function: &FunctionDef) -> proto::FunctionDef {
        function_message(function, &FunctionLibrary::new()).unwrap()
    }

    #[test]
    fn values_have_names() {
        let mut builder = GraphBuilder::new();
        let x = builder.arg("Layer/X", scalar()).unwrap();
        let other = builder.arg("layer_x", scalar()).unwrap();
        let sum = builder.call("AddV2", "sum", &[x, other]).unwrap()[0];
        let pair = builder.call("Pack", "pair", &[sum, x]).unwrap()[0];
        let unique = builder.call("Unique", "u", &[pair]).unwrap();
        let results = [("Out", unique[1]), ("out", x), ("2", sum)];
        let message = message(&builder.finish_function("f", &results));
        let inputs: Vec<String> =
            message.node_def.iter().map(|node| node.input.join(" ")).collect();
        assert_eq!(inputs, ["layer_x layer_x_1", "sum:z:0 layer_x", "pair:output:0"]);
        let signature = message.signature.unwrap();
        let names = |args: &[ArgDef]| args.iter().map(|arg| arg.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&signature.input_arg), ["layer_x", "layer_x_1"]);
        assert_eq!(names(&signature.output_arg), ["out", "out_1", "unknown"]);
        let ret = [("out", "u:idx:0"), ("out_1", "layer_x"), ("unknown", "sum:z:0")];
        let ret = ret.map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(message.ret, ret.into());
        assert!(!signature.is_stateful && message.control_ret.is_empty());
    }

    #[test]
    fn arguments_tell_what_they_refer_to() {
        let mut builder = GraphBuilder::new();
        let variable = TensorSpec::new(DType::I64, PartialShape::ranked([None, Some(3)]));
        let v = builder.arg("v", ValueType::handle(DType::Resource, variable)).unwrap();
        let one = builder.arg("one", ValueType::new(DType::I64, PartialShape::Unknown)).unwrap();
        builder.call("AssignAddVariableOp", "add", &[v, one]).unwrap();
        let message = message(&builder.finish_function("f", &[]));
        assert_eq!(message.control_ret["add"], "add");
        assert_eq!(message.arg_attr.keys().collect::<Vec<_>>(), [&0]);
        let signature = message.signature.unwrap();
        assert!(signature.is_stateful);
        assert_eq!(signature.control_output, ["add"]);
        let behind = &signature.input_arg[0].handle_data[0];
        let sizes: Vec<i64> =
            behind.shape.as_ref().unwrap().dim.iter().map(|dim| dim.size).collect();
        assert_eq!((behind.dtype, sizes), (DType::I64.number(), vec![-1, 3]));
        assert!(signature.input_arg[1].handle_data.is_empty());
    }

    #[test]
    fn results_of_unknown_ops_need_the_names_of_their_file() {
        let mut builder = GraphBuilder::new();
        let x = builder.arg("x", scalar()).unwrap();
        let mut function = builder.finish_function("f", &[]);
        let future = OpRef::Foreign("OpOfTheFuture".into());
        let odd = NodeDef::new("odd", future, Attrs::new()).with_inputs([x]);
        let odd = function.graph.add(odd).unwrap();
        let (neg, inputs) = (ferroflow_ir::registry::find("Neg").unwrap(), [Outlet::new(odd, 1)]);
        let neg = NodeDef::new("neg", neg, Attrs::new().with("T", DType::F32));
        function.graph.add(neg.with_inputs(inputs).with_outputs([scalar()])).unwrap();
        let error = function_message(&function, &FunctionLibrary::new()).unwrap_err();
        let expected = "OpOfTheFuture is not supported: result 1 of node `odd` has no name \
                        (node `neg`, op Neg, function `f`)";
        assert_eq!(error.to_string(), expected);
        let names: ferroflow_ir::AttrValue = ["b:3", "a:0"].as_slice().into();
        *function.graph.node_mut(odd).attrs = Attrs::new().with(OUTPUT_NAMES, names).into();
        let message = message(&function);
        assert_eq!(message.node_def[1].input, ["odd:a:0"]);
        assert!(message.node_def[0].attr.is_empty());
    }
}
