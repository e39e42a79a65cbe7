//! Loops over pipelines, in functions.

use ferroflow::{
    Checkpoint, GradientTape, Module, Tensor, autograph,
    data::{DataPipeline, Example},
    function,
    nn::{
        Dense, Layer, Mode, Weights,
        losses::mean_squared_error,
        optimizers::{Optimizer, Sgd},
    },
    save,
    saved_model::SaveOptions,
    tracer,
};
use std::error::Error;

type Outcome = Result<(), Box<dyn Error>>;

/// Points of a line, in batches of which the last is smaller.
fn line() -> DataPipeline<Example> {
    let points = DataPipeline::of((0..30).collect::<Vec<i32>>()).shuffle(30, 4);
    let example = |n: i32| {
        let x = n as f32 / 30.0;
        vec![Tensor::from([x]), Tensor::from([2.0 * x - 1.0])]
    };
    points.map(example).batch(8, false)
}

fn start() -> tracer::Result<(Dense, Optimizer)> {
    let dense = Dense::new(&mut Weights::seeded(2), 1, 1)?;
    Ok((dense, Optimizer::new(Sgd { momentum: 0.5, ..Sgd::default() }, 0.2)?))
}

fn step(dense: &Dense, optimizer: &Optimizer, batch: &Example) -> tracer::Result<()> {
    let tape = GradientTape::new();
    let y = dense.call(&batch[0], Mode::Training)?;
    let loss = mean_squared_error(&batch[1], &y)?.mean_all()?;
    optimizer.minimize(tape, &loss, &dense.variables()?)
}

fn weights(dense: &Dense) -> tracer::Result<Vec<f32>> {
    dense.variables()?.iter().map(|variable| variable.read()?.to_scalar::<f32>()).collect()
}

#[test]
fn a_function_trains_through_a_pipeline() -> Outcome {
    let (dense, optimizer) = start()?;
    let train = function({
        let dense = dense.clone();
        autograph!(move |examples: DataPipeline<Example>| -> tracer::Result<Tensor> {
            let mut n = Tensor::from(0);
            for batch in &examples {
                step(&dense, &optimizer, &batch)?;
                n += 1;
            }
            Ok(n)
        })
    });
    let (expected, optimizer) = start()?;
    for batch in &line().repeat(5) {
        step(&expected, &optimizer, &batch?)?;
    }
    assert_eq!(train.call((line().repeat(5),))?.to_scalar::<i32>()?, 5 * 4);
    let (found, expected) = (weights(&dense)?, weights(&expected)?);
    assert!(
        found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6),
        "{found:?} {expected:?}"
    );
    Ok(())
}

#[test]
fn errors_of_pipelines_end_functions() -> Outcome {
    let fails = line().try_map(|batch| match batch[0].shape().dim(0) {
        Some(8) => Ok(batch),
        _ => Err("a batch of another size"),
    });
    let count = function(autograph!(move |mut n: Tensor| -> tracer::Result<Tensor> {
        for _ in &fails {
            n += 1;
        }
        Ok(n)
    }));
    let error = count.call((0,)).unwrap_err().to_string();
    assert!(error.contains("a batch of another size"), "{error}");
    Ok(())
}

#[test]
fn functions_with_pipelines_are_not_saved() -> Outcome {
    let numbers = line();
    let sum = function(autograph!(move |mut sum: Tensor| -> tracer::Result<Tensor> {
        for batch in &numbers {
            sum += batch[0].sum_all()?;
        }
        Ok(sum)
    }));
    sum.call((0.0f32,))?;
    let folder = tempfile::tempdir()?;
    let saved = Checkpoint::new().with("sum", &sum);
    let error = save(&saved, folder.path(), &SaveOptions::default()).unwrap_err().to_string();
    assert!(
        error.contains("function `function` uses a value that lives in this program"),
        "{error}"
    );
    Ok(())
}
