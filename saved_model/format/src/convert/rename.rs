//! Other names for the functions of a graph.

use crate::proto::{self, attr_value::Value};
use std::collections::{BTreeMap, HashMap};

/// New names for old.
pub type Names = HashMap<String, String>;

/// Renames the functions of a graph, wherever they are named: so that it can go where
/// there are functions of their names already.
pub fn rename_functions(graph: &mut proto::GraphDef, rename: impl Fn(&str) -> String) {
    let Some(library) = &mut graph.library else { return };
    let signatures = library.function.iter().filter_map(|function| function.signature.as_ref());
    let names: Names =
        signatures.map(|signature| (signature.name.clone(), rename(&signature.name))).collect();
    library.function.iter_mut().for_each(|function| rename_in_function(function, &names));
    for gradient in &mut library.gradient {
        replace(&mut gradient.function_name, &names);
        replace(&mut gradient.gradient_func, &names);
    }
    for gradient in &mut library.registered_gradients {
        replace(&mut gradient.gradient_func, &names);
    }
    graph.node.iter_mut().for_each(|node| rename_in_node(node, &names));
}

/// Renames a function and those it calls.
pub fn rename_in_function(function: &mut proto::FunctionDef, names: &Names) {
    if let Some(signature) = &mut function.signature {
        replace(&mut signature.name, names);
    }
    function.node_def.iter_mut().for_each(|node| rename_in_node(node, names));
}

/// The names that may be those of functions a function calls.
pub fn called_names(function: &proto::FunctionDef) -> Vec<&str> {
    let mut names = Vec::new();
    for node in &function.node_def {
        names.push(node.op.as_str());
        node.attr.values().for_each(|value| names_in_attr(value, &mut names));
    }
    names
}

fn names_in_attr<'a>(value: &'a proto::AttrValue, names: &mut Vec<&'a str>) {
    let functions = match &value.value {
        Some(Value::Func(function)) => std::slice::from_ref(function),
        Some(Value::List(list)) => &list.func,
        _ => return,
    };
    for function in functions {
        names.push(&function.name);
        function.attr.values().for_each(|value| names_in_attr(value, names));
    }
}

fn replace(name: &mut String, names: &Names) {
    if let Some(new) = names.get(name) {
        name.clone_from(new);
    }
}

/// Renames the functions that a node calls.
pub fn rename_in_node(node: &mut proto::NodeDef, names: &Names) {
    replace(&mut node.op, names);
    rename_in_attrs(&mut node.attr, names);
}

fn rename_in_attrs(attrs: &mut BTreeMap<String, proto::AttrValue>, names: &Names) {
    for value in attrs.values_mut().filter_map(|attr| attr.value.as_mut()) {
        let functions = match value {
            Value::Func(function) => std::slice::from_mut(function),
            Value::List(list) => &mut list.func,
            Value::S(_)
            | Value::I(_)
            | Value::F(_)
            | Value::B(_)
            | Value::Type(_)
            | Value::Shape(_)
            | Value::Tensor(_)
            | Value::Placeholder(_) => continue,
        };
        for function in functions {
            replace(&mut function.name, names);
            rename_in_attrs(&mut function.attr, names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::testing::{FLOAT, function, node};

    #[test]
    fn functions_are_renamed_where_they_are_called() {
        let named = |name: &str| proto::NameAttrList { name: name.into(), attr: BTreeMap::new() };
        let list = proto::attr_value::ListValue {
            func: vec![named("f"), named("elsewhere")],
            ..Default::default()
        };
        let mut graph = proto::GraphDef {
            node: vec![
                node("by_op", "f", &[], &[]),
                node("by_attr", "PartitionedCall", &[], &[("f", Value::Func(named("g")))]),
                node("in_list", "Case", &[], &[("branches", Value::List(list))]),
            ],
            library: Some(proto::FunctionDefLibrary {
                function: vec![
                    function("f", &["x"], vec![node("f", "g", &["x"], &[("T", FLOAT)])], &[]),
                    function("g", &["x"], Vec::new(), &[]),
                ],
                ..Default::default()
            }),
            ..Default::default()
        };
        rename_functions(&mut graph, |name| format!("{name}_1"));
        let text = format!("{graph:?}");
        let names: Vec<&str> = ["\"f\"", "\"g\"", "\"f_1\"", "\"g_1\"", "\"elsewhere\""]
            .into_iter()
            .filter(|name| text.contains(name))
            .collect();
        // One node is called `f`: nodes keep their names.
        assert_eq!(names, ["\"f\"", "\"f_1\"", "\"g_1\"", "\"elsewhere\""]);
        assert_eq!(graph.node[0].op, "f_1");
        let body = &graph.library.as_ref().unwrap().function[0].node_def[0];
        assert_eq!((&*body.name, &*body.op), ("f", "g_1"));
    }
}
