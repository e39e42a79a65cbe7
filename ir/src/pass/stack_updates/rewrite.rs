//! Bodies whose stacks are updated.

use super::{chain::Chain, picks::Picks};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastMap,
    host_tensor::HostTensor,
    ops::names,
    pass::{call::add_call, execution::constant, rebuild::Rebuilt},
};
use std::collections::HashMap;

/// The chains of a body that is built anew.
pub(super) struct Rewrite<'a> {
    chains: &'a [Chain],
    /// The chain that a node is of.
    chain_of: FastMap<NodeId, usize>,
    /// The stack of each chain as it is after the updates that are there, once one is.
    states: Vec<Option<Outlet>>,
    /// Slices of the stacks.
    slices: HashMap<(Outlet, Picks), Outlet>,
}

impl<'a> Rewrite<'a> {
    pub(super) fn of(chains: &'a [Chain]) -> Rewrite<'a> {
        let nodes = |(index, chain): (usize, &Chain)| {
            let own = chain.slices.keys().copied().chain([chain.last]);
            own.map(move |id| (id, index)).collect::<Vec<_>>()
        };
        let chain_of = chains.iter().enumerate().flat_map(nodes).collect();
        Rewrite { chains, chain_of, states: vec![None; chains.len()], slices: HashMap::new() }
    }

    /// Adds what stands for a node.
    pub(super) fn add(
        &mut self,
        rebuilt: &mut Rebuilt,
        source: &Graph,
        id: NodeId,
    ) -> Result<NodeId> {
        let Some(&index) = self.chain_of.get(&id) else {
            return self.reader(rebuilt, source, id);
        };
        if self.chains[index].updates.contains(&id) {
            let state = self.update(rebuilt, source, id, index)?;
            self.states[index] = Some(state);
        }
        // The last one is the stack; slices are read through `input`.
        Ok(self.stack(rebuilt, index).node)
    }

    fn reader(&mut self, rebuilt: &mut Rebuilt, source: &Graph, id: NodeId) -> Result<NodeId> {
        let node = &source[id];
        let inputs: Result<Vec<Outlet>> = node
            .inputs()
            .iter()
            .map(|&input| self.input(rebuilt, &source[input.node], input))
            .collect();
        let new = rebuilt.node(node).with_inputs(inputs?);
        rebuilt.graph.add(new)
    }

    /// The value that stands for an outlet of this node.
    fn input(&mut self, rebuilt: &mut Rebuilt, node: &NodeDef, outlet: Outlet) -> Result<Outlet> {
        let found = self.chain_of.get(&outlet.node).and_then(|&index| {
            let picks = self.chains[index].slices.get(&outlet.node)?;
            Some((self.stack(rebuilt, index), picks))
        });
        match found {
            Some((stack, picks)) => self.slice(&mut rebuilt.graph, &node.name, stack, picks),
            None => Ok(rebuilt.outlet(outlet)),
        }
    }

    /// The stack of a chain as it is now.
    fn stack(&self, rebuilt: &Rebuilt, index: usize) -> Outlet {
        self.states[index].unwrap_or_else(|| rebuilt.outlet(self.chains[index].stack))
    }

    fn slice(
        &mut self,
        graph: &mut Graph,
        name: &str,
        stack: Outlet,
        picks: &Picks,
    ) -> Result<Outlet> {
        if let Some(&slice) = self.slices.get(&(stack, picks.clone())) {
            return Ok(slice);
        }
        let bounds =
            |past: i64| picks.iter().map(move |pick| pick.map_or(0, |at| at as i64 + past));
        let [begin, end] = [0, 1].map(|past| bounds(past).collect::<Vec<i64>>());
        let inputs = [
            stack,
            add_numbers(graph, name, DType::I64, &begin)?,
            add_numbers(graph, name, DType::I64, &end)?,
            add_numbers(graph, name, DType::I64, &vec![1; begin.len()])?,
        ];
        let all = (1i64 << begin.len()) - 1;
        let attrs = Attrs::new()
            .with("begin_mask", all & !picks.mask())
            .with("end_mask", all & !picks.mask())
            .with("shrink_axis_mask", picks.mask());
        let slice = add_call(graph, name, names::STRIDED_SLICE, attrs, &inputs)?;
        self.slices.insert((stack, picks.clone()), slice);
        Ok(slice)
    }

    /// The stack after an update of one of its slices.
    fn update(
        &mut self,
        rebuilt: &mut Rebuilt,
        source: &Graph,
        id: NodeId,
        index: usize,
    ) -> Result<Outlet> {
        let (node, picks) = (&source[id], &self.chains[index].slices[&id]);
        let mut inputs = vec![self.stack(rebuilt, index)];
        for &input in &node.inputs()[1..] {
            inputs.push(self.input(rebuilt, &source[input.node], input)?);
        }
        // Begin, end and step of the window of one index.
        let picked: [fn(usize) -> i64; 3] = [|at| at as i64, |at| at as i64 + 1, |_| 1];
        for (bounds, picked) in inputs[1..4].iter_mut().zip(picked) {
            *bounds = spread(&mut rebuilt.graph, &node.name, *bounds, picks, picked)?;
        }
        let mut attrs = Attrs::new();
        for mask in ["begin_mask", "end_mask"] {
            attrs.set(mask, picks.spread_mask(node.attrs.int(mask)?));
        }
        let shrink = "shrink_axis_mask";
        attrs.set(shrink, picks.spread_mask(node.attrs.int(shrink)?) | picks.mask());
        add_call(&mut rebuilt.graph, &node.name, names::TENSOR_STRIDED_SLICE_UPDATE, attrs, &inputs)
    }
}

/// A vector over the axes of a slice as one over those of its stack; `picked` is the number of an axis of
/// which the slice has one index.
fn spread(
    graph: &mut Graph,
    name: &str,
    vector: Outlet,
    picks: &Picks,
    picked: fn(usize) -> i64,
) -> Result<Outlet> {
    let dtype = graph.ty(vector).map_or(DType::I64, |ty| ty.dtype);
    if let Some(known) = constant(graph, vector) {
        let mut known = known.to_i64s()?.into_iter();
        let all: Vec<i64> =
            picks.iter().filter_map(|pick| pick.map(picked).or_else(|| known.next())).collect();
        return add_numbers(graph, name, dtype, &all);
    }
    let (mut parts, mut start) = (Vec::new(), 0);
    let all: Vec<Option<usize>> = picks.iter().collect();
    for run in all.chunk_by(|a, b| a.is_some() == b.is_some()) {
        let numbers: Vec<i64> = run.iter().flatten().map(|&at| picked(at)).collect();
        if numbers.is_empty() {
            let begin = add_numbers(graph, name, DType::I64, &[start])?;
            let size = add_numbers(graph, name, DType::I64, &[run.len() as i64])?;
            parts.push(add_call(graph, name, names::SLICE, Attrs::new(), &[vector, begin, size])?);
            start += run.len() as i64;
        } else {
            parts.push(add_numbers(graph, name, dtype, &numbers)?);
        }
    }
    parts.push(add_call(graph, name, names::CONST, axis_attrs(), &[])?);
    add_call(graph, name, names::CONCAT_V2, Attrs::new(), &parts)
}

fn axis_attrs() -> Attrs {
    Attrs::new().with("dtype", DType::I32).with("value", HostTensor::scalar(0i32))
}

fn add_numbers(graph: &mut Graph, name: &str, dtype: DType, numbers: &[i64]) -> Result<Outlet> {
    let value = match dtype {
        DType::I32 => HostTensor::vector(&numbers.iter().map(|&n| n as i32).collect::<Vec<i32>>())?,
        _ => HostTensor::vector(numbers)?,
    };
    let attrs = Attrs::new().with("dtype", dtype).with("value", value);
    add_call(graph, name, names::CONST, attrs, &[])
}
