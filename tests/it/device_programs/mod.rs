//! Random programs give the same, traced or not, wherever their calls run: kernels that run side by
//! side, copies, values that loops carry and variables never see anything too early or too late.
//!
//! Numbers are whole and small, so that no device rounds them and results are equal.

mod program;

use crate::devices::elsewhere;
use ferroflow::{
    Tensor,
    ir::HostTensor,
    tracer::{self, Result},
};
use program::{N_VALUES, Program, SIDE, Step, World, programs, shape};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use std::{error::Error, sync::Arc};

/// All that a program gives and leaves behind in some calls, as a function or as it is.
fn history(program: &Program, devices: &Arc<[String]>, is_traced: bool) -> Result<Vec<Vec<f32>>> {
    let world = World::new(program, devices)?;
    let function = world.clone().function(program.clone());
    let call = |values| match is_traced {
        true => function.call((values,)),
        false => world.run(&program.steps, values),
    };
    let mut seen = Vec::new();
    for round in 0..3 {
        let value = |number: usize| {
            let elements: Vec<f32> = (0..SIDE * SIDE)
                .map(|at| ((at * (number + 3) + round * 5) % 7) as f32 - 3.0)
                .collect();
            Ok(Tensor::from(HostTensor::from_slice(shape()?, &elements)?))
        };
        let values = (0..N_VALUES).map(value).collect::<Result<Vec<Tensor>>>()?;
        for value in call(values)? {
            seen.push(value.to_vec::<f32>()?);
        }
        for variable in &world.variables {
            seen.push(variable.read()?.to_vec::<f32>()?);
        }
    }
    Ok(seen)
}

fn cpu() -> Arc<[String]> {
    Arc::new(["/device:CPU:0".to_string()])
}

/// All devices, the CPU last.
fn everywhere() -> Arc<[String]> {
    elsewhere().into_iter().chain(cpu().iter().cloned()).collect()
}

#[test]
fn programs_give_the_same_everywhere() -> std::result::Result<(), Box<dyn Error>> {
    let (cpu, there) = (cpu(), everywhere());
    let config = Config { failure_persistence: None, ..Config::default() };
    let cases = std::env::var_os("PROPTEST_CASES").map_or(40, |_| config.cases);
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config { cases, ..config }, seed);
    runner.run(&programs(), |program| {
        let fails = |error: tracer::Error| TestCaseError::fail(error.to_string());
        let expected = history(&program, &cpu, false).map_err(fails)?;
        for (devices, is_traced) in [(&cpu, true), (&there, true), (&there, false)] {
            let found = history(&program, devices, is_traced).map_err(fails)?;
            prop_assert_eq!(&found, &expected, "traced: {}, on {:?}", is_traced, devices);
        }
        Ok(())
    })?;
    Ok(())
}

/// Programs that once went wrong: assignments after calls whose input was given up, on a device or the
/// host, a tensor in a branch that was taken for the handle of a variable, and factors that were part of
/// another layer.
#[test]
fn programs_that_were_wrong() -> std::result::Result<(), Box<dyn Error>> {
    let sum = Step::Calc { op: 0, from: [0, 2], to: 0, device: None };
    let add = Step::Assign { variable: 0, from: 0, adds: true };
    let set = |from| Step::Assign { variable: 0, from, adds: false };
    let train = Step::Train { variable: 1, by: 0, momentum: false };
    let branch = Step::If { by: 0, then: vec![], otherwise: vec![train] };
    let body = vec![set(0), branch];
    let value = |op, from, to, device| Step::Calc { op, from, to, device };
    let other = Step::Assign { variable: 1, from: 2, adds: false };
    let waits =
        vec![value(0, [0, 1], 0, Some(0)), set(0), set(2), other, value(1, [0, 1], 2, Some(0))];
    let layers = Step::Calc { op: 14, from: [0, 0], to: 0, device: Some(0) };
    for (homes, steps) in [
        ([2, 0], vec![add, set(2), sum]),
        ([2, 2], vec![Step::While { by: 0, body }]),
        ([0, 0], vec![layers]),
        ([0, 0], waits),
    ] {
        let program = Program { homes, steps };
        let [expected, found] =
            [cpu(), everywhere()].map(|devices| history(&program, &devices, true));
        assert_eq!(found?, expected?);
    }
    Ok(())
}
