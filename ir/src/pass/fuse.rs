//! Elementwise fusion: a chain of elementwise calls becomes one call with one expression.
//!
//! A call joins the group of its users when all of them are in one group, the shapes agree, and
//! nothing else needs its result. Constants with one element become constants of the expression.

use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    expr::{Composition, Constant, Expr, ExprKind, ExprNode, ExprOperand, Prim, Replacement},
    graph::{Graph, NodeDef, NodeId, OpRef, Outlet},
    hash::{FastMap, FastSet},
    host_tensor::HostTensor,
    op::{Lowering, OpDef},
    ops::names,
    registry,
    shape::Shape,
};
use std::sync::Arc;

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
    let kept: FastSet<NodeId> = results.iter().map(|outlet| outlet.node).collect();
    let order = graph.topological_order()?;
    let mut groups: FastMap<NodeId, Group> = FastMap::default();
    let mut group_of: FastMap<NodeId, NodeId> = FastMap::default();
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
            && group.n_members > 1
            && !group.inputs.is_empty()
        {
            group.install(graph, fused, &supports)?;
        }
    }
    Ok(())
}

/// The group that all users of a call are in, if they are in one.
fn common_group(graph: &Graph, id: NodeId, group_of: &FastMap<NodeId, NodeId>) -> Option<NodeId> {
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

/// Whether a call has a [`formula`] that never fails.
pub(super) fn is_safe_elementwise(graph: &Graph, id: NodeId) -> bool {
    let node = &graph[id];
    match node.op.def().map(|op| op.lowering) {
        Some(Lowering::Fused) => node.expr.as_ref().is_some_and(|expr| !expr.is_fallible()),
        _ => Candidate::of(graph, id).is_ok_and(|candidate| candidate.is_some()),
    }
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
    root: NodeId,
    shape: Shape,
    inputs: Vec<Outlet>,
    /// The part that is put together already, over `operands`.
    expr: Expr,
    operands: Vec<Outlet>,
    /// The calls inside of it that are not part of the expression yet, each before those it reads.
    joined: Vec<Member>,
    /// The most nodes that the whole expression can have.
    most_nodes: usize,
    n_members: usize,
}

/// A call that joined a group: its expression over its inputs, by position.
struct Member {
    id: NodeId,
    expr: Expr,
    inputs: Vec<Outlet>,
}

impl Group {
    fn new(graph: &Graph, root: NodeId, candidate: &Candidate) -> Group {
        let (expr, inputs) = absorb_constants(graph, root, &candidate.expr);
        let (shape, most_nodes) = (candidate.shape.clone(), most_nodes(&expr));
        let operands = inputs.clone();
        Group { root, shape, inputs, expr, operands, joined: Vec::new(), most_nodes, n_members: 1 }
    }

    /// Takes in a call that feeds the group; `false` if it does not fit.
    fn join(&mut self, graph: &Graph, id: NodeId, candidate: &Candidate) -> bool {
        // A call that joins takes the place of at most one input.
        if candidate.shape != self.shape || self.inputs.len() > MAX_INPUTS + 1 {
            return false;
        }
        let (expr, own_inputs) = absorb_constants(graph, id, &candidate.expr);
        let mut inputs: Vec<Outlet> =
            self.inputs.iter().copied().filter(|input| input.node != id).collect();
        for input in &own_inputs {
            if !inputs.contains(input) {
                inputs.push(*input);
            }
        }
        if inputs.len() > MAX_INPUTS {
            return false;
        }
        let before = std::mem::replace(&mut self.inputs, inputs);
        let most_nodes = self.most_nodes + most_nodes(&expr);
        self.joined.push(Member { id, expr, inputs: own_inputs });
        if most_nodes <= MAX_OPERATIONS {
            self.most_nodes = most_nodes;
        } else {
            // Calls have nodes in common, and what flushes subnormal numbers between them is left out.
            let expr = self.composed(graph);
            if expr.nodes().len() > MAX_OPERATIONS {
                self.joined.pop();
                self.inputs = before;
                return false;
            }
            self.put_together(expr);
        }
        self.n_members += 1;
        true
    }

    /// The whole expression, over the inputs.
    fn composed(&self, graph: &Graph) -> Expr {
        let mut composition = Composition::default();
        let mut values: FastMap<NodeId, ExprOperand> = FastMap::default();
        let operands = |values: &FastMap<NodeId, ExprOperand>, outlets: &[Outlet]| {
            let input = |outlet: &Outlet| {
                let position = self.inputs.iter().position(|input| input == outlet);
                let dtype = graph.ty(*outlet).map_or(DType::F32, |ty| ty.dtype);
                ExprOperand::Input(position.expect("calls that join leave their inputs"), dtype)
            };
            let operand = |outlet: &Outlet| {
                values.get(&outlet.node).copied().unwrap_or_else(|| input(outlet))
            };
            outlets.iter().map(operand).collect::<Vec<_>>()
        };
        for member in self.joined.iter().rev() {
            let value = composition.add(&member.expr, &operands(&values, &member.inputs));
            values.insert(member.id, ExprOperand::Value(value));
        }
        composition.finish(&self.expr, &operands(&values, &self.operands))
    }

    /// Keeps the whole expression.
    fn put_together(&mut self, expr: Expr) {
        self.most_nodes = most_nodes(&expr);
        self.expr = expr;
        self.operands.clone_from(&self.inputs);
        self.joined.clear();
    }

    /// Makes the root call compute the whole expression, if its device supports that.
    fn install(
        self,
        graph: &mut Graph,
        fused: &'static OpDef,
        supports: &impl Fn(&Graph, &NodeDef) -> bool,
    ) -> Result<()> {
        let (types, expr) = (dtypes(graph, &self.inputs), self.composed(graph));
        let node = graph[self.root].clone().with_inputs(self.inputs).with_controls([]);
        let node = fused_node(node, fused, types, expr);
        if !supports(graph, &node) {
            return Ok(());
        }
        let inputs = node.inputs().to_vec();
        let root = graph.node_mut(self.root);
        (*root.op, *root.attrs, *root.expr) = (node.op, node.attrs, node.expr);
        graph.connect(self.root, inputs, [])
    }
}

/// The most nodes that an expression adds to another: powers become two.
fn most_nodes(expr: &Expr) -> usize {
    let is_power = |node: &&ExprNode| matches!(node.kind, ExprKind::Apply(Prim::Pow, _));
    expr.nodes().len() + expr.nodes().iter().filter(is_power).count()
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
    positions: FastMap<Outlet, usize>,
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
    let value = graph[outlet.node].constant().filter(|value| value.len() == 1)?;
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
    use crate::{build::GraphBuilder, expr::Replacement, shape::PartialShape};

    /// The expression of a node over placeholders, each call substituted in the one that reads it.
    fn substituted(graph: &Graph, arguments: &[Outlet], outlet: Outlet) -> Expr {
        if let Some(position) = arguments.iter().position(|&argument| argument == outlet) {
            return Expr::input(position, DType::F32);
        }
        let node = &graph[outlet.node];
        let inputs: Vec<Expr> =
            node.inputs().iter().map(|&input| substituted(graph, arguments, input)).collect();
        let inner: Vec<Replacement<'_>> = inputs.iter().map(Replacement::Expr).collect();
        let own = Expr::of(
            node.op.def().unwrap(),
            &node.attrs,
            &vec![DType::F32; inner.len()],
            DType::F32,
        );
        own.unwrap().substitute(&inner)
    }

    #[test]
    fn groups_compute_what_calls_substituted_in_each_other_do() {
        let ops = ["AddV2", "Mul", "Tanh", "Maximum", "Neg", "Square", "Sub"];
        let record = registry::find(names::FUSED_ELEMENTWISE).unwrap();
        let mut state = 1_u64;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        let mut n_fused = 0;
        for n_calls in (2..20).chain([100, 300]) {
            let mut builder = GraphBuilder::new();
            let shape = PartialShape::from(Shape::new([4]).unwrap());
            let mut argument = |name| builder.placeholder(name, DType::F32, shape.clone()).unwrap();
            let arguments = ["a", "b", "c"].map(&mut argument);
            let mut values = arguments.to_vec();
            for index in 0..n_calls {
                let name = ops[next(ops.len())];
                let arity = registry::find(name).unwrap().inputs.len();
                let mut inputs = vec![*values.last().unwrap()];
                // Trees of many calls that share much are long to compare.
                let reach = if n_calls < 20 { values.len() } else { 3 };
                inputs.extend((1..arity).map(|_| values[next(reach)]));
                values.extend(builder.call(name, &format!("n{index}"), &inputs).unwrap());
            }
            let mut graph = builder.finish();
            let result = *values.last().unwrap();
            let mut expected = FastMap::default();
            for &value in &values[3..] {
                expected.insert(value, substituted(&graph, &arguments, value));
            }
            fuse(&mut graph, &[result], |_, _| true).unwrap();
            for (id, node) in graph
                .iter()
                .filter(|(_, node)| node.op.def().is_some_and(|op| op.name == record.name))
            {
                n_fused += 1;
                let expr = node.expr.as_ref().unwrap();
                assert!(expr.nodes().len() <= MAX_OPERATIONS && node.inputs().len() <= MAX_INPUTS);
                let inputs: Vec<Expr> = node
                    .inputs()
                    .iter()
                    .map(|input| match arguments.iter().position(|argument| argument == input) {
                        Some(position) => Expr::input(position, DType::F32),
                        None => expected[input].clone(),
                    })
                    .collect();
                let inner: Vec<Replacement<'_>> = inputs.iter().map(Replacement::Expr).collect();
                let found = expr.substitute(&inner);
                assert_eq!(found.to_string(), expected[&id.into()].to_string());
            }
        }
        assert!(n_fused > 20, "{n_fused} groups");
    }

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
