//! The state of a graph under construction, behind a lock.
//!
//! **Invariant:** code that holds the lock calls methods of [`GraphState`] and of what it consists of, and
//! nothing else. `GraphState` knows no trace, no tape and no context, so it cannot come back to the
//! lock: whatever a trace has to find out about a tensor it finds out before or after.

use super::{Created, Mark};
use crate::{
    capture::{Capture, Captures},
    control_order::ControlOrder,
    error::Result,
    value::NestedValue,
};
use ferroflow_ir::{
    Attrs, Effect, FunctionLibrary, Graph, HostTensor, NodeDef, NodeId, Outlet, ValueType,
    hash::{FastMap, FastSet},
    ops::names,
    registry,
};
use parking_lot::ReentrantMutex;
use smallvec::SmallVec;
use std::{cell::RefCell, collections::HashMap};

/// A state that one thread at a time looks at.
#[derive(Default)]
pub(super) struct Locked(ReentrantMutex<RefCell<GraphState>>);

impl Locked {
    /// Calls `body` with the state.
    ///
    /// # Panics
    ///
    /// When `body` comes back here, which would otherwise wait for ever.
    pub(super) fn with<R>(&self, body: impl FnOnce(&mut GraphState) -> R) -> R {
        let guard = self.0.lock();
        let mut state = guard.try_borrow_mut().expect("no code that holds the state asks for it");
        body(&mut state)
    }
}

#[derive(Default)]
pub(super) struct GraphState {
    pub(super) graph: Graph,
    pub(super) args: Vec<NodeId>,
    pub(super) captures: Captures,
    pub(super) order: ControlOrder,
    pub(super) created: Vec<Created>,
    /// The call added last.
    pub(super) last: Option<NodeId>,
    /// The calls and constants added so far, in order.
    calls: Vec<NodeId>,
    pub(super) collections: HashMap<String, Vec<NestedValue>>,
    /// Values that were needed while tracing.
    pub(super) known: FastMap<Outlet, Option<HostTensor>>,
    /// The names of the nodes, once the graph is finished and belongs to a function.
    names: FastMap<NodeId, Box<str>>,
}

impl GraphState {
    pub(super) fn ty(&self, outlet: Outlet) -> &ValueType {
        self.graph.ty(outlet).expect("every node of a trace has types")
    }

    /// The name of a node, also of one that belongs to a function by now.
    pub(super) fn node_name(&self, id: NodeId) -> String {
        match self.names.get(&id) {
            Some(name) => name.to_string(),
            None if self.graph.contains(id) => self.graph[id].name.to_string(),
            None => format!("{id:?}"),
        }
    }

    /// Adds a call; `order` is its effect where effects keep the order of the program.
    pub(super) fn add_call(
        &mut self,
        node: NodeDef,
        types: &[ValueType],
        controls: SmallVec<[NodeId; 1]>,
        order: Option<Effect>,
    ) -> Result<NodeId> {
        let inputs: SmallVec<[Outlet; 4]> = node.inputs().into();
        let outputs: SmallVec<[ValueType; 2]> = node.outputs().into();
        let before = order.map(|effect| self.order.before(effect, &inputs, types));
        let before = before.into_iter().flatten();
        let id = self.graph.add(node.with_controls(before.chain(controls)))?;
        self.last = Some(id);
        self.calls.push(id);
        if let Some(effect) = order {
            self.order.ran(id, effect, &inputs, types, &outputs);
        }
        Ok(id)
    }

    /// Adds attributes to a node.
    pub(super) fn note(&mut self, id: NodeId, noted: &Attrs) {
        let attrs = self.graph[id].attrs.clone();
        let all = attrs.iter().chain(noted.iter()).map(|(name, value)| (name, value.clone()));
        *self.graph.node_mut(id).attrs = all.collect::<Attrs>().into();
    }

    /// Makes the call added last run after these others.
    pub(super) fn delay_last(&mut self, others: impl IntoIterator<Item = NodeId>) -> Result<()> {
        let Some(id) = self.last else { return Ok(()) };
        let node = &self.graph[id];
        let controls: Vec<NodeId> = node.controls().iter().copied().chain(others).collect();
        let inputs = node.inputs().to_vec();
        Ok(self.graph.connect(id, inputs, controls)?)
    }

    /// Makes the call added last run after all that change the state it is passed.
    pub(super) fn delay_last_after_changes(&mut self, library: &FunctionLibrary) -> Result<()> {
        let control_inputs = self.last.map_or(&[][..], |id| self.graph[id].inputs());
        let changes = self.graph.iter().filter(|(_, node)| {
            let effect = library.effect_of(&node.op, &node.attrs);
            let shares_state = node.inputs().iter().any(|input| control_inputs.contains(input));
            shares_state && matches!(effect, Effect::Writes | Effect::Stateful)
        });
        let changes: Vec<NodeId> = changes.map(|(id, _)| id).collect();
        self.delay_last(changes)
    }

    fn add_argument(&mut self, name: &str, ty: ValueType) -> Result<Outlet> {
        let op = registry::find(names::ARG).expect("a built-in record");
        let attrs = Attrs::new().with("T", ty.dtype).with("index", 0i64);
        let name = self.graph.unique_name(name);
        let node = NodeDef::new(name, op, attrs).with_outputs([ty]);
        Ok(self.graph.add(node)?.into())
    }

    /// Adds an argument that callers pass.
    pub(super) fn add_passed_argument(&mut self, name: &str, ty: ValueType) -> Result<Outlet> {
        let outlet = self.add_argument(name, ty)?;
        self.args.push(outlet.node);
        Ok(outlet)
    }

    /// Adds an argument for a value from outside.
    pub(super) fn add_capture(
        &mut self,
        capture: Capture,
        name: &str,
        ty: ValueType,
    ) -> Result<Outlet> {
        let outlet = self.add_argument(name, ty)?;
        self.captures.add(capture, outlet);
        Ok(outlet)
    }

    pub(super) fn constant(&mut self, name: &str, value: HostTensor) -> Result<Outlet> {
        let op = registry::find(names::CONST).expect("a built-in record");
        let ty = ValueType::new(value.dtype(), value.shape());
        let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
        let name = self.graph.unique_name(name);
        let id = self.graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?;
        self.calls.push(id);
        Ok(id.into())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { n_calls: self.calls.len(), order: self.order.clone(), last: self.last }
    }

    pub(super) fn roll_back(&mut self, mark: Mark) -> Result<()> {
        let calls = self.calls.split_off(mark.n_calls);
        let removed: FastSet<NodeId> = calls.iter().copied().collect();
        self.known.retain(|outlet, _| !removed.contains(&outlet.node));
        for id in calls.into_iter().rev() {
            self.graph.remove(id)?;
        }
        (self.order, self.last) = (mark.order, mark.last);
        Ok(())
    }

    /// The state of a graph that is finished; the names of its nodes stay known.
    pub(super) fn take(&mut self) -> GraphState {
        let names = self.graph.iter().map(|(id, node)| (id, node.name.clone())).collect();
        std::mem::replace(self, GraphState { names, ..GraphState::default() })
    }
}
