//! Programs with control flow give the same once they are saved and loaded.

// The tests of the tracer run the same programs, and compare them with Rust.
#[allow(dead_code, reason = "the loops of Rust are compared there")]
#[path = "../../tracer/tests/it/control_flow/program.rs"]
mod program;

use ferroflow::{
    Function, Tensor, Trackable, function,
    ir::HostTensor,
    runtime::Context,
    save,
    saved_model::{LoadOptions, Object, PythonValue, SaveOptions, load},
    tracer,
};
use program::{Dice, Statement, VARIABLES, block, jumping, jumping_tensors, staged};
use std::{collections::BTreeMap, error::Error};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn tensors(numbers: &[i32]) -> Vec<Tensor> {
    numbers.iter().map(|&number| Tensor::from(number)).collect()
}

/// The numbers that a loaded function gives for `state`, behind `literal` if there is one.
fn call(root: &Object, path: &str, literal: Option<i64>, state: &[i32]) -> Outcome<Vec<i32>> {
    let state = state.iter().map(|&number| HostTensor::scalar(number).into()).collect();
    let args: Vec<PythonValue> =
        literal.map(PythonValue::Int).into_iter().chain([PythonValue::List(state)]).collect();
    let results = match root.get(path)?.function()?.call(&args, &BTreeMap::new())? {
        PythonValue::List(results) => results,
        result => vec![result],
    };
    let number = |result: &PythonValue| -> Outcome<i32> {
        Ok(result.tensor().ok_or("a tensor")?.host()?.as_scalar::<i32>()?)
    };
    results.iter().map(number).collect()
}

fn saved<T: Trackable>(object: &T) -> Outcome<Object> {
    let folder = tempfile::tempdir()?;
    save(object, folder.path(), &SaveOptions::default())?;
    let model = load(&Context::new(), folder.path(), &LoadOptions::default())?;
    Ok(model.root().ok_or("a model with objects")?)
}

#[derive(Trackable)]
struct Programs {
    programs: Vec<Function<(Vec<Tensor>,), Vec<Tensor>>>,
}

#[test]
fn random_programs() -> Outcome {
    let mut dice = Dice(1);
    let sources: Vec<&'static [Statement]> =
        (0..40).map(|_| &*block(&mut dice, 3).leak()).collect();
    let programs = sources.iter().map(|&source| {
        function(move |state: Vec<Tensor>| staged(source, state)).with_parameters(["state"])
    });
    let model = Programs { programs: programs.collect() };
    for program in &model.programs {
        program.concrete((tensors(&[0; VARIABLES as usize]),))?;
    }
    let loaded = saved(&model)?;
    for (number, source) in sources.iter().enumerate() {
        for _ in 0..3 {
            let input: Vec<i32> = (0..VARIABLES).map(|_| dice.number()).collect();
            let mut expected = input.clone();
            source.iter().for_each(|statement| statement.run(&mut expected));
            let found = call(&loaded, &format!("programs.{number}"), None, &input)?;
            assert_eq!(found, expected, "{input:?}: {source:#?}");
        }
    }
    Ok(())
}

#[derive(Trackable)]
struct Jumps {
    jumps: Function<(i64, Vec<Tensor>), Tensor>,
}

#[test]
fn rewritten_programs() -> Outcome {
    let body = |on, state: Vec<Tensor>| -> tracer::Result<Tensor> { jumping_tensors(on, &state) };
    let model = Jumps { jumps: function(body).with_parameters(["on", "state"]) };
    let (mut dice, switched_on) = (Dice(3), [0, 0b1, 0b10_0010, 0b1101_0100, 0x1ff]);
    for on in switched_on {
        model.jumps.concrete((on, tensors(&[0; 4])))?;
    }
    let loaded = saved(&model)?;
    for on in switched_on {
        for _ in 0..4 {
            let input: Vec<i32> = [15, 30, 30, 4].map(|sides| dice.roll(sides) as i32).to_vec();
            let found = call(&loaded, "jumps", Some(on), &input)?;
            assert_eq!(found, [jumping(on, &input)], "{on:#b}, {input:?}");
        }
    }
    Ok(())
}
