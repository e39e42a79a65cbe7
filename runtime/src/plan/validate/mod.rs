//! Translation validation: a finished plan against the graph it was made from.
//!
//! The validator runs the actions of a program symbolically. Every range of the arena and every slot
//! holds a [`MemoryContent`]: which value of the graph it is, and from which byte on. For each step it asks
//! the graph what the node reads, and looks whether that is in memory where the step reads; for each
//! result, whether it is what the function returns. It shares no code with the planner: what it is
//! told of a plan (where loop variables and results of branches are) it checks like everything else.
//!
//! **Invariants** it holds:
//! - a read finds the value that the graph says, all of it, whatever was written in between;
//! - a loop is checked to its fixed point: what its second round reads is what its first one left;
//! - actions with effects on the same state run in the order of the graph, and none is missing.
//!
//! A plan that fails is an internal error that names function, step and value. Register programs of
//! single numbers are checked through the actions they stand for, and by what they load and store.

mod effects;
mod memory;
mod run;
mod values;

use super::{ExecutionPlan, action::ValueLocation};
use crate::error::{Error, Result};
use ferroflow_ir::{Code, HostTensor, pass::specialize::Specialized};
use memory::{MemoryContent, SymbolicMemory};
use run::SymbolicRun;
use std::collections::HashMap;
use values::{Environment, SymbolicValue, ValueNumbering};

/// Checks the plan of a function. `captured` are the slots of its last arguments, `constants` the
/// values of slots of constants, in host memory.
///
/// # Errors
///
/// [`Error::Status`] with code internal, naming the step and the value, when the plan is wrong.
pub(crate) fn validate(
    function: &Specialized,
    program: &ExecutionPlan,
    captured: &[usize],
    constants: &HashMap<usize, HostTensor>,
) -> Result<()> {
    let mut numbers = ValueNumbering::default();
    let mut memory = SymbolicMemory::new(program.arena, program.n_slots);
    for (slot, value) in constants {
        let content = MemoryContent { number: numbers.constant(value), start: 0 };
        memory.write(&ValueLocation::Slot(*slot, None), content);
    }
    let mut environment = Environment::of(function);
    for (index, &outlet) in function.args.iter().enumerate() {
        let value = match program.args.get(index) {
            Some(argument) => {
                let value = SymbolicValue::whole(numbers.fresh());
                let content = MemoryContent { number: value.number, start: 0 };
                memory.write(&ValueLocation::Slot(argument.slot, None), content);
                value
            }
            None => {
                let value = captured.get(index - program.args.len());
                let value = value.and_then(|slot| constants.get(slot));
                let value = value.ok_or_else(|| wrong("an argument", "it has no value"))?;
                SymbolicValue::whole(numbers.constant(value))
            }
        };
        environment.define(outlet, value);
    }
    let mut run = SymbolicRun::new(&mut numbers, memory);
    if !run.body(&program.actions, &mut environment)? {
        return Ok(());
    }
    for (index, (result, &outlet)) in program.results.iter().zip(&function.results).enumerate() {
        let name = || format!("result {index}");
        run.expect(&result.place, &mut environment, outlet, &name)?;
    }
    Ok(())
}

/// An internal error: the plan is wrong.
#[cold]
fn wrong(step: &str, what: &str) -> Error {
    let message = format!("the plan is wrong: {step}: {what}");
    Error::Status { code: Code::Internal, message }
}
