//! A body taken apart into nodes that stay and functions of the others.

use super::{DEPTH, NodeRun, OutlinedFunction};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    host_tensor::HostTensor,
    op::Effect,
    ops::names,
    pass::{execution::constant, specialize::Specialized},
    registry,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// Makes a body anew of these nodes, in this order, of which some runs become functions.
///
/// # Errors
///
/// None if each node comes after those that it depends on.
pub(super) fn split(
    function: &mut Specialized,
    around: &FunctionDef,
    library: &FunctionLibrary,
    runs: &[NodeRun],
) -> Result<()> {
    let source = std::mem::take(&mut function.graph);
    let mut nested = std::mem::take(&mut function.nested);
    let read = read_outside(&source, &function.results, runs);
    let mut outer = Part::default();
    for (run, results) in runs.iter().zip(&read) {
        if run.moves {
            outer.outline(&source, around, library, (run, results))?;
            continue;
        }
        for &id in &run.nodes {
            for &input in source[id].inputs() {
                outer.import_constant(&source, input)?;
            }
            if outer.moved.contains_key(&id.into()) {
                continue;
            }
            let new = outer.add(id, &source[id], [])?;
            function.nested.extend(nested.remove(&id).map(|functions| (new, functions)));
        }
    }
    for outlet in function.args.iter_mut().chain(&mut function.results) {
        outer.import_constant(&source, *outlet)?;
        *outlet = outer.outlet(*outlet);
    }
    function.graph = outer.graph;
    Ok(())
}

/// The values of each run that are read outside of it.
fn read_outside(source: &Graph, results: &[Outlet], runs: &[NodeRun]) -> Vec<Vec<Outlet>> {
    let mut run_of: FastMap<NodeId, usize> = FastMap::default();
    for (index, run) in runs.iter().enumerate() {
        run_of.extend(run.nodes.iter().map(|&id| (id, index)));
    }
    let by_nodes = source.iter().flat_map(|(id, node)| {
        let reader = run_of.get(&id).copied();
        node.inputs().iter().map(move |&input| (reader, input))
    });
    let by_caller = results.iter().map(|&result| (None, result));
    let mut read: Vec<Vec<Outlet>> = vec![Vec::new(); runs.len()];
    let mut is_read: FastSet<Outlet> = FastSet::default();
    for (reader, outlet) in by_nodes.chain(by_caller) {
        let maker = run_of.get(&outlet.node).copied().filter(|&maker| Some(maker) != reader);
        if let Some(maker) = maker.filter(|_| constant(source, outlet).is_none())
            && is_read.insert(outlet)
        {
            read[maker].push(outlet);
        }
    }
    read
}

/// A graph that is made of nodes of another.
#[derive(Default)]
struct Part {
    graph: Graph,
    moved: FastMap<Outlet, Outlet>,
}

impl Part {
    fn outlet(&self, outlet: Outlet) -> Outlet {
        self.moved[&outlet]
    }

    /// Adds a constant of the other graph, unless it is here.
    fn import_constant(&mut self, source: &Graph, outlet: Outlet) -> Result<()> {
        if self.moved.contains_key(&outlet) || constant(source, outlet).is_none() {
            return Ok(());
        }
        self.add(outlet.node, &source[outlet.node], []).map(drop)
    }

    /// Adds a node of the other graph.
    fn add(
        &mut self,
        id: NodeId,
        node: &NodeDef,
        controls: impl IntoIterator<Item = NodeId>,
    ) -> Result<NodeId> {
        let inputs: SmallVec<[Outlet; 4]> =
            node.inputs().iter().map(|&input| self.outlet(input)).collect();
        let mut node = node.clone().with_inputs(inputs).with_controls(controls);
        node.name = self.graph.unique_name(&node.name).into();
        let n_outputs = node.outputs().len();
        let new = self.graph.add(node)?;
        let outlets = (0..n_outputs).map(|index| (Outlet::new(id, index), Outlet::new(new, index)));
        self.moved.extend(outlets);
        Ok(new)
    }

    /// Adds the call of a function of the nodes of a run, which returns `results`.
    fn outline(
        &mut self,
        source: &Graph,
        around: &FunctionDef,
        library: &FunctionLibrary,
        (run, results): (&NodeRun, &[Outlet]),
    ) -> Result<()> {
        let mut inner = Inner::default();
        let mut order = EffectOrder::default();
        for &id in &run.nodes {
            let node = &source[id];
            for &input in node.inputs() {
                inner.import(source, input)?;
            }
            let effect = library.effect_of(&node.op, &node.attrs);
            let new = inner.part.add(id, node, order.before(effect))?;
            order.add(new, effect);
        }
        let ty = |&result: &Outlet| source.ty(result).expect("a typed result").clone();
        let types: Vec<ValueType> = results.iter().map(ty).collect();
        let named = results.iter().enumerate();
        let def = FunctionDef {
            name: around.name.clone(),
            args: inner.args,
            results: named
                .map(|(index, &result)| (format!("result_{index}"), inner.part.outlet(result)))
                .collect(),
            control_results: order.all,
            attrs: Attrs::new().with(DEPTH, around.attrs.int(DEPTH).unwrap_or(0) + 1),
            graph: inner.part.graph,
        };
        let inputs: Vec<Outlet> = inner.inputs.iter().map(|&input| self.outlet(input)).collect();
        let call = self.call(def, &inputs, types)?;
        let made = results.iter().enumerate();
        self.moved.extend(made.map(|(index, &result)| (result, Outlet::new(call, index))));
        Ok(())
    }

    /// Adds the call of an outlined function.
    fn call(
        &mut self,
        def: FunctionDef,
        inputs: &[Outlet],
        outputs: Vec<ValueType>,
    ) -> Result<NodeId> {
        let taken = inputs.iter().filter_map(|&input| self.graph.ty(input));
        let taken: Vec<DType> = taken.map(|ty| ty.dtype).collect();
        let returned: Vec<DType> = outputs.iter().map(|ty| ty.dtype).collect();
        let body = OutlinedFunction { def: Arc::new(def), compiled: OnceLock::new() };
        let body = HostTensor::scalar_handle(DType::Variant, Arc::new(body));
        let op = registry::find(names::OUTLINED).expect("a built-in record");
        let attrs = Attrs::new().with("Tin", taken).with("Tout", returned).with("body", body);
        let name = self.graph.unique_name("outlined");
        let node = NodeDef::new(name, op, op.complete_attrs(attrs)?)
            .with_inputs(inputs.iter().copied())
            .with_outputs(outputs);
        self.graph.add(node)
    }
}

/// The function under construction.
#[derive(Default)]
struct Inner {
    part: Part,
    args: Vec<NodeId>,
    /// The outlets that its arguments stand for.
    inputs: Vec<Outlet>,
}

impl Inner {
    /// Makes a value that nodes of the function read one of its own: a constant, or an argument.
    fn import(&mut self, source: &Graph, input: Outlet) -> Result<()> {
        self.part.import_constant(source, input)?;
        if self.part.moved.contains_key(&input) {
            return Ok(());
        }
        let ty = source.ty(input).expect("a typed value").clone();
        let op = registry::find(names::ARG).expect("a built-in record");
        let index = self.args.len() as i64;
        let attrs = Attrs::new().with("T", ty.dtype).with("index", index);
        let name = self.part.graph.unique_name(&source[input.node].name);
        let new = self.part.graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?;
        self.part.moved.insert(input, new.into());
        self.args.push(new);
        self.inputs.push(input);
        Ok(())
    }
}

/// Nodes with effects, of which each runs after those before it that it must not overtake.
#[derive(Default)]
struct EffectOrder {
    write: Option<NodeId>,
    reads: Vec<NodeId>,
    /// Those that must run.
    all: Vec<NodeId>,
}

impl EffectOrder {
    fn before(&self, effect: Effect) -> SmallVec<[NodeId; 2]> {
        match effect {
            Effect::Pure | Effect::OfCallee => SmallVec::new(),
            Effect::Reads => self.write.into_iter().collect(),
            Effect::Writes | Effect::Stateful => {
                self.write.into_iter().chain(self.reads.iter().copied()).collect()
            }
        }
    }

    fn add(&mut self, node: NodeId, effect: Effect) {
        match effect {
            Effect::Pure | Effect::OfCallee => {}
            Effect::Reads => self.reads.push(node),
            Effect::Writes | Effect::Stateful => {
                self.write = Some(node);
                self.reads.clear();
                self.all.push(node);
            }
        }
    }
}
