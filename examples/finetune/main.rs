//! Tunes a model that Keras has saved to a new task: part of it is frozen, the rest is trained
//! together with a new layer, and the whole is saved again.
//!
//! ```sh
//! cargo run --release --example finetune [SEED [EPOCHS]]
//! ```
//!
//! The model beside this file reads the digits 0 to 4 (`make_model.py` trained it). Here it learns
//! the digits 5 to 9, of which it is shown 150. `keras_finetune.py` does the same in Python.

use anyhow::{Context as _, Result};
use ferroflow::{
    Checkpoint, Function, FunctionOptions, GradientTape, Module, Tensor, Variable,
    data::{Arrays, BatchOptions, Progress, read_idx},
    function, function_with,
    ir::DType,
    load,
    nn::{
        Dense, Layer, Mode, Weights,
        losses::{Prediction, sparse_categorical_cross_entropy},
        optimizers::{Adam, Optimizer},
    },
    save,
    saved_model::SaveOptions,
    spec, tracer,
};
use std::{ops::Range, path::Path};

type Features = Function<(Tensor,), Tensor>;

const EPOCHS: u64 = 60;
const BATCH: usize = 32;
const N_TRAIN: usize = 150;
const DIGITS: Range<i32> = 5..10;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let seed: i64 = args.next().map_or(Ok(0), |text| text.parse())?;
    let epochs = args.next().map_or(Ok(EPOCHS), |text| text.parse())?;
    let (train, test) = digits()?;
    let model = load(examples().join("finetune/model"))?;
    let features: Features = model.function("features")?;
    let head = Dense::new(&mut Weights::seeded(seed), 128, DIGITS.len())?;
    let mut tuned = model.get("trainable_variables")?.variables()?;
    let n_loaded = tuned.len();
    tuned.retain(|variable| !variable.name().contains("/first/"));
    println!("{} of {n_loaded} loaded variables are tuned", tuned.len());
    tuned.extend(head.trainable_variables()?);
    let batches = (&train, seed.unsigned_abs(), epochs);
    tune(&features, &head, &tuned, batches)?;

    let read = function({
        let head = head.clone();
        move |images: Tensor| logits(&features, &head, &images)?.argmax(-1)
    });
    let read = read.with_name("read").with_parameters(["images"]);
    let read = read.with_input_signature([spec(DType::F32, [None, Some(8), Some(8), Some(1)])]);
    let folder = Path::new("finetuned");
    let whole = Checkpoint::of(&model).with("head", &head).with("read", &read);
    save(&whole, folder, &SaveOptions::default().signature(&read)?)?;
    println!("accuracy {:.4} on {} digits that were not trained on", accuracy(&test)?, test.len());
    println!("{}: the tuned model, which TensorFlow loads too", folder.display());
    Ok(())
}

/// Trains the variables on the digits, shuffled by a seed, so many times.
fn tune(
    features: &Features,
    head: &Dense,
    variables: &[Variable],
    (train, seed, epochs): (&Arrays, u64, u64),
) -> Result<()> {
    let optimizer = Optimizer::new(Adam::default(), 2e-3)?;
    let step = {
        let (features, head, variables) = (features.clone(), head.clone(), variables.to_vec());
        let options = FunctionOptions { reduce_retracing: true, ..FunctionOptions::default() };
        function_with(options, move |images: Tensor, labels: Tensor| {
            let tape = GradientTape::new();
            let logits = logits(&features, &head, &images)?;
            let losses = sparse_categorical_cross_entropy(&labels, &logits, Prediction::Logits)?;
            let loss = losses.mean_all()?;
            optimizer.minimize(tape, &loss, &variables)?;
            Ok::<_, tracer::Error>(loss)
        })
    };
    let options = BatchOptions { size: BATCH, shuffle: Some(seed), ..BatchOptions::default() };
    let progress = Progress::new("tuning", train.n_batches(&options) * epochs as usize);
    for epoch in 0..epochs {
        for batch in train.batches(&options, epoch) {
            let batch = batch?;
            let loss = step.call((&batch[0], &batch[1]))?.to_scalar::<f32>()?;
            progress.step(&[("loss", loss.into())]);
        }
    }
    Ok(())
}

fn logits(features: &Features, head: &Dense, images: &Tensor) -> tracer::Result<Tensor> {
    head.call(&features.call((images,))?, Mode::Training)
}

/// The accuracy of the model that was saved.
fn accuracy(test: &Arrays) -> Result<f64> {
    let model = load("finetuned")?;
    let whole = BatchOptions { size: test.len(), ..BatchOptions::default() };
    let batch = test.batches(&whole, 0).next().context("there are digits to test with")??;
    let outputs = model.call_signature("serving_default", [("images", batch[0].clone())])?;
    let read = &outputs["output_0"];
    let right = read.cast(DType::I32)?.equal(&batch[1])?;
    Ok(f64::from(right.cast(DType::F32)?.mean_all()?.to_scalar::<f32>()?))
}

/// The digits to train on, and those to test with: images from 0 to 1, and numbers from 0 on.
fn digits() -> Result<(Arrays, Arrays)> {
    let folder = examples().join("digits");
    let images = Tensor::from(read_idx(folder.join("images.idx3.gz"))?).cast(DType::F32)?;
    let labels = Tensor::from(read_idx(folder.join("labels.idx1.gz"))?).cast(DType::I32)?;
    let chosen = (0..).zip(labels.to_vec::<i32>()?).filter(|(_, digit)| DIGITS.contains(digit));
    let chosen = Tensor::from(chosen.map(|(row, _)| row).collect::<Vec<i32>>());
    let images = (images.gather(&chosen)? / 16.0)?.expand_dims(-1)?.host()?.clone();
    let labels = (labels.gather(&chosen)? - DIGITS.start)?.host()?.clone();
    let n = labels.len();
    let part = |rows: Range<usize>| {
        Ok::<_, anyhow::Error>(Arrays::new([images.rows(rows.clone())?, labels.rows(rows)?])?)
    };
    Ok((part(0..N_TRAIN)?, part(N_TRAIN..n)?))
}

fn examples() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}
