//! Programs as TensorFlow wrote them: read, written, and compared node by node.

use crate::{
    cases::cases,
    graphs::{definitions, model_path},
};
use ferroflow_ir::{AttrValue, FunctionLibrary, Graph, Limits};
use ferroflow_saved_model::{
    Result,
    convert::{self, Definitions},
    proto, read_message, write_message,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

#[test]
fn every_program_is_written_as_it_was_read() {
    let mut n_nodes = 0;
    for case in cases("").into_iter().filter(|case| !case.name().starts_with("bad_")) {
        let Some(path) = model_path(&case) else { continue };
        for graph in graphs(&path) {
            n_nodes += check(graph).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        }
    }
    assert!(n_nodes > 0, "no program was compared");
}

#[test]
fn models_come_back_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved_model.pbtxt");
    let models = cases("").into_iter().filter(|case| !case.name().starts_with("bad_"));
    let models = models.map(|case| case.folder.join("model/saved_model.pb"));
    let mut n_models = 0;
    for model in models.filter(|model| model.exists()).take(12) {
        let model: proto::SavedModel = read_message(&model).unwrap();
        write_message(&path, &model).unwrap();
        assert_eq!(read_message::<proto::SavedModel>(&path).unwrap(), model);
        n_models += 1;
    }
    assert!(n_models > 0, "no model was compared");
}

fn graphs(path: &Path) -> Vec<proto::GraphDef> {
    if path.ends_with("saved_model.pb") {
        let model: proto::SavedModel = read_message(path).unwrap();
        return model.meta_graphs.into_iter().filter_map(|meta| meta.graph_def).collect();
    }
    vec![read_message(path).unwrap()]
}

/// The number of nodes compared.
fn check(original: proto::GraphDef) -> Result<usize> {
    let (definitions, library, graph) = convert(&original)?;
    let written = convert::graph_message(&graph, &library)?;
    let compare = Compare { definitions: &definitions };
    compare.nodes(&original.node, &written.node);
    let mut n_nodes = original.node.len();
    for before in &definitions.library().function {
        if before.node_def.iter().any(|node| node.op == "Merge") {
            continue; // It is written with loops and branches that are calls.
        }
        let function = library.get(&before.signature.as_ref().unwrap().name)?;
        let after = convert::function_message(&function, &library)?;
        compare.functions(before, &after);
        n_nodes += before.node_def.len();
    }
    let (_, library_again, graph_again) = convert(&written)?;
    assert_eq!(graph.to_string(), graph_again.to_string());
    // Arguments of functions that came out of loops are named anew when they are written.
    let again = convert::graph_message(&graph_again, &library_again)?;
    assert_eq!(written, again);
    Ok(n_nodes)
}

fn convert(graph: &proto::GraphDef) -> Result<(Arc<Definitions>, FunctionLibrary, Graph)> {
    let definitions = definitions(graph.library.clone())?;
    let library = FunctionLibrary::new();
    convert::add_functions(&library, &definitions)?;
    let graph = convert::graph(&graph.node, &definitions)?;
    Ok((definitions, library, graph))
}

struct Compare<'a> {
    definitions: &'a Definitions,
}

impl Compare<'_> {
    fn functions(&self, before: &proto::FunctionDef, after: &proto::FunctionDef) {
        let (signature, written) =
            (before.signature.as_ref().unwrap(), after.signature.as_ref().unwrap());
        let args = |list: &[proto::op_def::ArgDef]| -> Vec<(String, i32)> {
            list.iter().map(|arg| (arg.name.clone(), arg.r#type)).collect()
        };
        assert_eq!(signature.name, written.name);
        assert_eq!(args(&signature.input_arg), args(&written.input_arg), "{}", signature.name);
        for (before, after) in signature.input_arg.iter().zip(&written.input_arg) {
            assert_eq!(before.handle_data, after.handle_data, "{}", before.name);
        }
        assert_eq!(args(&signature.output_arg), args(&written.output_arg), "{}", signature.name);
        assert_eq!(before.ret, after.ret, "{}", signature.name);
        assert_eq!(before.control_ret, after.control_ret, "{}", signature.name);
        assert_eq!(self.attrs(&before.attr, None), self.attrs(&after.attr, None));
        for (index, noted) in &before.arg_attr {
            let written = &after.arg_attr[index];
            assert_eq!(self.attrs(&noted.attr, None), self.attrs(&written.attr, None));
        }
        self.nodes(&before.node_def, &after.node_def);
    }

    fn nodes(&self, before: &[proto::NodeDef], after: &[proto::NodeDef]) {
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(after) {
            assert_eq!(before.name, after.name);
            assert_eq!(before.device, after.device, "{}", before.name);
            assert_eq!(inputs(before), inputs(after), "{}", before.name);
            if self.definitions.function(&before.op).is_some() {
                // A function in the place of an op is written as what it is: a call.
                assert!(after.op.ends_with("PartitionedCall"), "{} is {}", before.name, after.op);
                continue;
            }
            assert_eq!(before.op, after.op, "{}", before.name);
            let attrs = |node: &proto::NodeDef| self.attrs(&node.attr, Some(&node.op));
            assert_eq!(attrs(before), attrs(after), "{}", before.name);
        }
    }

    /// Attributes with all defaults.
    fn attrs(
        &self,
        attrs: &BTreeMap<String, proto::AttrValue>,
        op: Option<&str>,
    ) -> Vec<(String, AttrValue)> {
        let op = op.and_then(|op| self.definitions.registry.find(op));
        let values = attrs.iter().filter_map(|(name, value)| {
            let kind = op.and_then(|op| op.attr(name)).map(|attr| attr.kind);
            let value = convert::attr_value(value, kind, &Limits::default()).unwrap();
            Some((name.clone(), value?))
        });
        let attrs = values.collect();
        let complete = match op {
            Some(op) => op.complete_attrs(attrs).unwrap(),
            None => attrs,
        };
        complete.iter().map(|(name, value)| (name.to_string(), self.by_interface(value))).collect()
    }

    /// Functions of one interface as one: calls are written with the implementation that runs.
    fn by_interface(&self, value: &AttrValue) -> AttrValue {
        let AttrValue::Func(callee) = value else { return value.clone() };
        let mut callee = callee.clone();
        let function = self.definitions.function(&callee.name);
        let interface = function.and_then(|function| function.attr.get("api_implements"));
        if let Some(proto::attr_value::Value::S(name)) = interface.and_then(|of| of.value.as_ref())
        {
            callee.name = String::from_utf8_lossy(name).into();
        }
        AttrValue::Func(callee)
    }
}

/// The data inputs by their full names, and the control inputs, whose order means nothing.
fn inputs(node: &proto::NodeDef) -> (Vec<&str>, BTreeSet<&str>) {
    let (controls, data): (Vec<&str>, Vec<&str>) =
        node.input.iter().map(String::as_str).partition(|input| input.starts_with('^'));
    let full = |name: &'_ str| name.len() - if name.ends_with(":0") { 2 } else { 0 };
    (data.into_iter().map(|name| &name[..full(name)]).collect(), controls.into_iter().collect())
}
