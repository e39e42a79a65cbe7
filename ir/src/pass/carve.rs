//! Carving: the part of a graph between some of its tensors, as a function.

use crate::{
    attr::Attrs,
    error::{Error, Result},
    free_name::free_name,
    function::FunctionDef,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    op::Effect,
    ops::names,
    registry,
    spec::ValueType,
};
use std::sync::Arc;

/// A part of a graph: its feeds, its results, what else runs.
#[derive(Clone, Debug, Default)]
pub struct Subgraph {
    /// The tensors that are passed, in the order of the function's arguments.
    pub feeds: Vec<Feed>,
    /// Its results, by name.
    pub results: Vec<(String, Outlet)>,
    /// Nodes that run although no result needs them.
    pub targets: Vec<NodeId>,
    /// Nodes that run after all results and targets but those that need them.
    pub last: Vec<NodeId>,
}

/// A tensor that is passed instead of what its node would compute.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The tensor.
    pub outlet: Outlet,
    /// The type of what may be passed.
    pub ty: ValueType,
}

/// Treatment of the effects of a graph that its part does not need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherEffects {
    /// They do not happen.
    Drop,
    /// They happen whenever the part runs.
    Keep,
}

impl Subgraph {
    /// The nodes that must run: those that results and targets need, up to what is fed.
    pub fn nodes(&self, graph: &Graph) -> FastSet<NodeId> {
        let fed: FastSet<Outlet> = self.feeds.iter().map(|feed| feed.outlet).collect();
        let results = self.results.iter().map(|(_, outlet)| outlet);
        let mut stack: Vec<NodeId> = results
            .filter(|outlet| !fed.contains(outlet))
            .map(|outlet| outlet.node)
            .chain(self.targets.iter().copied())
            .collect();
        let mut needed = FastSet::default();
        while let Some(id) = stack.pop() {
            if needed.insert(id) {
                let node = &graph[id];
                let inputs = node.inputs().iter().filter(|input| !fed.contains(input));
                let controls = node.controls().iter().copied();
                let controls = controls.filter(|&id| !is_replaced(graph, id, &fed));
                stack.extend(inputs.map(|input| input.node).chain(controls));
            }
        }
        needed
    }

    /// The results and targets that run before the last nodes.
    fn before_last(&self, graph: &Graph, needed: &FastSet<NodeId>) -> Vec<NodeId> {
        let mut late: FastSet<NodeId> = FastSet::default();
        let mut stack = self.last.clone();
        while let Some(id) = stack.pop() {
            if late.insert(id) {
                stack.extend(graph.consumers(id));
            }
        }
        let results = self.results.iter().map(|(_, outlet)| outlet.node);
        let roots = results.chain(self.targets.iter().copied());
        roots.filter(|id| needed.contains(id) && !late.contains(id)).collect()
    }

    /// The part as a function. Arguments are named after the nodes they stand for.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] for a tensor that is fed twice.
    pub fn carve(self, graph: &Graph, name: impl Into<Arc<str>>) -> Result<FunctionDef> {
        let needed = self.nodes(graph);
        let mut copy = Copy::default();
        let args: Vec<NodeId> = self
            .feeds
            .iter()
            .enumerate()
            .map(|(index, feed)| copy.feed(graph, feed, index, &needed))
            .collect::<Result<_>>()?;
        copy.nodes(graph, &needed)?;
        let before: Vec<NodeId> =
            self.before_last(graph, &needed).iter().map(|id| copy.moved[id]).collect();
        for last in self.last.iter().filter_map(|id| copy.moved.get(id)) {
            let node = &copy.graph[*last];
            let inputs = node.inputs().to_vec();
            let controls: Vec<NodeId> = node.controls().iter().chain(&before).copied().collect();
            copy.graph.connect(*last, inputs, controls)?;
        }
        let results = self.results.into_iter();
        Ok(FunctionDef {
            name: name.into(),
            args,
            results: results.map(|(name, outlet)| (name, copy.outlet(outlet))).collect(),
            control_results: self.targets.iter().map(|target| copy.moved[target]).collect(),
            graph: copy.graph,
            attrs: Attrs::new(),
        })
    }
}

/// Whether all that a node does is to return what is fed anyway. A placeholder must not run.
fn is_replaced(graph: &Graph, id: NodeId, fed: &FastSet<Outlet>) -> bool {
    let node = &graph[id];
    let is_source = node.inputs().is_empty() && node.controls().is_empty();
    is_source && node.op.effect() == Effect::Pure && fed.contains(&id.into())
}

/// A part of a graph under construction.
#[derive(Default)]
struct Copy {
    graph: Graph,
    fed: FastMap<Outlet, Outlet>,
    moved: FastMap<NodeId, NodeId>,
}

impl Copy {
    fn feed(
        &mut self,
        source: &Graph,
        feed: &Feed,
        index: usize,
        needed: &FastSet<NodeId>,
    ) -> Result<NodeId> {
        let base = &source[feed.outlet.node].name;
        if self.fed.contains_key(&feed.outlet) {
            let name = format!("{base}:{}", feed.outlet.index);
            return Err(Error::Duplicate { kind: "fed tensor", name });
        }
        let is_taken = |name: &str| {
            self.graph.find(name).is_some()
                || source.find(name).is_some_and(|id| needed.contains(&id))
        };
        let name = free_name(base, is_taken);
        let op = registry::find(names::ARG).expect("a built-in record");
        let attrs = Attrs::new().with("T", feed.ty.dtype).with("index", index as i64);
        let node = NodeDef::new(name, op, attrs).with_outputs([feed.ty.clone()]);
        let arg = self.graph.add(node)?;
        self.fed.insert(feed.outlet, arg.into());
        Ok(arg)
    }

    fn nodes(&mut self, source: &Graph, needed: &FastSet<NodeId>) -> Result<()> {
        for id in source.ids().filter(|id| needed.contains(id)) {
            let node = source[id].clone().with_inputs([]).with_controls([]);
            self.moved.insert(id, self.graph.add(node)?);
        }
        for from in source.ids().filter(|id| needed.contains(id)) {
            let (node, to) = (&source[from], self.moved[&from]);
            let inputs: Vec<Outlet> =
                node.inputs().iter().map(|&input| self.outlet(input)).collect();
            let controls = node.controls().iter().filter_map(|id| self.moved.get(id).copied());
            let controls: Vec<NodeId> = controls.collect();
            self.graph.connect(to, inputs, controls)?;
        }
        Ok(())
    }

    fn outlet(&self, outlet: Outlet) -> Outlet {
        match self.fed.get(&outlet) {
            Some(&fed) => fed,
            None => Outlet { node: self.moved[&outlet.node], index: outlet.index },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DType, FunctionLibrary, PartialShape, TensorSpec, build::GraphBuilder, tensor_name,
    };

    /// `v += x` happens before `y = square(x)`, and `z = square(y)`; `halves` has two results.
    fn graph() -> Graph {
        let mut builder = GraphBuilder::new();
        let x = builder.placeholder("x", DType::F32, PartialShape::scalar()).unwrap();
        let variable = TensorSpec::new(DType::F32, PartialShape::scalar());
        let attrs = Attrs::new().with("dtype", DType::F32).with("shape", variable.shape.clone());
        let v = builder.call_with("VarHandleOp", "v", attrs, &[]).unwrap()[0];
        builder.call("AssignAddVariableOp", "add", &[v, x]).unwrap();
        let y = builder.call("Square", "y", &[x]).unwrap()[0];
        let z = builder.call("Square", "z", &[y]).unwrap()[0];
        let split = Attrs::new().with("num", 2i64);
        let pair = builder.call("Pack", "pair", &[y, z]).unwrap()[0];
        builder.call_with("Unpack", "halves", split, &[pair]).unwrap();
        let mut graph = builder.finish();
        let (y, add) = (graph.find("y").unwrap(), graph.find("add").unwrap());
        let start = graph.find("x").unwrap();
        graph.connect(y, [x], [add, start]).unwrap();
        graph
    }

    fn part(graph: &Graph, feeds: &[&str], results: &[&str]) -> Subgraph {
        let find = |name: &&str| tensor_name::find(graph, name).unwrap();
        let feed = |outlet: Outlet| Feed { outlet, ty: graph.ty(outlet).unwrap().clone() };
        Subgraph {
            feeds: feeds.iter().map(find).map(feed).collect(),
            results: results.iter().map(|name| (name.to_string(), find(name))).collect(),
            targets: Vec::new(),
            last: Vec::new(),
        }
    }

    fn check(feeds: &[&str], results: &[&str], effects: OtherEffects, expected: &str) {
        let graph = graph();
        let mut part = part(&graph, feeds, results);
        if effects == OtherEffects::Keep {
            part.targets.extend(FunctionLibrary::new().effectful_nodes(&graph));
        }
        let function = part.carve(&graph, "part").unwrap();
        crate::verify::verify_function(&function).unwrap();
        let names: Vec<&str> = function.graph.iter().map(|(_, node)| &*node.name).collect();
        let controls: Vec<&str> =
            function.control_results.iter().map(|&id| &*function.graph[id].name).collect();
        let results: Vec<String> = function
            .results
            .iter()
            .map(|(_, outlet)| tensor_name::of(&function.graph, *outlet))
            .collect();
        let found = format!(
            "{} gives {}{}",
            names.join(" "),
            results.join(" "),
            controls.iter().map(|name| format!(" ^{name}")).collect::<String>()
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn only_what_results_need_is_there() {
        use OtherEffects::{Drop, Keep};
        check(&["y"], &["z"], Drop, "y z gives z:0");
        check(&["x"], &["z"], Drop, "x v add y z gives z:0");
        check(&["y", "x"], &["z"], Keep, "y x v add z gives z:0 ^add");
        check(&["y"], &["y"], Drop, "y gives y:0");
        check(&[], &[], Drop, " gives ");
    }

    #[test]
    fn one_of_several_results_may_be_fed() {
        let drop = OtherEffects::Drop;
        check(&["halves:1"], &["halves:1"], drop, "halves gives halves:0");
        let both = &["halves:1", "halves:0"];
        check(
            &["halves:1", "x"],
            both,
            drop,
            "halves_1 x v add y z pair halves gives halves_1:0 halves:0",
        );
    }

    #[test]
    fn placeholders_that_are_fed_do_not_run() {
        let graph = graph();
        let needed = part(&graph, &["x"], &["y"]).nodes(&graph);
        assert!(!needed.contains(&graph.find("x").unwrap()));
        let needed = part(&graph, &[], &["y"]).nodes(&graph);
        assert!(needed.contains(&graph.find("x").unwrap()));
    }

    #[test]
    fn a_tensor_is_fed_once() {
        let graph = graph();
        let error = part(&graph, &["x", "x:0"], &["y"]).carve(&graph, "part").unwrap_err();
        assert_eq!(error.to_string(), "fed tensor `x:0` exists already");
    }
}
