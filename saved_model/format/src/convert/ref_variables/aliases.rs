//! Values that are the memory of a variable, as ops hand it on.
//!
//! `Identity`, `Reshape` and their like return the memory that they take, and so do the ops that let values
//! into branches and loops. A node that comes after a write sees what was written, though the value was made
//! before it: the way from the variable to such a node is made again, with a read behind the write.

use super::{Reference, read, writes::OrderedWrites};
use ferroflow_ir::{
    DType, Error, Graph, NodeDef, NodeId, Outlet, Result,
    hash::FastMap,
    op::{AliasKind, Lowering},
};

/// Ops between a variable and a value that is its memory, as many as are made again.
const LONGEST: usize = 64;

/// The references of a graph, as far as it is converted, and the values that are their memory.
#[derive(Default)]
pub(super) struct References {
    pub(super) references: FastMap<Outlet, Reference>,
    aliases: FastMap<Outlet, MemoryAlias>,
    /// The aliases in the order of the graph.
    noted: Vec<Outlet>,
    pub(super) writes: OrderedWrites,
    /// Nodes that let handles to where other nodes let values.
    flows: FastMap<NodeId, NodeId>,
}

/// A value that is the memory of a variable. Nodes that do nothing with it are left out of the way to it.
#[derive(Clone, Copy)]
struct MemoryAlias {
    /// The result of the node that changed it last, or of the first one.
    value: Outlet,
    /// The input of that node, as it was before its read, and its position.
    source: Outlet,
    input: usize,
    variable: NodeId,
    way: Way,
    /// Whether it is in a branch or a loop.
    is_inside: bool,
    /// Nodes from the variable to it.
    length: usize,
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
    /// It stays as it is.
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
            let value = Outlet::new(id, output);
            let before = self.aliases.get(&source).copied();
            let alias = match (before, way) {
                (Some(before), Way::Same) => before,
                (Some(before), _) => {
                    let is_inside = before.is_inside || way == Way::Flow;
                    let length = before.length + 1;
                    MemoryAlias { value, source, input, way, is_inside, length, ..before }
                }
                (None, _) => {
                    let is_reference = self.references.contains_key(&source);
                    let variable = is_reference.then(|| self.writes.variable(source.node));
                    let Some(variable) = variable.flatten() else { continue };
                    let is_inside = way == Way::Flow;
                    MemoryAlias { value, source, input, variable, way, is_inside, length: 1 }
                }
            };
            self.aliases.insert(value, alias);
            self.noted.push(value);
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
        if alias.length > LONGEST {
            let what = format!(
                "a value that {} ops hand on of the memory of a reference variable, read after a write",
                alias.length
            );
            let op = graph[input.node].op.name().to_string().into();
            return Err(Error::Unsupported { op, what: what.into() });
        }
        self.made_again(graph, input, &after)
    }

    /// Adds to the values that are fetched instead of references those that are fetched instead of values which
    /// are their memory: all of them are the memory as it is at the end of the run.
    pub(super) fn fetched(
        &self,
        graph: &mut Graph,
        fetched: &mut FastMap<Outlet, FetchedValue>,
    ) -> Result<()> {
        let written = self.writes.variables();
        let alias = |outlet: &Outlet| Some((*outlet, *self.aliases.get(outlet)?));
        let is_wanted = |(_, alias): &(Outlet, MemoryAlias)| {
            !alias.is_inside && written.contains(&alias.variable)
        };
        for (outlet, alias) in self.noted.iter().filter_map(alias).filter(is_wanted) {
            // Values before it are there already.
            let found = match outlet == alias.value {
                true => fetched.get(&alias.source),
                false => fetched.get(&alias.value),
            };
            let Some(&found) = found else { continue };
            let is_changed = outlet == alias.value && alias.way == Way::Seen;
            let own = if is_changed { changed_again(graph, &alias, found)? } else { found };
            fetched.insert(outlet, own);
        }
        Ok(())
    }

    /// A value that is the memory of a variable, once more and after other nodes; `None` where the way to it
    /// cannot be made again.
    fn made_again(
        &mut self,
        graph: &mut Graph,
        value: Outlet,
        after: &[NodeId],
    ) -> Result<Option<Outlet>> {
        let Some(&alias) = self.aliases.get(&value) else { return Ok(None) };
        if alias.way == Way::Flow {
            let Some(handle) = self.handle(graph, value)? else { return Ok(None) };
            let reference = Reference { handle, after: None };
            return read(graph, value, reference, after.to_vec()).map(Some);
        }
        let before = match self.references.get(&alias.source) {
            Some(reference) => Some(read(graph, alias.source, *reference, after.to_vec())?),
            None => self.made_again(graph, alias.source, after)?,
        };
        let Some(before) = before.filter(|_| alias.way == Way::Seen) else { return Ok(before) };
        Ok(Some(changed_again(graph, &alias, FetchedValue::read(before))?.value))
    }

    /// The handle of the variable whose memory a value is, where the value is; `None` where what is between
    /// them has changed its shape or dtype.
    fn handle(&mut self, graph: &mut Graph, value: Outlet) -> Result<Option<Outlet>> {
        if let Some(reference) = self.references.get(&value) {
            return Ok(Some(reference.handle));
        }
        let Some(&MemoryAlias { value, source, way, .. }) = self.aliases.get(&value) else {
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
                let flow = with_handle(graph, value.node, handle)?;
                self.flows.insert(value.node, flow);
                flow
            }
        };
        Ok(Some(Outlet { node: flow, index: value.index }))
    }
}

/// The node that changed a value last, once more and on another value.
fn changed_again(
    graph: &mut Graph,
    alias: &MemoryAlias,
    before: FetchedValue,
) -> Result<FetchedValue> {
    let mut node = graph[alias.value.node].clone();
    let mut inputs = node.inputs().to_vec();
    inputs[alias.input] = before.value;
    node.name = graph.unique_name(&node.name).into();
    let node = graph.add(node.with_inputs(inputs))?;
    Ok(FetchedValue { value: Outlet { node, ..alias.value }, ..before })
}

/// A node that lets a handle to where another one lets a value.
fn with_handle(graph: &mut Graph, id: NodeId, handle: Outlet) -> Result<NodeId> {
    let mut node = graph[id].clone();
    let ty = graph.ty(handle).cloned();
    let mut inputs = node.inputs().to_vec();
    inputs[0] = handle;
    node.name = graph.unique_name(&node.name).into();
    node.attrs = (*node.attrs).clone().with("T", DType::Resource).into();
    let outputs: Vec<_> = node.outputs().iter().filter_map(|_| ty.clone()).collect();
    graph.add(node.with_inputs(inputs).with_outputs(outputs))
}

#[cfg(test)]
mod tests {
    use super::super::{op, resource_variables};
    use super::*;
    use ferroflow_ir::{Attrs, HostTensor, PartialShape, ValueType};

    /// A graph in which so many ops hand on the memory of a variable, one after the other, and the last value is
    /// read again after a write, or not.
    fn chain(name: &str, length: usize, is_read_after: bool) -> Graph {
        let mut graph = Graph::new();
        let f32s = || ValueType::new(DType::F32, PartialShape::Unknown);
        let mut add =
            |name: String, op_name: &str, attrs: Attrs, inputs: &[Outlet], controls: &[NodeId]| {
                let record = op(op_name).unwrap();
                let node = NodeDef::new(name, record, record.complete_attrs(attrs).unwrap());
                let node = node
                    .with_inputs(inputs.iter().copied())
                    .with_controls(controls.iter().copied());
                Outlet::from(graph.add(node.with_outputs([f32s()])).unwrap())
            };
        let of_type = || Attrs::new().with("T", DType::F32);
        let attrs = Attrs::new().with("dtype", DType::F32).with("shape", PartialShape::Unknown);
        let variable = add("w".into(), "VariableV2", attrs, &[], &[]);
        let one = HostTensor::vector(&[1.0f32]).unwrap();
        let attrs = Attrs::new().with("dtype", DType::F32).with("value", one);
        let one = add("one".into(), "Const", attrs, &[], &[]);
        let size = HostTensor::vector(&[1i32]).unwrap();
        let attrs = Attrs::new().with("dtype", DType::I32).with("value", size);
        let size = add("size".into(), "Const", attrs, &[], &[]);
        let mut value = variable;
        for number in 0..length {
            let inputs = if name == "Reshape" { vec![value, size] } else { vec![value] };
            value = add(format!("v{number}"), name, of_type(), &inputs, &[]);
        }
        let write = add("write".into(), "AssignAdd", of_type(), &[variable, one], &[value.node]);
        let after = if is_read_after { vec![write.node] } else { vec![] };
        add("user".into(), "Neg", of_type(), &[value], &after);
        graph
    }

    /// Files may have any number of them: the work grows as the graph does.
    #[test]
    fn long_ways_take_a_time_that_is_linear_in_them() {
        for name in ["Identity", "Reshape"] {
            let (graph, reads) = resource_variables(chain(name, 20_000, false)).unwrap();
            assert!(graph.len() < 50_000, "{name}: {} nodes", graph.len());
            assert!(reads.len() > 20_000, "{name}: {} reads", reads.len());
        }
        resource_variables(chain("Identity", 20_000, true)).unwrap();
        resource_variables(chain("Reshape", LONGEST, true)).unwrap();
        let error = resource_variables(chain("Reshape", 20_000, true)).map(drop).unwrap_err();
        assert!(error.to_string().contains("20000 ops hand on"), "{error}");
    }
}
