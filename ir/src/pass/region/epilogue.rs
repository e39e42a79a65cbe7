//! Anchors with an epilogue.

use super::{Inputs, MAX_INPUTS, MAX_OPERATIONS, Region, Search, formula};
use crate::{
    attr::{Attrs, NameAttrList},
    dtype::DType,
    expr::{Expr, Replacement},
    graph::{NodeId, Outlet},
    hash::FastSet,
    op::Lowering,
    ops::names,
};

/// The ratio from which on a call is small beside its reader.
const MANY_TIMES: usize = 8;

/// The regions of an elementwise node and the last anchor among its inputs, the larger ones first: on
/// devices besides the host, small calls that only the node needs (such as the factors of a
/// normalisation, and what these need) may be part of the epilogue, as computing them for each element
/// costs less than starting them.
pub(super) fn before(search: &Search<'_>, root: NodeId) -> Vec<Region> {
    let Some(epilogue) = AnchorEpilogue::of(search, root) else { return Vec::new() };
    let mut found = vec![epilogue];
    // An expression that is too large does not become smaller again.
    while !search.graph[root].device.is_empty()
        && let Some(larger) = found[found.len() - 1].with_small(search, root)
        && larger.expr.nodes().len() <= MAX_OPERATIONS
    {
        found.push(larger);
    }
    found.into_iter().rev().filter_map(|epilogue| epilogue.region(search)).collect()
}

/// An anchor, and an expression on its result and other operands.
pub(super) struct AnchorEpilogue {
    pub(super) anchor: Outlet,
    pub(super) expr: Expr,
    /// The operands of the expression, the anchor's result being one of them or none.
    pub(super) inputs: Vec<Outlet>,
    pub(super) members: FastSet<NodeId>,
}

/// An operand of an expression once small calls are part of it.
enum EpilogueOperand {
    Small(Expr),
    Operand((usize, DType)),
}

impl AnchorEpilogue {
    fn of(search: &Search<'_>, root: NodeId) -> Option<AnchorEpilogue> {
        let (graph, node) = (search.graph, &search.graph[root]);
        if !node.controls().is_empty() {
            return None;
        }
        let members = FastSet::from_iter([root]);
        let inputs = node.inputs().iter().copied();
        let anchors = inputs.filter(|&input| is_anchor(search, input, root, &members));
        let anchor = anchors.max_by_key(|anchor| anchor.node)?;
        let (expr, inputs) = formula(graph, root)?;
        let members = FastSet::from_iter([root, anchor.node]);
        Some(AnchorEpilogue { anchor, expr, inputs, members })
    }

    /// The same with small calls as part of the expression, those that nothing but its members reads; `None` if
    /// there are none.
    fn with_small(&self, search: &Search<'_>, root: NodeId) -> Option<AnchorEpilogue> {
        let graph = search.graph;
        let largest = search.shape(root.into())?.num_elements() / MANY_TIMES;
        let (mut all, mut members) = (Inputs::default(), self.members.clone());
        let mut parts: Vec<EpilogueOperand> = Vec::new();
        for &input in &self.inputs {
            let small = search.shape(input).filter(|shape| shape.num_elements() <= largest);
            let found = small.and_then(|_| {
                let is_in = |reader: NodeId| self.members.contains(&reader);
                let may_join = input != self.anchor && search.may_join(input.node, root, is_in);
                formula(graph, input.node).filter(|_| may_join)
            });
            let mut moved = |input: Outlet| Some((all.position(input), graph.ty(input)?.dtype));
            parts.push(match found {
                None => EpilogueOperand::Operand(moved(input)?),
                Some((expr, inputs)) => {
                    members.insert(input.node);
                    let inputs: Option<Vec<_>> = inputs.into_iter().map(moved).collect();
                    let inputs =
                        inputs?.into_iter().map(|(at, dtype)| Replacement::Input(at, dtype));
                    EpilogueOperand::Small(expr.substitute(&inputs.collect::<Vec<_>>()))
                }
            });
        }
        if members.len() == self.members.len() {
            return None;
        }
        let replacements: Vec<Replacement<'_>> = parts
            .iter()
            .map(|part| match part {
                EpilogueOperand::Small(expr) => Replacement::Expr(expr),
                EpilogueOperand::Operand((position, dtype)) => {
                    Replacement::Input(*position, *dtype)
                }
            })
            .collect();
        let expr = self.expr.substitute(&replacements);
        Some(AnchorEpilogue { anchor: self.anchor, expr, inputs: all.all, members })
    }

    pub(super) fn region(self, search: &Search<'_>) -> Option<Region> {
        let graph = search.graph;
        let anchor = &graph[self.anchor.node];
        // Input 0 of the expression is the anchor's element.
        let mut extras = Inputs::default();
        let moved: Option<Vec<Replacement<'_>>> = self
            .inputs
            .iter()
            .map(|&input| {
                let is_anchor = input == self.anchor;
                let position = if is_anchor { 0 } else { extras.position(input) + 1 };
                Some(Replacement::Input(position, graph.ty(input)?.dtype))
            })
            .collect();
        let expr = self.expr.substitute(&moved?);
        let inputs: Vec<Outlet> = anchor.inputs().iter().copied().chain(extras.all).collect();
        if inputs.len() > MAX_INPUTS || expr.nodes().len() > MAX_OPERATIONS {
            return None;
        }
        let anchor = NameAttrList::with_attrs(anchor.op.def()?.name, (*anchor.attrs).clone());
        let attrs = Attrs::new().with("anchor", anchor);
        Some(Region { attrs, expr, inputs, members: self.members })
    }
}

/// Whether a value is that of a kernel, of the shape of `root`, which alone reads it.
pub(super) fn is_anchor(
    search: &Search<'_>,
    value: Outlet,
    root: NodeId,
    members: &FastSet<NodeId>,
) -> bool {
    let graph = search.graph;
    let node = &graph[value.node];
    let is_kernel = node.op.def().is_some_and(|op| {
        matches!(op.lowering, Lowering::Kernel | Lowering::HostKernel(_))
            && op.name != names::REGION
            && node.expr.is_none()
    });
    let shape = search.shape(value);
    is_kernel
        && shape.is_some()
        && shape == search.shape(root.into())
        && search.may_join(value.node, root, |reader| members.contains(&reader))
}
