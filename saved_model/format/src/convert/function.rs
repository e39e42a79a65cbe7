//! Functions.

use super::{
    attr::attrs,
    definitions::{Definitions, signature_name},
    dilated::replace_dilated,
    dtype,
    graph::check_cycles,
    node::{self, OUTPUT_SHAPES, arg_dtypes, malformed},
    optional_shape,
};
use crate::proto::{self, op_def::ArgDef};
use bytes::Bytes;
use ferroflow_ir::{
    AttrValue, Attrs, DType, Error, FunctionDef, Graph, NodeDef, NodeId, Outlet, PartialShape,
    Result, TensorSpec, ValueType, hash::FastMap,
};
use smallvec::SmallVec;
use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::Arc,
};

/// Bodies of functions refer to results by name. Where an op has no record, results are numbered
/// as they are first named, and this attribute keeps the names.
pub const OUTPUT_NAMES: &str = "_output_names";

/// A function.
///
/// Types of arguments come from the signature and from what the writer noted of them. An argument
/// that is a list of tensors becomes as many arguments, called `name:0`, `name:1`, ….
///
/// # Errors
///
/// What is wrong with the function or a node of it, naming both.
pub fn function(proto: &proto::FunctionDef, definitions: &Definitions) -> Result<FunctionDef> {
    let name = signature_name(proto);
    convert(proto, definitions).map_err(|error| match error {
        Error::AtNode { node, op, location, source, .. } => {
            Error::AtNode { node, op, function: name.into(), location, source }
        }
        error => error.at_node(name, "function", ""),
    })
}

fn convert(proto: &proto::FunctionDef, definitions: &Definitions) -> Result<FunctionDef> {
    let signature = proto.signature.as_ref();
    let signature = signature
        .ok_or_else(|| Error::NotFound { kind: "signature", name: "of a function".into() })?;
    let attrs = attrs(&proto.attr, None, &definitions.budget)?;
    let mut body = Body {
        definitions,
        protos: &proto.node_def,
        graph: Graph::new(),
        args: Vec::new(),
        by_name: HashMap::new(),
        nodes: Vec::new(),
        foreign: FastMap::default(),
    };
    for (index, arg) in signature.input_arg.iter().enumerate() {
        let noted = proto.arg_attr.get(&(index as u32));
        body.add_arg(arg, noted, &attrs)?;
    }
    for node in &proto.node_def {
        let id = node::add(&mut body.graph, node, definitions);
        body.nodes.push(id.map_err(|error| error.at_node(&node.name, &node.op, ""))?);
    }
    for (index, node) in proto.node_def.iter().enumerate() {
        body.connect(index).map_err(|error| error.at_node(&node.name, &node.op, ""))?;
    }
    let mut results = Vec::new();
    for arg in &signature.output_arg {
        body.add_result(arg, proto, &attrs, &mut results)?;
    }
    let control_results = body.control_results(signature, &proto.control_ret)?;
    body.name_foreign_results();
    check_cycles(&body.graph)?;
    replace_dilated(&mut body.graph)?;
    let (name, Body { graph, args, .. }) = (signature.name.as_str().into(), body);
    Ok(FunctionDef { name, graph, args, results, control_results, attrs })
}

/// A function's body in the making.
struct Body<'a> {
    definitions: &'a Definitions,
    protos: &'a [proto::NodeDef],
    graph: Graph,
    /// The arguments.
    args: Vec<NodeId>,
    /// Ranges of the arguments of the signature among them.
    by_name: HashMap<&'a str, Range<usize>>,
    /// The other nodes, in the order of `protos`.
    nodes: Vec<NodeId>,
    /// Results of nodes without a record, numbered as they were first named.
    foreign: FastMap<NodeId, HashMap<String, usize>>,
}

impl<'a> Body<'a> {
    fn add_arg(
        &mut self,
        arg: &'a ArgDef,
        noted: Option<&proto::function_def::ArgAttrs>,
        function_attrs: &Attrs,
    ) -> Result<()> {
        let noted = match noted {
            Some(noted) => attrs(&noted.attr, None, &self.definitions.budget)?,
            None => Attrs::new(),
        };
        let op = self.definitions.registry.find("_Arg");
        let op = op.ok_or_else(|| Error::NotFound { kind: "op", name: "_Arg".into() })?;
        let is_list = !arg.number_attr.is_empty() || !arg.type_list_attr.is_empty();
        let first = self.args.len();
        for (index, dtype) in arg_dtypes(arg, function_attrs)?.into_iter().enumerate() {
            self.definitions.budget.take_values(1)?;
            let name = if is_list { format!("{}:{index}", arg.name) } else { arg.name.clone() };
            let position = self.args.len() as i64;
            let attrs = noted.clone().with("T", dtype).with("index", position);
            let ty = arg_type(dtype, arg, &noted)?;
            self.args.push(self.graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?);
        }
        self.by_name.insert(&arg.name, first..self.args.len());
        Ok(())
    }

    fn connect(&mut self, index: usize) -> Result<()> {
        let proto = &self.protos[index];
        let (mut inputs, mut controls) = (Vec::new(), Vec::new());
        for input in &proto.input {
            match input.strip_prefix('^') {
                Some(name) => {
                    let absent = || malformed(proto, format!("`{name}` is not in the function"));
                    controls.push(self.graph.find(name).ok_or_else(absent)?);
                }
                None if controls.is_empty() => inputs.extend(self.resolve(input)?),
                None => return Err(malformed(proto, "control inputs come after all others")),
            }
        }
        self.graph.connect(self.nodes[index], inputs, controls)?;
        node::check_inputs(&self.graph, self.nodes[index])
    }

    /// The values that a name stands for: `argument`, `argument:0` where it is a list,
    /// `node:output`, `node:output:0`.
    fn resolve(&mut self, name: &str) -> Result<SmallVec<[Outlet; 1]>> {
        let absent = || Error::NotFound { kind: "value", name: name.into() };
        let mut parts = name.split(':');
        let (source, output, index) = (parts.next().unwrap_or(""), parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(absent());
        }
        let index = index.map(str::parse).transpose().map_err(|_| absent())?;
        match (self.by_name.get(source), output) {
            (Some(arg), None) => {
                self.definitions.budget.take_values(arg.len())?;
                Ok(self.args[arg.clone()].iter().copied().map(Outlet::from).collect())
            }
            (Some(arg), Some(index)) => {
                let index: usize = index.parse().map_err(|_| absent())?;
                let arg = self.args[arg.clone()].get(index).ok_or_else(absent)?;
                Ok([Outlet::from(*arg)].into())
            }
            (None, Some(output)) => {
                let id = self.graph.find(source).ok_or_else(absent)?;
                let positions = self.positions(id, output, index)?;
                self.definitions.budget.take_values(positions.len())?;
                Ok(positions.map(|position| Outlet::new(id, position)).collect())
            }
            (None, None) => Err(absent()),
        }
    }

    /// The indices of the results `output:index` of a node among all its results; those of the
    /// whole list `output` without an index.
    fn positions(
        &mut self,
        id: NodeId,
        output: &str,
        index: Option<usize>,
    ) -> Result<Range<usize>> {
        let node = &self.graph[id];
        let proto = id.index().checked_sub(self.args.len()).map(|index| &self.protos[index]);
        let callee = proto.and_then(|proto| self.definitions.function(&proto.op));
        let list = match (callee.and_then(|callee| callee.signature.as_ref()), node.op.def()) {
            (Some(signature), _) => signature_outputs(signature, output, &node.attrs)?,
            (None, Some(op)) => record_outputs(op, output, &node.attrs)?,
            (None, None) => {
                let position = self.foreign_position(id, output, index.unwrap_or(0));
                return Ok(position..position + 1);
            }
        };
        match index {
            None => Ok(list),
            Some(index) if index < list.len() => Ok(list.start + index..list.start + index + 1),
            Some(index) => {
                let name = format!("{output}:{index} of {}", node.op.name());
                Err(Error::NotFound { kind: "output", name })
            }
        }
    }

    fn foreign_position(&mut self, id: NodeId, output: &str, index: usize) -> usize {
        let names = self.foreign.entry(id).or_default();
        let next = names.len();
        *names.entry(format!("{output}:{index}")).or_insert(next)
    }

    fn name_foreign_results(&mut self) {
        for (id, positions) in std::mem::take(&mut self.foreign) {
            let mut names = vec![Bytes::new(); positions.len()];
            for (name, position) in positions {
                names[position] = name.into();
            }
            let attrs = self.graph.node_mut(id).attrs;
            Arc::make_mut(attrs).set(OUTPUT_NAMES, names);
        }
    }

    fn add_result(
        &mut self,
        arg: &ArgDef,
        function: &proto::FunctionDef,
        function_attrs: &Attrs,
        results: &mut Vec<(String, Outlet)>,
    ) -> Result<()> {
        let value = function.ret.get(&arg.name);
        let value = value
            .ok_or_else(|| Error::NotFound { kind: "value of result", name: arg.name.clone() })?;
        let outlets = self.resolve(value)?;
        let dtypes = arg_dtypes(arg, function_attrs)?;
        if outlets.len() != dtypes.len() {
            let (name, expected) = (arg.name.clone(), dtypes.len().to_string());
            return Err(Error::argument("result", name, expected, outlets.len()));
        }
        for (index, (&outlet, &dtype)) in outlets.iter().zip(&dtypes).enumerate() {
            self.check_result(arg, outlet, dtype)?;
            let name =
                if dtypes.len() > 1 { format!("{}:{index}", arg.name) } else { arg.name.clone() };
            results.push((name, outlet));
        }
        Ok(())
    }

    fn check_result(&self, arg: &ArgDef, outlet: Outlet, expected: DType) -> Result<()> {
        match self.graph.ty(outlet) {
            Some(found) if found.dtype != expected => {
                Err(Error::argument("result", arg.name.clone(), expected.name(), found.dtype))
            }
            _ => Ok(()),
        }
    }

    /// The nodes of the control results, in the order of the signature.
    fn control_results(
        &self,
        signature: &proto::OpDef,
        nodes: &BTreeMap<String, String>,
    ) -> Result<Vec<NodeId>> {
        let listed: Vec<&String> = match signature.control_output.is_empty() {
            true => nodes.keys().collect(),
            false => signature.control_output.iter().collect(),
        };
        let find = |name: &&String| {
            let node = nodes.get(*name).and_then(|node| self.graph.find(node));
            node.ok_or_else(|| Error::NotFound { kind: "control result", name: name.to_string() })
        };
        listed.iter().map(find).collect()
    }
}

/// The type of an argument, from its signature and from attributes that tell more.
fn arg_type(of: DType, arg: &ArgDef, noted: &Attrs) -> Result<ValueType> {
    let shapes = noted.shapes(OUTPUT_SHAPES).unwrap_or_default();
    let shape = shapes.first().cloned().unwrap_or(PartialShape::Unknown);
    let mut ty = ValueType::new(of, shape);
    if let Some(behind) = arg.handle_data.first() {
        let spec = TensorSpec::new(dtype(behind.dtype)?.0, optional_shape(behind.shape.as_ref())?);
        ty.pointee = Some(Box::new(spec));
    } else if let (Ok([dtype]), Ok([shape])) =
        (noted.types("_handle_dtypes"), noted.shapes("_handle_shapes"))
    {
        ty.pointee = Some(Box::new(TensorSpec::new(*dtype, shape.clone())));
    }
    Ok(ty)
}

/// The indices of an output argument of a record.
fn record_outputs(
    op: &'static ferroflow_ir::OpDef,
    output: &str,
    attrs: &Attrs,
) -> Result<Range<usize>> {
    let mut start = 0;
    for arg in op.outputs {
        let count = arg.count(attrs)?;
        if arg.name == output {
            return Ok(start..start + count);
        }
        start += count;
    }
    Err(Error::NotFound { kind: "output", name: format!("{output} of {}", op.name) })
}

/// The indices of an output argument of a function that is called by its name.
fn signature_outputs(
    signature: &proto::OpDef,
    output: &str,
    attrs: &Attrs,
) -> Result<Range<usize>> {
    let function = match attrs.get("f") {
        Some(AttrValue::Func(function)) => &function.attrs,
        _ => attrs,
    };
    let mut start = 0;
    for arg in &signature.output_arg {
        let count = arg_dtypes(arg, function)?.len();
        if arg.name == output {
            return Ok(start..start + count);
        }
        start += count;
    }
    Err(Error::NotFound { kind: "output", name: format!("{output} of {}", signature.name) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        convert::testing::{self, FLOAT, node},
        proto::attr_value::{ListValue, Value},
    };
    use ferroflow_ir::{Limits, OpRegistry};

    fn definitions(function: Vec<proto::FunctionDef>) -> Result<Definitions> {
        let library = proto::FunctionDefLibrary { function, ..Default::default() };
        Definitions::new(library, Arc::new(OpRegistry::default()), Limits::default())
    }

    fn check(proto: &proto::FunctionDef, expected: &str) {
        let split =
            node("halves", "Split", &["axis", "x"], &[("T", FLOAT), ("num_split", Value::I(2))]);
        let axis = node("axis", "OpOfTheFuture", &[], &[]);
        let results = [("low", "halves:output:0"), ("high", "halves:output:1")];
        let split = testing::function("Halves", &["x"], vec![axis, split], &results);
        let converted =
            definitions(vec![split]).and_then(|definitions| function(proto, &definitions));
        let found = match converted {
            Ok(function) => function.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found.trim_end(), expected);
    }

    #[test]
    fn values_have_names() {
        let unique = [("T", FLOAT), ("out_idx", Value::Type(3))];
        let nodes = vec![
            node("sum", "AddV2", &["u:y:0", "x"], &[("T", FLOAT)]),
            node("u", "Unique", &["x"], &unique),
            node("counts", "Cast", &["u:idx"], &[("SrcT", Value::Type(3)), ("DstT", FLOAT)]),
        ];
        let results = [("a", "sum:z:0"), ("b", "counts:y:0"), ("c", "x")];
        let mut function = testing::function("f", &["x"], nodes, &results);
        function.control_ret.insert("done".into(), "u".into());
        check(
            &function,
            "function @f(%x: float32<unknown>) {\n  \
               %u = Unique(%x) {T: float32, out_idx: int32} : float32<unknown>, int32<unknown>\n  \
               %sum = AddV2(%u, %x) {T: float32} : float32<unknown>\n  \
               %counts = Cast(%u:1) {DstT: float32, SrcT: int32, Truncate: false} : float32<unknown>\n  \
               return a = %sum, b = %counts, c = %x ^u\n}",
        );
    }

    #[test]
    fn results_of_calls_have_the_names_of_the_callee() {
        let nodes = vec![node("h", "Halves", &["x"], &[])];
        let function = testing::function("f", &["x"], nodes, &[("y", "h:high:0")]);
        check(
            &function,
            "function @f(%x: float32<unknown>) {\n  \
               %h = PartitionedCall(%x) {Tin: [float32], Tout: [float32, float32], config: \"\", \
             config_proto: \"\", executor_type: \"\", f: @Halves} : float32<unknown>, float32<unknown>\n  \
               return y = %h:1\n}",
        );
    }

    #[test]
    fn results_of_unknown_ops_are_numbered_as_they_are_named() {
        let nodes = vec![
            node("odd", "OpOfTheFuture", &[], &[]),
            node("sum", "AddV2", &["odd:b:3", "odd:a:0"], &[("T", FLOAT)]),
        ];
        let proto = testing::function("f", &[], nodes, &[("y", "sum:z:0"), ("z", "odd:b:3")]);
        let function = function(&proto, &definitions(Vec::new()).unwrap()).unwrap();
        let odd = function.graph.find("odd").unwrap();
        let names = function.graph[odd].attrs.strings(OUTPUT_NAMES).unwrap();
        assert_eq!(names, ["b:3", "a:0"]);
        assert_eq!(function.results[1].1, Outlet::new(odd, 0));
    }

    #[test]
    fn lists_of_arguments_and_results() {
        let mut list = testing::function("f", &["x"], Vec::new(), &[("y", "x")]);
        let signature = list.signature.as_mut().unwrap();
        for arg in signature.input_arg.iter_mut().chain(&mut signature.output_arg) {
            arg.number_attr = "N".into();
        }
        let n = proto::AttrValue { value: Some(Value::I(2)) };
        list.attr.insert("N".into(), n);
        check(
            &list,
            "function @f(%x:0: float32<unknown>, %x:1: float32<unknown>) {\n  \
               return y:0 = %x:0, y:1 = %x:1\n}",
        );
        list.attr.insert("N".into(), proto::AttrValue { value: Some(Value::I(-1)) });
        check(&list, "attribute: N must be a count of tensors, found -1 (node `f`, op function)");
    }

    #[test]
    fn arguments_know_what_is_noted_of_them() {
        let mut proto = testing::function("f", &["v"], Vec::new(), &[]);
        let arg = &mut proto.signature.as_mut().unwrap().input_arg[0];
        arg.r#type = 20;
        arg.handle_data.push(proto::resource_handle_proto::DtypeAndShape {
            dtype: 1,
            shape: Some(proto::TensorShapeProto { dim: Vec::new(), unknown_rank: false }),
        });
        let scalar = proto::TensorShapeProto::default();
        let shapes = Value::List(ListValue { shape: vec![scalar], ..ListValue::default() });
        let noted = proto::AttrValue { value: Some(shapes) };
        let attr = [(OUTPUT_SHAPES.to_string(), noted)].into();
        proto.arg_attr.insert(0, proto::function_def::ArgAttrs { attr });
        check(&proto, "function @f(%v: resource[]<float32[]>) {\n  return \n}");
    }

    #[test]
    fn mistakes_are_located() {
        let neg = |input: &str| vec![node("n", "Neg", &[input], &[("T", FLOAT)])];
        let function =
            |nodes, result: &str| testing::function("f", &["x"], nodes, &[("y", result)]);
        let in_n = |what: &str| format!("{what} (node `n`, op Neg, function `f`)");
        let in_f = |what: &str| format!("{what} (node `f`, op function)");
        check(&function(neg("gone:y:0"), "x"), &in_n("value `gone:y:0` does not exist"));
        check(&function(neg("n"), "x"), &in_n("value `n` does not exist"));
        check(&function(neg("x:1"), "x"), &in_n("value `x:1` does not exist"));
        check(&function(neg("x:0:0:0"), "x"), &in_n("value `x:0:0:0` does not exist"));
        check(&function(neg("x"), "n:z:0"), &in_f("output `z of Neg` does not exist"));
        check(&function(neg("x"), "n:y:1"), &in_f("output `y:1 of Neg` does not exist"));
        check(
            &function(neg("n:y:0"), "x"),
            &in_f("malformed graph at `n`: no node depends on its own result, but in a loop"),
        );
        let mut wrong = function(neg("x"), "n:y:0");
        wrong.signature.as_mut().unwrap().output_arg[0].r#type = 3;
        check(&wrong, &in_f("result: y must be int32, found float32"));
        wrong.ret.clear();
        check(&wrong, &in_f("value of result `y` does not exist"));
    }

    #[test]
    fn calls_do_not_go_in_circles_or_too_deep() {
        let calling = |name: &str, callee: &str| {
            let nodes = vec![node("call", callee, &["x"], &[])];
            testing::function(name, &["x"], nodes, &[("y", "call:y:0")])
        };
        let message = |functions| definitions(functions).map(drop).unwrap_err().to_string();
        let rule = "no function calls itself";
        assert_eq!(message(vec![calling("f", "f")]), format!("malformed graph at `f`: {rule}"));
        assert_eq!(
            message(vec![calling("f", "g"), calling("g", "h"), calling("h", "g")]),
            format!("malformed graph at `g`: {rule}")
        );
        let chain = |length: usize| {
            let name = |index: usize| format!("f{index}");
            (0..length).map(|index| calling(&name(index), &name(index + 1))).collect()
        };
        assert!(definitions(chain(200)).is_ok());
        assert_eq!(message(chain(202)), "calls of functions needs 201 levels, the limit is 200");
        assert!(definitions(vec![calling("f", "g"), calling("e", "g"), calling("g", "x")]).is_ok());
        assert_eq!(
            message(vec![calling("f", "x"), calling("f", "x")]),
            "function `f` exists already"
        );
    }
}
