//! Step times of several processes whose gradients are large, and the share of communication in them.
//!
//! ```sh
//! for i in 0 1; do
//!     TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:4001", "127.0.0.1:4002"]}, "task": {"type": "worker", "index": '$i'}}' \
//!         cargo run --release --features cluster --example overlap -- 10 256 &
//! done; wait
//! ```
//!
//! The arguments are the number of steps, the examples of each process, and `alone` to wait for each reduction
//! where it stands instead of going on with the backward pass. Each layer has 4 MiB of weights. A process without
//! others shows the time of the computation, a single example that of the communication.

use ferroflow::{
    GradientTape, Tensor, Variable, function,
    ir::{HostTensor, Shape},
    multi_worker::MultiWorkerMirroredStrategy,
    nn::optimizers::{Optimizer, Sgd},
    ops,
    runtime::{CompileOptions, Context, ContextOptions},
    tracer::{self, with_context},
};
use std::{env, error::Error, num::NonZeroUsize, time::Instant};

const LAYERS: usize = 12;
const WIDTH: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let argument = |number: usize| env::args().nth(number);
    let steps: usize = argument(1).map_or(Ok(10), |steps| steps.parse())?;
    let examples: usize = argument(2).map_or(Ok(256), |examples| examples.parse())?;
    let overlap = argument(3).is_none_or(|word| word != "alone");
    let compile = CompileOptions { overlap, ..CompileOptions::default() };
    let options =
        ContextOptions { threads: NonZeroUsize::new(1), compile, ..ContextOptions::default() };
    // A strategy keeps the context in which it is made.
    Ok(with_context(&Context::with_options(options), || {
        train(&MultiWorkerMirroredStrategy::from_env()?, steps, examples)
    })?)
}

fn train(
    strategy: &MultiWorkerMirroredStrategy,
    steps: usize,
    examples: usize,
) -> tracer::Result<()> {
    let weights = strategy.scope(|| (0..LAYERS).map(layer).collect::<tracer::Result<Vec<_>>>())?;
    let optimizer = strategy.scope(|| Optimizer::new(Sgd::default(), 0.01))?;
    let step = function({
        let weights = weights.clone();
        move |x: Tensor| step(&optimizer, &weights, &x)
    });
    let rows = examples * strategy.num_replicas_in_sync();
    let values: Vec<f32> = (0..rows * WIDTH).map(|i| (0.013 * i as f64).sin() as f32).collect();
    let x = HostTensor::from_slice(Shape::new([rows, WIDTH])?, &values)?;
    let x = strategy.split(&Tensor::from(x))?;
    let mut times = Vec::new();
    for _ in 0..=steps {
        let begun = Instant::now();
        let loss = strategy.run(&x, |x| step.call((x,)))?;
        loss.values()[0].to_scalar::<f32>()?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    // The first step traces and compiles.
    let mut times = times.split_off(1);
    times.sort_by(f64::total_cmp);
    let sum = weights[0].read()?.sum(&[0, 1])?.to_scalar::<f32>()?;
    println!("step {:.1} ms, sum of the first weights {sum}", times[times.len() / 2]);
    Ok(())
}

/// First weights of a layer, spread evenly between two bounds by a multiplicative hash.
fn layer(number: usize) -> tracer::Result<Variable> {
    const BOUND: f32 = 0.06;
    let value = |i: usize| {
        let hash = ((i + number * WIDTH * WIDTH) as u32).wrapping_mul(2_654_435_769);
        BOUND * (hash as f32 / (u32::MAX / 2) as f32 - 1.0)
    };
    let values: Vec<f32> = (0..WIDTH * WIDTH).map(value).collect();
    let value = HostTensor::from_slice(Shape::new([WIDTH, WIDTH])?, &values)?;
    Variable::named(&format!("layer_{number}"), Tensor::from(value))
}

fn step(optimizer: &Optimizer, weights: &[Variable], x: &Tensor) -> tracer::Result<Tensor> {
    let tape = GradientTape::new();
    let mut x = x.clone();
    for weights in weights {
        x = ops::tanh(&x.matmul(weights.read()?)?)?;
    }
    let loss = x.square()?.mean(&[0, 1])?;
    optimizer.minimize(tape, &loss, weights)?;
    Ok(loss)
}
