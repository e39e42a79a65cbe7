//! `while` and `loop`, and what `for` shares with them.

use super::{
    carry::{ValueSlot, Var, names, set, values},
    flow::{Exit, STAYS, TracedBranch, blank},
    frame::{Flows, Next, closed, here},
    kind::{Breaks, Control, Host, Staged},
    steps::Steps,
};
use crate::{
    context::{self, Inside},
    control_flow::{
        stage::{self, ChoiceKind, Closed, RegionTrace, choose, repeat},
        structure::{difference, names as leaf_names, tensors, with_tensors},
        while_loop::{arguments, unchanged, widen},
    },
    error::{Error, Result},
    func_graph::Mark,
    tensor::{Repr, Tensor},
    value::NestedValue,
};
use ferroflow_ir::{DType, PartialShape, ValueType, error::SourceLocation};
use std::{collections::BTreeMap, sync::Arc};

/// Mechanism that repeats the body of a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeats {
    /// `while`: a condition.
    While,
    /// `for`: items.
    For,
    /// `loop`: nothing but jumps ends it.
    Loop,
}

impl Repeats {
    fn name(self) -> &'static str {
        match self {
            Repeats::While => "while",
            Repeats::For => "for",
            Repeats::Loop => "loop",
        }
    }
}

/// A loop at hand.
#[derive(Debug)]
pub struct AutographLoop {
    construct: Repeats,
    /// Whether jumps may end it, or lead out of it.
    may_exit: bool,
    location: SourceLocation,
    phase: Phase,
    /// The variables before the loop, and the types of their tensors in all iterations.
    before: Vec<NestedValue>,
    types: Vec<ValueType>,
    /// Initial values of the variables in the current region.
    params: Vec<NestedValue>,
    /// Of `for`: its steps, and the one that is traced.
    steps: Option<Steps>,
    step: Option<Tensor>,
    condition: Option<Closed>,
    /// Value that a `break` passed to it.
    value: Option<NestedValue>,
}

#[derive(Debug)]
enum Phase {
    /// It is not known yet whether it is staged; what was traced since can be taken back.
    Unknown(Option<Mark>),
    /// It is Rust's.
    Host,
    /// The condition is traced, and was found to be this.
    Condition(Option<Tensor>),
    /// The body is traced.
    Body,
}

/// Conditions of loops.
pub trait While: Control {
    /// Error of the condition.
    fn error(&mut self) -> Option<Error>;

    /// Whether the loop is over.
    fn ends(&self) -> bool;

    /// Goes on with tracing: first the condition, for which this returns `true`, then the body.
    ///
    /// # Errors
    ///
    /// When the condition changes variables.
    fn enter(&self, of: &mut AutographLoop, flows: &Flows, vars: &mut [Var<'_>]) -> Result<bool>;
}

/// An iteration of a `while` of Rust.
#[derive(Debug)]
pub struct HostWhile(pub(super) bool);

impl Control for HostWhile {
    type Kind = Host;

    fn is_live(&self) -> bool {
        false
    }
}

impl While for HostWhile {
    fn error(&mut self) -> Option<Error> {
        None
    }

    fn ends(&self) -> bool {
        !self.0
    }

    fn enter(&self, _: &mut AutographLoop, _: &Flows, _: &mut [Var<'_>]) -> Result<bool> {
        Ok(false)
    }
}

/// An iteration of a `while` whose condition is a tensor.
#[derive(Debug)]
pub struct StagedWhile {
    state: Result<Option<bool>>,
}

impl Control for StagedWhile {
    type Kind = Staged;

    fn is_live(&self) -> bool {
        matches!(self.state, Ok(None))
    }
}

impl While for StagedWhile {
    fn error(&mut self) -> Option<Error> {
        std::mem::replace(&mut self.state, Ok(Some(false))).map_or_else(Some, |known| {
            self.state = Ok(known);
            None
        })
    }

    fn ends(&self) -> bool {
        matches!(self.state, Ok(Some(false)))
    }

    fn enter(&self, of: &mut AutographLoop, flows: &Flows, vars: &mut [Var<'_>]) -> Result<bool> {
        match std::mem::replace(&mut of.phase, Phase::Condition(None)) {
            Phase::Condition(Some(holds)) => {
                of.check_params(vars)?;
                of.close_condition(flows, holds)?;
                of.open_body(flows, vars)?;
                Ok(false)
            }
            Phase::Unknown(mark) => {
                if let (Some(mark), Some(trace)) = (mark, context::current_trace()) {
                    trace.roll_back(mark)?;
                }
                of.begin(vars);
                of.open_condition(flows, vars)?;
                Ok(true)
            }
            Phase::Host | Phase::Condition(None) | Phase::Body => {
                of.open_condition(flows, vars)?;
                Ok(true)
            }
        }
    }
}

/// Begins an iteration of a `while`.
pub fn while_<C: super::choice::AutographCondition>(
    condition: C,
    of: &mut AutographLoop,
) -> C::While {
    condition.into_while(of)
}

impl AutographLoop {
    /// A loop, which jumps may leave.
    #[track_caller]
    pub fn new(construct: Repeats, may_exit: bool) -> AutographLoop {
        AutographLoop {
            construct,
            may_exit,
            location: here(),
            phase: Phase::Unknown(None),
            before: Vec::new(),
            types: Vec::new(),
            params: Vec::new(),
            steps: None,
            step: None,
            condition: None,
            value: None,
        }
    }

    /// Stands before the condition of a `while`.
    pub fn before_condition(&mut self) {
        if let Phase::Unknown(mark) = &mut self.phase {
            *mark = context::current_trace().map(|trace| trace.mark());
        }
    }

    pub(super) fn in_host(&mut self) {
        self.phase = Phase::Host;
    }

    pub(super) fn condition(
        &mut self,
        condition: std::result::Result<&Tensor, &Error>,
    ) -> StagedWhile {
        let found = condition.map_err(Error::clone).and_then(stage::condition);
        let state = found.map(|found| match (found, &mut self.phase) {
            (stage::Condition::Known(known), Phase::Condition(holds)) => {
                *holds = Some(Tensor::from(known));
                None
            }
            (stage::Condition::Staged(found), Phase::Condition(holds)) => {
                *holds = Some(found);
                None
            }
            (stage::Condition::Known(known), _) => Some(known),
            (stage::Condition::Staged(_), _) => None,
        });
        StagedWhile { state }
    }

    /// Notes the variables before the loop.
    fn begin(&mut self, vars: &[Var<'_>]) {
        self.before = values(vars);
        self.types = self.before.iter().flat_map(tensors).map(|x| x.value_type()).collect();
    }

    /// The types of the variables of the graph's loop: those of the code, the step of a `for`, and
    /// how the loop was left.
    fn all_types(&self) -> Vec<ValueType> {
        let mut types = self.types.clone();
        types.extend(self.steps.as_ref().map(Steps::value_type));
        if self.may_exit {
            types.push(ValueType::new(DType::I32, scalar()));
        }
        types
    }

    fn leaf_names(&self, vars: &[Var<'_>]) -> Vec<String> {
        let named = self.before.iter().zip(names(vars));
        named.flat_map(|(value, name)| leaf_names(value, &name)).collect()
    }

    /// Makes the variables those of the part that was opened; returns the code of the loop.
    fn set_params(&mut self, part: &RegionTrace, vars: &mut [Var<'_>]) -> Result<Option<Tensor>> {
        let types = self.all_types();
        let args = arguments(part, &self.leaf_names(vars), &types)?;
        let mut left = args.iter().cloned();
        self.params = self.before.iter().map(|value| with_tensors(value, &mut left)).collect();
        self.step = self.steps.as_ref().and_then(|_| left.next());
        set(vars, &self.params)?;
        Ok(left.next())
    }

    fn open_condition(&mut self, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()> {
        self.phase = Phase::Condition(None);
        let mut flow = flows.0.borrow_mut();
        let part = flow.open("while_cond")?;
        let code = self.set_params(part, vars)?;
        if let Some(code) = code {
            // Once the loop is left, its condition is no longer asked.
            flow.leave(Exit { code: Some(code), ..Exit::by(STAYS) });
            flow.open("cond_true")?;
        }
        Ok(())
    }

    fn close_condition(&mut self, flows: &Flows, holds: Tensor) -> Result<()> {
        let mut flow = flows.0.borrow_mut();
        if !self.may_exit {
            let graph = flow.close(&[], Vec::new(), None)?.graph;
            self.condition = Some(Closed::of(graph, vec![holds])?);
            return Ok(());
        }
        let asked = flow.close(&[], Vec::new(), None)?.graph;
        let code = flow.exit().and_then(|exit| exit.code.clone()).unwrap_or(STAYS.into_tensor());
        let other = RegionTrace::open("cond_false")?.close(vec![Tensor::from(false)])?;
        let asked = Closed::of(asked, vec![holds])?;
        let goes_on = code.equal(STAYS as i32)?;
        let goes_on = choose(ChoiceKind::If, &goes_on, vec![asked, other], self.location)?;
        let graph = flow.close(&[], Vec::new(), None)?.graph;
        self.condition = Some(Closed::of(graph, goes_on)?);
        Ok(())
    }

    fn open_body(&mut self, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()> {
        self.phase = Phase::Body;
        let mut flow = flows.0.borrow_mut();
        let part = flow.open("while_body")?;
        self.set_params(part, vars)?;
        Ok(())
    }

    fn check_params(&self, vars: &[Var<'_>]) -> Result<()> {
        for (var, param) in vars.iter().zip(&self.params) {
            let now = tensors(&var.place.get());
            if now.iter().zip(tensors(param)).any(|(now, param)| !is_outlet(now, &param)) {
                return Err(Error::ControlFlow {
                    what: format!("assigning to `{}` in the condition of a loop", var.name),
                    why: "which in a graph gives a truth value only: assign in the body",
                });
            }
        }
        Ok(())
    }

    /// Begins a loop without a condition, or one that has steps: opens the body.
    pub(super) fn start(
        &mut self,
        steps: Option<Steps>,
        flows: &Flows,
        vars: &mut [Var<'_>],
    ) -> Result<()> {
        self.steps = steps;
        self.begin(vars);
        self.restart(flows, vars)
    }

    fn restart(&mut self, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()> {
        self.open_condition(flows, vars)?;
        let goes_on = match (&self.step, &self.steps) {
            (Some(step), Some(steps)) => steps.goes_on(step)?,
            _ => Tensor::from(true),
        };
        self.close_condition(flows, goes_on)?;
        self.open_body(flows, vars)
    }

    /// The step that is traced.
    pub(super) fn step(&self) -> Option<&Tensor> {
        self.step.as_ref()
    }

    /// The components of the element that is traced.
    pub(super) fn element(&self) -> Option<Result<Vec<Tensor>>> {
        let elements = self.steps.as_ref()?.elements()?;
        Some(elements.components(self.step.as_ref()?))
    }

    /// Closes the body, and stages the loop; `ends` and `continues` are the codes of jumps to it.
    ///
    /// # Errors
    ///
    /// [`Error::LoopVariable`] when an iteration changes structure or dtypes of variables.
    pub fn finish(
        &mut self,
        flows: &Flows,
        vars: &mut [Var<'_>],
        ends: u32,
        continues: u32,
    ) -> Result<Next> {
        let side = closed(flows, vars, None)?;
        if self.widen(&side, vars)? {
            set(vars, &self.before)?;
            match self.construct {
                Repeats::While => self.open_condition(flows, vars)?,
                Repeats::For | Repeats::Loop => self.restart(flows, vars)?,
            }
            return Ok(Next::Again);
        }
        let exit = {
            let _inside = Inside::enter(side.graph.clone());
            side.exit.clone().mapped(continues, STAYS)?
        };
        if self.construct == Repeats::Loop && !exit.leaves() {
            return Err(Error::ControlFlow {
                what: "a `loop` that no jump ends".into(),
                why: "which would run for ever",
            });
        }
        let results = self.stage(side, &exit, vars)?;
        let mut results = results.into_iter();
        let after: Vec<NestedValue> =
            self.before.iter().map(|value| with_tensors(value, &mut results)).collect();
        set(vars, &after)?;
        if self.steps.is_some() {
            results.next();
        }
        let exit = self.exit_after(exit, results, ends)?;
        Ok(Next::after(exit, self.location))
    }

    /// The value of the loop that was staged.
    ///
    /// # Errors
    ///
    /// When it has another structure.
    pub fn value<C: Control, V>(&mut self, _: &C, _: &ValueSlot<V>) -> Result<V>
    where
        C::Kind: Breaks<V>,
    {
        C::Kind::make(self.value.take().unwrap_or_default())
    }

    /// Whether an iteration has changed shapes, which are unknown from now on.
    fn widen(&mut self, side: &TracedBranch, vars: &[Var<'_>]) -> Result<bool> {
        for ((before, after), name) in self.before.iter().zip(&side.vars).zip(names(vars)) {
            if difference(before, after, &name).is_some() {
                return unchanged(self.construct.name(), before, after, &name, &[], &[])
                    .map(|()| false);
            }
        }
        let found = side.vars.iter().flat_map(tensors).map(|tensor| tensor.value_type());
        Ok(widen(&mut self.types, found))
    }

    /// Stages the loop; returns its variables after it.
    fn stage(&mut self, side: TracedBranch, exit: &Exit, vars: &[Var<'_>]) -> Result<Vec<Tensor>> {
        let mut types = self.all_types();
        let mut outputs: Vec<Tensor> = side.vars.iter().flat_map(tensors).collect();
        let mut initial: Vec<Tensor> = self.before.iter().flat_map(tensors).collect();
        if let (Some(step), Some(steps)) = (&self.step, &self.steps) {
            let next = {
                let _inside = Inside::enter(side.graph.clone());
                steps.next(step)?
            };
            outputs.push(next);
            initial.push(steps.first()?);
        }
        let mut condition = self.condition.take().ok_or_else(|| Error::ControlFlow {
            what: format!("the loop of {}", names(vars).join(", ")),
            why: "was left before its condition was traced",
        })?;
        if self.may_exit {
            outputs.push(exit.tensor());
            initial.push(STAYS.into_tensor());
        }
        for value in exit.values.values() {
            let Some(trace) = context::current_trace() else { break };
            initial.extend(tensors(&blank(value, &trace)?));
            for tensor in tensors(value) {
                let ty = tensor.value_type();
                side.graph.argument("returned", ty.clone())?;
                condition.argument("returned", ty.clone())?;
                types.push(ty);
                outputs.push(tensor);
            }
        }
        let body = Closed::of(side.graph, outputs)?;
        let (initial, types) = (&initial[..], &types[..]);
        let repeated =
            stage::StagedLoop { condition, body, initial, types, parallel_iterations: 10 };
        repeat(repeated, self.location)
    }

    fn exit_after(
        &mut self,
        body: Exit,
        mut results: impl Iterator<Item = Tensor>,
        ends: u32,
    ) -> Result<Exit> {
        if !body.leaves() {
            return Ok(Exit::by(STAYS));
        }
        let code = results.next();
        let values = body.values.iter();
        let mut values: BTreeMap<u32, NestedValue> =
            values.map(|(code, value)| (*code, with_tensors(value, &mut results))).collect();
        self.value = values.remove(&ends);
        let is_ended = body.codes.contains(&ends);
        let mut codes = body.codes;
        codes.insert(STAYS);
        let mut exit = Exit { codes, code, values }.mapped(ends, STAYS)?;
        if self.construct == Repeats::Loop && !is_ended {
            exit.codes.remove(&STAYS);
        }
        Ok(exit)
    }
}

fn scalar() -> PartialShape {
    PartialShape::scalar()
}

trait IntoTensor {
    fn into_tensor(self) -> Tensor;
}

impl IntoTensor for u32 {
    fn into_tensor(self) -> Tensor {
        Tensor::from(self as i32)
    }
}

fn is_outlet(a: &Tensor, b: &Tensor) -> bool {
    match (&a.0, &b.0) {
        (Repr::Symbolic(a), Repr::Symbolic(b)) => {
            Arc::ptr_eq(&a.graph, &b.graph) && a.outlet == b.outlet
        }
        _ => false,
    }
}

/// Opens the body of a `loop` that is staged.
///
/// # Errors
///
/// Those of the calls of ops.
pub fn enter_loop(of: &mut AutographLoop, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()> {
    of.start(None, flows, vars)
}
