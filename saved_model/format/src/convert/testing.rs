//! Messages for tests.

use crate::proto::{self, attr_value::Value};

/// A node with these inputs and attributes.
pub(super) fn node(
    name: &str,
    op: &str,
    inputs: &[&str],
    attrs: &[(&str, Value)],
) -> proto::NodeDef {
    let attr = attrs
        .iter()
        .map(|(name, value)| (name.to_string(), proto::AttrValue { value: Some(value.clone()) }));
    proto::NodeDef {
        name: name.into(),
        op: op.into(),
        input: inputs.iter().map(|input| input.to_string()).collect(),
        attr: attr.collect(),
        ..proto::NodeDef::default()
    }
}

/// An argument of a signature.
pub(super) fn arg(name: &str, dtype: i32) -> proto::op_def::ArgDef {
    proto::op_def::ArgDef { name: name.into(), r#type: dtype, ..proto::op_def::ArgDef::default() }
}

/// A function of float arguments with float results, each passed as name and value.
pub(super) fn function(
    name: &str,
    args: &[&str],
    nodes: Vec<proto::NodeDef>,
    results: &[(&str, &str)],
) -> proto::FunctionDef {
    let signature = proto::OpDef {
        name: name.into(),
        input_arg: args.iter().map(|name| arg(name, 1)).collect(),
        output_arg: results.iter().map(|(name, _)| arg(name, 1)).collect(),
        ..proto::OpDef::default()
    };
    proto::FunctionDef {
        signature: Some(signature),
        node_def: nodes,
        ret: results.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        ..proto::FunctionDef::default()
    }
}

pub(super) const FLOAT: Value = Value::Type(1);
