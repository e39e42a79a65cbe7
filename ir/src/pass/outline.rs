//! Outlining: nodes of data-dependent shapes, which make no such shapes themselves, move into a function of
//! their own.
//!
//! The number of tokens of a text, or of rows that a mask keeps, is not known when a function is compiled, and
//! neither are the shapes of what is computed of them: nothing of it can be fused or planned. Once the last of
//! such sizes is there, the shapes of all that follows are known. So the nodes that no node of unforeseen size
//! depends on become the body of one call of `_Outlined`, which the runtime compiles for the shapes it
//! meets (as TensorFlow compiles clusters for XLA once their inputs are there).
//!
//! A function may be outlined in an outlined one, where that makes sizes of data in turn.
//!
//! A node *makes sizes of data* if the types of its inputs do not tell that of its result. What shapes alone
//! tell (`Shape`, and arithmetic on its results) is not data.

use super::{execution::constant, prune::prune_body, specialize::Specialized};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, NodeDef, NodeId, Outlet},
    host_tensor::{Handle, HostTensor},
    infer::{InputFacts, infer},
    op::{CallKind, Effect, Lowering, OpDef},
    ops::names,
    registry,
    shape::PartialShape,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{
    any::Any,
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

/// The fewest nodes of unknown shape that are worth a call. Tests outline all that can be.
const LEAST_NODES: usize = if cfg!(debug_assertions) { 1 } else { 8 };

/// The most outlined functions inside each other: each makes sizes that the next one needs.
const MAX_DEPTH: i64 = 4;

/// The attribute of an outlined function that counts those around it, and itself.
const DEPTH: &str = "_outlined_depth";

/// An outlined function, as the attribute `body` of its call holds it.
#[derive(Debug)]
pub struct OutlinedFunction {
    /// The function.
    pub def: Arc<FunctionDef>,
    /// Executables that the runtime keeps with it.
    pub compiled: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Handle for OutlinedFunction {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OutlinedFunction {
    /// The outlined function that a call of `_Outlined` is about.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the attributes are those of another op.
    pub fn of(attrs: &Attrs) -> Result<&OutlinedFunction> {
        let handles = attrs.tensor("body")?.handles()?;
        let own = handles.first().and_then(|handle| handle.as_any().downcast_ref());
        own.ok_or_else(|| {
            crate::Error::argument(names::OUTLINED, "body", "a function", "another handle")
        })
    }
}

/// Moves nodes of a function, which `def` was specialised to, into a function that it calls.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn outline(
    function: &mut Specialized,
    def: &FunctionDef,
    library: &FunctionLibrary,
) -> Result<()> {
    let depth = def.attrs.int(DEPTH).unwrap_or(0);
    if function.failure.is_some() || depth >= MAX_DEPTH || !is_any_unknown(&function.graph) {
        return Ok(());
    }
    // What is dead would be an operand of the call, and so be computed.
    prune_body(function)?;
    let kept = kept_nodes(function, library)?;
    let graph = &function.graph;
    let moved = |id: NodeId| !kept.contains(&id);
    let is_worth = |(id, node): &(NodeId, &NodeDef)| {
        let counts = !matches!(node.op.def().map(|op| op.lowering), Some(Lowering::Alias(_)));
        moved(*id) && counts && node.outputs().iter().any(|ty| ty.shape.known().is_none())
    };
    if graph.iter().filter(is_worth).count() < LEAST_NODES {
        return Ok(());
    }
    split(function, def, library, &kept)
}

fn is_any_unknown(graph: &Graph) -> bool {
    graph.iter().any(|(_, node)| node.outputs().iter().any(|ty| ty.shape.known().is_none()))
}

/// The nodes that stay: those that make sizes of data, and all that must run before them.
fn kept_nodes(function: &Specialized, library: &FunctionLibrary) -> Result<HashSet<NodeId>> {
    let graph = &function.graph;
    let of_shapes = told_by_shapes(graph);
    let mut kept: HashSet<NodeId> = function.args.iter().map(|outlet| outlet.node).collect();
    let ids: Vec<NodeId> = graph.ids().collect();
    // Effects stay in their order: an effect before one that stays, stays.
    let (mut later_effect, mut later_write) = (false, false);
    for &id in ids.iter().rev() {
        let node = &graph[id];
        let effect = library.effect_of(&node.op, &node.attrs);
        let in_order = match effect {
            Effect::Pure | Effect::OfCallee => false,
            Effect::Reads => later_write,
            Effect::Writes | Effect::Stateful => later_effect,
        };
        if in_order || makes_sizes(graph, node, &of_shapes)? {
            kept.insert(id);
        }
        if kept.contains(&id) {
            later_effect |= !matches!(effect, Effect::Pure | Effect::OfCallee);
            later_write |= matches!(effect, Effect::Writes | Effect::Stateful);
            kept.extend(node.inputs().iter().map(|input| input.node));
            kept.extend(node.controls());
        }
    }
    Ok(kept)
}

/// The nodes whose values are known once the shapes of all others are.
fn told_by_shapes(graph: &Graph) -> HashSet<NodeId> {
    let mut told = HashSet::new();
    for (id, node) in graph.iter() {
        let Some(op) = node.op.def() else { continue };
        let is_constant = constant(graph, id.into()).is_some();
        let computed = op.effect == Effect::Pure
            && op.call == CallKind::None
            && !matches!(op.lowering, Lowering::Runtime | Lowering::Interface)
            && !node.inputs().is_empty()
            && (op.shape_only || node.inputs().iter().all(|input| told.contains(&input.node)));
        if is_constant || computed {
            told.insert(id);
        }
    }
    told
}

/// Whether sizes of the results are told by data rather than by the types of the inputs.
fn makes_sizes(graph: &Graph, node: &NodeDef, of_shapes: &HashSet<NodeId>) -> Result<bool> {
    let Some(op) = node.op.def() else { return Ok(true) };
    if node.outputs().iter().all(|ty| ty.shape.known().is_some()) {
        return Ok(false);
    }
    let types: Option<Vec<&ValueType>> =
        node.inputs().iter().map(|&input| graph.ty(input)).collect();
    let Some(types) = types else { return Ok(true) };
    // Nothing can make these sizes known before the node runs. An outlined function so always leaves out
    // the first node of unknown shape, and one inside it is smaller.
    if types.iter().all(|ty| ty.shape.known().is_some()) {
        return Ok(true);
    }
    if op.call != CallKind::None {
        return Ok(false);
    }
    let host = op.host_inputs(&node.attrs)?;
    let host_operands: SmallVec<[Outlet; 4]> = node
        .inputs()
        .iter()
        .zip(&host)
        .filter_map(|(&input, &host)| host.then_some(input))
        .collect();
    if host_operands.iter().any(|input| !of_shapes.contains(&input.node)) {
        return Ok(true);
    }
    if host_operands.iter().any(|&input| constant(graph, input).is_none()) {
        return Ok(false);
    }
    Ok(infers_unknown(graph, op, node, &types))
}

/// Whether an op would have results of unknown size even if the sizes of its inputs were known: some size
/// is tried for those that are not.
fn infers_unknown(graph: &Graph, op: &'static OpDef, node: &NodeDef, types: &[&ValueType]) -> bool {
    const SOME_SIZE: usize = 3;
    let sized = |ty: &&ValueType| {
        let dims = ty.shape.dims()?.iter().map(|dim| Some(dim.unwrap_or(SOME_SIZE)));
        Some(ValueType { shape: PartialShape::ranked(dims), ..(*ty).clone() })
    };
    let Some(sized) = types.iter().map(sized).collect::<Option<Vec<ValueType>>>() else {
        return false;
    };
    let facts: Vec<InputFacts<'_>> = sized
        .iter()
        .zip(node.inputs())
        .map(|(ty, &input)| InputFacts { ty, value: constant(graph, input) })
        .collect();
    // Sizes that do not fit each other say nothing.
    infer(op, &node.attrs, &facts)
        .is_ok_and(|outputs| outputs.iter().any(|ty| ty.shape.known().is_none()))
}

/// Takes the body apart into nodes that stay and a function of the others.
fn split(
    function: &mut Specialized,
    around: &FunctionDef,
    library: &FunctionLibrary,
    kept: &HashSet<NodeId>,
) -> Result<()> {
    let source = std::mem::take(&mut function.graph);
    let mut nested = std::mem::take(&mut function.nested);
    let mut outer = Part::default();
    let mut inner = Inner { part: Part::default(), args: Vec::new(), inputs: Vec::new() };
    let mut order = EffectOrder::default();
    for (id, node) in source.iter() {
        if kept.contains(&id) {
            let new = outer.add(id, node, [])?;
            function.nested.extend(nested.remove(&id).map(|functions| (new, functions)));
            continue;
        }
        for &input in node.inputs() {
            inner.import(&source, input)?;
        }
        let effect = library.effect_of(&node.op, &node.attrs);
        let new = inner.part.add(id, node, order.before(effect))?;
        order.add(new, effect);
    }
    let mut results: Vec<Outlet> = Vec::new();
    for &result in &function.results {
        if !kept.contains(&result.node) && !results.contains(&result) {
            results.push(result);
        }
    }
    let types: Vec<ValueType> =
        results.iter().map(|&result| source.ty(result).expect("a typed result").clone()).collect();
    let def = FunctionDef {
        name: around.name.clone(),
        args: inner.args,
        results: results
            .iter()
            .enumerate()
            .map(|(index, &result)| (format!("result_{index}"), inner.part.outlet(result)))
            .collect(),
        control_results: order.all,
        attrs: Attrs::new().with(DEPTH, around.attrs.int(DEPTH).unwrap_or(0) + 1),
        graph: inner.part.graph,
    };
    let inputs: Vec<Outlet> = inner.inputs.iter().map(|&input| outer.outlet(input)).collect();
    let call = outer.call(def, &inputs, types)?;
    for outlet in function.args.iter_mut().chain(&mut function.results) {
        *outlet = match results.iter().position(|result| result == outlet) {
            Some(index) => Outlet::new(call, index),
            None => outer.outlet(*outlet),
        };
    }
    function.graph = outer.graph;
    Ok(())
}

/// A graph that is made of nodes of another.
#[derive(Default)]
struct Part {
    graph: Graph,
    moved: HashMap<Outlet, Outlet>,
}

impl Part {
    fn outlet(&self, outlet: Outlet) -> Outlet {
        self.moved[&outlet]
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
struct Inner {
    part: Part,
    args: Vec<NodeId>,
    /// The outlets that its arguments stand for.
    inputs: Vec<Outlet>,
}

impl Inner {
    /// Makes a value that nodes of the function read one of its own: a constant, or an argument.
    fn import(&mut self, source: &Graph, input: Outlet) -> Result<()> {
        if self.part.moved.contains_key(&input) {
            return Ok(());
        }
        if constant(source, input).is_some() {
            return self.part.add(input.node, &source[input.node], []).map(drop);
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
