//! Trains a small convolutional network to read handwritten digits, and draws how it went.
//!
//! ```sh
//! cargo run --release --example digits [SEED [EPOCHS]]
//! ```
//!
//! The data lie beside this file (`make_data.py` says where they come from); `keras_digits.py` trains
//! the same network in Keras.

mod drawing;

use anyhow::{Context, Result};
use ferroflow::{
    Tensor,
    data::{Arrays, BatchOptions, read_idx},
    ir::DType,
    nn::{
        Activation, Conv2D, ConvOptions, Dense, Layer, Mode, Padding, Sequential, Weights, flatten,
        losses::{Prediction, sparse_categorical_cross_entropy},
        max_pool,
        metrics::sparse_categorical_accuracy,
        optimizers::{Adam, Optimizer},
    },
    tracer,
    train::{Callback, CallbackResult, FitOptions, ProgressBar, Trainer, Training},
};
use std::{ops::ControlFlow, path::Path};

const EPOCHS: u64 = 20;
const N_TEST: usize = 360;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let seed = args.next().map_or(Ok(0), |text| text.parse())?;
    let epochs = args.next().map_or(Ok(EPOCHS), |text| text.parse())?;
    let (train, test) = digits()?;
    let network = network(seed)?;
    let loss = |y: &Tensor, x: &Tensor| sparse_categorical_cross_entropy(y, x, Prediction::Logits);
    let optimizer = Optimizer::new(Adam::default(), 2e-3)?;
    let trainer = Trainer::new(network.clone(), optimizer, loss)?
        .metric(sparse_categorical_accuracy()?.named("accuracy"));
    let options =
        BatchOptions { size: 32, shuffle: Some(seed.unsigned_abs()), ..BatchOptions::default() };
    let (mut progress, mut losses) = (ProgressBar::new(), Losses::default());
    let callbacks = FitOptions::default().callback(&mut progress).callback(&mut losses);
    trainer.fit(&train.epochs(&options), epochs, callbacks)?;
    let accuracy = trainer.evaluate(&test.epochs(&BatchOptions::default()))?.get("accuracy");
    let accuracy = accuracy.context("the trainer has this metric")?;
    println!("accuracy {accuracy:.4} on {N_TEST} digits that were not trained on");
    let path = Path::new("digits.svg");
    drawing::draw(path, &losses.0, &misread(&network, &test)?)?;
    println!("{}: the loss, and what was misread", path.display());
    Ok(())
}

/// The loss of each step, for the drawing.
#[derive(Default)]
struct Losses(Vec<f32>);

impl Callback for Losses {
    fn batch_end(&mut self, _: &Training, _: usize, loss: f64) -> CallbackResult {
        self.0.push(loss as f32);
        Ok(ControlFlow::Continue(()))
    }
}

/// Two convolutions, each halved, and a layer of ten: `[n, 8, 8, 1]` → `[n, 10]`.
fn network(seed: i64) -> tracer::Result<Sequential> {
    let weights = &mut Weights::seeded(seed);
    let options = ConvOptions {
        padding: Padding::Same,
        activation: Activation::Relu,
        ..ConvOptions::default()
    };
    Ok(Sequential::new()
        .then(Conv2D::new(weights, [3, 3], 1, 16, &options)?)
        .map(|x| max_pool(x, [2, 2]))
        .then(Conv2D::new(weights, [3, 3], 16, 32, &options)?)
        .map(|x| max_pool(x, [2, 2]))
        .map(flatten)
        .then(Dense::new(weights, 128, 10)?))
}

/// The digits to train on, and those to test with: images from 0 to 1, and numbers.
fn digits() -> Result<(Arrays, Arrays)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/digits");
    let images = Tensor::from(read_idx(folder.join("images.idx3.gz"))?);
    let images = (images.cast(DType::F32)? / 16.0)?.expand_dims(-1)?.host()?.clone();
    let labels = Tensor::from(read_idx(folder.join("labels.idx1.gz"))?);
    let labels = labels.cast(DType::I32)?.host()?.clone();
    let n = labels.len();
    let part = |rows: std::ops::Range<usize>| {
        Ok::<_, anyhow::Error>(Arrays::new([images.rows(rows.clone())?, labels.rows(rows)?])?)
    };
    Ok((part(0..n - N_TEST)?, part(n - N_TEST..n)?))
}

/// A digit that the network took for another.
struct Misread {
    /// Eight rows of eight pixels, from 0 to 1.
    pixels: Vec<f32>,
    label: i32,
    read_as: i64,
}

fn misread(network: &Sequential, test: &Arrays) -> Result<Vec<Misread>> {
    let whole = BatchOptions { size: test.len(), ..BatchOptions::default() };
    let mut misread = Vec::new();
    for batch in test.batches(&whole, 0) {
        let batch = batch?;
        let read = network.call(&batch[0], Mode::Inference)?.argmax(-1)?.to_vec::<i64>()?;
        let (pixels, labels) = (batch[0].to_vec::<f32>()?, batch[1].to_vec::<i32>()?);
        for ((pixels, label), read_as) in pixels.chunks(64).zip(labels).zip(read) {
            if i64::from(label) != read_as {
                misread.push(Misread { pixels: pixels.into(), label, read_as });
            }
        }
    }
    Ok(misread)
}
