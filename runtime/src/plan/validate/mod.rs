//! Translation validation: a finished plan against the graph it was made from.
//!
//! The validator runs the actions of a program symbolically. Every range of the arena and every slot
//! holds a [`Content`]: which value of the graph it is, and from which byte on. For each step it asks
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

use super::{Place, Program};
use crate::error::{Error, Result};
use ferroflow_ir::{Code, HostTensor, pass::specialize::Specialized};
use memory::{Content, Memory};
use run::Run;
use values::{Environment, Numbers, Value};

/// Checks the plan of a function. `device_constants` are the values that were copied to slots of
/// devices when the plan was made.
///
/// # Errors
///
/// [`Error::Status`] with code internal, naming the step and the value, when the plan is wrong.
pub(crate) fn validate(
    function: &Specialized,
    program: &Program,
    device_constants: &[(usize, HostTensor)],
) -> Result<()> {
    let mut numbers = Numbers::default();
    let n_device_slots = program.devices.as_ref().map_or(0, |devices| devices.n_slots);
    let mut memory = Memory::new(program.n_slots, n_device_slots);
    let constants = program.constants.iter().map(|(slot, value)| (Place::Slot(*slot, None), value));
    let on_devices = device_constants.iter().map(|(slot, value)| (Place::Device(*slot), value));
    for (place, value) in constants.chain(on_devices) {
        let content = Content { number: numbers.constant(value), start: 0 };
        memory.write(&place, content);
    }
    let device_args = program.devices.as_ref().map_or(&[][..], |devices| &devices.args);
    let mut environment = Environment::of(function);
    for (index, &outlet) in function.args.iter().enumerate() {
        let captured = index.checked_sub(program.args.len());
        let value = match captured.and_then(|index| program.constants.get(index)) {
            Some((_, value)) => Value::whole(numbers.constant(value)),
            None => {
                let value = Value::whole(numbers.fresh());
                let content = Content { number: value.number, start: 0 };
                let place = match device_args.iter().find(|(arg, _)| *arg == index) {
                    Some((_, slot)) => Place::Device(*slot),
                    None => Place::Slot(program.args[index], None),
                };
                memory.write(&place, content);
                value
            }
        };
        environment.define(outlet, value);
    }
    let mut run = Run::new(&mut numbers, memory);
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
