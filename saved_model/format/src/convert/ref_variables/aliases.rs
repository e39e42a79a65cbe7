//! Values that are the memory of a variable, as ops hand it on.
//!
//! `Identity`, `Reshape` and their like return the memory that they take, and so do the ops that let values
//! into branches and loops. A node that comes after a write sees what was written, though the value was made
//! before it: the way from the variable to such a node is made again, with a read behind the write.

use super::{Reference, read, writes::OrderedWrites};
use ferroflow_ir::{
    DType, Graph, NodeDef, NodeId, Outlet, Result,
    op::{AliasKind, Lowering},
};
use std::collections::HashMap;

/// The references of a graph, as far as it is converted, and the values that are their memory.
#[derive(Default)]
pub(super) struct References {
    pub(super) references: HashMap<Outlet, Reference>,
    aliases: HashMap<Outlet, MemoryAlias>,
    pub(super) writes: OrderedWrites,
    /// Nodes that let handles to where other nodes let values.
    flows: HashMap<NodeId, NodeId>,
}

/// A value that is the memory of a variable, as its node hands on an input: a reference, or another such
/// value.
#[derive(Clone, Copy)]
struct MemoryAlias {
    /// The input, as it was before its read, and its position.
    source: Outlet,
    input: usize,
    variable: NodeId,
    way: Way,
    /// Whether it is in a branch or a loop.
    is_inside: bool,
}

/// The value of a variable, and the node that reads it.
#[derive(Debug, Clone, Copy)]
pub struct FetchedValue {
    /// The value.
    pub value: Outlet,
    /// The read, which comes after what is to be seen.
    pub read: NodeId,
}

impl FetchedValue {
    /// The result of a read.
    pub(super) fn read(value: Outlet) -> FetchedValue {
        FetchedValue { value, read: value.node }
    }
}

/// The treatment of the memory that a node hands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nothing.
    Same,
    /// It has another shape or dtype, or is looked at.
    Seen,
    /// It goes into a branch or a loop.
    Flow,
}

/// The results of a node that are the memory of its inputs: their positions, and those of the inputs.
fn handed_on(node: &NodeDef) -> (Way, Vec<(usize, usize)>) {
    let of_name = match node.op.name() {
        // Sessions may feed the first; the others copy what a reference refers to.
        "PlaceholderWithDefault" | "Snapshot" | "DeepCopy" => Some((Way::Same, vec![])),
        "IdentityN" => Some((Way::Same, (0..node.inputs().len()).map(|i| (i, i)).collect())),
        "CheckNumerics" => Some((Way::Seen, vec![(0, 0)])),
        "Pack" if node.inputs().len() == 1 => Some((Way::Seen, vec![(0, 0)])),
        "Split" if node.outputs().len() == 1 => Some((Way::Seen, vec![(0, 1)])),
        "Enter" => Some((Way::Flow, vec![(0, 0)])),
        "Switch" => Some((Way::Flow, vec![(0, 0), (1, 0)])),
        _ => None,
    };
    let of_record = || match node.op.def()?.lowering {
        Lowering::Alias(AliasKind::Identity) => Some((Way::Same, vec![(0, 0)])),
        Lowering::Alias(_) => Some((Way::Seen, vec![(0, 0)])),
        _ => None,
    };
    of_name.or_else(of_record).unwrap_or((Way::Same, vec![]))
}

impl References {
    pub(super) fn new(writes: OrderedWrites) -> References {
        References { writes, ..References::default() }
    }

    /// Notes the results of a node that are the memory of a variable.
    pub(super) fn note(&mut self, graph: &Graph, id: NodeId) {
        let node = &graph[id];
        let (way, results) = handed_on(node);
        for (output, input) in results {
            let Some(&source) = node.inputs().get(input) else { continue };
            let of_reference = self
                .references
                .contains_key(&source)
                .then(|| Some((self.writes.variable(source.node)?, false)));
            let of_alias =
                || self.aliases.get(&source).map(|alias| (alias.variable, alias.is_inside));
            if let Some((variable, is_inside)) = of_reference.flatten().or_else(of_alias) {
                let is_inside = is_inside || way == Way::Flow;
                let alias = MemoryAlias { source, input, variable, way, is_inside };
                self.aliases.insert(Outlet::new(id, output), alias);
            }
        }
    }

    /// The read that a node has instead of a value that was read before the variable was written, though
    /// the node comes after that; `None` for other values.
    pub(super) fn read_again(
        &mut self,
        graph: &mut Graph,
        id: NodeId,
        input: Outlet,
    ) -> Result<Option<Outlet>> {
        let Some(alias) = self.aliases.get(&input) else { return Ok(None) };
        let node = &graph[id];
        // A `Merge` comes after one of its inputs alone.
        let comes_after_all = node.op.name() != "Merge";
        if !comes_after_all || !self.writes.are_between(alias.variable, input.node, id) {
            return Ok(None);
        }
        let others = node.inputs().iter().filter(|other| !self.aliases.contains_key(other));
        let others = others.map(|other| other.node);
        let mut after: Vec<NodeId> = others.chain(node.controls().iter().copied()).collect();
        // Whatever the value came after is before the node, too.
        after.extend((alias.way != Way::Flow).then_some(input.node));
        Ok(self.made_again(graph, input, &after)?.map(|again| again.value))
    }

    /// The values that are the memory of a variable, and what fetches of them return: the memory as
    /// it is at the end of the run.
    pub(super) fn fetched(&mut self, graph: &mut Graph) -> Result<Vec<(Outlet, FetchedValue)>> {
        let written = self.writes.variables();
        let mut aliases: Vec<Outlet> = self
            .aliases
            .iter()
            .filter(|(_, alias)| !alias.is_inside && written.contains(&alias.variable))
            .map(|(outlet, _)| *outlet)
            .collect();
        aliases.sort_unstable();
        let mut fetched = Vec::with_capacity(aliases.len());
        for alias in aliases {
            let again = self.made_again(graph, alias, &[alias.node])?;
            fetched.extend(again.map(|again| (alias, again)));
        }
        Ok(fetched)
    }

    /// A value that is the memory of a variable, once more and after other nodes; `None` where the way to it
    /// cannot be made again.
    fn made_again(
        &mut self,
        graph: &mut Graph,
        value: Outlet,
        after: &[NodeId],
    ) -> Result<Option<FetchedValue>> {
        let Some(&MemoryAlias { source, input, way, .. }) = self.aliases.get(&value) else {
            return Ok(None);
        };
        if way == Way::Flow {
            let Some(handle) = self.handle(graph, value)? else { return Ok(None) };
            let reference = Reference { handle, after: None };
            return read(graph, value, reference, after.to_vec()).map(FetchedValue::read).map(Some);
        }
        let before = match self.references.get(&source) {
            Some(reference) => FetchedValue::read(read(graph, source, *reference, after.to_vec())?),
            None => match self.made_again(graph, source, after)? {
                Some(before) => before,
                None => return Ok(None),
            },
        };
        if way == Way::Same {
            return Ok(Some(before));
        }
        let mut node = graph[value.node].clone();
        let mut inputs = node.inputs().to_vec();
        inputs[input] = before.value;
        node.name = graph.unique_name(&node.name).into();
        let node = graph.add(node.with_inputs(inputs))?;
        Ok(Some(FetchedValue { value: Outlet { node, ..value }, ..before }))
    }

    /// The handle of the variable whose memory a value is, where the value is; `None` where what is between
    /// them has changed its shape or dtype.
    fn handle(&mut self, graph: &mut Graph, value: Outlet) -> Result<Option<Outlet>> {
        if let Some(reference) = self.references.get(&value) {
            return Ok(Some(reference.handle));
        }
        let Some(&MemoryAlias { source, way, .. }) = self.aliases.get(&value) else {
            return Ok(None);
        };
        if way == Way::Seen {
            return Ok(None);
        }
        let Some(handle) = self.handle(graph, source)? else { return Ok(None) };
        if way == Way::Same {
            return Ok(Some(handle));
        }
        let flow = match self.flows.get(&value.node) {
            Some(&flow) => flow,
            None => {
                let flow = self.with_handle(graph, value.node, handle)?;
                self.flows.insert(value.node, flow);
                flow
            }
        };
        Ok(Some(Outlet { node: flow, index: value.index }))
    }

    /// A node that lets a handle to where another one lets a value.
    fn with_handle(&self, graph: &mut Graph, id: NodeId, handle: Outlet) -> Result<NodeId> {
        let mut node = graph[id].clone();
        let ty = graph.ty(handle).cloned();
        let mut inputs = node.inputs().to_vec();
        inputs[0] = handle;
        node.name = graph.unique_name(&node.name).into();
        node.attrs = (*node.attrs).clone().with("T", DType::Resource).into();
        let outputs: Vec<_> = node.outputs().iter().filter_map(|_| ty.clone()).collect();
        graph.add(node.with_inputs(inputs).with_outputs(outputs))
    }
}
