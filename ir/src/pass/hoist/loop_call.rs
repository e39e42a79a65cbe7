//! A call of a loop that gets more variables.

use super::invariant::Invariants;
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    graph::{NodeDef, NodeId, Outlet},
    hash::FastMap,
    ops::names,
    pass::{
        placement::{location, own_location, set_locations},
        rebuild::Rebuilt,
        specialize::Specialized,
    },
    registry,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{collections::BTreeSet, sync::Arc};

/// A call of a loop, taken apart: variables can be added that are the same in all rounds.
pub(super) struct LoopCall<'a> {
    pub(super) node: NodeDef,
    /// The condition and the body.
    pub(super) functions: [&'a mut Specialized; 2],
    /// The initial values of the variables.
    pub(super) inputs: Vec<Outlet>,
    types: Vec<ValueType>,
    locations: Vec<Box<str>>,
}

impl<'a> LoopCall<'a> {
    pub(super) fn new(
        node: NodeDef,
        condition: &'a mut Specialized,
        body: &'a mut Specialized,
    ) -> LoopCall<'a> {
        let types: Vec<ValueType> = node.outputs().to_vec();
        let location = |index: usize| own_location(&node, index).into();
        LoopCall {
            inputs: node.inputs().to_vec(),
            locations: (0..types.len()).map(location).collect(),
            functions: [condition, body],
            types,
            node,
        }
    }

    /// Whether variable `index` is the same in all rounds.
    pub(super) fn is_fixed(&self, index: usize) -> bool {
        let body = &self.functions[1];
        body.args.get(index).is_some_and(|arg| body.results.get(index) == Some(arg))
    }

    /// The initial value of the variable that an outlet of function `side` is, if that is the same in
    /// all rounds.
    pub(super) fn fixed_input(&self, side: usize, outlet: Outlet) -> Option<Outlet> {
        let index = self.functions[side].args.iter().position(|&arg| arg == outlet)?;
        self.is_fixed(index).then(|| self.inputs[index])
    }

    /// Adds a variable that is `outside` in all rounds; returns it in the condition and in the body.
    pub(super) fn add_variable(
        &mut self,
        outside: Outlet,
        ty: &ValueType,
        device: &str,
    ) -> Result<[Outlet; 2]> {
        self.inputs.push(outside);
        self.types.push(ty.clone());
        self.locations.push(device.into());
        let [condition, body] = &mut self.functions;
        let args = [add_argument(condition, ty, device)?, add_argument(body, ty, device)?];
        body.results.push(args[1]);
        Ok(args)
    }

    /// Moves nodes of both functions before the loop.
    pub(super) fn move_invariants(
        &mut self,
        outer: &mut Rebuilt,
        invariants: &Invariants,
    ) -> Result<()> {
        for (side, nodes) in invariants.0.iter().enumerate() {
            for (inside, outside) in self.copy_before(outer, side, nodes)? {
                let graph = &self.functions[side].graph;
                let Some(ty) = graph.ty(inside).cloned() else { continue };
                let device: Box<str> = location(graph, inside).into();
                let arg = self.add_variable(outside, &ty, &device)?[side];
                let function = &mut self.functions[side];
                function.graph.replace_uses(inside, arg);
                let results = function.results.iter_mut();
                results.filter(|result| **result == inside).for_each(|result| *result = arg);
            }
        }
        Ok(())
    }

    /// Adds copies of `nodes` before the loop; returns the outlets that others use, and those that
    /// stand for them.
    fn copy_before(
        &self,
        outer: &mut Rebuilt,
        side: usize,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<Vec<(Outlet, Outlet)>> {
        let function = &self.functions[side];
        let graph = &function.graph;
        let mut outside: FastMap<Outlet, Outlet> =
            function.args.iter().copied().zip(self.inputs.iter().copied()).collect();
        for &id in nodes {
            let node = &graph[id];
            for input in node.inputs() {
                if !outside.contains_key(input) {
                    let constant = self.copy(outer, &graph[input.node], &outside)?;
                    outside.insert(*input, constant.into());
                }
            }
            let copy = self.copy(outer, node, &outside)?;
            if let Some(&reason) = function.reasons.get(&id) {
                outer.reasons.insert(copy, reason);
            }
            for index in 0..node.outputs().len() {
                outside.insert(Outlet::new(id, index), Outlet::new(copy, index));
            }
        }
        let is_used = |outlet: &Outlet| {
            let mut users = graph.data_consumers(outlet.node).filter(|user| !nodes.contains(user));
            function.results.contains(outlet)
                || users.any(|user| graph[user].inputs().contains(outlet))
        };
        let outlets = nodes.iter().flat_map(|&id| {
            (0..graph[id].outputs().len()).map(move |index| Outlet::new(id, index))
        });
        Ok(outlets.filter(is_used).map(|outlet| (outlet, outside[&outlet])).collect())
    }

    /// Adds a copy of a node of the loop before it.
    pub(super) fn copy(
        &self,
        outer: &mut Rebuilt,
        node: &NodeDef,
        outside: &FastMap<Outlet, Outlet>,
    ) -> Result<NodeId> {
        let inputs: SmallVec<[Outlet; 4]> =
            node.inputs().iter().map(|input| outside[input]).collect();
        let mut copy = node.clone().with_inputs(inputs).with_controls([]);
        copy.name = outer.graph.unique_name(&self.outer_name(&node.name)).into();
        outer.graph.add(copy)
    }

    /// The name, but for a number, of a node before the loop that stands for one in it.
    pub(super) fn outer_name(&self, name: &str) -> String {
        format!("{}/{name}", self.node.name)
    }

    /// The call with its new variables.
    pub(super) fn into_node(self) -> NodeDef {
        let mut node = self.node;
        if self.types.len() > node.outputs().len() {
            let dtypes: Vec<DType> = self.types.iter().map(|ty| ty.dtype).collect();
            node.attrs = Arc::new((*node.attrs).clone().with("T", dtypes));
            set_locations(&mut node, &self.locations);
        }
        node.with_inputs(self.inputs).with_outputs(self.types)
    }
}

fn add_argument(function: &mut Specialized, ty: &ValueType, device: &str) -> Result<Outlet> {
    let op = registry::find(names::ARG).expect("a built-in record");
    let attrs = Attrs::new().with("T", ty.dtype).with("index", function.args.len() as i64);
    let name = function.graph.unique_name("hoisted");
    let mut node = NodeDef::new(name, op, attrs).with_outputs([ty.clone()]);
    node.device = device.into();
    let arg = Outlet::from(function.graph.add(node)?);
    function.args.push(arg);
    Ok(arg)
}
