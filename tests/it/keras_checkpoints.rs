//! Checkpoints of networks of Keras, restored into equal networks: `golden/keras_layers.py` writes
//! them.

use ferroflow::{
    Checkpoint, Tensor, Variable,
    nn::{
        BatchNorm, Conv2D, ConvOptions, Dense, DepthwiseConv2D, Dropout, Embedding, Gru, Layer,
        LayerNorm, Lstm, Mode, Padding, Sequential, Weights, flatten,
        optimizers::{LearningRate, LossScale, LossScaleOptions, Optimizer, OptimizerOptions, Sgd},
    },
    tracer::gradients::TensorGradient,
};
use std::{error::Error, path::Path};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Numbers of a file: what a network was given, and what it gave.
fn recorded(name: &str, key: &str) -> Outcome<Vec<f32>> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json")))?;
    let values: serde_json::Value = serde_json::from_str(&text)?;
    Ok(serde_json::from_value(values[key].clone())?)
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/keras_layers")
}

fn check(name: &str, network: &Sequential, x: &Tensor) -> Outcome {
    Checkpoint::new()
        .with("model", network)
        .read(folder().join(name))?
        .assert_existing_objects_matched()?;
    let (found, expected) =
        (network.call(x, Mode::Inference)?.to_vec::<f32>()?, recorded(name, "y")?);
    let near = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(near && found.len() == expected.len(), "{found:?} instead of {expected:?}");
    Ok(())
}

#[test]
fn images() -> Outcome {
    let weights = &mut Weights::new();
    let same = ConvOptions { padding: Padding::Same, ..ConvOptions::default() };
    let network = Sequential::new()
        .then(Conv2D::new(weights, [3, 3], 2, 3, &same)?)
        .then(BatchNorm::new(weights, 3)?)
        .map(Tensor::relu)
        .then(DepthwiseConv2D::new(weights, [2, 2], 3, 1, &ConvOptions::default())?)
        .map(flatten)
        .then(LayerNorm::new(weights, 27)?)
        .then(Dropout::new(0.5)?)
        .then(Dense::new(weights, 27, 2)?);
    check("images", &network, &Tensor::from_slice(&[2, 4, 4, 2], &recorded("images", "x")?)?)
}

#[test]
fn sequences() -> Outcome {
    let weights = &mut Weights::new();
    let network = Sequential::new()
        .then(Embedding::new(weights, 5, 2)?)
        .then(Lstm::of_sequences(weights, 2, 3)?)
        .then(Gru::new(weights, 3, 2)?);
    let words: Vec<i32> = recorded("sequences", "x")?.iter().map(|&x| x as i32).collect();
    check("sequences", &network, &Tensor::from_slice(&[2, 3], &words)?)
}

#[test]
fn loss_scales() -> Outcome {
    let w = Variable::named("w", [0.0f32, 0.0])?;
    let scale = LossScale::new(LossScaleOptions { initial: 1.0, growth_steps: 9 })?;
    let options = OptimizerOptions {
        learning_rate: LearningRate::from(&Variable::new(0.0f32)?),
        loss_scale: Some(scale.clone()),
        ..OptimizerOptions::default()
    };
    let optimizer = Optimizer::with_options(Sgd { momentum: 0.9, nesterov: false }, options)?;
    let step = |gradient: [f32; 2]| {
        let gradient = TensorGradient::Dense((Tensor::from(gradient) * scale.value()?)?);
        optimizer.apply([(gradient, w.clone())])
    };
    let checkpoint = Checkpoint::new().with("w", &w).with("optimizer", &optimizer);
    optimizer.build(std::slice::from_ref(&w))?;
    checkpoint.read(folder().join("loss_scale"))?.assert_existing_objects_matched()?;
    let [value, steps] = scale.variables();
    assert_eq!(value.read()?.to_scalar::<f32>()?, 4.0);
    assert_eq!(steps.read()?.to_scalar::<i64>()?, 1);
    assert_eq!(optimizer.iterations().read()?.to_scalar::<i64>()?, 2);
    // What is saved here is restored, where slots wait for their variables.
    let own = tempfile::tempdir()?;
    let prefix = checkpoint.save(own.path().join("state"))?;
    step([2.0, -1.0])?;
    let (found, expected) = (w.read()?.to_vec::<f32>()?, recorded("loss_scale", "w")?);
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    checkpoint.restore(&prefix)?.assert_consumed()?;
    step([2.0, -1.0])?;
    assert_eq!(w.read()?.to_vec::<f32>()?, found);
    Ok(())
}
