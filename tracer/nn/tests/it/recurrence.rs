//! Recurrent layers give the numbers of Keras.

use crate::recorded::{check, check_layer, filled, numbers};
use ferroflow_nn::{
    Activation, Bidirectional, Conv1D, ConvLstm1D, ConvLstm2D, ConvLstmOptions, ConvOptions, Gru,
    Layer, Lstm, MergeMode, Mode, Module, Padding, RecurrentLayer, SimpleRnn, TimeDistributed,
    Weights, initializers::Initializer,
};
use ferroflow_tracer::{DType, Result, Tensor, function, spec};

#[test]
fn simple_recurrence() -> Result<()> {
    let weights = &mut Weights::new();
    check_layer("simple_rnn", SimpleRnn::new(weights, 3, 4), &[2, 5, 3]);
    let layer = SimpleRnn::of_sequences(weights, 3, 4)?.with_activation(Activation::Relu);
    check_layer("simple_rnn sequences", Ok(layer.backwards()), &[2, 5, 3]);
    let layer = filled(SimpleRnn::new(weights, 3, 4))?;
    let x = numbers(&[2, 1, 3])?;
    let zeros = Tensor::from([[0.0f32; 4]; 2]);
    let step = layer.cell().step(&x.reshape(&[2, 3])?, &zeros)?;
    assert_eq!(step.to_vec::<f32>()?, layer.call(&x, Mode::Inference)?.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn sequences_backwards() -> Result<()> {
    let weights = &mut Weights::new();
    let lstm = Lstm::of_sequences(weights, 3, 4)?.backwards();
    check_layer("lstm backwards", Ok(lstm), &[2, 5, 3]);
    check_layer("gru backwards", Ok(Gru::new(weights, 3, 4)?.backwards()), &[2, 5, 3]);
    Ok(())
}

#[test]
fn both_directions_are_merged() -> Result<()> {
    let weights = &mut Weights::new();
    let (a, b) = (Lstm::new(weights, 3, 2)?, Lstm::new(weights, 3, 2)?);
    check_layer("bidirectional", Bidirectional::new(a, b, MergeMode::Concat), &[2, 5, 3]);
    let modes = [MergeMode::Concat, MergeMode::Sum, MergeMode::Multiply, MergeMode::Average];
    for (mode, name) in modes.into_iter().zip(["concat", "sum", "mul", "ave"]) {
        let (a, b) = (Gru::of_sequences(weights, 3, 2)?, Gru::of_sequences(weights, 3, 2)?);
        let layer = Bidirectional::new(a, b, mode);
        check_layer(&format!("bidirectional {name}"), layer, &[2, 5, 3]);
    }
    let (a, b) = (Gru::new(weights, 3, 2)?, Lstm::of_sequences(weights, 3, 2)?);
    let error = Bidirectional::new(a, b, MergeMode::Sum).unwrap_err().to_string();
    assert!(error.contains("one of each"), "{error}");
    Ok(())
}

#[test]
fn a_run_continues_in_both_directions() -> Result<()> {
    let weights = &mut Weights::seeded(4);
    let (a, b) = (Gru::new(weights, 3, 2)?, Lstm::new(weights, 3, 2)?);
    let layer = Bidirectional::new(a, b, MergeMode::Concat)?;
    let x = numbers(&[2, 4, 3])?;
    let (all, states) = layer.run_in(Mode::Inference, &x, None)?;
    assert_eq!(all.to_vec::<f32>()?, layer.call(&x, Mode::Inference)?.to_vec::<f32>()?);
    let (more, _) = layer.run_in(Mode::Inference, &x, Some(states))?;
    assert_ne!(all.to_vec::<f32>()?, more.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn the_same_elements_are_dropped_in_all_steps() -> Result<()> {
    // Each step adds the inputs that are kept to the part of the state that is kept.
    let layer = SimpleRnn::of_sequences(&mut Weights::new(), 8, 8)?;
    let (kernel, recurrent) = (&layer.variables()?[0], &layer.variables()?[1]);
    let identity = Initializer::Identity { gain: 1.0 }.make(DType::F32, &[8, 8])?;
    kernel.assign(&identity)?;
    recurrent.assign(&identity)?;
    let x = Tensor::from_slice(&[4, 3, 8], &[1.0f32; 96])?;
    let layer = layer.with_activation(Activation::Linear);
    let expected = layer.call(&x, Mode::Inference)?.to_vec::<f32>()?;
    assert_eq!(layer.call(&x, Mode::Training)?.to_vec::<f32>()?, expected);
    let layer = layer.with_dropout(0.5, 0.5, 3)?;
    assert_eq!(layer.call(&x, Mode::Inference)?.to_vec::<f32>()?, expected);
    let staged = function({
        let layer = layer.clone();
        move |x: Tensor| layer.call(&x, Mode::Training)
    });
    for y in [layer.call(&x, Mode::Training)?, staged.call((&x,))?] {
        let y = y.transpose(&[0, 2, 1])?.to_vec::<f32>()?;
        let allowed = [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [2.0, 6.0, 14.0]];
        let n = |steps: [f32; 3]| y.chunks(3).filter(|found| **found == steps).count();
        let counts = allowed.map(n);
        assert_eq!(counts.iter().sum::<usize>(), 32, "{y:?}");
        assert!(counts.iter().all(|&n| n > 0), "{counts:?}");
    }
    let rates = [(1.0, 0.0), (0.0, -0.5)];
    assert!(rates.iter().all(|&(x, h)| layer.clone().with_dropout(x, h, 0).is_err()));
    Ok(())
}

#[test]
fn gates_drop_in_training_only() -> Result<()> {
    let (w, x) = (&mut Weights::seeded(3), numbers(&[2, 4, 3])?);
    let (lstm, gru) = (Lstm::new(w, 3, 8)?, Gru::new(w, 3, 8)?);
    let drops: [(Box<dyn Layer>, Box<dyn Layer>); 2] = [
        (Box::new(lstm.clone()), Box::new(lstm.with_dropout(0.0, 0.5, 3)?)),
        (Box::new(gru.clone()), Box::new(gru.with_dropout(0.5, 0.0, 3)?)),
    ];
    for (plain, drops) in drops {
        let of = |layer: &dyn Layer, mode| layer.call(&x, mode)?.to_vec::<f32>();
        assert_eq!(of(&*plain, Mode::Training)?, of(&*drops, Mode::Inference)?);
        assert_ne!(of(&*plain, Mode::Training)?, of(&*drops, Mode::Training)?);
    }
    Ok(())
}

#[test]
fn layers_at_each_step() -> Result<()> {
    let weights = &mut Weights::new();
    let conv = Conv1D::new(weights, [2], 2, 2, &ConvOptions::default())?;
    let layer = filled(Ok(TimeDistributed::new(conv)))?;
    check_layer("time_distributed", Ok(layer.clone()), &[2, 3, 4, 2]);
    let staged = function(move |x: Tensor| layer.call(&x, Mode::Inference));
    let any = spec(DType::F32, [None, None, Some(4), Some(2)]);
    let staged = staged.with_input_signature([any]);
    check("time_distributed", &staged.call((numbers(&[2, 3, 4, 2])?,))?);
    Ok(())
}

#[test]
fn images_are_remembered() -> Result<()> {
    let weights = &mut Weights::new();
    let options = ConvLstmOptions { strides: [2, 2], padding: Padding::Same, ..Default::default() };
    let layer = ConvLstm2D::new(weights, [2, 2], [2, 2], &options);
    check_layer("conv_lstm2d", layer, &[2, 3, 4, 5, 2]);
    let layer = ConvLstm1D::new(weights, [3], [2, 2], &ConvLstmOptions::default())?;
    let layer = layer.of_sequences().backwards();
    check_layer("conv_lstm1d", Ok(layer.clone()), &[2, 3, 6, 2]);
    let layer = filled(Ok(layer))?;
    let staged = function(move |x: Tensor| layer.call(&x, Mode::Inference));
    let any = spec(DType::F32, [None, None, None, Some(2)]);
    let staged = staged.with_input_signature([any]);
    check("conv_lstm1d", &staged.call((numbers(&[2, 3, 6, 2])?,))?);
    Ok(())
}
