//! Loops and branches: bodies that run more than once, or not at all.

use super::{
    draft::{Body, Draft, DraftAction, DraftOperand, Positioned, SlotKind, origin},
    faults::{Fault, is_planted},
    planner::Planner,
};
use crate::error::Result;
use ferroflow_ir::{
    NodeDef, NodeId, Outlet,
    host_tensor::byte_len,
    op::Call,
    pass::{place::location, specialize::Specialized},
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
        let chooser = body.operand(node.inputs()[0]);
        let args: Vec<Draft> =
            node.inputs()[1..].iter().map(|input| body.places[input].clone()).collect();
        let mut targets: Vec<Draft> = Vec::new();
        for index in 0..node.outputs().len() {
            targets.push(self.variable_place(body, Outlet::new(id, index))?);
        }
        let mut branches = Vec::with_capacity(bodies.len());
        for arm in bodies {
            self.depth += 1;
            let wants = |index: usize| matches!(targets[index], Draft::Slot(..));
            let (mut actions, results) = self.body(arm, args.clone(), &wants)?;
            for (result, target) in results.into_iter().zip(&targets) {
                self.copy(&mut actions, result, target.clone());
            }
            self.depth -= 1;
            branches.push(actions);
        }
        let results = targets.clone();
        for (index, target) in targets.into_iter().enumerate() {
            body.places.insert(Outlet::new(id, index), target);
        }
        let origin = origin(id, node);
        self.push(body, DraftAction::Branch { call, chooser, branches, results, origin });
        Ok(())
    }

    /// A place for a value that is written more than once: a loop variable, a branch's result.
    fn variable_place(&mut self, body: &Body<'_>, outlet: Outlet) -> Result<Draft> {
        let graph = &body.function.graph;
        if self.device(location(graph, outlet)).is_some() {
            return Ok(self.slot_at(body, outlet));
        }
        let ty = &graph[outlet.node].outputs()[outlet.index as usize];
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
        let device = self.device_of_slot(&to);
        let action = self.positioned(DraftAction::Copy { from, to, device });
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
        let mut inner: Vec<Draft> = Vec::with_capacity(n);
        for (index, &input) in node.inputs().iter().enumerate() {
            if fixed(index) {
                inner.push(body.places[&input].clone());
                continue;
            }
            let place = self.variable_place(body, Outlet::new(id, index))?;
            let from = body.operand(input);
            self.copy(&mut body.actions, from, place.clone());
            inner.push(place);
        }
        self.depth += 1;
        let (tests, test) = self.body(condition, inner.clone(), &|_| false)?;
        let Some(test) = test.into_iter().next() else {
            if let Some(error) = &condition.failure {
                return Err(error.clone().into());
            }
            let (expected, found) = ("a truth value", "nothing");
            let op = node.op.name().to_string();
            return Err(ferroflow_ir::Error::argument(op, "condition", expected, found).into());
        };
        let wants = |index: usize| matches!(inner[index], Draft::Slot(..));
        let (mut actions, results) = self.body(repeated, inner.clone(), &wants)?;
        self.assign_variables(&mut actions, &inner, results, &fixed);
        self.depth -= 1;
        let variables = inner.iter().enumerate();
        let variables =
            variables.map(|(index, place)| (!fixed(index)).then(|| place.clone())).collect();
        for (index, place) in inner.into_iter().enumerate() {
            body.places.insert(Outlet::new(id, index), place);
        }
        let origin = origin(id, node);
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
