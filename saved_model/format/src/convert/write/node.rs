//! Nodes: what graphs and the bodies of functions have in common.

use super::attr::attr_messages;
use crate::{convert::OUTPUT_NAMES, proto};
use ferroflow_ir::{
    Attrs, Error, Graph, NodeDef, NodeId, Outlet, Result,
    gradient::LoadedGradient,
    ops::{is_internal, names},
};
use std::sync::Arc;

/// The message of a node. `input` names the values that it takes, `control` the nodes it follows.
pub(super) fn node_message(
    graph: &Graph,
    id: NodeId,
    input: impl Fn(Outlet) -> Result<String>,
    control: impl Fn(NodeId) -> String,
) -> Result<proto::NodeDef> {
    let node = &graph[id];
    let data = node.inputs().iter().map(|&outlet| input(outlet));
    let controls = node.controls().iter().map(|&id| Ok(format!("^{}", control(id))));
    Ok(proto::NodeDef {
        name: node.name.to_string(),
        op: name_in_files(node)?.into(),
        input: data.chain(controls).collect::<Result<_>>()?,
        device: node.device.to_string(),
        attr: attr_messages(&plain_attrs(&node.attrs))?,
        ..proto::NodeDef::default()
    })
}

/// The name that TensorFlow knows the node's op by.
fn name_in_files(node: &NodeDef) -> Result<&str> {
    let name = node.op.name();
    if name == names::REQUIRE {
        return Ok("Assert");
    }
    let is_internal = node.op.def().is_some_and(|op| is_internal(op.name));
    if is_internal || node.expr.is_some() {
        let what = "internal ops have no meaning in files".into();
        return Err(Error::Unsupported { op: name.to_string().into(), what });
    }
    Ok(name)
}

/// The attributes without what was noted when the node was read, or traced.
fn plain_attrs(attrs: &Arc<Attrs>) -> Arc<Attrs> {
    let mut plain = attrs.clone();
    for noted in [OUTPUT_NAMES, LoadedGradient::CAPTURES] {
        if plain.get(noted).is_some() {
            Arc::make_mut(&mut plain).remove(noted);
        }
    }
    plain
}
