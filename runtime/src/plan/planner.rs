//! How each node runs, and where its results go.

use super::{
    Covers, DeviceParts, Program,
    draft::{Body, Draft, DraftAction, DraftOperand, Mode, Positioned, SlotKind, origin},
    liveness::{AnySlot, Deaths, Intervals},
    lower::Layout,
    memory::{Arena, Liberties},
    placing::{DevicePlace, OnDevices, Placing},
    validate::validate,
};
use crate::{context::Context, error::Result, placement::Request};
use ferroflow_ir::{HostTensor, NodeDef, NodeId, Outlet, pass::specialize::Specialized};
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
    mem,
};

/// Plans a specialised function whose last arguments are always these.
///
/// # Errors
///
/// What makes it impossible to run, whatever the data.
pub(crate) fn plan(
    context: &Context,
    function: &Specialized,
    captured: Vec<HostTensor>,
    request: &Request,
) -> Result<Program> {
    if let Some(error) = &function.failure {
        return Err(error.clone().into());
    }
    let mut planner = Planner {
        context,
        clock: 0,
        depth: 0,
        buffer_bytes: Vec::new(),
        slot_kinds: Vec::new(),
        constants: Vec::new(),
        placing: None,
    };
    let n_args = function.args.len().saturating_sub(captured.len());
    let args: Vec<usize> = (0..n_args).map(|_| planner.slot(SlotKind::Plain)).collect();
    for value in captured {
        let slot = planner.slot(SlotKind::Constant);
        planner.constants.push((slot, value));
    }
    planner.placing = Placing::of(context, function, &planner.constants, request);
    let slots = args.iter().copied().chain(planner.constants.iter().map(|(slot, _)| *slot));
    let mut arg_places: Vec<Draft> = slots.map(|slot| Draft::Slot(slot, None)).collect();
    let device_args: OnDevices = (0..n_args)
        .filter_map(|index| {
            let device = request.args.get(index)?.as_ref()?;
            let device = planner.placing.as_mut()?.number(device);
            Some((index, DevicePlace { device, slot: planner.device_slot(device) }))
        })
        .collect();
    for (index, place) in &device_args {
        arg_places[*index] = Draft::Device(place.slot);
    }
    let (drafts, results) =
        planner.body(function, arg_places, &device_args, &|_| true, &|_| None)?;
    let device_args = device_args.into_iter().map(|(index, place)| (index, place.slot)).collect();
    let values = planner.placing.as_mut().map(|placing| mem::take(&mut placing.constant_values));
    let program = planner.finish(drafts, args, device_args, results);
    if context.compile_options().verify {
        validate(function, &program, &values.unwrap_or_default())?;
    }
    Ok(program)
}

pub(super) struct Planner<'a> {
    pub(super) context: &'a Context,
    /// The position of the next action.
    clock: usize,
    /// The number of loops and branches around the node at hand.
    pub(super) depth: usize,
    pub(super) buffer_bytes: Vec<usize>,
    pub(super) slot_kinds: Vec<SlotKind>,
    pub(super) constants: Vec<(usize, HostTensor)>,
    /// What runs elsewhere; `None` where everything is on the host.
    pub(super) placing: Option<Placing>,
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
        device_args: &[(usize, DevicePlace)],
        wants_tensor: &dyn Fn(usize) -> bool,
        wants_device: &dyn Fn(usize) -> Option<usize>,
    ) -> Result<(Vec<Positioned>, Vec<DraftOperand>)> {
        let graph = &function.graph;
        let mut body = Body {
            function,
            places: function.args.iter().copied().zip(args).collect(),
            device_places: HashMap::new(),
            modes: HashMap::new(),
            wanted: HashSet::new(),
            actions: Vec::new(),
        };
        for &(index, place) in device_args {
            body.device_places.insert(function.args[index], place);
        }
        body.places.retain(|_, place| !matches!(place, Draft::Device(_)));
        let order: Vec<NodeId> = graph.ids().collect();
        for &id in &order {
            body.modes.insert(id, body.mode(&graph[id])?);
        }
        let wanted = function.results.iter().enumerate().filter(|(index, _)| wants_tensor(*index));
        body.wanted = wanted.map(|(_, outlet)| body.origin_of(*outlet)).collect();
        for &id in order.iter().filter(|&id| body.modes[id] == Mode::Op) {
            let inputs = graph[id].inputs().iter();
            let origins: Vec<Outlet> = inputs.map(|&input| body.origin_of(input)).collect();
            body.wanted.extend(origins);
        }
        for &id in &order {
            let node = &graph[id];
            self.node(&mut body, id)
                .map_err(|error| origin(Covers::Node(id), node).locate(error))?;
        }
        if let Some(error) = &function.failure {
            self.push(&mut body, DraftAction::Fail(error.clone().into()));
        }
        let mut results = Vec::with_capacity(function.results.len());
        for (index, &outlet) in function.results.iter().enumerate() {
            results.push(self.result(&mut body, outlet, wants_device(index))?);
        }
        Ok((body.actions, results))
    }

    /// A result of a body: of the whole program it stays on its device, of a part it goes where the
    /// loop or branch wants it.
    fn result(
        &mut self,
        body: &mut Body<'_>,
        outlet: Outlet,
        device: Option<usize>,
    ) -> Result<DraftOperand> {
        if let Some(device) = device {
            let slot = self.send(body, outlet, device)?;
            return Ok(body.device_operand(outlet, slot));
        }
        match body.device_places.get(&outlet) {
            Some(place) if self.depth == 0 => Ok(body.device_operand(outlet, place.slot)),
            Some(_) => {
                self.fetch_outlet(body, outlet)?;
                Ok(body.operand(outlet))
            }
            None => Ok(body.operand(outlet)),
        }
    }

    pub(super) fn push(&mut self, body: &mut Body<'_>, action: DraftAction) {
        let action = self.positioned(action);
        body.actions.push(action);
    }

    fn node(&mut self, body: &mut Body<'_>, id: NodeId) -> Result<()> {
        let node = &body.function.graph[id];
        if self.place(body, id, node)? {
            return Ok(());
        }
        match body.modes[&id] {
            Mode::Source => self.source(body, id, node),
            Mode::Alias => {
                let place = body.places[&node.inputs()[0]].clone();
                body.places.insert(Outlet::from(id), place);
            }
            Mode::Kernel => return self.kernel(body, id, node),
            Mode::Op => self.op(body, id, node),
            Mode::Call => return self.call(body, id, node),
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
        let (attrs, origin) = (node.attrs.clone(), origin(Covers::Node(id), node));
        let types = node.outputs().iter().cloned().collect();
        self.push(body, DraftAction::Op { op, attrs, inputs, outputs, types, origin });
    }

    /// Plans the memory, and emits the actions that run.
    fn finish(
        mut self,
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
        let n_slots = self.slot_kinds.len();
        let device_slots = self
            .placing
            .as_mut()
            .map(|placing| (placing.slot_devices.len(), mem::take(&mut placing.constants)));
        let placement = self.placement();
        let constants = mem::take(&mut self.constants);
        let values = constants.iter().cloned().collect();
        let layout = Layout { planner: &self, arena, deaths, constants: &values, options };
        let results = results.into_iter().map(|result| layout.kept_operand(result)).collect();
        let actions = layout.actions(drafts);
        let devices = placement.zip(device_slots).map(|(placement, (n_slots, constants))| {
            Box::new(DeviceParts { n_slots, constants, args: device_args, placement })
        });
        let arena = layout.arena.bytes;
        Program { actions, arena, n_slots, constants, args, results, devices }
    }

    fn is_constant(&self, slot: AnySlot) -> bool {
        match (slot, &self.placing) {
            (AnySlot::Host(slot), _) => self.slot_kinds[slot] == SlotKind::Constant,
            (AnySlot::Device(slot), Some(placing)) => {
                placing.constants.iter().any(|(constant, _)| *constant == slot)
            }
            (AnySlot::Device(_), None) => false,
        }
    }
}
