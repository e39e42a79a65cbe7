//! How each node runs, and where its results go.

use super::{
    DeviceParts, Program,
    draft::{Body, Draft, DraftAction, DraftOperand, Positioned, SlotKind, VariableId, origin},
    liveness::{AnySlot, Deaths, Intervals},
    lower::Layout,
    memory::{Arena, Liberties},
    validate::validate,
};
use crate::{
    context::Context,
    error::Result,
    place::{Placed, variable},
    placement::Placement,
};
use ferroflow_ir::{
    HostTensor, NodeDef, NodeId, Outlet,
    pass::{execution::Execution, place::location, specialize::Specialized},
};
use ferroflow_kernels::{Device, DeviceBuffer};
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
};

/// Plans a specialised function whose last arguments are always these.
///
/// # Errors
///
/// What makes it impossible to run, whatever the data.
pub(crate) fn plan(
    context: &Context,
    placed: &Placed,
    captured: Vec<HostTensor>,
) -> Result<Program> {
    let function = &placed.function;
    if let Some(error) = &function.failure {
        return Err(error.clone().into());
    }
    let mut planner = Planner {
        context,
        devices: &placed.devices,
        clock: 0,
        depth: 0,
        buffer_bytes: Vec::new(),
        slot_kinds: Vec::new(),
        constants: Vec::new(),
        slot_devices: Vec::new(),
        device_constants: Vec::new(),
        constant_values: Vec::new(),
        variables: HashMap::new(),
    };
    let n_args = function.args.len().saturating_sub(captured.len());
    let args: Vec<usize> = (0..n_args).map(|_| planner.slot(SlotKind::Plain)).collect();
    let mut arg_places: Vec<Draft> = args.iter().map(|&slot| Draft::Slot(slot, None)).collect();
    let mut device_args = Vec::new();
    for (index, place) in arg_places.iter_mut().enumerate() {
        if let Some(device) = planner.device(location(&function.graph, function.args[index])) {
            let slot = planner.device_slot(device);
            device_args.push((index, slot));
            *place = Draft::Device(slot);
        }
    }
    for value in captured {
        let slot = planner.slot(SlotKind::Constant);
        if let Some(variable) = variable(&value).filter(|_| !placed.devices.is_empty()) {
            planner.variables.insert(slot, Arc::as_ptr(&variable) as VariableId);
        }
        planner.constants.push((slot, value));
        arg_places.push(Draft::Slot(slot, None));
    }
    let (drafts, results) = planner.body(function, arg_places, &|_| true)?;
    let values = mem::take(&mut planner.constant_values);
    let program = planner.finish(function, drafts, args, device_args, results);
    if context.compile_options().verify {
        validate(function, &program, &values)?;
    }
    Ok(program)
}

pub(super) struct Planner<'a> {
    pub(super) context: &'a Context,
    /// The devices besides the host; none where everything is on the host.
    pub(super) devices: &'a [Arc<dyn Device>],
    /// The position of the next action.
    clock: usize,
    /// The number of loops and branches around the node at hand.
    pub(super) depth: usize,
    pub(super) buffer_bytes: Vec<usize>,
    pub(super) slot_kinds: Vec<SlotKind>,
    pub(super) constants: Vec<(usize, HostTensor)>,
    /// The devices of the slots of devices.
    pub(super) slot_devices: Vec<usize>,
    /// Slots of devices that hold constants in every frame, and the values they were copied from.
    pub(super) device_constants: Vec<(usize, DeviceBuffer)>,
    pub(super) constant_values: Vec<(usize, HostTensor)>,
    /// The variables behind the captured handles, by slot.
    pub(super) variables: HashMap<usize, VariableId>,
}

impl Planner<'_> {
    /// A slot of its own for one value.
    pub(super) fn host_slot(&mut self) -> usize {
        self.slot(SlotKind::Plain)
    }

    pub(super) fn slot(&mut self, kind: SlotKind) -> usize {
        self.slot_kinds.push(kind);
        self.slot_kinds.len() - 1
    }

    pub(super) fn buffer(&mut self, bytes: usize) -> usize {
        self.buffer_bytes.push(bytes);
        self.buffer_bytes.len() - 1
    }

    /// Gives an action its position.
    pub(super) fn positioned(&mut self, action: DraftAction) -> Positioned {
        self.clock += 1;
        Positioned { position: self.clock - 1, action }
    }

    /// Plans the nodes of a body; gives its actions and results. `wants_tensor` tells which
    /// results are to be tensors in slots.
    pub(super) fn body(
        &mut self,
        function: &Specialized,
        args: Vec<Draft>,
        wants_tensor: &dyn Fn(usize) -> bool,
    ) -> Result<(Vec<Positioned>, Vec<DraftOperand>)> {
        let graph = &function.graph;
        let mut body = Body {
            function,
            places: function.args.iter().copied().zip(args).collect(),
            executions: HashMap::new(),
            wanted: HashSet::new(),
            actions: Vec::new(),
        };
        let order: Vec<NodeId> = graph.ids().collect();
        for &id in &order {
            body.executions.insert(id, Execution::of(graph, &graph[id])?);
        }
        let wanted = function.results.iter().enumerate().filter(|(index, _)| wants_tensor(*index));
        body.wanted = wanted.map(|(_, outlet)| body.origin_of(*outlet)).collect();
        for &id in order.iter().filter(|&id| body.executions[id] == Execution::Op) {
            let inputs = graph[id].inputs().iter();
            let origins: Vec<Outlet> = inputs.map(|&input| body.origin_of(input)).collect();
            body.wanted.extend(origins);
        }
        for &id in &order {
            let node = &graph[id];
            self.node(&mut body, id).map_err(|error| origin(id, node).locate(error))?;
        }
        if let Some(error) = &function.failure {
            self.push(&mut body, DraftAction::Fail(error.clone().into()));
        }
        let results = function.results.iter().map(|&outlet| body.operand(outlet)).collect();
        Ok((body.actions, results))
    }

    pub(super) fn push(&mut self, body: &mut Body<'_>, action: DraftAction) {
        let action = self.positioned(action);
        body.actions.push(action);
    }

    fn node(&mut self, body: &mut Body<'_>, id: NodeId) -> Result<()> {
        let node = &body.function.graph[id];
        let device = self.device(&node.device);
        match (body.executions[&id], device) {
            (Execution::Source, Some(device)) => self.device_constant(body, id, device)?,
            (Execution::Source, None) => self.source(body, id, node),
            (Execution::Alias, _) => {
                let place = body.places[&node.inputs()[0]].clone();
                body.places.insert(Outlet::from(id), place);
            }
            (Execution::Copy, _) => self.copy_node(body, id, node),
            (Execution::Kernel, _) => return self.kernel(body, id, node),
            (Execution::Op, Some(device)) => self.device_op(body, id, node, device),
            (Execution::Op, None) => self.op(body, id, node),
            (Execution::Call, _) => return self.call(body, id, node),
        }
        Ok(())
    }

    fn source(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) {
        if let Ok(value) = node.attrs.tensor("value") {
            let slot = self.slot(SlotKind::Constant);
            self.constants.push((slot, value.clone()));
            body.places.insert(id.into(), Draft::Slot(slot, None));
        }
    }

    pub(super) fn op(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) {
        let Some(op) = node.op.def() else { return };
        let inputs: SmallVec<[DraftOperand; 4]> =
            node.inputs().iter().map(|&input| body.operand(input)).collect();
        let outputs: SmallVec<[usize; 2]> =
            node.outputs().iter().map(|_| self.slot(SlotKind::Plain)).collect();
        for (index, &slot) in outputs.iter().enumerate() {
            body.places.insert(Outlet::new(id, index), Draft::Slot(slot, None));
        }
        let (attrs, origin) = (node.attrs.clone(), origin(id, node));
        let types = node.outputs().iter().cloned().collect();
        self.push(body, DraftAction::Op { op, attrs, inputs, outputs, types, origin });
    }

    /// Plans the memory, and emits the actions that run.
    fn finish(
        mut self,
        function: &Specialized,
        drafts: Vec<Positioned>,
        args: Vec<usize>,
        device_args: Vec<(usize, usize)>,
        results: Vec<DraftOperand>,
    ) -> Program {
        let options = self.context.compile_options();
        let read_last = || results.iter().map(|result| result.place.clone());
        let intervals = Intervals::of(self.buffer_bytes.len(), &drafts, read_last());
        let liberties = Liberties { donate: options.donate, reuse: options.reuse };
        let arena = Arena::plan(&self.buffer_bytes, &drafts, intervals, liberties);
        let deaths = Deaths::of(&drafts, read_last(), &|slot| self.is_constant(slot));
        let constants = mem::take(&mut self.constants);
        let values = constants.iter().cloned().collect();
        let layout = Layout { planner: &self, arena, deaths, constants: &values, options };
        let results = results.into_iter().map(|result| layout.kept_operand(result)).collect();
        let actions = layout.actions(drafts);
        let arena = layout.arena.bytes;
        let n_slots = self.slot_kinds.len();
        let devices = (!self.devices.is_empty()).then(|| {
            let placement = Placement::of(function, self.context.cpu().name());
            self.context.note_placement(&placement);
            let (n_slots, constants) = (self.slot_devices.len(), self.device_constants);
            Box::new(DeviceParts { n_slots, constants, args: device_args, placement })
        });
        Program { actions, arena, n_slots, constants, args, results, devices }
    }

    fn is_constant(&self, slot: AnySlot) -> bool {
        match slot {
            AnySlot::Host(slot) => self.slot_kinds[slot] == SlotKind::Constant,
            AnySlot::Device(slot) => {
                self.device_constants.iter().any(|(constant, _)| *constant == slot)
            }
        }
    }
}
