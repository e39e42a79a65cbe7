//! How each node runs, and where its results go.

use super::{
    Action, BranchAction, DeviceOpAction, DeviceParts, DeviceStep, OpAction, Operand, Origin,
    Place, Program, ScalarAction, WhileAction,
    device::{DeviceDraft, DevicePlace, OnDevices, Placing, device_at},
    layout::{Lifetimes, Timeline},
    scalar::{self, ScalarCall},
};
use crate::{
    context::Context,
    error::{Error, Result},
    kernel_call::compile,
    ops,
    placement::Request,
};
use ferroflow_ir::{
    Attrs, HostTensor, Lowering, NodeDef, NodeId, OpDef, Outlet, Shape, ValueType,
    host_tensor::byte_len, op::Call, pass::specialize::Specialized,
};
use ferroflow_kernels::{
    Device, Kernel, OpCall, OperandSpec, check_size,
    frame::{Region, Sink, Source, Step},
};
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
    mem,
    ops::Range,
    sync::Arc,
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
        timeline: Timeline::new(),
        buffers: Lifetimes::default(),
        buffer_bytes: Vec::new(),
        slots: Lifetimes::default(),
        slot_kinds: Vec::new(),
        constants: Vec::new(),
        unread: HashMap::new(),
        placing: Placing::of(context, function, &captured, request),
    };
    let n_args = function.args.len().saturating_sub(captured.len());
    let args: Vec<usize> = (0..n_args).map(|_| planner.slot(SlotKind::Plain)).collect();
    for value in captured {
        let slot = planner.slot(SlotKind::Constant);
        planner.constants.push((slot, value));
    }
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
    planner.timeline.advance();
    let (drafts, results) =
        planner.body(function, arg_places, &device_args, &|_| true, &|_| None)?;
    results.iter().for_each(|result| planner.read(&result.place));
    planner.timeline.advance();
    let device_args = device_args.into_iter().map(|(index, place)| (index, place.slot)).collect();
    Ok(planner.finish(drafts, args, device_args, results))
}

/// Where a value is, before the arena is laid out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Draft {
    /// Bytes of a buffer.
    Buffer(usize, Range<usize>),
    /// A slot: all of the tensor, or these bytes of it.
    Slot(usize, Option<Region>),
    /// A slot of tensors in the memory of devices.
    Device(usize),
}

/// A value that is read as a tensor, before the arena is laid out.
#[derive(Debug, Clone)]
pub(super) struct DraftOperand {
    pub(super) place: Draft,
    pub(super) ty: ValueType,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum SlotKind {
    Plain,
    /// Filled once for each frame and never emptied.
    Constant,
    /// Refilled at the end of each iteration of a loop. In the loop's scope, its value may be given
    /// up by the last read of the body, which begins at `body`.
    LoopVariable {
        scope: usize,
        body: usize,
    },
}

/// An action, before the arena is laid out.
pub(super) enum DraftAction {
    Kernel {
        kernel: Arc<dyn Kernel>,
        /// The call, if it is one on single elements.
        scalar: Option<Box<ScalarCall>>,
        sources: SmallVec<[Draft; 3]>,
        sinks: SmallVec<[DraftSink; 1]>,
        origin: Arc<Origin>,
    },
    Op {
        op: &'static OpDef,
        attrs: Arc<Attrs>,
        inputs: SmallVec<[DraftOperand; 4]>,
        outputs: SmallVec<[usize; 2]>,
        origin: Arc<Origin>,
    },
    Copy(DraftOperand, Draft),
    /// Runs a kernel of a device.
    Device(DeviceDraft),
    /// Runs a body that takes and gives tensors wherever they are.
    DeviceOp {
        op: &'static OpDef,
        attrs: Arc<Attrs>,
        inputs: SmallVec<[DraftOperand; 4]>,
        outputs: SmallVec<[Draft; 2]>,
        device: usize,
        origin: Arc<Origin>,
    },
    /// Copies a value between the host and a device.
    Transfer {
        from: DraftOperand,
        to: Draft,
        device: usize,
    },
    While {
        condition: Vec<Positioned>,
        test: DraftOperand,
        body: Vec<Positioned>,
        origin: Arc<Origin>,
    },
    Branch {
        call: Call,
        chooser: DraftOperand,
        branches: Vec<Vec<Positioned>>,
        origin: Arc<Origin>,
    },
    Fail(Error),
}

pub(super) enum DraftSink {
    Buffer(usize, usize),
    Slot(usize, ValueType, Shape),
    Unknown(usize),
}

pub(super) struct Positioned {
    pub(super) position: usize,
    pub(super) scope: usize,
    pub(super) action: DraftAction,
}

pub(super) struct Planner<'a> {
    pub(super) context: &'a Context,
    pub(super) timeline: Timeline,
    buffers: Lifetimes,
    buffer_bytes: Vec<usize>,
    slots: Lifetimes,
    slot_kinds: Vec<SlotKind>,
    constants: Vec<(usize, HostTensor)>,
    /// For each buffer that a kernel wrote, how many reads are still to be planned.
    unread: HashMap<usize, usize>,
    /// What runs elsewhere; `None` where everything is on the host.
    pub(super) placing: Option<Placing>,
}

/// How a node runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mode {
    /// It is an argument or a constant.
    Source,
    /// Its result is its input under another shape.
    Alias,
    /// Everything about it is known.
    Kernel,
    /// It is run as an op of its own.
    Op,
    /// It is a loop or a branch.
    Call,
}

/// A body being planned.
pub(super) struct Body<'a> {
    pub(super) function: &'a Specialized,
    /// Where values are on the host.
    pub(super) places: HashMap<Outlet, Draft>,
    /// Where values are on devices.
    pub(super) device_places: HashMap<Outlet, DevicePlace>,
    pub(super) modes: HashMap<NodeId, Mode>,
    /// Results that are to be tensors in slots.
    wanted: HashSet<Outlet>,
    actions: Vec<Positioned>,
}

impl Planner<'_> {
    /// A slot of its own for one value.
    pub(super) fn host_slot(&mut self) -> usize {
        self.slot(SlotKind::Plain)
    }

    fn slot(&mut self, kind: SlotKind) -> usize {
        self.slot_kinds.push(kind);
        self.slots.define(&self.timeline)
    }

    fn buffer(&mut self, bytes: usize) -> usize {
        self.buffer_bytes.push(bytes);
        self.buffers.define(&self.timeline)
    }

    /// The next action reads a place.
    pub(super) fn read(&mut self, place: &Draft) {
        match place {
            Draft::Device(slot) => {
                if let Some(placing) = &mut self.placing {
                    placing.slots.read(*slot, &self.timeline);
                }
            }
            Draft::Buffer(id, _) => self.buffers.read(*id, &self.timeline),
            Draft::Slot(slot, _) => self.slots.read(*slot, &self.timeline),
        }
    }

    /// A place must last until the next action.
    fn keep(&mut self, place: &Draft) {
        match place {
            Draft::Device(slot) => {
                if let Some(placing) = &mut self.placing {
                    placing.slots.keep(*slot, &self.timeline);
                }
            }
            Draft::Buffer(id, _) => self.buffers.keep(*id, &self.timeline),
            Draft::Slot(slot, _) => self.slots.keep(*slot, &self.timeline),
        }
    }

    /// Plans the nodes of a body; gives its actions and results. `wants_tensor` tells which
    /// results are to be tensors in slots.
    fn body(
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
            self.node(&mut body, id).map_err(|error| origin(node).locate(error))?;
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
            Some(place) if self.timeline.scope() == 0 => {
                Ok(body.device_operand(outlet, place.slot))
            }
            Some(_) => {
                self.fetch_outlet(body, outlet)?;
                Ok(body.operand(outlet))
            }
            None => Ok(body.operand(outlet)),
        }
    }

    pub(super) fn push(&mut self, body: &mut Body<'_>, action: DraftAction) {
        let (scope, position) = (self.timeline.scope(), self.timeline.advance());
        body.actions.push(Positioned { position, scope, action });
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
                self.alias(body, Outlet::from(id), place);
            }
            Mode::Kernel => return self.kernel(body, id, node),
            Mode::Op => self.op(body, id, node),
            Mode::Call => return self.call(body, id, node),
        }
        if body.modes[&id] == Mode::Op {
            self.consumed(body, node);
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

    /// The result lies where another value lies.
    pub(super) fn alias(&mut self, body: &mut Body<'_>, outlet: Outlet, place: Draft) {
        let users = body.users(outlet);
        if let Some(unread) = self.unread_here(&place) {
            *unread = (*unread + users).saturating_sub(1);
        }
        body.places.insert(outlet, place);
    }

    /// One read of each input is done.
    pub(super) fn consumed(&mut self, body: &Body<'_>, node: &NodeDef) {
        for input in node.inputs() {
            if let Some(unread) = body.places.get(input).and_then(|place| self.unread_here(place)) {
                *unread = unread.saturating_sub(1);
            }
        }
    }

    /// The count of reads still to be planned, of a buffer that belongs to the scope at hand.
    fn unread_here(&mut self, place: &Draft) -> Option<&mut usize> {
        let Draft::Buffer(buffer, _) = place else { return None };
        let here = self.buffers.scope(*buffer) == self.timeline.scope();
        if here { self.unread.get_mut(buffer) } else { None }
    }

    fn op(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) {
        let Some(op) = node.op.def() else { return };
        let inputs: SmallVec<[DraftOperand; 4]> =
            node.inputs().iter().map(|&input| body.operand(input)).collect();
        inputs.iter().for_each(|input| self.read(&input.place));
        let outputs: SmallVec<[usize; 2]> =
            node.outputs().iter().map(|_| self.slot(SlotKind::Plain)).collect();
        for (index, &slot) in outputs.iter().enumerate() {
            body.places.insert(Outlet::new(id, index), Draft::Slot(slot, None));
        }
        let (attrs, origin) = (node.attrs.clone(), origin(node));
        self.push(body, DraftAction::Op { op, attrs, inputs, outputs, origin });
    }

    fn kernel(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) -> Result<()> {
        let Some(op) = node.op.def() else { return Ok(()) };
        let specs = body.specs(node)?;
        let call = OpCall::new(op, &node.attrs, &specs, node.expr.as_deref())?;
        if let Lowering::View(rule) = op.lowering
            && let Some(places) = self.windows(body, node, &call, rule)?
        {
            for (index, place) in places.into_iter().enumerate() {
                self.alias(body, Outlet::new(id, index), place);
            }
            self.consumed(body, node);
            return Ok(());
        }
        let kernel = match compile(self.context, &call) {
            Ok(kernel) => kernel,
            Err(error) => {
                let error = origin(node).locate(error);
                if self.timeline.scope() == 0 {
                    return Err(error);
                }
                self.push(body, DraftAction::Fail(error));
                self.op(body, id, node); // Never reached; it gives the results a place.
                return Ok(());
            }
        };
        let sources: SmallVec<[Draft; 3]> =
            node.inputs().iter().map(|input| body.places[input].clone()).collect();
        sources.iter().for_each(|source| self.read(source));
        let mut sinks = SmallVec::new();
        for (index, ty) in call.outputs.iter().enumerate() {
            let outlet = Outlet::new(id, index);
            let (sink, place) = self.sink(body, outlet, ty, index, &*kernel, &sources)?;
            sinks.push(sink);
            body.places.insert(outlet, place);
        }
        self.consumed(body, node);
        let scalar = ScalarCall::of(&call, &node.attrs, &node.expr).map(Box::new);
        let origin = origin(node);
        self.push(body, DraftAction::Kernel { kernel, scalar, sources, sinks, origin });
        Ok(())
    }

    /// Where the windows of a view lie, if all of them are contiguous.
    fn windows(
        &mut self,
        body: &Body<'_>,
        node: &NodeDef,
        call: &OpCall<'_>,
        rule: fn(
            &ferroflow_ir::infer::OpContext<'_>,
        ) -> ferroflow_ir::Result<Vec<ferroflow_ir::StridedView>>,
    ) -> Result<Option<Vec<Draft>>> {
        let Some(size) = call.dtype(0).size() else { return Ok(None) };
        let views = call.with_context(rule)?;
        if !views.iter().all(ferroflow_ir::StridedView::is_contiguous) {
            return Ok(None);
        }
        let source = &body.places[&node.inputs()[0]];
        let place = |view: &ferroflow_ir::StridedView| {
            let start = if view.num_elements() == 0 { 0 } else { view.offset as usize * size };
            let bytes = start..start + view.num_elements() * size;
            match source {
                Draft::Buffer(id, own) => {
                    Draft::Buffer(*id, own.start + bytes.start..own.start + bytes.end)
                }
                Draft::Slot(slot, own) => {
                    let base = own.as_ref().map_or(0, |own| own.start);
                    Draft::Slot(*slot, Some(base + bytes.start..base + bytes.end))
                }
                Draft::Device(slot) => Draft::Device(*slot),
            }
        };
        Ok(Some(views.iter().map(place).collect()))
    }

    /// Where output `index` of a kernel goes.
    fn sink(
        &mut self,
        body: &Body<'_>,
        outlet: Outlet,
        ty: &ValueType,
        index: usize,
        kernel: &dyn Kernel,
        sources: &[Draft],
    ) -> Result<(DraftSink, Draft)> {
        let Some(shape) = ty.shape.known().filter(|_| ty.dtype.size().is_some()) else {
            let slot = self.slot(SlotKind::Plain);
            return Ok((DraftSink::Unknown(slot), Draft::Slot(slot, None)));
        };
        check_size(ty.dtype, &shape, self.context.limits().tensor_bytes)?;
        if body.wanted.contains(&outlet) {
            let slot = self.slot(SlotKind::Plain);
            return Ok((DraftSink::Slot(slot, ty.clone(), shape), Draft::Slot(slot, None)));
        }
        let bytes = byte_len(ty.dtype, &shape)?;
        let users = body.users(outlet);
        if index == 0
            && bytes > 0
            && let Some(buffer) = self.reusable(bytes, kernel, sources)
        {
            self.unread.insert(buffer, users + 1); // This node's own read is still to be counted.
            self.buffers.keep(buffer, &self.timeline);
            return Ok((DraftSink::Buffer(buffer, bytes), Draft::Buffer(buffer, 0..bytes)));
        }
        let buffer = self.buffer(bytes);
        self.unread.insert(buffer, users);
        Ok((DraftSink::Buffer(buffer, bytes), Draft::Buffer(buffer, 0..bytes)))
    }

    /// The buffer of an input that nobody reads after this kernel, which may write over it.
    fn reusable(&self, bytes: usize, kernel: &dyn Kernel, sources: &[Draft]) -> Option<usize> {
        sources.iter().enumerate().find_map(|(index, source)| {
            let Draft::Buffer(buffer, range) = source else { return None };
            let last = self.unread.get(buffer) == Some(&1);
            let whole = *range == (0..bytes) && self.buffer_bytes[*buffer] == bytes;
            let here = self.buffers.scope(*buffer) == self.timeline.scope();
            (last && whole && here && kernel.in_place(index)).then_some(*buffer)
        })
    }

    fn call(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) -> Result<()> {
        let Some(op) = node.op.def() else { return Ok(()) };
        let function = body.function;
        let bodies = function.nested.get(&id).map_or(&[][..], Vec::as_slice);
        if op.call == Call::While {
            let [condition, repeated] = bodies else { return Ok(()) };
            self.repeat(body, id, node, condition, repeated)?;
        } else {
            self.branch(body, id, node, op.call, bodies)?;
        }
        self.consumed(body, node);
        Ok(())
    }

    fn branch(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        call: Call,
        bodies: &[Specialized],
    ) -> Result<()> {
        self.fetch_outlet(body, node.inputs()[0])?;
        let chooser = body.operand(node.inputs()[0]);
        let (args, device_args) = self.hand_over(body, &node.inputs()[1..])?;
        self.read(&chooser.place);
        let mut targets: Vec<(Draft, ValueType)> = Vec::new();
        for ty in node.outputs() {
            let place = match self.carrier(ty) {
                Some(device) => Draft::Device(self.device_slot(device)),
                None => self.variable_place(ty, SlotKind::Plain)?,
            };
            targets.push((place, ty.clone()));
        }
        // The results exist from before the branch on, so that no arm's buffers lie over them.
        self.timeline.advance();
        let mut branches = Vec::with_capacity(bodies.len());
        let devices = self.slot_devices();
        for arm in bodies {
            self.timeline.enter();
            let wants = |index: usize| matches!(targets[index].0, Draft::Slot(..));
            let on_device = |index: usize| device_at(&targets[index].0, &devices);
            let (mut actions, results) =
                self.body(arm, args.clone(), &device_args, &wants, &on_device)?;
            for (result, (target, _)) in results.into_iter().zip(&targets) {
                self.copy(&mut actions, result, target.clone());
            }
            args.iter().for_each(|arg| self.keep(arg));
            device_args.iter().for_each(|(_, place)| self.keep(&Draft::Device(place.slot)));
            self.timeline.leave();
            branches.push(actions);
        }
        for (index, (target, _)) in targets.into_iter().enumerate() {
            self.keep(&target);
            self.settle(body, Outlet::new(id, index), target);
        }
        self.push(body, DraftAction::Branch { call, chooser, branches, origin: origin(node) });
        Ok(())
    }

    /// A place for a value that is written more than once: a loop variable, a branch's result.
    fn variable_place(&mut self, ty: &ValueType, kind: SlotKind) -> Result<Draft> {
        match ty.shape.known().filter(|_| ty.dtype.size().is_some()) {
            Some(shape) => {
                check_size(ty.dtype, &shape, self.context.limits().tensor_bytes)?;
                let bytes = byte_len(ty.dtype, &shape)?;
                Ok(Draft::Buffer(self.buffer(bytes), 0..bytes))
            }
            None => Ok(Draft::Slot(self.slot(kind), None)),
        }
    }

    fn copy(&mut self, actions: &mut Vec<Positioned>, from: DraftOperand, to: Draft) {
        self.read(&from.place);
        self.keep(&to);
        let (scope, position) = (self.timeline.scope(), self.timeline.advance());
        let action = match self.device_of_slot(&to) {
            Some(device) => DraftAction::Transfer { from, to, device },
            None => DraftAction::Copy(from, to),
        };
        actions.push(Positioned { position, scope, action });
    }

    fn repeat(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        condition: &Specialized,
        repeated: &Specialized,
    ) -> Result<()> {
        let n = node.inputs().len();
        let fixed = |index: usize| {
            repeated.failure.is_some() || repeated.results[index] == repeated.args[index]
        };
        let (given, mut device_args) = self.hand_over(body, node.inputs())?;
        let mut inner: Vec<Draft> = Vec::with_capacity(n);
        for (index, ty) in node.outputs().iter().enumerate() {
            if fixed(index) {
                inner.push(given[index].clone());
                continue;
            }
            let input = node.inputs()[index];
            device_args.retain(|(other, _)| *other != index);
            if let Some(device) = self.carrier(ty) {
                let slot = self.send(body, input, device)?;
                let from = body.device_operand(input, slot);
                let place = DevicePlace { device, slot: self.device_slot(device) };
                self.copy(&mut body.actions, from, Draft::Device(place.slot));
                device_args.push((index, place));
                inner.push(Draft::Device(place.slot));
                continue;
            }
            self.fetch_outlet(body, input)?;
            let kind = SlotKind::LoopVariable { scope: 0, body: usize::MAX };
            let place = self.variable_place(ty, kind)?;
            let from = body.operand(input);
            self.copy(&mut body.actions, from, place.clone());
            inner.push(place);
        }
        let devices = self.slot_devices();
        let outer = self.timeline.scope();
        self.timeline.enter();
        self.enter_loop();
        let (tests, test) =
            self.body(condition, inner.clone(), &device_args, &|_| false, &|_| None)?;
        let Some(test) = test.into_iter().next() else {
            if let Some(error) = &condition.failure {
                return Err(error.clone().into());
            }
            let (expected, found) = ("a truth value", "nothing");
            let op = node.op.name().to_string();
            return Err(ferroflow_ir::Error::argument(op, "condition", expected, found).into());
        };
        self.read(&test.place);
        self.timeline.advance();
        let (scope, start) = (self.timeline.scope(), self.timeline.now());
        for place in &inner {
            if let Draft::Slot(slot, _) = place
                && let SlotKind::LoopVariable { .. } = self.slot_kinds[*slot]
                && self.slots.scope(*slot) == outer
            {
                self.slot_kinds[*slot] = SlotKind::LoopVariable { scope, body: start };
            }
        }
        let wants = |index: usize| matches!(inner[index], Draft::Slot(..));
        let on_device = |index: usize| match fixed(index) {
            true => None,
            false => device_at(&inner[index], &devices),
        };
        let (mut actions, results) =
            self.body(repeated, inner.clone(), &device_args, &wants, &on_device)?;
        self.leave_loop();
        self.assign_variables(&mut actions, &inner, results, &fixed);
        inner.iter().for_each(|place| self.keep(place));
        device_args.iter().for_each(|(_, place)| self.keep(&Draft::Device(place.slot)));
        self.timeline.leave();
        for (index, place) in inner.into_iter().enumerate() {
            self.keep(&place);
            self.settle(body, Outlet::new(id, index), place);
        }
        for (index, place) in device_args {
            self.keep(&Draft::Device(place.slot));
            body.device_places.insert(Outlet::new(id, index), place);
        }
        let origin = origin(node);
        self.push(body, DraftAction::While { condition: tests, test, body: actions, origin });
        Ok(())
    }

    /// At the end of an iteration the variables take their new values, all at once.
    fn assign_variables(
        &mut self,
        actions: &mut Vec<Positioned>,
        variables: &[Draft],
        results: Vec<DraftOperand>,
        fixed: &dyn Fn(usize) -> bool,
    ) {
        let mut results: Vec<(usize, DraftOperand)> =
            results.into_iter().enumerate().filter(|(index, _)| !fixed(*index)).collect();
        for (index, result) in &mut results {
            let other = variables.iter().enumerate().any(|(variable, place)| {
                variable != *index && !fixed(variable) && *place == result.place
            });
            if !other {
                continue;
            }
            let aside = match &result.place {
                Draft::Buffer(_, bytes) => Draft::Buffer(self.buffer(bytes.len()), 0..bytes.len()),
                Draft::Slot(..) => Draft::Slot(self.slot(SlotKind::Plain), None),
                Draft::Device(_) => match self.device_of_slot(&result.place) {
                    Some(device) => Draft::Device(self.device_slot(device)),
                    None => continue,
                },
            };
            self.copy(actions, result.clone(), aside.clone());
            result.place = aside;
        }
        for (index, result) in results {
            self.copy(actions, result, variables[index].clone());
        }
    }

    /// Lays out the arena and turns drafts into actions.
    fn finish(
        mut self,
        drafts: Vec<Positioned>,
        args: Vec<usize>,
        device_args: Vec<(usize, usize)>,
        results: Vec<DraftOperand>,
    ) -> Program {
        self.buffers.close(&self.timeline);
        self.slots.close(&self.timeline);
        let (offsets, arena) = self.buffers.place(&self.buffer_bytes);
        let mut cleared: HashMap<usize, SmallVec<[usize; 4]>> = HashMap::new();
        for slot in 0..self.slots.len() {
            if self.slot_kinds[slot] == SlotKind::Plain {
                cleared.entry(self.slots.last(slot)).or_default().push(slot);
            }
        }
        let n_slots = self.slots.len();
        let (n_device_slots, device_constants, devices_cleared) = self.finish_devices();
        let placement = self.placement();
        let constants = mem::take(&mut self.constants);
        let values = constants.iter().cloned().collect();
        let layout =
            Layout { planner: &self, offsets, cleared, devices_cleared, constants: &values };
        let last = usize::MAX;
        let results = results.into_iter().map(|result| layout.operand(result, last, 0)).collect();
        let actions = layout.actions(drafts);
        let devices = placement.map(|placement| {
            Box::new(DeviceParts {
                n_slots: n_device_slots,
                constants: device_constants,
                args: device_args,
                placement,
            })
        });
        Program { actions, arena, n_slots, constants, args, results, devices }
    }
}

impl Body<'_> {
    fn mode(&self, node: &NodeDef) -> Result<Mode> {
        let graph = &self.function.graph;
        let Some(op) = node.op.def() else { return Ok(Mode::Op) };
        if op.call != Call::None {
            return Ok(Mode::Call);
        }
        if op.inputs.is_empty() && (op.name == "_Arg" || node.attrs.tensor("value").is_ok()) {
            return Ok(Mode::Source);
        }
        let known = |ty: &ValueType| ty.shape.known().is_some();
        let types = node.inputs().iter().map(|&input| graph.ty(input));
        let inputs_known = types.clone().all(|ty| ty.is_some_and(known));
        match op.lowering {
            Lowering::Runtime | Lowering::Interface | Lowering::Composite(_) => Ok(Mode::Op),
            Lowering::Alias => {
                let source = types.clone().next().flatten();
                let same_bits =
                    source.is_some_and(|ty| ty.dtype.size() == node.outputs()[0].dtype.size());
                let fits = known(&node.outputs()[0]) && inputs_known && same_bits;
                Ok(if fits { Mode::Alias } else { Mode::Op })
            }
            Lowering::Elementwise(_)
            | Lowering::Fused
            | Lowering::Reduce(_)
            | Lowering::View(_)
            | Lowering::Kernel => {
                let host = op.host_inputs(&node.attrs)?;
                let steered = node.inputs().iter().zip(&host);
                let values_known =
                    steered.clone().all(|(&input, &host)| !host || self.constant(input).is_some());
                Ok(if inputs_known && values_known { Mode::Kernel } else { Mode::Op })
            }
        }
    }

    /// The value of an outlet that is a constant.
    pub(super) fn constant(&self, outlet: Outlet) -> Option<&HostTensor> {
        let node = &self.function.graph[outlet.node];
        let is_source = node.op.def().is_some_and(|op| op.inputs.is_empty());
        if is_source { node.attrs.tensor("value").ok() } else { None }
    }

    /// The outlet whose place this one shares.
    fn origin_of(&self, outlet: Outlet) -> Outlet {
        let mut outlet = outlet;
        while self.modes.get(&outlet.node) == Some(&Mode::Alias) {
            outlet = self.function.graph[outlet.node].inputs()[0];
        }
        outlet
    }

    /// How often an outlet is read.
    fn users(&self, outlet: Outlet) -> usize {
        let graph = &self.function.graph;
        let count =
            |id: NodeId| graph[id].inputs().iter().filter(|&&input| input == outlet).count();
        let results = self.function.results.iter().filter(|&&result| result == outlet).count();
        graph.data_consumers(outlet.node).map(count).sum::<usize>() + results
    }

    pub(super) fn operand(&self, outlet: Outlet) -> DraftOperand {
        let ty = self.function.graph.ty(outlet).expect("every node here has typed results").clone();
        DraftOperand { place: self.places[&outlet].clone(), ty }
    }

    pub(super) fn specs(&self, node: &NodeDef) -> Result<SmallVec<[OperandSpec; 4]>> {
        let graph = &self.function.graph;
        let spec = |&input: &Outlet| {
            if let Some(value) = self.constant(input) {
                return Ok(OperandSpec::known(value.clone()));
            }
            let ty = graph.ty(input).expect("every node here has typed results");
            let shape = ty.shape.known().ok_or_else(|| {
                let op = node.op.name().to_string();
                ferroflow_ir::Error::argument(op, "an input", "of known shape", &ty.shape)
            })?;
            Ok(OperandSpec::new(ty.dtype, shape))
        };
        node.inputs().iter().map(spec).collect()
    }
}

pub(super) fn origin(node: &NodeDef) -> Arc<Origin> {
    Arc::new(Origin {
        node: node.name.clone(),
        op: node.op.name().into(),
        function: node.function.clone().unwrap_or_else(|| "".into()),
        location: node.location,
    })
}

/// What is known once all lifetimes are.
pub(super) struct Layout<'a, 'b> {
    planner: &'a Planner<'b>,
    offsets: Vec<usize>,
    cleared: HashMap<usize, SmallVec<[usize; 4]>>,
    devices_cleared: HashMap<usize, SmallVec<[usize; 4]>>,
    constants: &'a HashMap<usize, HostTensor>,
}

impl Layout<'_, '_> {
    pub(super) fn region(&self, buffer: usize, bytes: &Range<usize>) -> Region {
        self.offsets[buffer] + bytes.start..self.offsets[buffer] + bytes.end
    }

    /// The bytes of a buffer.
    pub(super) fn buffer_bytes(&self, buffer: usize) -> usize {
        self.planner.buffer_bytes[buffer]
    }

    /// The constant that is always in a slot.
    pub(super) fn constant(&self, slot: usize) -> Option<&HostTensor> {
        self.constants.get(&slot)
    }

    /// Whether a buffer is one of a loop or branch in `scope`, and of nobody outside.
    pub(super) fn is_inside(&self, buffer: usize, scope: usize) -> bool {
        let own = self.planner.buffers.scope(buffer);
        own != scope && self.planner.timeline.is_inside(own, scope)
    }

    fn place(&self, place: &Draft) -> Place {
        match place {
            Draft::Buffer(buffer, bytes) => Place::Arena(self.region(*buffer, bytes)),
            Draft::Slot(slot, bytes) => Place::Slot(*slot, bytes.clone()),
            Draft::Device(slot) => Place::Device(*slot),
        }
    }

    fn operand(&self, operand: DraftOperand, position: usize, scope: usize) -> Operand {
        let slots = &self.planner.slots;
        let take = match operand.place {
            Draft::Slot(slot, _) => match self.planner.slot_kinds[slot] {
                SlotKind::Plain => slots.scope(slot) == scope && slots.last(slot) == position,
                SlotKind::Constant => false,
                SlotKind::LoopVariable { scope: inside, body } => {
                    let last = slots.last_read_in(slot, inside, &self.planner.timeline);
                    scope == inside && position >= body && last == Some(position)
                }
            },
            Draft::Buffer(..) | Draft::Device(_) => false,
        };
        Operand {
            place: self.place(&operand.place),
            dtype: operand.ty.dtype,
            shape: operand.ty.shape.known(),
            take,
        }
    }

    /// The body that runs an op whatever its inputs turn out to be.
    fn body(&self, op: &'static OpDef) -> Option<ops::Body> {
        let always = matches!(op.lowering, Lowering::Runtime)
            && op.call == Call::None
            && op.on_variants.is_none()
            && !op.inputs.is_empty();
        if always { self.planner.context.body(op) } else { None }
    }

    fn actions(&self, drafts: Vec<Positioned>) -> Vec<Action> {
        let mut actions = Vec::with_capacity(drafts.len());
        let mut run = Vec::new();
        for draft in drafts {
            if scalar::is_scalar(&draft.action) {
                run.push(draft);
                continue;
            }
            self.scalars(mem::take(&mut run), &mut actions);
            self.plain(draft, &mut actions);
        }
        self.scalars(run, &mut actions);
        actions
    }

    /// Adds a run of actions on single numbers, as one where that is possible.
    fn scalars(&self, run: Vec<Positioned>, actions: &mut Vec<Action>) {
        let program = scalar::program(self, &run);
        let mut plain = Vec::with_capacity(run.len());
        run.into_iter().for_each(|draft| self.plain(draft, &mut plain));
        match program {
            Some(program) => {
                actions.push(Action::Scalar(Box::new(ScalarAction { plain, ..program })))
            }
            None => actions.extend(plain),
        }
    }

    fn plain(&self, draft: Positioned, actions: &mut Vec<Action>) {
        let Positioned { position, scope, action } = draft;
        actions.push(self.action(action, position, scope));
        if let Some(slots) = self.cleared.get(&position) {
            actions.push(Action::Clear(slots.clone()));
        }
        if let Some(slots) = self.devices_cleared.get(&position) {
            actions.push(Action::ClearDevice(slots.clone()));
        }
    }

    fn action(&self, action: DraftAction, position: usize, scope: usize) -> Action {
        match action {
            DraftAction::Kernel { kernel, sources, sinks, origin, .. } => {
                let sources = sources.iter().map(|source| match source {
                    Draft::Buffer(buffer, bytes) => Source::Arena(self.region(*buffer, bytes)),
                    Draft::Slot(slot, None) => Source::Slot(*slot),
                    Draft::Slot(slot, Some(bytes)) => Source::SlotBytes(*slot, bytes.clone()),
                    Draft::Device(_) => unreachable!("kernels of the host read host memory"),
                });
                let sinks = sinks.into_iter().map(|sink| match sink {
                    DraftSink::Buffer(buffer, bytes) => {
                        Sink::Arena(self.region(buffer, &(0..bytes)))
                    }
                    DraftSink::Slot(slot, ty, shape) => Sink::Slot(slot, ty.dtype, shape),
                    DraftSink::Unknown(slot) => Sink::Unknown(slot),
                });
                Action::Kernel(Step::new(kernel, sources, sinks), origin)
            }
            DraftAction::Op { op, attrs, inputs, outputs, origin } => {
                let mut inputs: SmallVec<[Operand; 4]> =
                    inputs.into_iter().map(|input| self.operand(input, position, scope)).collect();
                keep_repeated(&mut inputs);
                // Where devices take part, variables may live there: the op finds out.
                let on_host = self.planner.placing.is_none();
                let optimizer = on_host.then(|| ops::training::optimizer(op.name)).flatten();
                let body = self.body(op);
                Action::Op(OpAction { op, body, optimizer, attrs, inputs, outputs, origin })
            }
            DraftAction::Copy(from, to) => {
                Action::Copy(self.operand(from, position, scope), self.place(&to))
            }
            DraftAction::While { condition, test, body, origin } => {
                Action::While(Box::new(WhileAction {
                    condition: self.actions(condition),
                    test: Operand { take: false, ..self.operand(test, position, scope) },
                    body: self.actions(body),
                    origin,
                }))
            }
            DraftAction::Branch { call, chooser, branches, origin } => {
                Action::Branch(Box::new(BranchAction {
                    call,
                    chooser: Operand { take: false, ..self.operand(chooser, position, scope) },
                    branches: branches.into_iter().map(|branch| self.actions(branch)).collect(),
                    origin,
                }))
            }
            DraftAction::Fail(error) => Action::Fail(error),
            DraftAction::Device(draft) => Action::Device(Box::new(self.device_step(draft))),
            DraftAction::DeviceOp { op, attrs, inputs, outputs, device, origin } => {
                let inputs =
                    inputs.into_iter().map(|input| self.operand(input, position, scope)).collect();
                let outputs = outputs.iter().map(|output| self.place(output)).collect();
                let device = self.device(device);
                Action::DeviceOp(Box::new(DeviceOpAction {
                    op,
                    body: self.planner.context.body(op),
                    attrs,
                    inputs,
                    outputs,
                    device,
                    origin,
                }))
            }
            DraftAction::Transfer { from, to, device } => Action::Transfer(
                Box::new(self.operand(from, position, scope)),
                self.place(&to),
                self.device(device),
            ),
        }
    }

    fn device(&self, number: usize) -> Arc<dyn Device> {
        let placing = self.planner.placing.as_ref().expect("only what is placed has devices");
        placing.devices[number].clone()
    }

    fn device_step(&self, draft: DeviceDraft) -> DeviceStep {
        let DeviceDraft { device, kernel, sources, sinks, origin } = draft;
        DeviceStep { device: self.device(device), kernel, sources, sinks, origin }
    }
}

/// A slot that is read twice by one action is given up by the last read only.
fn keep_repeated(inputs: &mut [Operand]) {
    for index in 0..inputs.len() {
        let Place::Slot(slot, _) = inputs[index].place else { continue };
        let again = inputs[index + 1..]
            .iter()
            .any(|later| matches!(later.place, Place::Slot(other, _) if other == slot));
        if again {
            inputs[index].take = false;
        }
    }
}
