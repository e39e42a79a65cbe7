//! Reductions of replicas overlap with what a body computes meanwhile.
//!
//! A training step on several machines sends gradients of the last layers while it computes those of the
//! first ones. A reduction is split: its start comes as soon as its operands can be there, and the wait for
//! its result comes before the first node that needs it. Starts and all other effects keep the order of the
//! program, so that all members meet in the same order.

use super::{
    call::record,
    rebuild::{Rebuilt, rebuild_in_order},
    specialize::Specialized,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    op::Effect,
    ops::names,
    shape::Shape,
    spec::ValueType,
};

/// Splits the reductions of a body beside which something else can run.
///
/// # Errors
///
/// None on a well-formed body.
pub fn overlap_reductions(body: &mut Specialized) -> Result<()> {
    if !body.graph.iter().any(|(_, node)| is_reduction(node)) {
        return Ok(());
    }
    let Order { order, split } = Order::of(body)?;
    if split.is_empty() {
        return Ok(());
    }
    let mut starts: FastMap<NodeId, NodeId> = FastMap::default();
    rebuild_in_order(body, order, |rebuilt, source, id, _| {
        let node = &source[id];
        match starts.get(&id) {
            _ if !split.contains(&id) => {
                let node = rebuilt.node(node);
                rebuilt.graph.add(node)
            }
            None => {
                let start = add_start(rebuilt, node)?;
                starts.insert(id, start);
                Ok(start)
            }
            Some(&start) => add_wait(rebuilt, node, start),
        }
    })
}

fn is_reduction(node: &NodeDef) -> bool {
    node.op.name() == names::COLLECTIVE_REDUCE_V2
}

/// Whether a node only asks for the order of collectives, if it runs after one.
fn is_in_order(node: &NodeDef) -> bool {
    is_reduction(node) || node.op.name() == names::COLLECTIVE_KEY
}

/// The nodes of a body in their new order, in which reductions that are split come twice.
struct Order {
    order: Vec<NodeId>,
    split: FastSet<NodeId>,
}

impl Order {
    fn of(body: &Specialized) -> Result<Order> {
        let graph = &body.graph;
        let program = graph.topological_order()?;
        let mut added =
            Added { graph, order: Vec::new(), seen: FastSet::default(), open: FastSet::default() };
        for arg in &body.args {
            added.add(arg.node);
        }
        let positions: FastMap<NodeId, usize> =
            program.iter().enumerate().map(|(position, &id)| (id, position)).collect();
        // Effects keep their order: programs of meshes have it from the order of nodes alone.
        let has_effect = |id: &&NodeId| graph[**id].op.effect() != Effect::Pure;
        let last = program.iter().rposition(|&id| is_reduction(&graph[id]));
        for &id in program.iter().take(last.map_or(0, |last| last + 1)).filter(has_effect) {
            let mut needed = added.needed(id);
            needed.sort_by_key(|id| positions[id]);
            needed.into_iter().for_each(|id| added.add(id));
        }
        for &id in &program {
            added.add(id);
        }
        let Added { mut order, open, .. } = added;
        // Only results of the body, or nobody, read these.
        order.extend(program.into_iter().filter(|id| open.contains(id)));
        // Nothing runs between a start and a wait that follows at once.
        order.dedup();
        let mut once = FastSet::default();
        let split = order.iter().copied().filter(|&id| !once.insert(id)).collect();
        Ok(Order { order, split })
    }
}

/// The part of the order that is there.
struct Added<'a> {
    graph: &'a Graph,
    order: Vec<NodeId>,
    seen: FastSet<NodeId>,
    /// Reductions that were started, and that no node has waited for.
    open: FastSet<NodeId>,
}

impl Added<'_> {
    /// The nodes that must come before a node and are not there, and the node itself.
    fn needed(&self, id: NodeId) -> Vec<NodeId> {
        let (mut needed, mut found) = (vec![id], FastSet::from_iter([id]));
        let mut next = 0;
        while let Some(&id) = needed.get(next) {
            let node = &self.graph[id];
            let inputs = node.inputs().iter().map(|input| input.node);
            let before = inputs.chain(node.controls().iter().copied());
            needed.extend(before.filter(|id| !self.seen.contains(id) && found.insert(*id)));
            next += 1;
        }
        needed
    }

    fn add(&mut self, id: NodeId) {
        if !self.seen.insert(id) {
            return;
        }
        let node = &self.graph[id];
        let inputs = node.inputs().iter().map(|input| input.node);
        let controls = node.controls().iter().copied().filter(|_| !is_in_order(node));
        for before in inputs.chain(controls) {
            if self.open.remove(&before) {
                self.order.push(before);
            }
        }
        self.order.push(id);
        if is_reduction(node) {
            self.open.insert(id);
        }
    }
}

/// The start of a reduction: it takes the operands, and returns a handle of the result.
fn add_start(rebuilt: &mut Rebuilt, node: &NodeDef) -> Result<NodeId> {
    let mut start = rebuilt.node(node);
    start.op = record(names::COLLECTIVE_REDUCE_START)?.into();
    let handle = ValueType::new(DType::Resource, Shape::scalar());
    rebuilt.graph.add(start.with_outputs([handle]))
}

fn add_wait(rebuilt: &mut Rebuilt, node: &NodeDef, start: NodeId) -> Result<NodeId> {
    let name = rebuilt.graph.unique_name(&format!("{}/wait", node.name));
    let result = node.outputs()[0].clone();
    let attrs = Attrs::new().with("T", result.dtype).with("shape", result.shape.clone());
    let op = record(names::COLLECTIVE_REDUCE_WAIT)?;
    let mut wait = NodeDef::new(name, op, attrs);
    wait.device.clone_from(&node.device);
    rebuilt.graph.add(wait.with_inputs([Outlet::from(start)]).with_outputs([result]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        build::GraphBuilder,
        host_tensor::HostTensor,
        pass::{
            test_bodies::{function, specialized},
            verify::verify,
        },
    };

    fn reduction(b: &mut GraphBuilder, name: &str, x: Outlet) -> Result<Outlet> {
        let numbers = [2i32, 1]
            .map(|number| b.constant(&format!("{name}/{number}"), HostTensor::scalar(number)));
        let [size, group] = numbers;
        let key = b.call("_CollectiveKey", &format!("{name}/key"), &[])?[0];
        let attrs = Attrs::new().with("merge_op", "Add").with("final_op", "Id");
        Ok(b.call_with("CollectiveReduceV2", name, attrs, &[x, size?, group?, key])?[0])
    }

    type Build = fn(&mut GraphBuilder, &[Outlet]) -> Result<Vec<Outlet>>;

    /// The names of the nodes after the pass, but of constants and arguments.
    fn after(build: Build) -> Vec<String> {
        let types = [ValueType::new(DType::F32, Shape::new([4]).unwrap())];
        let def = function(&types, build);
        let mut body = specialized(&def, &types);
        overlap_reductions(&mut body).unwrap();
        verify(&body, "overlap").unwrap();
        let is_of_program = |node: &&NodeDef| !matches!(node.op.name(), "Const" | "_Arg");
        let nodes = body.graph.iter().map(|(_, node)| node).filter(is_of_program);
        nodes.map(|node| node.name.to_string()).filter(|name| !name.ends_with("/key")).collect()
    }

    /// All gradients are there before the first reduction, as in a training step.
    #[test]
    fn reductions_start_early_and_are_waited_for_late() {
        let names = after(|b, args| {
            let last = b.call("Neg", "last", args)?[0];
            let first = b.call("Exp", "first", &[last])?[0];
            let sum_of_last = reduction(b, "sum_of_last", last)?;
            let sum_of_first = reduction(b, "sum_of_first", first)?;
            let steps = [("step_first", sum_of_first), ("step_last", sum_of_last)];
            steps.map(|(name, sum)| Ok(b.call("Sqrt", name, &[sum])?[0])).into_iter().collect()
        });
        let expected = [
            "last",
            "sum_of_last",
            "first",
            "sum_of_first",
            "step_first",
            "sum_of_last/wait",
            "step_last",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn effects_keep_their_order() {
        let names = after(|b, args| {
            let last = b.call("Neg", "last", args)?[0];
            let shape = b.constant("shape", HostTensor::vector(&[4i32])?)?;
            let attrs = Attrs::new().with("dtype", DType::F32);
            let random = b.call_with("RandomUniform", "random", attrs, &[shape])?[0];
            let beside = b.call("Exp", "beside", &[last])?[0];
            let sum = reduction(b, "sum", last)?;
            Ok(vec![b.call("Sqrt", "step", &[sum])?[0], beside, random])
        });
        assert_eq!(names, ["random", "last", "sum", "beside", "sum/wait", "step"]);
    }

    #[test]
    fn reductions_with_nothing_beside_them_stay_whole() {
        let names = after(|b, args| {
            let sum = reduction(b, "sum", args[0])?;
            Ok(vec![b.call("Sqrt", "step", &[sum])?[0]])
        });
        assert_eq!(names, ["sum", "step"]);
    }

    #[test]
    fn results_of_a_body_are_waited_for() {
        let names = after(|b, args| {
            let sum = reduction(b, "sum", args[0])?;
            Ok(vec![sum, b.call("Sqrt", "beside", args)?[0]])
        });
        assert_eq!(names, ["sum", "beside", "sum/wait"]);
    }
}
