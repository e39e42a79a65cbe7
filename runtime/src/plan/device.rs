//! How calls run on devices, and what is copied for them.
//!
//! A value has a place in host memory, or in the memory of a device, or both: a copy is made when
//! the first call needs it on the other side, and serves all that follow. Constants are copied when
//! the function is planned.

use super::{
    Origin,
    draft::{Body, Draft, DraftAction, DraftOperand, Mode, origin},
    layout::Lifetimes,
    planner::Planner,
};
use crate::{
    context::Context,
    error::Result,
    ops,
    placement::{Notes, Placement, Reason, Request},
    resource::ResourceHandle,
    variable::VariableState,
};
use ferroflow_ir::{
    DType, HostTensor, Lowering, NodeDef, NodeId, OpDef, Outlet, Shape, ValueType,
    pass::specialize::Specialized,
};
use ferroflow_kernels::{Buffer, Device, DeviceBuffer, Kernel, OpCall, host_only};
use smallvec::SmallVec;
use std::{collections::HashMap, sync::Arc};

/// What is planned besides the host's part.
pub(super) struct Placing {
    /// The device of calls that ask for nothing.
    default: Option<usize>,
    pub(super) devices: Vec<Arc<dyn Device>>,
    pub(super) slots: Lifetimes,
    /// The device of each slot.
    slot_devices: Vec<usize>,
    /// Slots that hold constants in every frame.
    pub(super) constants: Vec<(usize, DeviceBuffer)>,
    pub(super) notes: Notes,
    /// Variables that live on devices, and which, by the handles that the function captures.
    pub(super) homes: HashMap<Outlet, (usize, Arc<VariableState>)>,
    /// How many loops are around the call at hand.
    pub(super) loops: usize,
}

/// See [`Planner::finish_devices`].
type DeviceSlots = (usize, Vec<(usize, DeviceBuffer)>, HashMap<usize, SmallVec<[usize; 4]>>);

/// Where a value is in the memory of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DevicePlace {
    pub(super) device: usize,
    pub(super) slot: usize,
}

/// Which of some values are in the memory of devices, and where.
pub(super) type OnDevices = Vec<(usize, DevicePlace)>;

/// A call of a kernel on a device.
pub(super) struct DeviceDraft {
    pub(super) device: usize,
    pub(super) kernel: Arc<dyn Kernel>,
    /// The slots of its inputs; `None` for what the kernel was compiled with.
    pub(super) sources: SmallVec<[Option<usize>; 4]>,
    pub(super) sinks: SmallVec<[(usize, DType, Shape); 1]>,
    pub(super) origin: Arc<Origin>,
}

impl Placing {
    /// What there is to place, if there is anything but the host. `captured` are the values of the
    /// last arguments.
    pub(super) fn of(
        context: &Context,
        function: &Specialized,
        captured: &[HostTensor],
        request: &Request,
    ) -> Option<Placing> {
        let mut placing = Placing {
            default: None,
            devices: Vec::new(),
            slots: Lifetimes::default(),
            slot_devices: Vec::new(),
            constants: Vec::new(),
            notes: Notes::default(),
            homes: HashMap::new(),
            loops: 0,
        };
        placing.default = request.device.as_ref().map(|device| placing.number(device));
        for device in request.args.iter().flatten() {
            placing.number(device);
        }
        placing.named(context, function);
        let first = function.args.len().saturating_sub(captured.len());
        for (&arg, value) in function.args[first..].iter().zip(captured) {
            if let Some((home, variable)) = home(value) {
                let device = placing.number(&home);
                placing.homes.insert(arg, (device, variable));
            }
        }
        (!placing.devices.is_empty()).then_some(placing)
    }

    /// Adds the devices that nodes name.
    fn named(&mut self, context: &Context, function: &Specialized) {
        let mut last = "";
        for id in function.graph.ids() {
            let name = &*function.graph[id].device;
            if !name.is_empty() && name != last {
                last = name;
                if let Some(device) = context.device_of(name) {
                    self.number(&device);
                }
            }
        }
        function.nested.values().flatten().for_each(|body| self.named(context, body));
    }

    /// The number of a device, which it has from now on.
    pub(super) fn number(&mut self, device: &Arc<dyn Device>) -> usize {
        let known = self.devices.iter().position(|known| known.name() == device.name());
        known.unwrap_or_else(|| {
            self.devices.push(device.clone());
            self.devices.len() - 1
        })
    }
}

impl Planner<'_> {
    /// Plans a call on a device, if it runs on one; otherwise sees to it that its inputs are in
    /// host memory.
    pub(super) fn place(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
    ) -> Result<bool> {
        let Some(placing) = &self.placing else { return Ok(false) };
        let mode = body.modes[&id];
        let reason = match mode {
            Mode::Source => return Ok(false),
            Mode::Alias => {
                if self.alias_on_device(body, id, node) {
                    return Ok(true);
                }
                self.fetch(body, node)?;
                return Ok(false);
            }
            Mode::Call => {
                self.note_on_host(node, Reason::Control);
                return Ok(false);
            }
            Mode::Kernel => match self.wanted(body, node) {
                None => Reason::Default,
                Some(_) if placing.loops > 0 && steers(body, node) => Reason::Steering,
                Some(device) if self.follow(body, id, node, device)? => return Ok(true),
                Some(device) => match self.device_kernel(body, id, node, device)? {
                    true => return Ok(true),
                    false if !self.is_held(body, node, device) => Reason::Unheld,
                    false if node.op.def().is_some_and(|op| host_only(op).is_some()) => {
                        Reason::HostOnly
                    }
                    false => Reason::NoKernel,
                },
            },
            Mode::Op => match (node.op.def(), self.wanted(body, node)) {
                (Some(op), Some(device)) if ops::takes_any_device(op.name) => {
                    if self.optimizer(body, node, op, device)? {
                        return Ok(true);
                    }
                    return self.device_op(body, id, node, op, device).map(|()| true);
                }
                (Some(op), Some(_)) if matches!(op.lowering, Lowering::Runtime) => Reason::State,
                (_, Some(_)) => Reason::UnknownShape,
                (_, None) => Reason::Default,
            },
        };
        self.fetch(body, node)?;
        self.note_on_host(node, reason);
        Ok(false)
    }

    /// Whether a device can hold what a call takes and gives.
    fn is_held(&self, body: &Body<'_>, node: &NodeDef, device: usize) -> bool {
        let Some(placing) = &self.placing else { return true };
        let inputs = node.inputs().iter().filter_map(|&input| body.function.graph.ty(input));
        inputs.chain(node.outputs()).all(|ty| placing.devices[device].holds(ty.dtype))
    }

    fn note_on_host(&mut self, node: &NodeDef, reason: Reason) {
        let cpu = self.host_name();
        if let Some(placing) = &mut self.placing {
            placing.notes.call(&origin(node), &cpu, reason);
        }
    }

    /// The device that carries a variable of a loop or a result of a branch, if not the host: that of
    /// the function, but for single whole numbers, which loops are steered by.
    pub(super) fn carrier(&self, ty: &ValueType) -> Option<usize> {
        let placing = self.placing.as_ref()?;
        let device = placing.default?;
        let n = ty.shape.known()?.num_elements();
        let worth_it = ty.dtype.is_float() || n > 1;
        (worth_it && placing.devices[device].holds(ty.dtype)).then_some(device)
    }

    /// The places of values that a loop or branch is given: what its device may carry is there
    /// before it begins.
    pub(super) fn hand_over(
        &mut self,
        body: &mut Body<'_>,
        inputs: &[Outlet],
    ) -> Result<(Vec<Draft>, OnDevices)> {
        let (mut places, mut on_devices) = (Vec::new(), Vec::new());
        for (index, &input) in inputs.iter().enumerate() {
            let carrier = body.function.graph.ty(input).and_then(|ty| self.carrier(ty));
            match carrier {
                Some(device) => {
                    self.send(body, input, device)?;
                }
                None => self.fetch_outlet(body, input)?,
            }
            if let Some(&place) = body.device_places.get(&input) {
                on_devices.push((index, place));
            }
            places.push(match (body.places.get(&input), body.device_places.get(&input)) {
                (Some(place), _) => place.clone(),
                (None, Some(place)) => Draft::Device(place.slot),
                (None, None) => body.operand(input).place,
            });
        }
        Ok((places, on_devices))
    }

    /// Notes where a result of a loop or branch is.
    pub(super) fn settle(&mut self, body: &mut Body<'_>, outlet: Outlet, place: Draft) {
        match (self.device_of_slot(&place), &place) {
            (Some(device), Draft::Device(slot)) => {
                body.device_places.insert(outlet, DevicePlace { device, slot: *slot });
            }
            _ => {
                body.places.insert(outlet, place);
            }
        }
    }

    /// The device of a place, if that is a slot of one.
    pub(super) fn device_of_slot(&self, place: &Draft) -> Option<usize> {
        let placing = self.placing.as_ref()?;
        device_at(place, &placing.slot_devices)
    }

    /// The devices of the slots there are so far.
    pub(super) fn slot_devices(&self) -> Vec<usize> {
        self.placing.as_ref().map(|placing| placing.slot_devices.clone()).unwrap_or_default()
    }

    /// The device that a call should run on, if not the CPU.
    fn wanted(&self, body: &Body<'_>, node: &NodeDef) -> Option<usize> {
        let placing = self.placing.as_ref()?;
        if !node.device.is_empty() {
            let asked = self.context.device_of(&node.device)?;
            return placing.devices.iter().position(|device| device.name() == asked.name());
        }
        let of_inputs =
            || node.inputs().iter().find_map(|input| Some(body.device_places.get(input)?.device));
        let home = node.inputs().iter().find_map(|input| Some(placing.homes.get(input)?.0));
        home.or(placing.default).or_else(of_inputs)
    }

    /// A result that is its input under another shape lies where that lies.
    fn alias_on_device(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) -> bool {
        let input = node.inputs()[0];
        let Some(&place) = body.device_places.get(&input) else { return false };
        let (Some(from), Some(placing)) = (body.function.graph.ty(input), &self.placing) else {
            return false;
        };
        let device = &placing.devices[place.device];
        if !device.lie_alike(from.dtype, node.outputs()[0].dtype) {
            return false;
        }
        body.device_places.insert(id.into(), place);
        if let Some(host) = body.places.get(&input).cloned() {
            self.alias(body, id.into(), host);
            self.consumed(body, node);
        }
        true
    }

    /// Plans a call of a device's kernel; `false` if it has none.
    fn device_kernel(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        device: usize,
    ) -> Result<bool> {
        let (Some(op), Some(placing)) = (node.op.def(), &self.placing) else { return Ok(false) };
        let specs = body.specs(node)?;
        let call = OpCall::new(op, &node.attrs, &specs, node.expr.as_deref())?
            .with_precision(self.context.precision());
        for ty in &call.outputs {
            if let Some(shape) = ty.shape.known() {
                ferroflow_kernels::check_size(
                    ty.dtype,
                    &shape,
                    self.context.limits().tensor_bytes,
                )?;
            }
        }
        let Some(kernel) = placing.devices[device].kernel(&call)? else { return Ok(false) };
        let host = op.host_inputs(&node.attrs)?;
        let mut sources: SmallVec<[Option<usize>; 4]> = SmallVec::new();
        for (index, &input) in node.inputs().iter().enumerate() {
            let fixed = host.get(index) == Some(&true);
            sources.push(if fixed { None } else { Some(self.send(body, input, device)?) });
        }
        sources.iter().flatten().for_each(|&slot| self.read(&Draft::Device(slot)));
        let mut sinks = SmallVec::new();
        for (index, ty) in call.outputs.iter().enumerate() {
            let slot = self.device_slot(device);
            sinks.push((slot, ty.dtype, call.output_shape(index)?));
            body.device_places.insert(Outlet::new(id, index), DevicePlace { device, slot });
        }
        self.consumed(body, node);
        let origin = origin(node);
        self.note(&origin, device);
        let draft = DeviceDraft { device, kernel, sources, sinks, origin };
        self.push(body, DraftAction::Device(draft));
        Ok(true)
    }

    /// Plans an op of the runtime that takes and gives tensors wherever they are.
    fn device_op(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        op: &'static OpDef,
        device: usize,
    ) -> Result<()> {
        let mut inputs: SmallVec<[DraftOperand; 4]> = SmallVec::new();
        for &input in node.inputs() {
            let operand = match body.device_places.get(&input) {
                Some(place) => body.device_operand(input, place.slot),
                None => body.operand(input),
            };
            self.read(&operand.place);
            inputs.push(operand);
        }
        let holds = |ty: &ValueType| {
            let placing = self.placing.as_ref()?;
            (ty.shape.known().is_some() && placing.devices[device].holds(ty.dtype)).then_some(())
        };
        let on_device: Vec<bool> = node.outputs().iter().map(|ty| holds(ty).is_some()).collect();
        let mut outputs: SmallVec<[Draft; 2]> = SmallVec::new();
        for (index, on_device) in on_device.into_iter().enumerate() {
            let outlet = Outlet::new(id, index);
            if on_device {
                let slot = self.device_slot(device);
                body.device_places.insert(outlet, DevicePlace { device, slot });
                outputs.push(Draft::Device(slot));
            } else {
                let place = Draft::Slot(self.host_slot(), None);
                body.places.insert(outlet, place.clone());
                outputs.push(place);
            }
        }
        self.consumed(body, node);
        let (attrs, origin) = (node.attrs.clone(), origin(node));
        self.note(&origin, device);
        let variable = match node.inputs() {
            [handle, ..] if ops::touches_one_variable(op.name) => self.variable(*handle),
            _ => None,
        };
        let action = DraftAction::DeviceOp { op, attrs, inputs, outputs, device, variable, origin };
        self.push(body, action);
        Ok(())
    }

    pub(super) fn note(&mut self, origin: &Origin, device: usize) {
        if let Some(placing) = &mut self.placing {
            let name = placing.devices[device].name().to_string();
            placing.notes.call(origin, &name, Reason::Asked);
        }
    }

    pub(super) fn device_slot(&mut self, device: usize) -> usize {
        let placing = self.placing.as_mut().expect("only what is placed has such slots");
        placing.slot_devices.push(device);
        placing.slots.define(&self.timeline)
    }

    /// The slot of a value in a device's memory, to which it is copied if it is not there yet.
    pub(super) fn send(
        &mut self,
        body: &mut Body<'_>,
        outlet: Outlet,
        device: usize,
    ) -> Result<usize> {
        let (mut operand, mut from) = (None, self.host_name());
        if let Some(&place) = body.device_places.get(&outlet) {
            if place.device == device {
                return Ok(place.slot);
            }
            // From device to device, unless the host has it already.
            if !body.places.contains_key(&outlet) {
                operand = Some(body.device_operand(outlet, place.slot));
                from = self.device_name(place.device);
            }
        }
        let operand = operand.unwrap_or_else(|| body.operand(outlet));
        let slot = self.device_slot(device);
        let name = body.function.graph[outlet.node].name.to_string();
        let constant = body.constant(outlet).cloned();
        let placing = self.placing.as_mut().expect("only what is placed is sent");
        let target = placing.devices[device].clone();
        let shape = operand.ty.shape.known().unwrap_or_else(Shape::scalar);
        let (way, ty) = ((&*from, target.name()), (operand.ty.dtype, &shape));
        placing.notes.copy(&name, way, ty, constant.is_some());
        body.device_places.insert(outlet, DevicePlace { device, slot });
        match constant {
            Some(value) => {
                if let Buffer::Device(buffer) = target.upload(&value)? {
                    placing.constants.push((slot, buffer));
                }
            }
            None => {
                self.read(&operand.place);
                let to = Draft::Device(slot);
                self.push(body, DraftAction::Transfer { from: operand, to, device });
            }
        }
        Ok(slot)
    }

    /// Copies the inputs of a call to host memory where they are not there yet.
    fn fetch(&mut self, body: &mut Body<'_>, node: &NodeDef) -> Result<()> {
        node.inputs().iter().try_for_each(|&input| self.fetch_outlet(body, input))
    }

    /// Copies a value to host memory, if it is not there yet.
    pub(super) fn fetch_outlet(&mut self, body: &mut Body<'_>, outlet: Outlet) -> Result<()> {
        if body.places.contains_key(&outlet) {
            return Ok(());
        }
        let Some(&place) = body.device_places.get(&outlet) else { return Ok(()) };
        let from = body.device_operand(outlet, place.slot);
        self.read(&from.place);
        let to = Draft::Slot(self.host_slot(), None);
        body.places.insert(outlet, to.clone());
        let (name, host) = (body.function.graph[outlet.node].name.to_string(), self.host_name());
        if let Some(placing) = &mut self.placing {
            let shape = from.ty.shape.known().unwrap_or_else(Shape::scalar);
            let way = (placing.devices[place.device].name().to_string(), host);
            placing.notes.copy(&name, (&way.0, &way.1), (from.ty.dtype, &shape), false);
        }
        self.push(body, DraftAction::Transfer { from, to, device: place.device });
        Ok(())
    }

    /// What follows is run again and again.
    pub(super) fn enter_loop(&mut self) {
        if let Some(placing) = &mut self.placing {
            placing.loops += 1;
        }
    }

    pub(super) fn leave_loop(&mut self) {
        if let Some(placing) = &mut self.placing {
            placing.loops -= 1;
        }
    }

    /// How many slots there are, which hold constants, and which are emptied after which action.
    pub(super) fn finish_devices(&mut self) -> DeviceSlots {
        let Some(placing) = &mut self.placing else { return DeviceSlots::default() };
        placing.slots.close(&self.timeline);
        let constants = std::mem::take(&mut placing.constants);
        let mut cleared: HashMap<usize, SmallVec<[usize; 4]>> = HashMap::new();
        for slot in 0..placing.slots.len() {
            if constants.iter().all(|(constant, _)| *constant != slot) {
                cleared.entry(placing.slots.last(slot)).or_default().push(slot);
            }
        }
        (placing.slots.len(), constants, cleared)
    }

    /// What runs where, which the context is told.
    pub(super) fn placement(&mut self) -> Option<Placement> {
        let placing = self.placing.as_mut()?;
        let placement = std::mem::take(&mut placing.notes).into_placement();
        self.context.note_placement(&placement);
        Some(placement)
    }

    fn device_name(&self, device: usize) -> String {
        let placing = self.placing.as_ref();
        placing.map_or_else(String::new, |placing| placing.devices[device].name().to_string())
    }

    fn host_name(&self) -> String {
        self.context.cpu().name().to_string()
    }
}

impl Body<'_> {
    pub(super) fn device_operand(&self, outlet: Outlet, slot: usize) -> DraftOperand {
        let ty = self.function.graph.ty(outlet).expect("every node here has typed results").clone();
        DraftOperand { place: Draft::Device(slot), ty }
    }
}

/// The device of a place, by the devices of all slots.
pub(super) fn device_at(place: &Draft, devices: &[usize]) -> Option<usize> {
    match place {
        Draft::Device(slot) => devices.get(*slot).copied(),
        Draft::Buffer(..) | Draft::Slot(..) => None,
    }
}

/// The variable behind a handle, with the device that it lives on.
fn home(handle: &HostTensor) -> Option<(Arc<dyn Device>, Arc<VariableState>)> {
    if handle.dtype() != DType::Resource {
        return None;
    }
    let variable: Arc<VariableState> =
        ResourceHandle::of(handle).ok()?.downcast("a variable").ok()?;
    Some((variable.home()?.clone(), variable))
}

/// Whether a call computes single whole numbers or truth values.
fn steers(body: &Body<'_>, node: &NodeDef) -> bool {
    let is_single = |ty: &ValueType| {
        let shape = ty.shape.known();
        !ty.dtype.is_float() && shape.is_some_and(|shape| shape.num_elements() == 1)
    };
    let inputs = node.inputs().iter();
    let on_host = inputs.clone().all(|input| body.places.contains_key(input));
    let types = inputs.map(|&input| body.function.graph.ty(input));
    on_host && types.flatten().chain(node.outputs()).all(is_single)
}
