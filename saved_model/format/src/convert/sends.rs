//! Sends and receipts of tensors within a graph, as TensorFlow's runtime puts them between devices.
//!
//! A dumped graph that has both ends has the edge: the receipt becomes the value that is sent. Where one
//! end is missing, the other process is, and the op stays one that cannot run. Source:
//! `Rendezvous::CreateKey` in TensorFlow's `rendezvous.cc` for what both ends have in common.

use super::graph::check_cycles;
use ferroflow_ir::{Attrs, Error, Graph, NodeDef, NodeId, Result, registry};
use std::collections::HashMap;

/// The ops that send.
const SENDS: &[&str] = &["Send", "_HostSend", "_Send"];

/// The ops that receive.
const RECEIPTS: &[&str] = &["Recv", "_HostRecv", "_Recv"];

/// Whether both ends of an op of this name become an edge.
pub fn is_linked(op: &str) -> bool {
    SENDS.contains(&op) || RECEIPTS.contains(&op)
}

/// The name of a tensor on its way, which both ends have in common.
type Key = (String, String, i64, String);

fn key(node: &NodeDef) -> Result<Key> {
    let text = |name: &str| Ok::<_, Error>(node.attrs.string(name)?.to_string());
    let incarnation = node.attrs.int("send_device_incarnation")?;
    Ok((text("tensor_name")?, text("send_device")?, incarnation, text("recv_device")?))
}

/// The graph with edges in place of sends and receipts that have both ends.
///
/// # Errors
///
/// [`Error::Duplicate`] when a tensor is sent twice, [`Error::Malformed`] when one waits for itself.
pub fn linked_sends(mut graph: Graph) -> Result<Graph> {
    let ends = |names: &[&str]| -> Vec<NodeId> {
        let own = graph.iter().filter(|(_, node)| names.contains(&node.op.name()));
        own.map(|(id, _)| id).collect()
    };
    let (sends, receipts) = (ends(SENDS), ends(RECEIPTS));
    if receipts.is_empty() {
        return Ok(graph);
    }
    let mut sent: HashMap<Key, NodeId> = HashMap::new();
    for &id in &sends {
        let key = key(&graph[id])?;
        let name = key.0.clone();
        if sent.insert(key, id).is_some() {
            return Err(Error::Duplicate { kind: "tensor that is sent", name });
        }
    }
    let op = |name: &str| {
        registry::find(name).ok_or_else(|| Error::NotFound { kind: "op", name: name.into() })
    };
    let mut taken = Vec::new();
    for id in receipts {
        let Some(&send) = sent.get(&key(&graph[id])?) else { continue };
        let Some(&value) = graph[send].inputs().first() else { continue };
        let dtype = graph[id].attrs.dtype("tensor_type")?;
        let found = graph.ty(value).map(|ty| ty.dtype);
        if found.is_some_and(|found| found != dtype) {
            let expected = dtype.name();
            let found = found.map_or("", |found| found.name());
            return Err(Error::argument("Send", "tensor", expected, found));
        }
        let mut controls = graph[id].controls().to_vec();
        controls.extend(graph[send].controls());
        let node = graph.node_mut(id);
        *node.op = op("Identity")?.into();
        *node.attrs = Attrs::new().with("T", dtype).into();
        graph.connect(id, vec![value], controls)?;
        taken.push(send);
    }
    for send in taken {
        let mut controls = graph[send].controls().to_vec();
        controls.extend(graph[send].inputs().iter().map(|input| input.node));
        let node = graph.node_mut(send);
        *node.op = op("NoOp")?.into();
        *node.attrs = Attrs::new().into();
        graph.connect(send, Vec::new(), controls)?;
    }
    check_cycles(&graph)?;
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{
        Definitions, graph,
        testing::{FLOAT, node},
    };
    use crate::proto::{self, attr_value::Value};
    use ferroflow_ir::{Limits, OpRegistry};
    use std::sync::Arc;

    fn end(name: &str, op: &str, inputs: &[&str], tensor: &str) -> proto::NodeDef {
        let text = |text: &str| Value::S(text.to_string().into());
        let dtype = if inputs.is_empty() { "tensor_type" } else { "T" };
        let attrs = [
            (dtype, FLOAT),
            ("tensor_name", text(tensor)),
            ("send_device", text("a")),
            ("send_device_incarnation", Value::I(1)),
            ("recv_device", text("b")),
        ];
        node(name, op, inputs, &attrs)
    }

    fn check(nodes: &[proto::NodeDef]) -> Result<Graph> {
        let registry = Arc::new(OpRegistry::default());
        let library = proto::FunctionDefLibrary::default();
        let definitions = Definitions::new(library, registry, Limits::default())?;
        linked_sends(graph(nodes, &definitions)?)
    }

    #[test]
    fn both_ends_are_an_edge() {
        let x = node("x", "Placeholder", &[], &[("dtype", FLOAT)]);
        let nodes = [x, end("s", "_Send", &["x"], "t"), end("r", "_Recv", &[], "t")];
        let found = check(&nodes).unwrap();
        assert_eq!(found[found.find("r").unwrap()].op.name(), "Identity");
        assert_eq!(found[found.find("s").unwrap()].op.name(), "NoOp");
    }

    #[test]
    fn one_end_stays() {
        let found = check(&[end("r", "_Recv", &[], "t")]).unwrap();
        assert_eq!(found[found.find("r").unwrap()].op.name(), "_Recv");
    }

    #[test]
    fn a_tensor_that_waits_for_itself_is_refused() {
        let nodes = [end("s", "_Send", &["r"], "t"), end("r", "_Recv", &[], "t")];
        assert!(check(&nodes).is_err());
        let x = node("x", "Placeholder", &[], &[("dtype", FLOAT)]);
        let twice = [end("s", "_Send", &["x"], "t"), end("u", "_Send", &["x"], "t")];
        let nodes = [&[x][..], &twice, &[end("r", "_Recv", &[], "t")]].concat();
        assert!(check(&nodes).is_err());
    }
}
