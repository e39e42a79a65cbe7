//! Expressions on the results of several anchors are split, so that each anchor has its epilogue.
//!
//! Fusion makes one expression of what the results of several anchors go through, such as a
//! convolution and that of its shortcut, each with the factors of a normalisation, and their sum.
//! One anchor alone takes the expression as its epilogue. What concerns another anchor alone becomes
//! that one's epilogue first; the rest reads its result.

use super::{
    MAX_INPUTS, Region, Search, dtypes,
    epilogue::{AnchorEpilogue, is_anchor},
    formula,
};
use crate::{
    dtype::DType,
    error::Result,
    expr::{Expr, ExprId, ExprKind, Prim, Replacement},
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    ops::names,
    pass::{fuse::fused_node, rebuild::rebuild, specialize::Specialized},
    registry,
};
use std::collections::HashSet;

/// Splits the expressions of a body where an epilogue of another anchor than the last is profitable.
///
/// # Errors
///
/// None on a well-formed body.
pub fn split_epilogues(
    body: &mut Specialized,
    mut gains: impl FnMut(&Graph, &NodeDef) -> bool,
) -> Result<()> {
    let region = registry::find(names::REGION).expect("a built-in record");
    loop {
        let kept: FastSet<NodeId> = body.results.iter().map(|outlet| outlet.node).collect();
        let search = Search { graph: &body.graph, kept: &kept };
        let mut found: FastMap<NodeId, (Split, NodeDef)> = FastMap::default();
        for id in body.graph.ids() {
            let Some(split) = Split::of(&search, id) else { continue };
            let part = split.region.node(&body.graph, id, region);
            if gains(&body.graph, &part) {
                found.insert(id, (split, part));
            }
        }
        if found.is_empty() {
            return Ok(());
        }
        // An anchor whose epilogue is made anew has no reader, and is none in the next round.
        rebuild(body, |rebuilt, source, id, _| {
            let Some((split, part)) = found.remove(&id) else {
                let node = rebuilt.node(&source[id]);
                return rebuilt.graph.add(node);
            };
            let mut part = rebuilt.node(&part);
            part.name = rebuilt.graph.unique_name(&source[split.anchor].name).into();
            let part = rebuilt.graph.add(part)?;
            let rest = split.rest(source, id);
            let mut rest = rebuilt.node(&rest);
            let inputs: Vec<Outlet> = rest.inputs().iter().copied().chain([part.into()]).collect();
            rest = rest.with_inputs(inputs);
            rebuilt.graph.add(rest)
        })?;
    }
}

/// An expression in two parts.
struct Split {
    anchor: NodeId,
    /// The anchor with what concerns it alone.
    region: Region,
    /// The rest, and its inputs but the last, which is the result of the region.
    rest: Expr,
    inputs: Vec<Outlet>,
}

impl Split {
    fn of(search: &Search<'_>, root: NodeId) -> Option<Split> {
        let (graph, node) = (search.graph, &search.graph[root]);
        // Fused expressions have no more inputs, and a sum of many has nothing to split.
        let is_small = node.inputs().len() <= MAX_INPUTS;
        if !node.controls().is_empty() || !node.device.is_empty() || !is_small {
            return None;
        }
        let members = FastSet::from_iter([root]);
        let is_anchor = |input: &Outlet| is_anchor(search, *input, root, &members);
        // Most nodes read no anchor, and the rest takes longer.
        if node.inputs().iter().filter(|&input| is_anchor(input)).count() < 2 {
            return None;
        }
        let (expr, inputs) = formula(graph, root).filter(|(expr, _)| expr.dtype() == DType::F32)?;
        let anchors: Vec<usize> =
            (0..inputs.len()).filter(|&position| is_anchor(&inputs[position])).collect();
        let last = anchors.iter().map(|&position| inputs[position].node).max()?;
        let others = anchors.iter().filter(|&&position| inputs[position].node != last);
        others.copied().find_map(|position| {
            let top = top_of(&expr, position, &anchors)?;
            let anchor = inputs[position];
            let part = expr.part(top, |_| None).applied(Prim::Flush);
            let (part, used) = part.compacted();
            let own = used.into_iter().map(|position| inputs[position]).collect();
            let members = FastSet::from_iter([anchor.node]);
            let region = AnchorEpilogue { anchor, expr: part, inputs: own, members };
            let region = region.region(search)?;
            let rest = expr.part(expr.root(), |id| (id == top).then_some(inputs.len()));
            let (rest, used) = rest.compacted();
            // The result of the region is the input behind all others.
            let inputs: Vec<Outlet> =
                used.iter().filter_map(|&at| inputs.get(at)).copied().collect();
            // Its subnormal numbers count as zeros, as those of any value in memory.
            let part = Expr::input(inputs.len(), DType::F32).applied(Prim::Flush);
            let kept = dtypes(graph, &inputs).into_iter().enumerate();
            let kept = kept.map(|(position, dtype)| Replacement::Input(position, dtype));
            let replacements: Vec<_> = kept.chain([Replacement::Expr(&part)]).collect();
            let rest = rest.substitute(&replacements);
            Some(Split { anchor: anchor.node, region, rest, inputs })
        })
    }

    /// The node that computes the rest instead of `root`, without the result of the region.
    fn rest(self, graph: &Graph, root: NodeId) -> NodeDef {
        let types = dtypes(graph, &self.inputs).into_iter().chain([DType::F32]).collect();
        let fused = registry::find(names::FUSED_ELEMENTWISE).expect("a built-in record");
        fused_node(graph[root].clone().with_inputs(self.inputs), fused, types, self.rest)
    }
}

/// The only node from which on the element of an anchor meets those of others; `None` where there
/// are several, or it is nothing but that element.
fn top_of(expr: &Expr, anchor: usize, anchors: &[usize]) -> Option<ExprId> {
    // For each node, whether it depends on this anchor, and whether on another.
    let mut depends: Vec<(bool, bool)> = Vec::with_capacity(expr.nodes().len());
    let mut tops: HashSet<ExprId> = HashSet::new();
    for (_, node) in expr.iter() {
        let of_args = match &node.kind {
            ExprKind::Input(position) => {
                (*position == anchor, *position != anchor && anchors.contains(position))
            }
            ExprKind::Const(_) | ExprKind::Apply(..) | ExprKind::Reduce(..) => {
                let args = node.kind.args().iter().map(|arg| depends[arg.index()]);
                args.fold((false, false), |all, arg| (all.0 | arg.0, all.1 | arg.1))
            }
        };
        if of_args == (true, true) {
            let args = node.kind.args().iter().copied();
            tops.extend(args.filter(|arg| depends[arg.index()] == (true, false)));
        }
        depends.push(of_args);
    }
    let mut tops = tops.into_iter();
    let (top, None) = (tops.next()?, tops.next()) else { return None };
    let is_work = |id: ExprId| match &expr.nodes()[id.index()].kind {
        ExprKind::Apply(prim, _) => *prim != Prim::Flush,
        ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Reduce(..) => false,
    };
    let is_float = expr.nodes()[top.index()].dtype == DType::F32;
    (is_work(top) && is_float).then_some(top)
}
