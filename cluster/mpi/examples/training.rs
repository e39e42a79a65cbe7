//! A small network that ranks train together, each on its part of every batch.
//!
//! ```text
//! mpirun -n 4 cargo run --release --example training
//! ```
//!
//! Each step prints the loss over the whole batch and the weights' sum of bits, which is the same in all ranks.

use ferroflow_mpi::MpiEngine;
use ferroflow_nn::{
    Activation, Dense, DenseOptions, Layer, Mode, Module, Weights,
    optimizers::{Optimizer, Sgd},
    tracer::{
        self, GradientTape, Tensor,
        distribute::{ReduceOp, Strategy, replica_context},
        function,
    },
};
use std::error::Error;

/// Examples of a batch, of all ranks together.
const BATCH: usize = 12;
const FEATURES: usize = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let strategy = Strategy::with_engine("CPU:0", MpiEngine::initialize()?)?;
    let (first, last, optimizer) = strategy.scope(|| {
        let mut weights = Weights::seeded(7);
        let tanh = DenseOptions { activation: Activation::Tanh, ..DenseOptions::default() };
        let first = Dense::with_options(&mut weights, FEATURES, 16, &tanh)?;
        let last = Dense::new(&mut weights, 16, 1)?;
        Ok::<_, tracer::Error>((first, last, Optimizer::new(Sgd::default(), 0.05)?))
    })?;
    let mut variables = first.trainable_variables()?;
    variables.extend(last.trainable_variables()?);
    let step = function({
        let variables = variables.clone();
        move |x: Tensor, y: Tensor| {
            let tape = GradientTape::new();
            let guess = last.call(&first.call(&x, Mode::Training)?, Mode::Training)?;
            let difference = (guess - y)?;
            let loss = ((&difference * &difference)?.sum(&[0, 1])? * (1.0 / BATCH as f32))?;
            optimizer.minimize(tape, &loss, &variables)?;
            replica_context()?.all_reduce(ReduceOp::Sum, &loss)
        }
    });
    for number in 0..20 {
        let batch = strategy.split(&batch(number)?)?;
        let loss = strategy.run(&batch, |(x, y)| step.call((x, y)))?;
        let loss = loss.values()[0].to_scalar::<f32>()?;
        let mut bits = 0u64;
        for variable in &variables {
            let value = variable.read()?;
            let value = value.host()?;
            bits += value.as_slice::<f32>()?.iter().map(|x| u64::from(x.to_bits())).sum::<u64>();
        }
        println!("step {number}: loss {loss:.5}, weights {bits:x}");
    }
    Ok(())
}

/// Features of a step, and what is to be learnt of them.
fn batch(step: usize) -> tracer::Result<(Tensor, Tensor)> {
    let feature = |i: usize| (0.37 * i as f64 + 1.9 * step as f64).sin() as f32;
    let x: Vec<f32> = (0..BATCH * FEATURES).map(feature).collect();
    let y: Vec<f32> = x.chunks(FEATURES).map(|x| x[0] * x[1] + x[2]).collect();
    let (rows, columns) = (BATCH as i64, FEATURES as i64);
    Ok((Tensor::from(&x[..]).reshape(&[rows, columns])?, Tensor::from(&y[..]).reshape(&[rows, 1])?))
}
