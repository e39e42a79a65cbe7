//! Outlining: nodes of data-dependent shapes move into functions of their own.
//!
//! The number of tokens of a text, or of rows that a mask keeps, is not known when a function is compiled, and
//! neither are the shapes of what is computed of them: nothing of it can be fused or planned. Once such sizes are
//! there, the shapes of all that follows are known, up to the next node that makes sizes of data. So the nodes
//! between become the bodies of calls of `_Outlined`, which the runtime compiles for the shapes it
//! meets (as TensorFlow compiles clusters for XLA once their inputs are there):
//!
//! - the nodes that no node of unforeseen size depends on, all together: a model behind its tokenizer;
//! - before those, the nodes of a *level* (`levels.rs`), as many nodes that make sizes being before each of them,
//!   where they multiply matrices: a loop that generates tokens, between what makes numbers of a text and what
//!   makes a text of numbers. Elsewhere shapes vary too much for executables of their own.
//!
//! A function may be outlined in an outlined one, where that makes sizes of data in turn.
//!
//! A node *makes sizes of data* if the types of its inputs do not tell that of its result. What shapes alone
//! tell (`Shape`, and arithmetic on its results) is not data.

mod levels;
mod split;

use super::{execution::constant, prune::prune_body, specialize::Specialized};
use crate::{
    attr::Attrs,
    error::Result,
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastSet,
    host_tensor::Handle,
    infer::{InputFacts, infer},
    op::{CallKind, Effect, Lowering, OpDef},
    ops::names,
    shape::PartialShape,
    spec::ValueType,
};
use levels::levels;
use smallvec::SmallVec;
use split::split;
use std::{
    any::Any,
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

/// Moves nodes of a function, which `def` was specialised to, into functions that it calls. With `all_levels` no
/// level is too small.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn outline(
    function: &mut Specialized,
    def: &FunctionDef,
    library: &FunctionLibrary,
    all_levels: bool,
) -> Result<()> {
    let depth = def.attrs.int(DEPTH).unwrap_or(0);
    if function.failure.is_some() || depth >= MAX_DEPTH || !is_any_unknown(&function.graph) {
        return Ok(());
    }
    // What is dead would be an operand of the call, and so be computed.
    prune_body(function)?;
    let kept = kept_nodes(function, library)?;
    let graph = &function.graph;
    let last: Vec<NodeId> = graph.ids().filter(|id| !kept.nodes.contains(id)).collect();
    let n_worth = last.iter().filter(|&&id| is_worth(&graph[id])).count();
    let mut runs = levels(function, library, &kept, all_levels);
    let levels_move = runs.iter().any(|run| run.moves);
    runs.push(NodeRun { nodes: last, moves: n_worth >= LEAST_NODES });
    if levels_move || n_worth >= LEAST_NODES {
        split(function, def, library, &runs)?;
    }
    Ok(())
}

/// Nodes next to each other in the new graph.
struct NodeRun {
    nodes: Vec<NodeId>,
    /// Whether they move into a function.
    moves: bool,
}

/// Whether a node is one of those that outlining is for.
fn is_worth(node: &NodeDef) -> bool {
    let is_alias = matches!(node.op.def().map(|op| op.lowering), Some(Lowering::Alias(_)));
    !is_alias && node.outputs().iter().any(|ty| ty.shape.known().is_none())
}

fn is_any_unknown(graph: &Graph) -> bool {
    graph.iter().any(|(_, node)| node.outputs().iter().any(|ty| ty.shape.known().is_none()))
}

/// The nodes that stay but for levels.
struct Kept {
    nodes: FastSet<NodeId>,
    /// Those of them that make sizes of data.
    makers: FastSet<NodeId>,
}

/// The nodes that make sizes of data, and all that must run before them.
fn kept_nodes(function: &Specialized, library: &FunctionLibrary) -> Result<Kept> {
    let graph = &function.graph;
    let of_shapes = told_by_shapes(graph);
    let mut kept: FastSet<NodeId> = function.args.iter().map(|outlet| outlet.node).collect();
    let mut makers = FastSet::default();
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
        if makes_sizes(graph, node, &of_shapes)? {
            makers.insert(id);
        }
        if in_order || makers.contains(&id) {
            kept.insert(id);
        }
        if kept.contains(&id) {
            later_effect |= !matches!(effect, Effect::Pure | Effect::OfCallee);
            later_write |= matches!(effect, Effect::Writes | Effect::Stateful);
            kept.extend(node.inputs().iter().map(|input| input.node));
            kept.extend(node.controls());
        }
    }
    Ok(Kept { nodes: kept, makers })
}

/// The nodes whose values are known once the shapes of all others are.
fn told_by_shapes(graph: &Graph) -> FastSet<NodeId> {
    let mut told = FastSet::default();
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
fn makes_sizes(graph: &Graph, node: &NodeDef, of_shapes: &FastSet<NodeId>) -> Result<bool> {
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
