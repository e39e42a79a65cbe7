//! Elementwise fusion: a chain of elementwise calls becomes one call with one expression.
//!
//! A call joins the group of its users when all of them are in one group, the shapes agree, and
//! nothing else needs its result. Constants with one element become constants of the expression.

use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    expr::{Constant, Expr, Replacement},
    graph::{Graph, NodeDef, NodeId, OpRef, Outlet},
    host_tensor::HostTensor,
    op::{Lowering, OpDef},
    ops::names,
    registry,
    shape::Shape,
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A group has at most this many inputs and scalar operations: beyond, blocks of intermediate
/// values no longer fit the fastest memory.
pub(super) const MAX_INPUTS: usize = 12;
pub(super) const MAX_OPERATIONS: usize = 160;

/// Fuses the elementwise calls of a graph into nodes that their devices support. `results` are the
/// outlets others will ask for; they stay where they are.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn fuse(
    graph: &mut Graph,
    results: &[Outlet],
    supports: impl Fn(&Graph, &NodeDef) -> bool,
) -> Result<()> {
    let fused = registry::find(names::FUSED_ELEMENTWISE).expect("a built-in record");
    let kept: HashSet<NodeId> = results.iter().map(|outlet| outlet.node).collect();
    let order = graph.topological_order()?;
    let mut groups: HashMap<NodeId, Group> = HashMap::new();
    let mut group_of: HashMap<NodeId, NodeId> = HashMap::new();
    for &id in order.iter().rev() {
        let Some(candidate) = Candidate::of(graph, id)? else { continue };
        let root = match common_group(graph, id, &group_of) {
            Some(root) if !kept.contains(&id) && graph[root].device == graph[id].device => root,
            _ => id,
        };
        let joined = groups.get_mut(&root).is_some_and(|group| group.join(graph, id, &candidate));
        let root = if joined { root } else { id };
        if !joined {
            groups.insert(id, Group::new(graph, id, &candidate));
        }
        group_of.insert(id, root);
    }
    for &id in &order {
        if let Some(group) = groups.remove(&id)
            && group.members.len() > 1
            && !group.inputs.is_empty()
        {
            group.install(graph, fused, &supports)?;
        }
    }
    Ok(())
}

/// The group that all users of a call are in, if they are in one.
fn common_group(graph: &Graph, id: NodeId, group_of: &HashMap<NodeId, NodeId>) -> Option<NodeId> {
    let mut users = graph.consumers(id);
    let first = *group_of.get(&users.next()?)?;
    users.all(|user| group_of.get(&user) == Some(&first)).then_some(first)
}

/// The scalar expression of an elementwise call over its inputs, constants being part of it, and
/// those inputs; `None` for other calls, and for those that may fail.
pub fn formula(graph: &Graph, id: NodeId) -> Option<(Expr, Vec<Outlet>)> {
    let node = &graph[id];
    let expr = match node.op.def()?.lowering {
        Lowering::Fused => (**node.expr.as_ref()?).clone(),
        _ => Candidate::of(graph, id).ok()??.expr,
    };
    Some(absorb_constants(graph, id, &expr))
}

/// A call that may be fused.
struct Candidate {
    expr: Expr,
    shape: Shape,
}

impl Candidate {
    fn of(graph: &Graph, id: NodeId) -> Result<Option<Candidate>> {
        let node = &graph[id];
        let Some(op) = node.op.def() else { return Ok(None) };
        if !matches!(op.lowering, Lowering::Elementwise(_)) || !node.controls().is_empty() {
            return Ok(None);
        }
        let inputs: Option<Vec<DType>> =
            node.inputs().iter().map(|&input| graph.ty(input).map(|ty| ty.dtype)).collect();
        let output = &node.outputs()[0];
        let (Some(inputs), Some(shape)) = (inputs, output.shape.known()) else { return Ok(None) };
        let is_plain = |dtype: &DType| dtype.size().is_some();
        let shapes_fit = node.inputs().iter().all(|&input| {
            let ty = graph.ty(input).and_then(|ty| ty.shape.known());
            ty.is_some_and(|input| input.broadcast(&shape).is_ok_and(|both| both == shape))
        });
        if !inputs.iter().all(is_plain) || !is_plain(&output.dtype) || !shapes_fit {
            return Ok(None);
        }
        let expr = Expr::of(op, &node.attrs, &inputs, output.dtype)?;
        Ok((!expr.is_fallible()).then_some(Candidate { expr, shape }))
    }
}

/// Calls that become one.
struct Group {
    members: HashSet<NodeId>,
    root: NodeId,
    shape: Shape,
    /// Over `inputs`, by position.
    expr: Expr,
    inputs: Vec<Outlet>,
}

impl Group {
    fn new(graph: &Graph, root: NodeId, candidate: &Candidate) -> Group {
        let (expr, inputs) = absorb_constants(graph, root, &candidate.expr);
        let shape = candidate.shape.clone();
        Group { members: HashSet::from([root]), root, shape, expr, inputs }
    }

    /// Takes in a call that feeds the group; `false` if it does not fit.
    fn join(&mut self, graph: &Graph, id: NodeId, candidate: &Candidate) -> bool {
        // A call that joins takes the place of at most one input.
        if candidate.shape != self.shape || self.inputs.len() > MAX_INPUTS + 1 {
            return false;
        }
        let (own, own_inputs) = absorb_constants(graph, id, &candidate.expr);
        let mut inputs: Vec<Outlet> =
            self.inputs.iter().copied().filter(|input| input.node != id).collect();
        for input in &own_inputs {
            if !inputs.contains(input) {
                inputs.push(*input);
            }
        }
        let input_index = |outlet: &Outlet| {
            let position = inputs.iter().position(|input| input == outlet);
            let dtype = graph.ty(*outlet).map_or(DType::F32, |ty| ty.dtype);
            Replacement::Input(position.expect("every input was added above"), dtype)
        };
        let moved: Vec<Replacement<'_>> = own_inputs.iter().map(input_index).collect();
        let own = own.substitute(&moved);
        let replacements: Vec<Replacement<'_>> = self
            .inputs
            .iter()
            .map(
                |input| if input.node == id { Replacement::Expr(&own) } else { input_index(input) },
            )
            .collect();
        let expr = self.expr.substitute(&replacements);
        if inputs.len() > MAX_INPUTS || expr.nodes().len() > MAX_OPERATIONS {
            return false;
        }
        self.members.insert(id);
        (self.expr, self.inputs) = (expr, inputs);
        true
    }

    /// Makes the root call compute the whole expression, if its device supports that.
    fn install(
        self,
        graph: &mut Graph,
        fused: &'static OpDef,
        supports: &impl Fn(&Graph, &NodeDef) -> bool,
    ) -> Result<()> {
        let types = dtypes(graph, &self.inputs);
        let node = graph[self.root].clone().with_inputs(self.inputs).with_controls([]);
        let node = fused_node(node, fused, types, self.expr);
        if !supports(graph, &node) {
            return Ok(());
        }
        let inputs = node.inputs().to_vec();
        let root = graph.node_mut(self.root);
        (*root.op, *root.attrs, *root.expr) = (node.op, node.attrs, node.expr);
        graph.connect(self.root, inputs, [])
    }
}

/// The dtypes of values.
pub(super) fn dtypes(graph: &Graph, values: &[Outlet]) -> Vec<DType> {
    values.iter().map(|&value| graph.ty(value).map_or(DType::F32, |ty| ty.dtype)).collect()
}

/// The node that computes an expression of inputs of these types, in place of another.
pub(super) fn fused_node(
    mut node: NodeDef,
    fused: &'static OpDef,
    types: Vec<DType>,
    expr: Expr,
) -> NodeDef {
    node.op = OpRef::Known(fused);
    node.attrs = Arc::new(Attrs::new().with("Tin", types).with("T", expr.dtype()));
    node.expr = Some(Arc::new(expr));
    node
}

/// The call's expression with one-element constants made part of it, and the inputs that remain.
fn absorb_constants(graph: &Graph, id: NodeId, expr: &Expr) -> (Expr, Vec<Outlet>) {
    let mut inputs = Inputs::default();
    let replacements: Vec<Replacement<'_>> = graph[id]
        .inputs()
        .iter()
        .map(|&input| {
            let constant = constant(graph, input);
            if let Some((constant, dtype)) = constant {
                return Replacement::Const(constant, dtype);
            }
            let dtype = graph.ty(input).map_or(DType::F32, |ty| ty.dtype);
            Replacement::Input(inputs.position(input), dtype)
        })
        .collect();
    let expr = expr.substitute(&replacements);
    (expr, inputs.all)
}

/// Inputs of an expression, in the order in which they are met.
#[derive(Default)]
pub(super) struct Inputs {
    pub(super) all: Vec<Outlet>,
    /// Their positions, once there are many.
    positions: HashMap<Outlet, usize>,
}

impl Inputs {
    /// Up to so many are compared one by one.
    const FEW: usize = 16;

    /// The position of an input, which is added if it is new.
    pub(super) fn position(&mut self, outlet: Outlet) -> usize {
        let n = self.all.len();
        let known = match n <= Inputs::FEW {
            true => self.all.iter().position(|&input| input == outlet),
            false => self.positions.get(&outlet).copied(),
        };
        known.unwrap_or_else(|| {
            self.all.push(outlet);
            if n >= Inputs::FEW {
                let new = self.all.iter().copied().enumerate().skip(self.positions.len());
                self.positions.extend(new.map(|(position, input)| (input, position)));
            }
            n
        })
    }
}

fn constant(graph: &Graph, outlet: Outlet) -> Option<(Constant, DType)> {
    let node = &graph[outlet.node];
    let is_source = node.op.def().is_some_and(|op| op.inputs.is_empty());
    let value = node.attrs.tensor("value").ok().filter(|value| is_source && value.len() == 1)?;
    Some((element(value)?, value.dtype()))
}

/// The only element of a tensor, where a constant can hold it.
fn element(tensor: &HostTensor) -> Option<Constant> {
    Some(match tensor.dtype() {
        DType::F32 => Constant::Float(f64::from(tensor.as_scalar::<f32>().ok()?)),
        DType::F64 => Constant::Float(tensor.as_scalar::<f64>().ok()?),
        DType::F16 => Constant::Float(tensor.as_scalar::<half::f16>().ok()?.to_f64()),
        DType::BF16 => Constant::Float(tensor.as_scalar::<half::bf16>().ok()?.to_f64()),
        DType::Bool => Constant::Int(i128::from(tensor.as_bool().ok()?)),
        DType::U64 => Constant::Int(i128::from(tensor.as_scalar::<u64>().ok()?)),
        dtype if dtype.is_integer() => Constant::Int(i128::from(*tensor.to_i64s().ok()?.first()?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build::GraphBuilder, shape::PartialShape};

    #[test]
    fn inputs_keep_their_positions_however_many_they_are() {
        let mut builder = GraphBuilder::new();
        let mut placeholder = |index: usize| {
            builder.placeholder(&format!("x{index}"), DType::F32, PartialShape::scalar()).unwrap()
        };
        let outlets: Vec<Outlet> = (0..3 * Inputs::FEW).map(&mut placeholder).collect();
        let mut inputs = Inputs::default();
        for (index, &outlet) in outlets.iter().enumerate() {
            assert_eq!(inputs.position(outlet), index);
            assert_eq!(inputs.position(outlets[index / 2]), index / 2);
        }
        assert_eq!(inputs.all, outlets);
    }
}
