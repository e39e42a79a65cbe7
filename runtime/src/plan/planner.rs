//! From the nodes of a function to actions on slots and buffers.

use super::{
    ExecutionPlan, ProgramArgument,
    action::{Action, OpAction, OpOutput, Scheduled, TensorOperand, ValueLocation, VariableId},
    body::{PlannedBody, PlannedSlot, origin},
    buffers::Buffers,
    control, device,
    layout::MemoryLayout,
    step,
    validate::validate,
};
use crate::{
    assign_devices::{Placed, variable},
    context::Context,
    error::Result,
    last_call::LastCall,
    ops,
    placement::Placement,
};
use ferroflow_ir::{
    HostTensor, Lowering, NodeDef, NodeId, OpDef, Outlet, budget,
    hash::{FastMap, FastSet},
    op::CallKind,
    pass::{execution::Execution, placement::location, specialize::Specialized},
};
use ferroflow_kernels::{Buffer, Device};
use smallvec::SmallVec;
use std::{collections::HashMap, mem, sync::Arc};

/// Plans a specialised function whose last arguments are always these.
///
/// # Errors
///
/// What makes it impossible to run, whatever the data.
pub(crate) fn plan(
    context: &Context,
    placed: &Placed,
    captured: Vec<HostTensor>,
) -> Result<ExecutionPlan> {
    let function = &placed.function;
    if let Some(error) = &function.failure {
        return Err(error.clone().into());
    }
    let mut planner = Planner {
        context,
        devices: &placed.devices,
        clock: 0,
        depth: 0,
        buffers: Buffers::default(),
        slots: Vec::new(),
        constants: Vec::new(),
        values: HashMap::new(),
        variables: HashMap::new(),
    };
    let n_args = function.args.len().saturating_sub(captured.len());
    let mut args = Vec::with_capacity(n_args);
    let mut arg_locations = Vec::with_capacity(function.args.len());
    for &arg in &function.args[..n_args] {
        let device = planner.device(location(&function.graph, arg));
        let slot = planner.slot(device);
        args.push(ProgramArgument { slot, on_device: device.is_some() });
        arg_locations.push(ValueLocation::Slot(slot, None));
    }
    let mut captured_slots = Vec::with_capacity(captured.len());
    for value in captured {
        let variable = variable(&value).filter(|_| !placed.devices.is_empty());
        let slot = planner.constant(value.clone().into(), value, None);
        if let Some(variable) = variable {
            planner.variables.insert(slot, Arc::as_ptr(&variable) as VariableId);
        }
        captured_slots.push(slot);
        arg_locations.push(ValueLocation::Slot(slot, None));
    }
    let (actions, results) = planner.body(function, arg_locations, &|_| true)?;
    let values = mem::take(&mut planner.values);
    let program = planner.finish(function, actions, &values, args, results);
    if context.compile_options().verify {
        validate(function, &program, &captured_slots, &values)?;
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
    pub(super) buffers: Buffers,
    pub(super) slots: Vec<PlannedSlot>,
    pub(super) constants: Vec<(usize, Buffer)>,
    /// The constants in host memory, by slot.
    values: HashMap<usize, HostTensor>,
    /// The variables behind the captured handles, by slot.
    pub(super) variables: HashMap<usize, VariableId>,
}

impl Planner<'_> {
    /// The number of the device of this name; `None` for the host.
    pub(super) fn device(&self, name: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.name() == name)
    }

    /// The device whose memory a value is in; the host's if `None`.
    pub(super) fn location(&self, body: &PlannedBody<'_>, outlet: Outlet) -> Option<usize> {
        self.device(location(&body.function.graph, outlet))
    }

    /// The device of a location; the host if `None`.
    pub(super) fn device_of(&self, place: &ValueLocation) -> Option<usize> {
        self.slots[place.slot()?].device
    }

    /// A slot of its own for one value, in the memory of a device or of the host.
    pub(super) fn slot(&mut self, device: Option<usize>) -> usize {
        self.slots.push(PlannedSlot { is_constant: false, device });
        self.slots.len() - 1
    }

    /// A slot that holds a constant in every frame.
    pub(super) fn constant(
        &mut self,
        buffer: Buffer,
        value: HostTensor,
        device: Option<usize>,
    ) -> usize {
        let slot = self.slots.len();
        self.slots.push(PlannedSlot { is_constant: true, device });
        self.constants.push((slot, buffer));
        self.values.insert(slot, value);
        slot
    }

    /// Sets the position of an action.
    pub(super) fn scheduled(&mut self, action: Action) -> Scheduled {
        self.clock += 1;
        Scheduled { position: self.clock - 1, action, dead: SmallVec::new() }
    }

    /// Plans the nodes of a body; returns its actions and results. `wants_tensor` tells which
    /// results are to be tensors in slots.
    pub(super) fn body(
        &mut self,
        function: &Specialized,
        args: Vec<ValueLocation>,
        wants_tensor: &dyn Fn(usize) -> bool,
    ) -> Result<(Vec<Scheduled>, Vec<TensorOperand>)> {
        let graph = &function.graph;
        let mut body = PlannedBody {
            function,
            places: function.args.iter().copied().zip(args).collect(),
            executions: FastMap::default(),
            aliased: FastMap::default(),
            wanted: FastSet::default(),
            read: PlannedBody::read_results(function),
            actions: Vec::new(),
        };
        let order: Vec<NodeId> = graph.ids().collect();
        for &id in &order {
            let execution = Execution::of(graph, &graph[id])?;
            if execution == Execution::Alias {
                body.aliased.insert(id, body.origin_of(graph[id].inputs()[0]));
            }
            body.executions.insert(id, execution);
        }
        let wanted = function.results.iter().enumerate().filter(|(index, _)| wants_tensor(*index));
        body.wanted = wanted.map(|(_, outlet)| body.origin_of(*outlet)).collect();
        for &id in order.iter().filter(|&id| body.executions[id] == Execution::Op) {
            let inputs = graph[id].inputs().iter();
            let origins: Vec<Outlet> = inputs.map(|&input| body.origin_of(input)).collect();
            body.wanted.extend(origins);
        }
        for &id in &order {
            budget::tick();
            let node = &graph[id];
            self.node(&mut body, id).map_err(|error| origin(id, node).locate(error))?;
        }
        if let Some(error) = &function.failure {
            self.push(&mut body, Action::Fail(error.clone().into()));
        }
        let results = function.results.iter().map(|&outlet| body.operand(outlet)).collect();
        Ok((body.actions, results))
    }

    pub(super) fn push(&mut self, body: &mut PlannedBody<'_>, action: Action) {
        let action = self.scheduled(action);
        body.actions.push(action);
    }

    fn node(&mut self, body: &mut PlannedBody<'_>, id: NodeId) -> Result<()> {
        let node = &body.function.graph[id];
        let device = self.device(&node.device);
        match (body.executions[&id], device) {
            (Execution::Source, Some(device)) => device::constant(self, body, id, device)?,
            (Execution::Source, None) => self.source(body, id, node),
            (Execution::Alias, _) => {
                let location = body.places[&node.inputs()[0]].clone();
                body.places.insert(Outlet::from(id), location);
            }
            (Execution::Copy, _) => device::copy(self, body, id, node),
            (Execution::Kernel | Execution::MovingWindow, _) => {
                return step::kernel(self, body, id, node);
            }
            (Execution::Op, device) => self.op(body, id, node, device),
            (Execution::Call, _) => return control::call(self, body, id, node),
        }
        Ok(())
    }

    fn source(&mut self, body: &mut PlannedBody<'_>, id: NodeId, node: &NodeDef) {
        if let Ok(value) = node.attrs.tensor("value") {
            let slot = self.constant(value.clone().into(), value.clone(), None);
            body.places.insert(id.into(), ValueLocation::Slot(slot, None));
        }
    }

    /// Plans a call of the runtime, on a device or on the host.
    pub(super) fn op(
        &mut self,
        body: &mut PlannedBody<'_>,
        id: NodeId,
        node: &NodeDef,
        device: Option<usize>,
    ) {
        let Some(op) = node.op.def() else { return };
        let inputs = node.inputs().iter().map(|&input| body.operand(input)).collect();
        let mut outputs = SmallVec::new();
        for (index, ty) in node.outputs().iter().enumerate() {
            let outlet = Outlet::new(id, index);
            let location = device.and_then(|_| self.location(body, outlet));
            let slot = body.is_read(outlet).then(|| self.slot(location));
            if let Some(slot) = slot {
                body.places.insert(outlet, ValueLocation::Slot(slot, None));
            }
            outputs.push(OpOutput { slot, ty: ty.clone(), on_device: location.is_some() });
        }
        let variable = match node.inputs() {
            [handle, ..] if device.is_some() && ops::touches_one_variable(op.name) => {
                self.variable(body, *handle)
            }
            _ => None,
        };
        // Where devices take part, variables may be there: the op finds out.
        let on_host = self.devices.is_empty();
        let optimizer = on_host.then(|| ops::training::optimizer(op.name)).flatten();
        let action = OpAction {
            op,
            body: if device.is_some() { self.context.body(op) } else { self.host_body(op) },
            optimizer,
            attrs: node.attrs.clone(),
            last: LastCall::default(),
            inputs,
            outputs,
            device: device.map(|device| self.devices[device].clone()),
            variable,
            origin: origin(id, node),
        };
        self.push(body, Action::Op(action));
    }

    /// The body that runs an op of the host whatever its inputs turn out to be.
    fn host_body(&self, op: &'static OpDef) -> Option<ops::HostBody> {
        let always = matches!(op.lowering, Lowering::Runtime)
            && op.call == CallKind::None
            && op.on_variants.is_none()
            && !op.inputs.is_empty();
        if always { self.context.body(op) } else { None }
    }

    /// The variable behind a handle that the function captures.
    fn variable(&self, body: &PlannedBody<'_>, handle: Outlet) -> Option<VariableId> {
        self.variables.get(&body.places.get(&handle)?.slot()?).copied()
    }

    /// Plans the memory, and emits the actions that run.
    fn finish(
        mut self,
        function: &Specialized,
        actions: Vec<Scheduled>,
        values: &HashMap<usize, HostTensor>,
        args: Vec<ProgramArgument>,
        mut results: Vec<TensorOperand>,
    ) -> ExecutionPlan {
        let constants = mem::take(&mut self.constants);
        let options = self.context.compile_options();
        let layout =
            MemoryLayout::new(&self.buffers, &self.slots, values, &actions, &results, options);
        results.iter_mut().for_each(|result| layout.relocate(&mut result.place));
        let actions = layout.emit(actions);
        let arena = layout.arena.bytes;
        let placement = (!self.devices.is_empty()).then(|| {
            let placement = Placement::of(function, self.context.cpu().name());
            self.context.note_placement(&placement);
            Box::new(placement)
        });
        let n_slots = self.slots.len();
        ExecutionPlan { actions, arena, n_slots, constants, args, results, placement }
    }
}
