//! Trains a small convolutional network to read handwritten digits, and draws how it went.
//!
//! ```sh
//! cargo run --release --example digits [SEED [EPOCHS]]
//! ```
//!
//! The data lie beside this file (`make_data.py` says where they come from); `keras_digits.py` trains
//! the same network in Keras.

mod drawing;

use anyhow::Result;
use ferroflow::{
    FunctionOptions, GradientTape, Module, Tensor,
    data::{Arrays, BatchOptions, Progress, prefetch, read_idx},
    function_with,
    ir::DType,
    nn::{
        Activation, Conv2D, ConvOptions, Dense, Layer, Mode, Padding, Sequential, Weights, flatten,
        losses::{Prediction, sparse_categorical_cross_entropy},
        max_pool,
        optimizers::{Adam, Optimizer},
    },
    tracer,
};
use std::path::Path;

const EPOCHS: u64 = 20;
const N_TEST: usize = 360;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let seed = args.next().map_or(Ok(0), |text| text.parse())?;
    let epochs = args.next().map_or(Ok(EPOCHS), |text| text.parse())?;
    let (train, test) = digits()?;
    let network = network(seed)?;
    let optimizer = Optimizer::new(Adam::default(), 2e-3)?;
    let step = {
        let (network, optimizer) = (network.clone(), optimizer.clone());
        // One trace for all batches, also the last one of an epoch, which is smaller.
        let options = FunctionOptions { reduce_retracing: true, ..FunctionOptions::default() };
        function_with(options, move |images: Tensor, labels: Tensor| {
            let tape = GradientTape::new();
            let loss = loss(&network, &images, &labels)?;
            optimizer.minimize(tape, &loss, &network.trainable_variables()?)?;
            Ok::<_, tracer::Error>(loss)
        })
    };
    let options =
        BatchOptions { size: 32, shuffle: Some(seed.unsigned_abs()), ..BatchOptions::default() };
    let mut losses = Vec::new();
    for epoch in 0..epochs {
        let progress = Progress::new(&format!("epoch {:2}", epoch + 1), train.n_batches(&options));
        for batch in prefetch(train.batches(&options, epoch), 2) {
            let batch = batch?;
            let loss = step.call((&batch[0], &batch[1]))?.to_scalar::<f32>()?;
            progress.step(&[("loss", loss.into())]);
            losses.push(loss);
        }
    }
    let misread = misread(&network, &test)?;
    let accuracy = 1.0 - misread.len() as f64 / N_TEST as f64;
    println!("accuracy {accuracy:.4} on {N_TEST} digits that were not trained on");
    let path = Path::new("digits.svg");
    drawing::draw(path, &losses, &misread)?;
    println!("{}: the loss, and what was misread", path.display());
    Ok(())
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

fn loss(network: &Sequential, images: &Tensor, labels: &Tensor) -> tracer::Result<Tensor> {
    let logits = network.call(images, Mode::Training)?;
    sparse_categorical_cross_entropy(labels, &logits, Prediction::Logits)?.mean_all()
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
