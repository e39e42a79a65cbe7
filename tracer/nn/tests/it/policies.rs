//! Networks that compute in 16 bits by a policy have the numbers of Keras, rounded as they are.

use crate::recorded::{check, check_within, filled, numbers};
use ferroflow_nn::{
    Activation, DTypePolicy, Dense, DenseOptions, Embedding, Layer, LayerNorm, LayerValue, Lstm,
    Mode, Module, Sequential, Weights,
    losses::mean_squared_error,
    optimizers::{LossScale, LossScaleOptions, Optimizer, OptimizerOptions, Sgd},
    train::{FitOptions, Trainer},
};
use ferroflow_runtime::trackable::ObjectGraph;
use ferroflow_tracer::{
    DType, GradientTape, Result, Tensor, Variable, gradients::TensorGradient, ops,
};

fn network(policy: DTypePolicy) -> Result<Sequential> {
    let w = &mut Weights::new().with_policy(policy);
    let tanh = DenseOptions { activation: Activation::Tanh, ..DenseOptions::default() };
    let network = Sequential::new()
        .then(Embedding::new(w, 6, 3)?)
        .then(LayerNorm::new(w, 3)?)
        .then(Lstm::of_sequences(w, 3, 4)?)
        .then(Dense::with_options(w, 4, 2, &tanh)?);
    filled(Ok(network))
}

#[test]
fn networks_compute_in_the_dtype_of_their_policy() -> Result<()> {
    let words = Tensor::from([[3, 5, 0, 2], [1, 0, 4, 1]]);
    let targets = (numbers(&[2, 4, 2])? + 0.3)?;
    let both = [(DTypePolicy::MIXED_BFLOAT16, 2e-2), (DTypePolicy::MIXED_FLOAT16, 3e-3)];
    for (policy, tolerance) in both {
        let network = network(policy)?;
        let variables = network.trainable_variables()?;
        let tape = GradientTape::new();
        let x = LayerValue::from(&words).under(policy)?;
        let y = network.propagate(&x, Mode::Training)?.tensor;
        assert_eq!(y.dtype(), policy.compute_dtype());
        let y = y.cast(DType::F32)?;
        check_within(&format!("{policy} result"), &y, tolerance);
        let loss = mean_squared_error(&targets, &y)?.mean_all()?;
        check_within(&format!("{policy} loss"), &loss, tolerance);
        // Those of the cell lie deeper than those of the other layers.
        let indices = [0, 1, 2, 6, 7, 3, 4, 5];
        for (index, by) in indices.into_iter().zip(tape.variable_gradients(&loss, &variables)?) {
            let by = by.expect("all weights matter").dense()?;
            assert_eq!(by.dtype(), DType::F32);
            check_within(&format!("{policy} d {index}"), &by, tolerance);
        }
    }
    Ok(())
}

#[test]
fn a_trainer_in_float16_needs_a_loss_scale() -> Result<()> {
    let policy = DTypePolicy::MIXED_FLOAT16;
    let trainer = |loss_scale: Option<LossScale>| -> Result<Trainer> {
        let options = OptimizerOptions {
            learning_rate: 0.1.into(),
            loss_scale,
            ..OptimizerOptions::default()
        };
        let optimizer = Optimizer::with_options(Sgd::default(), options)?;
        Trainer::new(network(policy)?, optimizer, mean_squared_error)?.with_policy(policy)
    };
    let error = trainer(None).unwrap_err().to_string();
    assert!(error.contains("a loss scale, as mixed_float16 needs"), "{error}");
    let trainer = trainer(policy.loss_scale()?)?;
    let words = Tensor::from([[3, 5, 0, 2], [1, 0, 4, 1]]);
    let examples = vec![vec![words.clone(), (numbers(&[2, 4, 2])? + 0.3)?]];
    let losses = trainer.fit(&examples, 20, FitOptions::default()).unwrap().all("loss");
    assert!(losses[19] < losses[0], "{losses:?}");
    assert_eq!(trainer.predict(&words)?.dtype(), DType::F32);
    Ok(())
}

#[test]
fn a_loss_scale_moves_as_that_of_keras() -> Result<()> {
    let w = Variable::named("w", [1.0f32, -2.0])?;
    let scale = LossScale::new(LossScaleOptions { initial: 8.0, growth_steps: 2 })?;
    let options = OptimizerOptions {
        learning_rate: 0.5.into(),
        loss_scale: Some(scale.clone()),
        ..OptimizerOptions::default()
    };
    let optimizer = Optimizer::with_options(Sgd { momentum: 0.9, nesterov: false }, options)?;
    let inf = f32::INFINITY;
    let gradients = [[1.0, 2.0], [0.5, 0.5], [inf, 1.0], [2.0, -1.0], [f32::NAN, 0.0]];
    for (step, gradient) in gradients.into_iter().enumerate() {
        let gradient = TensorGradient::Dense((Tensor::from(gradient) * scale.value()?)?);
        optimizer.apply([(gradient, w.clone())])?;
        check(&format!("loss_scale {step}"), &w.read()?);
        let [value, steps] = scale.variables();
        let state = ops::pack(&[&value.read()?, &steps.read()?.cast(DType::F32)?])?;
        check(&format!("loss_scale {step} state"), &state);
    }
    let graph = ObjectGraph::of(&optimizer)?;
    let edges: Vec<&str> = graph.nodes[0].edges().collect();
    assert_eq!(edges, ["dynamic_scale", "step_counter", "inner_optimizer"]);
    Ok(())
}

#[test]
fn policies_have_the_names_of_keras() -> Result<()> {
    for name in ["mixed_float16", "mixed_bfloat16", "float32", "float64", "bfloat16"] {
        assert_eq!(name.parse::<DTypePolicy>()?.to_string(), name);
    }
    assert!("int32".parse::<DTypePolicy>().is_err() && "mixed".parse::<DTypePolicy>().is_err());
    Ok(())
}
