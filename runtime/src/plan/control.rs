//! Loops and branches: bodies that run more than once, or not at all.

use super::{
    Covers,
    draft::{Body, Draft, DraftAction, DraftOperand, Positioned, SlotKind, origin},
    faults::{Fault, is_planted},
    placing::{DevicePlace, device_at},
    planner::Planner,
};
use crate::error::Result;
use ferroflow_ir::{
    NodeDef, NodeId, Outlet, ValueType, host_tensor::byte_len, op::Call,
    pass::specialize::Specialized,
};
use ferroflow_kernels::check_size;

impl Planner<'_> {
    pub(super) fn call(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) -> Result<()> {
        let Some(op) = node.op.def() else { return Ok(()) };
        let function = body.function;
        let bodies = function.nested.get(&id).map_or(&[][..], Vec::as_slice);
        if op.call == Call::While {
            let [condition, repeated] = bodies else { return Ok(()) };
            self.repeat(body, id, node, condition, repeated)?;
        } else {
            self.branch(body, id, node, op.call, bodies)?;
        }
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
        let mut targets: Vec<(Draft, ValueType)> = Vec::new();
        for ty in node.outputs() {
            let place = match self.carrier(ty) {
                Some(device) => Draft::Device(self.device_slot(device)),
                None => self.variable_place(ty)?,
            };
            targets.push((place, ty.clone()));
        }
        let mut branches = Vec::with_capacity(bodies.len());
        let devices = self.slot_devices();
        for arm in bodies {
            self.depth += 1;
            let wants = |index: usize| matches!(targets[index].0, Draft::Slot(..));
            let on_device = |index: usize| device_at(&targets[index].0, &devices);
            let (mut actions, results) =
                self.body(arm, args.clone(), &device_args, &wants, &on_device)?;
            for (result, (target, _)) in results.into_iter().zip(&targets) {
                self.copy(&mut actions, result, target.clone());
            }
            self.depth -= 1;
            branches.push(actions);
        }
        let results = targets.iter().map(|(target, _)| target.clone()).collect();
        for (index, (target, _)) in targets.into_iter().enumerate() {
            self.settle(body, Outlet::new(id, index), target);
        }
        let origin = origin(Covers::Node(id), node);
        self.push(body, DraftAction::Branch { call, chooser, branches, results, origin });
        Ok(())
    }

    /// A place for a value that is written more than once: a loop variable, a branch's result.
    fn variable_place(&mut self, ty: &ValueType) -> Result<Draft> {
        match ty.shape.known().filter(|_| ty.dtype.size().is_some()) {
            Some(shape) => {
                check_size(ty.dtype, &shape, self.context.limits().tensor_bytes)?;
                let bytes = byte_len(ty.dtype, &shape)?;
                Ok(Draft::Buffer(self.buffer(bytes), 0..bytes))
            }
            None => Ok(Draft::Slot(self.slot(SlotKind::Plain), None)),
        }
    }

    fn copy(&mut self, actions: &mut Vec<Positioned>, from: DraftOperand, to: Draft) {
        let action = match self.device_of_slot(&to) {
            Some(device) => DraftAction::Transfer { from, to, device },
            None => DraftAction::Copy(from, to),
        };
        let action = self.positioned(action);
        actions.push(action);
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
            let place = self.variable_place(ty)?;
            let from = body.operand(input);
            self.copy(&mut body.actions, from, place.clone());
            inner.push(place);
        }
        let devices = self.slot_devices();
        self.depth += 1;
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
        let wants = |index: usize| matches!(inner[index], Draft::Slot(..));
        let on_device = |index: usize| match fixed(index) {
            true => None,
            false => device_at(&inner[index], &devices),
        };
        let (mut actions, results) =
            self.body(repeated, inner.clone(), &device_args, &wants, &on_device)?;
        self.leave_loop();
        self.assign_variables(&mut actions, &inner, results, &fixed);
        self.depth -= 1;
        let variables = inner.iter().enumerate();
        let variables =
            variables.map(|(index, place)| (!fixed(index)).then(|| place.clone())).collect();
        for (index, place) in inner.into_iter().enumerate() {
            self.settle(body, Outlet::new(id, index), place);
        }
        for (index, place) in device_args {
            body.device_places.insert(Outlet::new(id, index), place);
        }
        let origin = origin(Covers::Node(id), node);
        let condition = tests;
        let action = DraftAction::While { condition, test, body: actions, variables, origin };
        self.push(body, action);
        Ok(())
    }

    /// Assigns the variables at the end of an iteration, all at once: a result that is a view of
    /// another variable is copied aside before that variable is written.
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
                variable != *index && !fixed(variable) && place.root() == result.place.root()
            });
            if !other || is_planted(Fault::AssignInOrder) {
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
}
