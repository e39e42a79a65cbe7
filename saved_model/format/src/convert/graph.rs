//! Graphs.

use super::{
    definitions::Definitions,
    dilated::replace_dilated,
    node::{self, malformed},
};
use crate::proto;
use ferroflow_ir::{Error, Graph, NodeDef, NodeId, Outlet, Result, tensor_name};
use std::collections::HashSet;

/// A graph of these nodes, which may come in any order.
///
/// Attributes are complete afterwards, and inputs checked against records. An op without a record
/// stays as [`OpRef::Foreign`](ferroflow_ir::OpRef::Foreign). The loops of 1.x graphs stay cycles:
/// those that lead through a `NextIteration`.
///
/// # Errors
///
/// What is wrong with a node, naming it; [`Error::Limit`] for too many nodes, results or bytes.
pub fn graph(nodes: &[proto::NodeDef], definitions: &Definitions) -> Result<Graph> {
    let mut graph = Graph::new();
    let mut ids = Vec::with_capacity(nodes.len());
    for proto in nodes {
        let id = node::add(&mut graph, proto, definitions);
        ids.push(id.map_err(|error| error.at_node(&proto.name, &proto.op, ""))?);
    }
    for (proto, &id) in nodes.iter().zip(&ids) {
        connect(&mut graph, proto, id)
            .map_err(|error| error.at_node(&proto.name, &proto.op, ""))?;
    }
    check_cycles(&graph)?;
    replace_dilated(&mut graph)?;
    Ok(graph)
}

fn connect(graph: &mut Graph, proto: &proto::NodeDef, id: NodeId) -> Result<()> {
    let (mut inputs, mut controls) = (Vec::new(), Vec::new());
    for input in &proto.input {
        let absent = || malformed(proto, format!("input `{input}` is not in the graph"));
        match input.strip_prefix('^') {
            Some(name) => controls.push(graph.find(name).ok_or_else(absent)?),
            None if controls.is_empty() => {
                let (name, index) = tensor_name::parse(input);
                inputs.push(Outlet { node: graph.find(name).ok_or_else(absent)?, index });
            }
            None => return Err(malformed(proto, "control inputs come after all others")),
        }
    }
    graph.connect(id, inputs, controls)?;
    node::check_inputs(graph, id)
}

/// Checks that every cycle is the loop of a 1.x graph.
///
/// # Errors
///
/// [`Error::Malformed`] naming a node on a cycle that is not.
pub(super) fn check_cycles(graph: &Graph) -> Result<()> {
    if graph.topological_order().is_ok() {
        return Ok(());
    }
    let mut waiting_for = vec![0usize; graph.id_bound()];
    let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); graph.id_bound()];
    for (id, node) in graph.iter() {
        for source in sources(graph, node) {
            waiting_for[id.index()] += 1;
            users[source.index()].push(id);
        }
    }
    let mut ready: Vec<NodeId> = graph.ids().filter(|id| waiting_for[id.index()] == 0).collect();
    while let Some(id) = ready.pop() {
        for user in &users[id.index()] {
            waiting_for[user.index()] -= 1;
            if waiting_for[user.index()] == 0 {
                ready.push(*user);
            }
        }
    }
    let is_stuck = |id: &NodeId| waiting_for[id.index()] > 0;
    let Some(mut on_cycle) = graph.ids().find(is_stuck) else { return Ok(()) };
    let mut seen = HashSet::new();
    while seen.insert(on_cycle) {
        let stuck = sources(graph, &graph[on_cycle]).find(is_stuck);
        on_cycle = stuck.expect("a node that never gets ready waits for another such node");
    }
    let rule = "no node depends on its own result, but in a loop".into();
    Err(Error::Malformed { node: graph[on_cycle].name.to_string(), rule })
}

/// The nodes that run before `node`, but for the one that carries values into the next round of a
/// loop.
fn sources<'a>(graph: &'a Graph, node: &'a NodeDef) -> impl Iterator<Item = NodeId> + 'a {
    let is_merge = matches!(node.op.name(), "Merge" | "RefMerge");
    let inputs = node.inputs().iter().map(|input| input.node);
    let forward = inputs.filter(move |&source| {
        let closes_loop = matches!(graph[source].op.name(), "NextIteration" | "RefNextIteration");
        !(is_merge && closes_loop)
    });
    forward.chain(node.controls().iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        convert::{
            op_of_file,
            testing::{FLOAT, function, node},
        },
        proto::attr_value::Value,
    };
    use ferroflow_ir::{Limits, OpRegistry};
    use std::sync::Arc;

    fn convert(nodes: &[proto::NodeDef]) -> Result<Graph> {
        let twice = node("sum", "AddV2", &["x", "x"], &[("T", FLOAT)]);
        let function = vec![function("Twice", &["x"], vec![twice], &[("y", "sum:z:0")])];
        let library = proto::FunctionDefLibrary { function, ..Default::default() };
        let registry = Arc::new(OpRegistry::default());
        graph(nodes, &Definitions::new(library, registry, Limits::default())?)
    }

    fn placeholder(name: &str) -> proto::NodeDef {
        node(name, "Placeholder", &[], &[("dtype", FLOAT)])
    }

    fn check(nodes: &[proto::NodeDef], expected: &str) {
        let found = match convert(nodes) {
            Ok(graph) => graph.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found.trim_end(), expected);
    }

    #[test]
    fn nodes_come_in_any_order() {
        let sum = node("sum", "AddV2", &["x", "x:0", "^init"], &[("T", FLOAT)]);
        check(
            &[sum, placeholder("x"), node("init", "NoOp", &[], &[])],
            "%x = Placeholder() {dtype: float32, shape: <unknown>} : float32<unknown>\n\
             %init = NoOp()\n\
             %sum = AddV2(%x, %x, ^init) {T: float32} : float32<unknown>",
        );
    }

    #[test]
    fn ops_without_a_record_stay() {
        let odd = node("odd", "OpOfTheFuture", &["x"], &[("T", FLOAT)]);
        let user = node("user", "Neg", &["odd:7"], &[("T", FLOAT)]);
        let graph = convert(&[odd, user, placeholder("x")]).unwrap();
        assert!(graph[graph.find("odd").unwrap()].op.def().is_none());
        assert_eq!(graph[graph.find("user").unwrap()].inputs()[0].index, 7);
    }

    #[test]
    fn internal_ops_have_no_meaning_in_files() {
        for op in ferroflow_ir::ops::all().filter(|op| op.name.starts_with('_')) {
            let found = op_of_file(&OpRegistry::default(), op.name);
            let is_of_tensorflow = ferroflow_ir::ops::interface(op.name).is_some();
            assert_eq!(found.is_some(), is_of_tensorflow, "{}", op.name);
        }
        let odd = node("odd", "_FusedElementwise", &["x"], &[("T", FLOAT)]);
        let graph = convert(&[odd, placeholder("x")]).unwrap();
        assert!(graph[graph.find("odd").unwrap()].op.def().is_none());
    }

    #[test]
    fn names_of_nodes_are_those_that_tensorflow_takes() {
        for name in ["a", "_a", "9", ".x", "a/b-c_d.e", "tf.Const", "a>b", "a>.b>c"] {
            assert!(convert(&[node(name, "NoOp", &[], &[])]).is_ok(), "{name}");
        }
        for name in ["a:0", "^a", "a b", "-a", "/a", "é", "a>", "a>>b", ">a", "a>_b", "a\n", "a\\b"]
        {
            let error = convert(&[node(name, "NoOp", &[], &[])]).unwrap_err().to_string();
            assert!(error.contains("names of nodes are made of"), "{name}: {error}");
        }
    }

    #[test]
    fn arguments_of_graphs_are_placeholders() {
        let arg = node("arg", "_Arg", &[], &[("T", FLOAT), ("index", Value::I(9))]);
        let user = node("y", "Neg", &["arg"], &[("T", FLOAT)]);
        check(
            &[arg, user],
            "%arg = Placeholder() {dtype: float32, shape: <unknown>} : float32<unknown>\n\
             %y = Neg(%arg) {T: float32} : float32<unknown>",
        );
    }

    #[test]
    fn calls_by_name_become_ordinary_calls() {
        let call = node("y", "Twice", &["x"], &[("_note", Value::I(1))]);
        let graph = convert(&[call, placeholder("x")]).unwrap();
        let call = &graph[graph.find("y").unwrap()];
        assert_eq!(call.op.name(), "PartitionedCall");
        assert_eq!(call.attrs.types("Tin").unwrap(), call.attrs.types("Tout").unwrap());
        assert_eq!(&*call.attrs.func("f").unwrap().name, "Twice");
        assert_eq!(call.attrs.int("_note").unwrap(), 1);
        assert_eq!(call.outputs().len(), 1);
    }

    #[test]
    fn mistakes_are_located() {
        let neg = |inputs: &[&str]| node("y", "Neg", inputs, &[("T", FLOAT)]);
        let at_y = |what: &str| format!("{what} (node `y`, op Neg)");
        check(&[neg(&["gone"])], &at_y("malformed graph at `y`: input `gone` is not in the graph"));
        check(&[neg(&["x:1"]), placeholder("x")], &at_y("result of node `x` 1 is outside [0, 1)"));
        check(&[neg(&[])], &at_y("Neg: inputs must be 1, found 0"));
        check(
            &[neg(&["^x", "x"]), placeholder("x")],
            &at_y("malformed graph at `y`: control inputs come after all others"),
        );
        check(
            &[node("y", "Neg", &["x"], &[("T", Value::Type(3))]), placeholder("x")],
            &at_y("Neg: input 0 must be int32, found float32"),
        );
        check(
            &[node("y", "Neg", &["x"], &[]), placeholder("x")],
            &at_y("Neg: T must be given, as it has no default, found nothing"),
        );
        check(&[node("y", "NoOp", &[], &[]), neg(&[])], &at_y("node `y` exists already"));
        check(
            &[node("", "NoOp", &[], &[])],
            "malformed graph at ``: every node has a name (node ``, op NoOp)",
        );
    }

    #[test]
    fn cycles_are_loops_or_errors() {
        let merge =
            |second: &str| node("m", "Merge", &["x", second], &[("T", FLOAT), ("N", Value::I(2))]);
        let next = node("n", "NextIteration", &["m"], &[("T", FLOAT)]);
        assert!(convert(&[merge("n"), next, placeholder("x")]).is_ok());
        let neg = node("n", "Neg", &["m"], &[("T", FLOAT)]);
        let user = node("a", "Neg", &["n"], &[("T", FLOAT)]);
        let message = convert(&[user, merge("n"), neg, placeholder("x")]).unwrap_err().to_string();
        assert!(
            message.starts_with("malformed graph at `m`: no node depends")
                || message.starts_with("malformed graph at `n`"),
            "{message}"
        );
    }

    #[test]
    fn what_nodes_stand_for_adds_up() {
        let registry = Arc::new(OpRegistry::default());
        let limits = Limits { tensor_bytes: 1 << 20, nodes: 100, ..Limits::default() };
        let convert = |nodes: &[proto::NodeDef]| {
            let library = proto::FunctionDefLibrary::default();
            graph(nodes, &Definitions::new(library, registry.clone(), limits.clone())?)
        };
        let unpack = |n: i64| node("u", "Unpack", &["x"], &[("T", FLOAT), ("num", Value::I(n))]);
        assert!(convert(&[unpack(300), placeholder("x")]).is_ok());
        let message = convert(&[unpack(500), placeholder("x")]).unwrap_err().to_string();
        assert!(message.starts_with("program needs 501 values, the limit is 400"), "{message}");
        let splat = |name: &str| {
            let dim = vec![proto::tensor_shape_proto::Dim { size: 150_000, ..Default::default() }];
            let shape = proto::TensorShapeProto { dim, unknown_rank: false };
            let value = proto::TensorProto {
                dtype: 1,
                tensor_shape: Some(shape),
                float_val: vec![1.0],
                ..Default::default()
            };
            node(name, "Const", &[], &[("dtype", FLOAT), ("value", Value::Tensor(value))])
        };
        assert!(convert(&[splat("a")]).is_ok());
        let message = convert(&[splat("a"), splat("b")]).unwrap_err().to_string();
        assert!(
            message.starts_with("tensor needs 1200000 bytes, the limit is 1048576"),
            "{message}"
        );
    }
}
