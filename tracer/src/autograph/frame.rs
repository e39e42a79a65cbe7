//! The surroundings of the constructs of one function: its open parts, and the way its results take.

use super::{
    carry::{FunctionResult, Var, names, values},
    flow::{Exit, Flow, RETURNS},
    kind::{Control, FromError, Returns},
};
use crate::{
    error::{Error, Result},
    value::NestedValue,
};
use ferroflow_ir::error::SourceLocation;
use std::{cell::RefCell, panic::Location};

/// Regions of a function that are open while it is traced.
#[derive(Debug)]
pub struct RegionStack<R> {
    flows: Flows,
    results: RefCell<Option<ResultConversion<R>>>,
}

/// The parts of a graph that are open.
#[derive(Debug, Default)]
pub struct Flows(pub(super) RefCell<Flow>);

/// Conversions of the results of a function to tensors and back.
pub struct ResultConversion<R> {
    take: fn(R) -> std::result::Result<NestedValue, R>,
    make: fn(NestedValue) -> Result<R>,
    fail: fn(Error) -> R,
}

impl<R> std::fmt::Debug for ResultConversion<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Results")
    }
}

impl<R> Clone for ResultConversion<R> {
    fn clone(&self) -> ResultConversion<R> {
        *self
    }
}

impl<R> Copy for ResultConversion<R> {}

impl<R: FunctionResult + FromError> ResultConversion<R> {
    pub(super) fn new() -> ResultConversion<R> {
        ResultConversion { take: R::into_value, make: R::from_value, fail: R::from_error }
    }
}

impl<R> RegionStack<R> {
    /// A function that begins.
    #[expect(clippy::new_without_default, reason = "only macros make it")]
    pub fn new() -> RegionStack<R> {
        RegionStack { flows: Flows::default(), results: RefCell::new(None) }
    }

    /// The parts that are open.
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Returns a value from within a construct that is staged. Gives it back if it is a failure,
    /// which ends the trace.
    pub fn keep<C: Control>(&self, _: &C, value: R) -> Option<R>
    where
        C::Kind: Returns<R>,
    {
        let results = self.knowing::<C>();
        match (results.take)(value) {
            Ok(value) => {
                self.flows.0.borrow_mut().leave(Exit::with(RETURNS, value));
                None
            }
            Err(failure) => Some(failure),
        }
    }

    fn knowing<C: Control>(&self) -> ResultConversion<R>
    where
        C::Kind: Returns<R>,
    {
        *self.results.borrow_mut().insert(<C::Kind as Returns<R>>::results())
    }

    /// Returns from outside all constructs what was returned on all ways through one that is staged.
    pub fn returned(&self, mut way: Way) -> R {
        let results = *self.results.borrow();
        let results = results.expect("what was returned was kept, which told how");
        self.ended(results, way.exit.returned())
    }

    fn ended(&self, results: ResultConversion<R>, value: NestedValue) -> R {
        let exit = self.flows.0.borrow_mut().close_guards(value);
        let made = exit.and_then(|mut exit| (results.make)(exit.returned()));
        made.unwrap_or_else(results.fail)
    }

    /// The end of the function.
    pub fn close(&self, value: R) -> R {
        let results = *self.results.borrow();
        let is_open = self.flows.0.borrow().depth() > 0;
        match results {
            Some(results) if is_open => match (results.take)(value) {
                Ok(value) => self.ended(results, value),
                Err(failure) => failure,
            },
            _ => value,
        }
    }

    /// A result of the function.
    pub fn typed(&self, value: R) -> R {
        value
    }
}

/// Exit from a construct.
#[derive(Debug)]
pub struct Way {
    pub(super) exit: Exit,
    pub(super) location: SourceLocation,
}

impl Flows {
    /// Leaves the innermost part by a jump to a loop, which must be staged too.
    ///
    /// # Errors
    ///
    /// When it is not.
    pub fn jump(&self, code: u32, to_live: bool) -> Result<()> {
        self.leave(Exit::by(code), to_live)
    }

    /// Leaves the innermost part by a `break` with a value.
    ///
    /// # Errors
    ///
    /// When the loop is not staged.
    pub fn jump_with(&self, code: u32, to_live: bool, value: NestedValue) -> Result<()> {
        self.leave(Exit::with(code, value), to_live)
    }

    fn leave(&self, exit: Exit, to_live: bool) -> Result<()> {
        if !to_live {
            return Err(Error::ControlFlow {
                what: "leaving a loop that is unrolled, as its own condition has a value,".into(),
                why: "which is not known while tracing",
            });
        }
        self.0.borrow_mut().leave(exit);
        Ok(())
    }

    /// Leaves the innermost part in the way that a construct in it was left.
    pub fn pass_on(&self, way: Way) {
        self.0.borrow_mut().leave(way.exit);
    }

    /// Makes what follows depend on whether a construct was left.
    ///
    /// # Errors
    ///
    /// Those of the calls of ops.
    pub fn guard(&self, way: Way, vars: &mut [Var<'_>]) -> Result<()> {
        self.0.borrow_mut().guard(way.exit, values(vars), way.location)
    }
}

/// Code that comes after a construct.
#[derive(Debug)]
pub enum Next {
    /// It is run again.
    Again,
    /// Code after it.
    Value,
    /// Code after it, unless it was left.
    Guard(Way),
    /// Nothing: it is left on all ways.
    Leave(Way),
}

impl Next {
    pub(super) fn after(exit: Exit, location: SourceLocation) -> Next {
        match (exit.stays(), exit.leaves()) {
            (true, false) => Next::Value,
            (true, true) => Next::Guard(Way { exit, location }),
            (false, _) => Next::Leave(Way { exit, location }),
        }
    }
}

pub(super) fn closed(
    flows: &Flows,
    vars: &[Var<'_>],
    value: Option<NestedValue>,
) -> Result<super::flow::TracedBranch> {
    flows.0.borrow_mut().close(&names(vars), values(vars), value)
}

#[track_caller]
pub(super) fn here() -> SourceLocation {
    Location::caller()
}
