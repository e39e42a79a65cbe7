//! The symbolic run of actions.

use super::{
    super::action::{
        Action, ActionAccess, BranchAction, CopyAction, GroupProgram, OpOutput, Scheduled,
        TensorOperand, ValueLocation, WhileAction,
    },
    effects::{Effects, has_effects},
    memory::{MemoryContent, SymbolicMemory},
    values::{Environment, SymbolId, SymbolicValue, ValueNumbering},
    wrong,
};
use crate::{error::Result, origin::NodeOrigin};
use ferroflow_ir::{Effect, NodeId, Outlet, budget, pass::specialize::Specialized};
use ferroflow_kernels::frame::{ArenaRange, LaunchStep};
use std::collections::HashMap;

/// A loop whose memory still changes after so many rounds is a defect of the validator.
const MAX_ROUNDS: usize = 64;

pub(super) struct SymbolicRun<'n> {
    numbers: &'n mut ValueNumbering,
    memory: SymbolicMemory,
}

impl<'n> SymbolicRun<'n> {
    pub(super) fn new(numbers: &'n mut ValueNumbering, memory: SymbolicMemory) -> SymbolicRun<'n> {
        SymbolicRun { numbers, memory }
    }

    /// Runs the actions of a body; `false` if it ends in a failure that was found while planning.
    pub(super) fn body(
        &mut self,
        actions: &[Scheduled],
        environment: &mut Environment<'_>,
    ) -> Result<bool> {
        note_computed(actions, &mut |id| environment.computed.extend([id]));
        let mut effects = Effects::default();
        if !self.actions(actions, environment, &mut effects)? {
            return Ok(false);
        }
        let function = environment.function;
        for (id, node) in function.graph.iter() {
            let must_run = match node.op.def().map(|op| op.effect) {
                Some(Effect::Writes | Effect::Stateful) | None => true,
                Some(Effect::OfCallee) => has_effects(function, id),
                Some(Effect::Pure | Effect::Reads) => false,
            };
            if must_run && !environment.computed.contains(&id) && !is_argument(environment, id) {
                return Err(wrong(&node.name, "a node with effects has no step"));
            }
        }
        Ok(true)
    }

    fn actions(
        &mut self,
        actions: &[Scheduled],
        environment: &mut Environment<'_>,
        effects: &mut Effects,
    ) -> Result<bool> {
        for Scheduled { action, dead, .. } in actions {
            budget::tick();
            if let Some(id) = covered(action)
                && let Some(later) = effects.run(environment, self.numbers, id)
            {
                let what = format!("`{}` has run before", environment.function.graph[later].name);
                return Err(wrong(&environment.function.graph[id].name, &what));
            }
            if !self.action(action, environment, effects)? {
                return Ok(false);
            }
            dead.iter().for_each(|&slot| self.memory.forget(&ValueLocation::Slot(slot, None)));
        }
        Ok(true)
    }

    fn action(
        &mut self,
        action: &Action,
        environment: &mut Environment<'_>,
        effects: &mut Effects,
    ) -> Result<bool> {
        match action {
            Action::Kernel(kernel) => self.step(&kernel.step, &kernel.origin, environment)?,
            Action::Op(op) => {
                let reads = op.inputs.iter().map(|input| Some(input.place.clone())).collect();
                self.reads(&op.origin, reads, environment)?;
                self.take(&op.inputs);
                let writes = op.outputs.iter().map(OpOutput::location);
                self.writes(&op.origin, writes, environment);
            }
            Action::Copy(copy) => self.copy(copy, environment)?,
            Action::While(repeat) => self.repeat(repeat, environment)?,
            Action::Branch(branch) => return self.branch(branch, environment),
            Action::Group(group) => {
                if !self.actions(&group.actions, environment, effects)? {
                    return Ok(false);
                }
                self.leave_group(&group.actions, &group.program);
            }
            Action::Fail(_) => return Ok(false),
        }
        Ok(true)
    }

    /// A program that stands for actions leaves less in memory than they do.
    fn leave_group(&mut self, actions: &[Scheduled], program: &GroupProgram) {
        let mut lost = Vec::new();
        for_each_write(actions, &mut |place| lost.push(place.clone()));
        match program {
            GroupProgram::Scalar(program) => {
                let stored: Vec<&ArenaRange> =
                    program.stores.iter().map(|store| &store.to).collect();
                lost.iter().for_each(|place| self.memory.forget_all_but(place, &stored));
            }
            GroupProgram::KernelGraph(graph) => {
                lost.retain(|place| {
                    let is_output = |slot| graph.outputs.iter().any(|(out, ..)| *out == slot);
                    !place.slot().is_some_and(is_output)
                });
                lost.iter().for_each(|place| self.memory.forget(place));
            }
        }
    }

    fn step(
        &mut self,
        step: &LaunchStep,
        origin: &NodeOrigin,
        environment: &mut Environment<'_>,
    ) -> Result<()> {
        let reads = step.sources().iter().map(ValueLocation::of_source).collect();
        self.reads(origin, reads, environment)?;
        self.writes(origin, step.sinks().iter().map(ValueLocation::of_sink), environment);
        Ok(())
    }

    /// An action reads the inputs of its node; kernels need not read what they were compiled with.
    fn reads(
        &mut self,
        origin: &NodeOrigin,
        places: Vec<Option<ValueLocation>>,
        environment: &mut Environment<'_>,
    ) -> Result<()> {
        let id = origin.id;
        let inputs = environment.function.graph[id].inputs().to_vec();
        if inputs.len() != places.len() {
            let what = format!("reads {} values of {}", places.len(), inputs.len());
            return Err(wrong(&step_name(origin), &what));
        }
        for (outlet, place) in inputs.into_iter().zip(places) {
            match place {
                Some(place) => self.expect(&place, environment, outlet, &|| step_name(origin))?,
                None if environment.is_constant(outlet) => {}
                None => return Err(wrong(&step_name(origin), "an operand is not read")),
            }
        }
        Ok(())
    }

    /// A location must hold a value of the graph.
    pub(super) fn expect(
        &mut self,
        place: &ValueLocation,
        environment: &mut Environment<'_>,
        outlet: Outlet,
        step: &dyn Fn() -> String,
    ) -> Result<()> {
        let Some(value) = environment.value(outlet, self.numbers) else {
            let what = format!("reads `{}` before it is computed", environment.name(outlet));
            return Err(wrong(&step(), &what));
        };
        let len = value.bytes.as_ref().map(|bytes| bytes.len());
        let len = len.or_else(|| environment.byte_len(outlet));
        if len == Some(0) {
            return Ok(());
        }
        let region = match place {
            ValueLocation::Arena(region) => Some(region),
            ValueLocation::Slot(_, bytes) => bytes.as_ref(),
        };
        let found = self.memory.read(place);
        let is_whole = region.is_none_or(|region| Some(region.len()) == len);
        let is_found = found.is_some_and(|content| {
            content.number == value.number && content.start == value.start()
        });
        if is_whole && is_found {
            return Ok(());
        }
        let held = match found {
            None => "nothing whole".to_string(),
            Some(content) if content.number == value.number && content.start == value.start() => {
                "it in another size".to_string()
            }
            Some(content) if content.number == value.number => "another part of it".to_string(),
            Some(_) => "another value".to_string(),
        };
        let what = format!("reads `{}` at {place:?}, which holds {held}", environment.name(outlet));
        Err(wrong(&step(), &what))
    }

    /// An action writes the results of its node; those that nothing reads are not stored.
    fn writes(
        &mut self,
        origin: &NodeOrigin,
        places: impl Iterator<Item = Option<ValueLocation>>,
        environment: &mut Environment<'_>,
    ) {
        for (index, place) in places.enumerate() {
            let outlet = Outlet::new(origin.id, index);
            let number = self.numbers.result(environment.function, outlet);
            environment.define(outlet, SymbolicValue::whole(number));
            if let Some(place) = place {
                self.memory.write(&place, MemoryContent { number, start: 0 });
            }
        }
    }

    /// Operands that are taken leave their slots empty.
    fn take(&mut self, operands: &[TensorOperand]) {
        for operand in operands.iter().filter(|operand| operand.take) {
            self.memory.forget(&operand.place);
        }
    }

    fn copy(&mut self, copy: &CopyAction, environment: &Environment<'_>) -> Result<()> {
        let CopyAction { from, to, .. } = copy;
        let is_empty = |place: &ValueLocation| matches!(place, ValueLocation::Arena(region) if region.is_empty());
        let Some(content) = self.memory.read(&from.place) else {
            if is_empty(&from.place) || is_empty(to) {
                // A value without bytes, of which nothing is expected where it is read.
                let number = self.numbers.fresh();
                self.memory.write(to, MemoryContent { number, start: 0 });
                return Ok(());
            }
            let step = format!("function `{}`, a copy to {to:?}", environment.function_name());
            return Err(wrong(&step, &format!("{:?} holds nothing whole", from.place)));
        };
        if from.take {
            self.memory.forget(&from.place);
        }
        self.memory.write(to, content);
        Ok(())
    }

    fn repeat(&mut self, action: &WhileAction, outer: &mut Environment<'_>) -> Result<()> {
        let id = action.origin.id;
        let function = outer.function;
        let Some([condition, body]) = function.nested.get(&id).map(Vec::as_slice) else {
            return Err(wrong(&step_name(&action.origin), "the loop has no bodies"));
        };
        let inputs = function.graph[id].inputs().to_vec();
        let is_fixed =
            |index: usize| body.failure.is_some() || body.results[index] == body.args[index];
        let is_read = |index: usize| {
            let in_part = |part: &Specialized| is_read(part, part.args[index]);
            in_part(condition) || in_part(body) || is_read(function, Outlet::new(id, index))
        };
        let mut values = Vec::with_capacity(inputs.len());
        for (index, &input) in inputs.iter().enumerate() {
            let location = action.variables.get(index).and_then(Option::as_ref);
            values.push(match (is_fixed(index), location) {
                (true, _) => outer.value(input, self.numbers).ok_or_else(|| {
                    wrong(&step_name(&action.origin), "an input has not been computed")
                })?,
                (false, None) => {
                    return Err(wrong(&step_name(&action.origin), "a variable is nowhere"));
                }
                (false, Some(place)) => {
                    let number = self.numbers.result(body, body.args[index]);
                    if is_read(index) {
                        self.leave(place, outer, input, number);
                    }
                    SymbolicValue::whole(number)
                }
            });
        }
        let with_args = |function| {
            let mut environment = Environment::of(function);
            let args = environment.function.args.clone();
            args.iter()
                .zip(&values)
                .for_each(|(&arg, value)| environment.define(arg, value.clone()));
            environment
        };
        for _ in 0..MAX_ROUNDS {
            let head = self.memory.clone();
            let mut tests = with_args(condition);
            if !self.body(&action.condition, &mut tests)? {
                return Ok(());
            }
            if let Some(&test) = condition.results.first() {
                self.expect(&action.test.place, &mut tests, test, &|| step_name(&action.origin))?;
            }
            let after = self.memory.clone();
            let mut round = with_args(body);
            let goes_on = self.body(&action.body, &mut round)?;
            if goes_on {
                for (index, value) in values.iter().enumerate() {
                    let location = action.variables.get(index).and_then(Option::as_ref);
                    if let (false, true, Some(place)) = (is_fixed(index), is_read(index), location)
                    {
                        self.leave(place, &mut round, body.results[index], value.number);
                    }
                }
                self.memory.meet(&head);
            }
            if !goes_on || self.memory == head {
                self.memory = after;
                self.results_of_loop(id, &values, action, outer);
                return Ok(());
            }
        }
        Err(wrong(&step_name(&action.origin), "the loop has no fixed point"))
    }

    /// A value is left in a location, where it is `number` for what comes after: a result of a
    /// body, or the initial value of a loop variable. A value that is not there has no place:
    /// nothing may read it, and the memory may hold another value. One that is there although
    /// nothing reads it is not to be left: it may be there as another value that is equal, and is
    /// read.
    fn leave(
        &mut self,
        place: &ValueLocation,
        environment: &mut Environment<'_>,
        result: Outlet,
        number: SymbolId,
    ) {
        if self.expect(place, environment, result, &String::new).is_ok() {
            self.memory.write(place, MemoryContent { number, start: 0 });
        }
    }

    fn results_of_loop(
        &mut self,
        id: NodeId,
        values: &[SymbolicValue],
        action: &WhileAction,
        outer: &mut Environment<'_>,
    ) {
        for (index, value) in values.iter().enumerate() {
            let outlet = Outlet::new(id, index);
            match action.variables.get(index).and_then(Option::as_ref) {
                None => outer.define(outlet, value.clone()),
                Some(place) => self.relabel(place, value.number, outlet, outer),
            }
        }
    }

    /// A location that holds one value holds it as a result of the node from now on.
    fn relabel(
        &mut self,
        place: &ValueLocation,
        from: SymbolId,
        outlet: Outlet,
        environment: &mut Environment<'_>,
    ) {
        let number = self.numbers.result(environment.function, outlet);
        environment.define(outlet, SymbolicValue::whole(number));
        if self.memory.read(place) == Some(MemoryContent { number: from, start: 0 }) {
            self.memory.write(place, MemoryContent { number, start: 0 });
        }
    }

    fn branch(&mut self, action: &BranchAction, outer: &mut Environment<'_>) -> Result<bool> {
        let name = || step_name(&action.origin);
        let id = action.origin.id;
        let function = outer.function;
        let node = &function.graph[id];
        let arms = function.nested.get(&id).map_or(&[][..], Vec::as_slice);
        if arms.len() != action.branches.len() {
            return Err(wrong(&name(), "the branch has other arms"));
        }
        self.expect(&action.index.place, outer, node.inputs()[0], &name)?;
        let before = self.memory.clone();
        let mut end: Option<ArmsEnd> = None;
        for (arm, actions) in arms.iter().zip(&action.branches) {
            self.memory = before.clone();
            let mut environment = Environment::of(arm);
            for (&arg, &input) in arm.args.iter().zip(&node.inputs()[1..]) {
                let value = outer.value(input, self.numbers);
                let value = value.ok_or_else(|| wrong(&name(), "an input is not computed"))?;
                environment.define(arg, value);
            }
            if !self.body(actions, &mut environment)? {
                continue;
            }
            let results = action.results.iter().enumerate();
            let held = results.map(|(index, place)| {
                let result = arm.results.get(index);
                result.is_some_and(|&result| {
                    self.expect(place, &mut environment, result, &String::new).is_ok()
                })
            });
            let own = ArmsEnd { held: held.collect(), memory: self.memory.clone() };
            match &mut end {
                Some(end) => end.meet(&own),
                None => end = Some(own),
            }
        }
        let Some(end) = end else {
            self.memory = before;
            return Ok(false);
        };
        self.join(id, action, end, outer);
        Ok(true)
    }

    /// Joins the ends of arms: a result is where all of them leave it. Results that one location holds
    /// are equal, and one value: they may share it although nothing reads some of them.
    fn join(
        &mut self,
        id: NodeId,
        action: &BranchAction,
        end: ArmsEnd,
        outer: &mut Environment<'_>,
    ) {
        self.memory = end.memory;
        let mut by_location: HashMap<&ValueLocation, usize> = HashMap::new();
        for (index, place) in action.results.iter().enumerate() {
            let is_held = end.held[index];
            let first = if is_held { *by_location.entry(place).or_insert(index) } else { index };
            let number = self.numbers.result(outer.function, Outlet::new(id, first));
            outer.define(Outlet::new(id, index), SymbolicValue::whole(number));
            if is_held {
                self.memory.write(place, MemoryContent { number, start: 0 });
            }
        }
    }
}

/// The end of the arms that go on.
struct ArmsEnd {
    /// The results that are where the branch leaves them.
    held: Vec<bool>,
    memory: SymbolicMemory,
}

impl ArmsEnd {
    /// Keeps only what another arm leaves as well.
    fn meet(&mut self, other: &ArmsEnd) {
        self.held.iter_mut().zip(&other.held).for_each(|(own, other)| *own &= other);
        self.memory.meet(&other.memory);
    }
}

/// Whether a node or a result of a body reads a value.
fn is_read(body: &Specialized, outlet: Outlet) -> bool {
    let mut readers = body.graph.consumers(outlet.node);
    body.results.contains(&outlet)
        || readers.any(|reader| body.graph[reader].inputs().contains(&outlet))
}

fn step_name(origin: &NodeOrigin) -> String {
    format!("function `{}`, node `{}` ({})", origin.function, origin.node, origin.op)
}

fn is_argument(environment: &Environment<'_>, id: NodeId) -> bool {
    environment.function.args.iter().any(|arg| arg.node == id)
}

/// The node whose effects an action has. Kernels of devices have none.
fn covered(action: &Action) -> Option<NodeId> {
    match action {
        Action::Kernel(kernel) if kernel.step.device().is_some() => None,
        action => action.origin().map(|origin| origin.id),
    }
}

/// Visits the nodes that the actions of one body compute.
fn note_computed(actions: &[Scheduled], visit: &mut impl FnMut(NodeId)) {
    for Scheduled { action, .. } in actions {
        action.origin().into_iter().for_each(|origin| visit(origin.id));
        if let Action::Group(group) = action {
            note_computed(&group.actions, visit);
        }
    }
}

/// Visits the memory that actions write, nested lists included.
fn for_each_write(actions: &[Scheduled], visit: &mut impl FnMut(&ValueLocation)) {
    for Scheduled { action, .. } in actions {
        action.for_each_access(&mut |access, place| {
            if access == ActionAccess::Write {
                visit(place);
            }
        });
        action.nested().into_iter().for_each(|actions| for_each_write(actions, visit));
    }
}
