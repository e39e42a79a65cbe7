//! `if`.

use super::{
    carry::{FunctionResult, ValueSlot, Var, names, set, values},
    flow::{TracedBranch, join},
    frame::{Flows, Next, closed, here},
    kind::{Control, Host, Staged},
    repeat::{AutographLoop, HostWhile, StagedWhile, While},
};
use crate::{
    control_flow::stage,
    error::{Error, Result},
    tensor::Tensor,
    value::NestedValue,
};
use ferroflow_ir::error::SourceLocation;
use std::cell::Cell;

/// Conditions that may stand between `if` or `while` and `{`.
#[diagnostic::on_unimplemented(
    message = "a condition must be a `bool` or a Tensor, not `{Self}`",
    label = "neither `bool` nor `Tensor`",
    note = "comparisons of tensors, such as `x.less(&y)`, give a `Result`: write `?` after them"
)]
pub trait AutographCondition {
    /// An `if` with such a condition.
    type If: If;
    /// A `while` with such a condition.
    type While: While;

    /// Begins an `if`.
    fn into_if(self, location: SourceLocation) -> Self::If;

    /// Begins an iteration of a `while`, or the loop.
    fn into_while(self, of: &mut AutographLoop) -> Self::While;
}

/// Begins an `if`.
#[track_caller]
pub fn if_<C: AutographCondition>(condition: C) -> C::If {
    condition.into_if(here())
}

impl AutographCondition for bool {
    type If = HostIf;
    type While = HostWhile;

    fn into_if(self, _: SourceLocation) -> HostIf {
        HostIf { condition: self, is_over: Cell::new(false) }
    }

    fn into_while(self, of: &mut AutographLoop) -> HostWhile {
        of.in_host();
        HostWhile(self)
    }
}

impl AutographCondition for Tensor {
    type If = StagedIf;
    type While = StagedWhile;

    fn into_if(self, location: SourceLocation) -> StagedIf {
        let state = match stage::condition(&self) {
            Ok(stage::Condition::Known(known)) => ChoiceState::Known(known),
            Ok(stage::Condition::Staged(chooser)) => ChoiceState::Then(chooser),
            Err(error) => ChoiceState::Failed(error),
        };
        StagedIf::new(state, location)
    }

    fn into_while(self, of: &mut AutographLoop) -> StagedWhile {
        of.condition(Ok(&self))
    }
}

impl AutographCondition for &Tensor {
    type If = StagedIf;
    type While = StagedWhile;

    fn into_if(self, location: SourceLocation) -> StagedIf {
        self.clone().into_if(location)
    }

    fn into_while(self, of: &mut AutographLoop) -> StagedWhile {
        of.condition(Ok(self))
    }
}

/// An `if` at hand.
pub trait If: Control {
    /// Error of the condition.
    fn error(&mut self) -> Option<Error>;

    /// Whether the first branch is run.
    fn test(&self) -> bool;

    /// Opens a branch.
    ///
    /// # Errors
    ///
    /// When variables do not take their values back.
    fn begin(&mut self, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()>;
}

/// An `if` whose branches give a `V`.
pub trait Ends<V>: If {
    /// Closes a branch.
    ///
    /// # Errors
    ///
    /// [`Error::Branches`] when the branches differ.
    fn end(&mut self, flows: &Flows, vars: &mut [Var<'_>], slot: &mut ValueSlot<V>)
    -> Result<Next>;
}

/// An `if` of Rust.
#[derive(Debug)]
pub struct HostIf {
    condition: bool,
    is_over: Cell<bool>,
}

impl Control for HostIf {
    type Kind = Host;

    fn is_live(&self) -> bool {
        false
    }
}

impl If for HostIf {
    fn error(&mut self) -> Option<Error> {
        None
    }

    fn test(&self) -> bool {
        let is_repeated = self.is_over.replace(true);
        assert!(
            !is_repeated,
            "a `continue` hidden in a macro cannot leave a branch: write it outside"
        );
        self.condition
    }

    fn begin(&mut self, _: &Flows, _: &mut [Var<'_>]) -> Result<()> {
        Ok(())
    }
}

impl<V> Ends<V> for HostIf {
    fn end(&mut self, _: &Flows, _: &mut [Var<'_>], _: &mut ValueSlot<V>) -> Result<Next> {
        Ok(Next::Value)
    }
}

/// An `if` whose condition is a tensor.
#[derive(Debug)]
pub struct StagedIf {
    state: ChoiceState,
    /// The variables before it.
    before: Vec<NestedValue>,
    location: SourceLocation,
    /// Number of regions that were open before it.
    depth: usize,
}

#[derive(Debug)]
pub(super) enum ChoiceState {
    /// The condition has a value: one branch is run.
    Known(bool),
    /// The first branch is traced.
    Then(Tensor),
    /// The second branch is traced.
    Else(Tensor, Box<TracedBranch>),
    Failed(Error),
    Done,
}

impl StagedIf {
    pub(super) fn new(state: ChoiceState, location: SourceLocation) -> StagedIf {
        StagedIf { state, before: Vec::new(), location, depth: 0 }
    }
}

impl Control for StagedIf {
    type Kind = Staged;

    fn is_live(&self) -> bool {
        matches!(self.state, ChoiceState::Then(_) | ChoiceState::Else(..))
    }
}

impl If for StagedIf {
    fn error(&mut self) -> Option<Error> {
        match std::mem::replace(&mut self.state, ChoiceState::Done) {
            ChoiceState::Failed(error) => Some(error),
            state => {
                self.state = state;
                None
            }
        }
    }

    fn test(&self) -> bool {
        matches!(self.state, ChoiceState::Known(true) | ChoiceState::Then(_))
    }

    fn begin(&mut self, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()> {
        let mut flow = flows.0.borrow_mut();
        if let ChoiceState::Else(..) = self.state {
            set(vars, &self.before)?;
            flow.open("cond_false")?;
        } else {
            (self.before, self.depth) = (values(vars), flow.depth());
            flow.open("cond_true")?;
        }
        Ok(())
    }
}

impl<V: FunctionResult> Ends<V> for StagedIf {
    fn end(
        &mut self,
        flows: &Flows,
        vars: &mut [Var<'_>],
        slot: &mut ValueSlot<V>,
    ) -> Result<Next> {
        let state = std::mem::replace(&mut self.state, ChoiceState::Done);
        let value = match slot.0.take().map(V::into_value) {
            None => None,
            Some(Ok(value)) => Some(value),
            Some(Err(failure)) => {
                flows.0.borrow_mut().abandon(self.depth);
                set(vars, &self.before)?;
                slot.put(failure);
                return Ok(Next::Value);
            }
        };
        let side = closed(flows, vars, value)?;
        match state {
            ChoiceState::Then(chooser) => {
                self.state = ChoiceState::Else(chooser, Box::new(side));
                Ok(Next::Again)
            }
            ChoiceState::Else(chooser, then) => {
                let joined = join(&chooser, &names(vars), [*then, side], self.location)?;
                set(vars, &joined.vars)?;
                slot.0 = joined.value.map(V::from_value).transpose()?;
                Ok(Next::after(joined.exit, self.location))
            }
            ChoiceState::Known(_) | ChoiceState::Failed(_) | ChoiceState::Done => Ok(Next::Value),
        }
    }
}
