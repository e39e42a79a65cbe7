//! A training loop written by hand: what a step does is a traced method, everything around it is
//! plain Rust.
//!
//! ```sh
//! cargo run --release --example custom_training_loop [EPOCHS]
//! ```
//!
//! A network learns to tell two interlocking half moons apart. The loss has a part that keeps weights
//! small, gradients are bounded by their common norm, the learning rate falls, the best state so far
//! is kept in a checkpoint and restored at the end.

use anyhow::Result;
use ferroflow::{
    Checkpoint, CheckpointManager, Functions, GradientTape, HasFunctions, ManagerOptions, Module,
    Tensor, Trackable,
    data::{Arrays, BatchOptions, Progress},
    function,
    ir::DType,
    nn::{
        Activation, Dense, DenseOptions, Dropout, Layer, Mode, Regularizer, Sequential, Weights,
        initializers::Initializer,
        losses::{Prediction, binary_cross_entropy},
        optimizers::{Adam, LearningRateSchedule, Optimizer, clip_by_global_norm},
    },
    tracer,
};

const EPOCHS: u64 = 40;
/// Epochs without a better one, after which training ends.
const PATIENCE: u64 = 8;

/// A model in training with its optimizer: the object that checkpoints hold.
#[derive(Trackable, HasFunctions)]
struct Trainer {
    network: Sequential,
    optimizer: Optimizer,
    functions: Functions,
}

impl Trainer {
    fn new(n_steps: f64) -> tracer::Result<Trainer> {
        let weights = &mut Weights::seeded(1);
        let options = DenseOptions {
            activation: Activation::Tanh,
            kernel_regularizer: Some(Regularizer::l2(1e-4)),
            ..DenseOptions::default()
        };
        let network = Sequential::new()
            .then(Dense::with_options(weights, 2, 32, &options)?)
            .then(Dropout::seeded(0.1, 1)?)
            .then(Dense::with_options(weights, 32, 32, &options)?)
            .then(Dense::new(weights, 32, 1)?);
        let rate = LearningRateSchedule::CosineDecay {
            initial: 2e-2,
            steps: n_steps,
            alpha: 0.05,
            warmup_target: 2e-2,
            warmup_steps: 0.0,
        };
        let optimizer = Optimizer::new(Adam::default(), rate)?;
        Ok(Trainer { network, optimizer, functions: Functions::default() })
    }

    /// A step along the gradients of a batch; gives the loss and the norm of the gradients.
    #[function(reduce_retracing)]
    fn step(&self, points: &Tensor, moons: &Tensor) -> tracer::Result<(Tensor, Tensor)> {
        let tape = GradientTape::new();
        let logits = self.network.call(points, Mode::Training)?;
        let mut loss = binary_cross_entropy(moons, &logits, Prediction::Logits)?.mean_all()?;
        for penalty in self.network.regularization_losses()? {
            loss = (loss + penalty)?;
        }
        let variables = self.network.trainable_variables()?;
        let gradients = tape.variable_gradients(&loss, &variables)?;
        let gradients: Vec<_> = gradients.into_iter().flatten().collect();
        let (gradients, norm) = clip_by_global_norm(&gradients, 1.0)?;
        self.optimizer.apply(gradients.into_iter().zip(variables))?;
        Ok((loss, norm))
    }

    /// The part of the points that are told apart rightly.
    #[function(reduce_retracing)]
    fn accuracy(&self, points: &Tensor, moons: &Tensor) -> tracer::Result<Tensor> {
        let logits = self.network.call(points, Mode::Inference)?;
        let right = logits.greater(0.0)?.equal(&moons.greater(0.5)?)?;
        right.cast(DType::F32)?.mean_all()
    }
}

fn main() -> Result<()> {
    let epochs = std::env::args().nth(1).map_or(Ok(EPOCHS), |text| text.parse())?;
    let (train, test) = (moons(2000, 1)?, moons(500, 2)?);
    let options = BatchOptions { size: 50, shuffle: Some(0), ..BatchOptions::default() };
    let n_batches = train.n_batches(&options);
    let trainer = Trainer::new((n_batches as u64 * epochs) as f64)?;
    let folder = std::env::temp_dir().join("ferroflow_moons");
    let newest = ManagerOptions { max_to_keep: 1.try_into().ok(), ..ManagerOptions::default() };
    let mut manager = CheckpointManager::new(Checkpoint::of(&trainer), &folder, newest)?;

    let (mut best, mut best_epoch) = (0.0, 0);
    for epoch in 0..epochs {
        let progress = Progress::new(&format!("epoch {:2}", epoch + 1), n_batches);
        let (mut loss_sum, mut last_norm) = (0.0, 0.0);
        for batch in train.batches(&options, epoch) {
            let batch = batch?;
            let (loss, norm) = trainer.step(&batch[0], &batch[1])?;
            loss_sum += loss.to_scalar::<f32>()?;
            last_norm = norm.to_scalar::<f32>()?;
            progress.step(&[("loss", loss_sum.into()), ("norm", last_norm.into())]);
        }
        drop(progress);
        let accuracy = accuracy(&trainer, &test)?;
        let loss = loss_sum / n_batches as f32;
        println!(
            "epoch {:2}: loss {loss:.4}, norm {last_norm:.3}, accuracy {accuracy:.4}",
            epoch + 1
        );
        if accuracy > best {
            (best, best_epoch) = (accuracy, epoch);
            manager.save()?;
        } else if epoch - best_epoch >= PATIENCE {
            println!("no better for {PATIENCE} epochs");
            break;
        }
    }
    if let Some(path) = manager.latest() {
        manager.checkpoint().restore(path)?;
    }
    println!(
        "accuracy {:.4} with the weights of epoch {}",
        accuracy(&trainer, &test)?,
        best_epoch + 1
    );
    Ok(())
}

fn accuracy(trainer: &Trainer, test: &Arrays) -> Result<f32> {
    let whole = BatchOptions { size: test.len(), ..BatchOptions::default() };
    let mut accuracy = 0.0;
    for batch in test.batches(&whole, 0) {
        let batch = batch?;
        accuracy = trainer.accuracy(&batch[0], &batch[1])?.to_scalar::<f32>()?;
    }
    Ok(accuracy)
}

/// Points of two half moons, `[n, 2]`, and which moon each belongs to, `[n, 1]`.
fn moons(n: usize, seed: i64) -> Result<Arrays> {
    let noise = Initializer::RandomNormal { mean: 0.0, deviation: 0.15 };
    let noise = noise.seeded(DType::F32, &[n, 2], [seed, 0])?;
    let (mut points, mut which) = (Vec::new(), Vec::new());
    for index in 0..n {
        let angle = std::f32::consts::PI * (index / 2) as f32 / (n / 2) as f32;
        let is_lower = index % 2 == 1;
        points.extend(match is_lower {
            false => [angle.cos(), angle.sin()],
            true => [1.0 - angle.cos(), 0.5 - angle.sin()],
        });
        which.push(f32::from(u8::from(is_lower)));
    }
    let points = (Tensor::from_slice(&[n, 2], &points)? + noise)?;
    let which = Tensor::from_slice(&[n, 1], &which)?;
    Ok(Arrays::new([points.host()?.clone(), which.host()?.clone()])?)
}
