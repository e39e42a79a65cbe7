//! Masks that travel from layer to layer, and losses of activities, have the numbers of Keras.

use crate::recorded::{check, check_call, filled, numbers};
use ferroflow_nn::{
    Activation, ActivityRegularization, AdditiveAttention, AttentionOptions, BatchNorm,
    BatchNormOptions, Bidirectional, ConvLstm1D, ConvLstmOptions, Dense, DenseOptions,
    DotProductAttention, Dropout, Embedding, GlobalAveragePooling, GroupedQueryAttention,
    GroupedQueryOptions, Gru, Layer, LayerNorm, LayerValue, Lstm, LstmState, Masking, MergeMode,
    Mode, Module, MultiHeadAttention, RecurrentLayer, Regularizer, Sequential, SimpleRnn, Softmax,
    TimeDistributed, Weights,
    losses::mean_squared_error,
    metrics::{self, Metric},
    optimizers::{Optimizer, Sgd},
    train::Trainer,
};
use ferroflow_tracer::{DType, GradientTape, Result, Tensor, function, spec};

fn mask() -> Result<Tensor> {
    let mask = [true, true, false, true, false, false, true, true, false, false];
    Tensor::from(mask).reshape(&[2, 5])
}

/// Compares what a layer makes of an input with a mask, and the gradients.
#[track_caller]
fn check_masked<L: Layer + Clone + 'static>(
    name: &str,
    layer: Result<L>,
    x: &[usize],
    mask: Tensor,
) {
    let layer = filled(layer).unwrap();
    let weights = layer.trainable_variables().unwrap();
    check_call(&format!("mask {name}"), &weights, &numbers(x).unwrap(), move |x| {
        let x = LayerValue::masked(x.clone(), mask.clone());
        Ok(layer.propagate(&x, Mode::Training)?.tensor)
    });
}

#[test]
fn recurrence_leaves_steps_out() -> Result<()> {
    let (w, x, m) = (&mut Weights::new(), [2, 5, 3], mask);
    check_masked("simple_rnn", SimpleRnn::new(w, 3, 4), &x, m()?);
    check_masked("simple_rnn sequences", SimpleRnn::of_sequences(w, 3, 4), &x, m()?);
    check_masked("lstm", Lstm::new(w, 3, 4), &x, m()?);
    check_masked("lstm sequences", Lstm::of_sequences(w, 3, 4), &x, m()?);
    check_masked("gru", Gru::new(w, 3, 4), &x, m()?);
    check_masked("gru sequences", Gru::of_sequences(w, 3, 4), &x, m()?);
    check_masked("gru backwards", Ok(Gru::of_sequences(w, 3, 4)?.backwards()), &x, m()?);
    let zeros = Lstm::of_sequences(w, 3, 4)?.zero_output_for_mask();
    check_masked("lstm zeros", Ok(zeros), &x, m()?);
    check_masked("lstm zeros last", Ok(Lstm::new(w, 3, 4)?.zero_output_for_mask()), &x, m()?);
    let (a, b) = (Lstm::new(w, 3, 2)?, Lstm::new(w, 3, 2)?);
    check_masked("bidirectional", Bidirectional::new(a, b, MergeMode::Concat), &x, m()?);
    let (a, b) = (Gru::of_sequences(w, 3, 2)?, Gru::of_sequences(w, 3, 2)?);
    check_masked("bidirectional sequences", Bidirectional::new(a, b, MergeMode::Concat), &x, m()?);
    let images = ConvLstm1D::new(w, [3], [2, 2], &ConvLstmOptions::default())?.of_sequences();
    check_masked("conv_lstm1d", Ok(images), &[2, 5, 6, 2], m()?);
    let steps: Vec<i32> = (0..24).map(|n| n % 3).collect();
    let steps = Tensor::from_slice(&[2, 3, 4], &steps)?.greater(0)?;
    check_masked(
        "time_distributed",
        Ok(TimeDistributed::new(Gru::new(w, 2, 2)?)),
        &[2, 3, 4, 2],
        steps,
    );
    Ok(())
}

#[test]
fn an_example_without_steps_keeps_its_state() -> Result<()> {
    let lstm = filled(Lstm::of_sequences(&mut Weights::new(), 3, 4))?;
    let first = mask()?.gather(&Tensor::from([0]))?;
    let none = first.logical_not()?.logical_and(&first)?;
    let mask = ferroflow_tracer::ops::concat_v2(&[&first, &none], &Tensor::from(0))?;
    let output = numbers(&[2, 4])?;
    let state = LstmState { memory: (&output + 0.5)?, output };
    let (all, state) =
        lstm.run_masked(Mode::Inference, &numbers(&[2, 5, 3])?, Some(&mask), Some(state))?;
    check("mask state results", &all);
    check("mask state output", &state.output);
    check("mask state memory", &state.memory);
    Ok(())
}

#[test]
fn sizes_that_are_not_known_have_masks_too() -> Result<()> {
    let layer = filled(Gru::of_sequences(&mut Weights::new(), 3, 4))?;
    let staged = function(move |x: Tensor, mask: Tensor| {
        Ok::<_, ferroflow_tracer::Error>(
            layer.propagate(&LayerValue::masked(x, mask), Mode::Inference)?.tensor,
        )
    });
    let x = spec(DType::F32, [None, None, Some(3)]);
    let staged = staged.with_input_signature([x, spec(DType::Bool, [None, None])]);
    check("mask gru sequences", &staged.call((numbers(&[2, 5, 3])?, mask()?))?);
    Ok(())
}

#[test]
fn pooling_and_normalization_count_what_is_there() -> Result<()> {
    let (w, x) = (&mut Weights::new(), [2, 5, 3]);
    check_masked("pooling", Ok(GlobalAveragePooling::default()), &x, mask()?);
    check_masked("pooling keep", Ok(GlobalAveragePooling { keep_dims: true }), &x, mask()?);
    check_masked("softmax", Ok(Softmax::default()), &[2, 5], mask()?);
    let options = BatchNormOptions { momentum: 0.9, ..BatchNormOptions::default() };
    check_masked("batch_norm", BatchNorm::with_options(w, 3, &options), &x, mask()?);
    let norm = BatchNorm::with_options(w, 3, &options)?;
    norm.propagate(&LayerValue::masked(numbers(&x)?, mask()?), Mode::Training)?;
    check("mask batch_norm mean", &norm.variables()?[2].read()?);
    check("mask batch_norm variance", &norm.variables()?[3].read()?);
    Ok(())
}

#[test]
fn attention_sees_what_counts() -> Result<()> {
    let (w, x) = (&mut Weights::new(), [2, 5, 3]);
    check_masked("heads", MultiHeadAttention::new(w, 3, 2, 3), &x, mask()?);
    let grouped = GroupedQueryAttention::new(w, 3, &GroupedQueryOptions::new(4, 2, 3));
    check_masked("grouped", grouped, &x, mask()?);
    let scaled = AttentionOptions { scale: true, ..AttentionOptions::default() };
    check_masked("dot", DotProductAttention::new(w, &scaled), &x, mask()?);
    check_masked("additive", AdditiveAttention::new(w, 3), &x, mask()?);
    Ok(())
}

/// A model whose words 0 are padding.
fn model() -> Result<Sequential> {
    let w = &mut Weights::new();
    let tanh = DenseOptions { activation: Activation::Tanh, ..DenseOptions::default() };
    let model = Sequential::new()
        .then(Embedding::new(w, 6, 3)?.mask_zero())
        .then(Lstm::of_sequences(w, 3, 4)?)
        .then(Dropout::new(0.5)?)
        .then(LayerNorm::new(w, 4)?)
        .then(Dense::with_options(w, 4, 2, &tanh)?);
    filled(Ok(model))
}

#[test]
fn losses_and_metrics_are_of_the_steps_that_count() -> Result<()> {
    let model = model()?;
    let words = Tensor::from([[3, 5, 0, 2], [1, 0, 0, 0]]);
    let y = model.propagate(&(&words).into(), Mode::Inference)?;
    check("mask model", &y.tensor);
    assert_eq!(model.call(&words, Mode::Inference)?.to_vec::<f32>()?, y.tensor.to_vec::<f32>()?);
    let targets = (numbers(&[2, 4, 2])? + 0.3)?;
    let trainer = |metric: metrics::MeanMetric| -> Result<Trainer> {
        let sgd = Optimizer::new(Sgd::default(), 1.0)?;
        Ok(Trainer::new(model.clone(), sgd, mean_squared_error)?.metric(metric))
    };
    let near = |name: &str, found: f64| check(name, &Tensor::from(found as f32));
    let plain = trainer(metrics::mean_squared_error()?)?;
    let logs = plain.evaluate(&vec![vec![words.clone(), targets.clone()]]).unwrap();
    near("mask loss", logs.get("loss").unwrap());
    near("mask loss", logs.get("mean_squared_error").unwrap());
    let weights = Tensor::from([0.5f32, 2.0]);
    let batch = vec![words.clone(), targets.clone(), weights.clone()];
    near("mask loss weighted", plain.evaluate(&vec![batch]).unwrap().get("loss").unwrap());
    let metric = metrics::mean_squared_error()?;
    let counts = y.mask.as_ref().unwrap().cast(DType::F32)?;
    metric.update_weighted(&targets, &y.tensor, Some(&counts))?;
    let counts = (counts * weights.expand_dims(-1)?)?;
    metric.update_weighted(&(&targets + 1.0)?, &y.tensor, Some(&counts))?;
    check("mask metric", &metric.result()?);
    let variables = model.trainable_variables()?;
    let tape = GradientTape::new();
    let y = model.propagate(&(&words).into(), Mode::Inference)?;
    let w = ferroflow_nn::losses::masked_weights(y.mask.as_ref().unwrap(), None)?;
    let loss =
        ferroflow_nn::losses::weighted_mean(&mean_squared_error(&targets, &y.tensor)?, Some(&w))?;
    // Those of the cell lie deeper than those of the other layers.
    let indices = [0, 4, 5, 6, 7, 1, 2, 3];
    for (index, by) in indices.into_iter().zip(tape.variable_gradients(&loss, &variables)?) {
        check(&format!("mask loss d {index}"), &by.expect("all weights matter").dense()?);
    }
    Ok(())
}

#[test]
fn padding_is_found_by_its_value() -> Result<()> {
    let x = mask()?.expand_dims(-1)?.select(&numbers(&[2, 5, 3])?, -1.0)?;
    let y = Masking { mask_value: -1.0 }.propagate(&x.into(), Mode::Inference)?;
    check("mask masking", &y.tensor);
    check("mask masking mask", &y.mask.unwrap().cast(DType::F32)?);
    Ok(())
}

#[test]
fn activities_have_losses() -> Result<()> {
    let w = &mut Weights::new();
    let both = Regularizer { l1: 0.1, l2: 0.2 };
    let model = Sequential::new()
        .then(Dense::new(w, 3, 3)?)
        .then(ActivityRegularization::new(both))
        .then(Dense::new(w, 3, 2)?)
        .then(ActivityRegularization::new(Regularizer::l2(0.3)));
    let model = filled(Ok(model))?;
    let x = numbers(&[2, 5, 3])?.gather(&Tensor::from(0))?;
    let losses = model.propagate(&(&x).into(), Mode::Training)?.losses;
    check("activity losses", &ferroflow_tracer::ops::pack(&losses.iter().collect::<Vec<_>>())?);
    let y = model.call(&x, Mode::Inference)?;
    let trainer = Trainer::new(model, Optimizer::new(Sgd::default(), 0.1)?, mean_squared_error)?;
    let loss = trainer.evaluate(&vec![vec![x, y]]).unwrap().get("loss").unwrap();
    let sum: f32 = losses.iter().map(|loss| loss.to_scalar::<f32>().unwrap()).sum();
    assert!((loss - f64::from(sum)).abs() < 1e-6, "{loss} {sum}");
    Ok(())
}
