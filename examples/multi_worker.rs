//! A small network that several processes train together, each on its part of every batch.
//!
//! ```sh
//! for i in 0 1; do
//!     TF_CONFIG='{"cluster": {"worker": ["127.0.0.1:4001", "127.0.0.1:4002"]}, "task": {"type": "worker", "index": '$i'}}' \
//!         cargo run --release --features cluster --example multi_worker 20 &
//! done; wait
//! ```
//!
//! Each step prints the loss over the whole batch and a checksum of all weights, which is the same in all
//! processes. Processes of TensorFlow can take part (`cluster/tests/tensorflow/worker.py`).
//!
//! With a folder as the second argument, a process that is asked to end (`SIGTERM`) has all of them write a
//! checkpoint and end with status 75 (`EX_TEMPFAIL`: try again); started again, they go on from it. The files in
//! `examples/cluster` have schedulers do so.

use ferroflow::{
    Checkpoint, GradientTape, Tensor, Variable,
    distribute::{ReduceOp, replica_context},
    function,
    ir::{HostTensor, Shape},
    multi_worker::{MultiWorkerMirroredStrategy, PreemptionCheckpoint},
    nn::optimizers::{Optimizer, Sgd},
    ops, tracer,
};
use std::{env, error::Error, ops::ControlFlow, process::ExitCode};

/// Examples of a batch, of all processes together.
const BATCH: usize = 12;
const SIDE: usize = 8;
const CLASSES: usize = 10;
const CHANNELS: usize = 6;
const RATE: f64 = 0.1;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let steps: usize = env::args().nth(1).map_or(Ok(20), |steps| steps.parse())?;
    let strategy = MultiWorkerMirroredStrategy::from_env()?;
    let weights = strategy.scope(weights)?;
    let optimizer = strategy.scope(|| Optimizer::new(Sgd::default(), RATE))?;
    let step = function({
        let weights = weights.clone();
        move |x: Tensor, y: Tensor| step(&optimizer, &weights, &x, &y)
    });
    let train = |number: usize| -> tracer::Result<()> {
        let batch = strategy.split(&batch(number)?)?;
        let loss = strategy.run(&batch, |(x, y)| step.call((x, y)))?;
        let loss = loss.values()[0].to_scalar::<f32>()?;
        println!("step {number}: loss {loss:.6}, weights {:08x}", checksum(&weights)?);
        Ok(())
    };
    match env::args().nth(2) {
        None => (0..steps).try_for_each(train)?,
        Some(folder) => {
            let checkpoint = Checkpoint::new().with("weights", &weights);
            let training = PreemptionCheckpoint::restore(&strategy, checkpoint, folder)?;
            return resumable(training, steps, train);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Steps from the last checkpoint on, until all are done or a process is asked to end.
fn resumable(
    mut training: PreemptionCheckpoint<'_>,
    steps: usize,
    train: impl Fn(usize) -> tracer::Result<()>,
) -> Result<ExitCode, Box<dyn Error>> {
    while let Ok(number) = usize::try_from(training.steps())
        && number < steps
    {
        if let ControlFlow::Break(path) = training.run(|| train(number))? {
            println!("saved {} after {} steps", path.display(), training.steps());
            return Ok(ExitCode::from(75));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// First values that every process computes alike; were they random, those of the first would be taken.
fn weights() -> tracer::Result<Vec<Variable>> {
    let variable = |name: &str, shape: &[usize], scale: f64| {
        let len: usize = shape.iter().product();
        let values = (0..len).map(|i| (scale * (i as f64 * 1.7).sin()) as f32);
        let shape = Shape::new(shape.iter().copied())?;
        let value = HostTensor::from_slice(shape, &values.collect::<Vec<f32>>())?;
        Variable::named(name, Tensor::from(value))
    };
    Ok(vec![
        variable("filters", &[3, 3, 1, CHANNELS], 0.4)?,
        variable("bias", &[CHANNELS], 0.1)?,
        variable("kernel", &[SIDE * SIDE / 4 * CHANNELS, CLASSES], 0.2)?,
    ])
}

/// Images and classes of a step.
fn batch(step: usize) -> tracer::Result<(Tensor, Tensor)> {
    let value =
        |i: usize| (0.37 * (i / (SIDE * SIDE)) as f64 + 0.11 * i as f64 + step as f64).sin();
    let images: Vec<f32> = (0..BATCH * SIDE * SIDE).map(|i| value(i) as f32).collect();
    let classes: Vec<i32> = (0..BATCH).map(|i| ((7 * i + step) % CLASSES) as i32).collect();
    let images = HostTensor::from_slice(Shape::new([BATCH, SIDE, SIDE, 1])?, &images)?;
    Ok((images.into(), Tensor::from(&classes[..])))
}

/// A step of gradient descent on a replica's part of a batch; the loss over the whole batch.
fn step(
    optimizer: &Optimizer,
    weights: &[Variable],
    x: &Tensor,
    y: &Tensor,
) -> tracer::Result<Tensor> {
    let tape = GradientTape::new();
    let loss = (losses(weights, x, y)?.sum(&[0])? * (1.0 / BATCH as f32))?;
    optimizer.minimize(tape, &loss, weights)?;
    replica_context()?.all_reduce(ReduceOp::Sum, &loss)
}

fn losses(weights: &[Variable], x: &Tensor, y: &Tensor) -> tracer::Result<Tensor> {
    let x = ops::conv2d(x, &weights[0].read()?, &[1, 1, 1, 1], "SAME")?;
    let x = ops::tanh(&(x + weights[1].read()?)?)?;
    let x = ops::avg_pool(&x, &[1, 2, 2, 1], &[1, 2, 2, 1], "VALID")?;
    let x = x.reshape(&[-1, (SIDE * SIDE / 4 * CHANNELS) as i64])?;
    let logits = x.matmul(weights[2].read()?)?;
    let [losses, _] = ops::sparse_softmax_cross_entropy_with_logits(&logits, y)?;
    Ok(losses)
}

/// A checksum of the bytes of all weights.
fn checksum(weights: &[Variable]) -> tracer::Result<u32> {
    let mut sum = flate2::Crc::new();
    for weight in weights {
        sum.update(weight.read()?.host()?.bytes());
    }
    Ok(sum.sum())
}
