//! Activations, as functions and layers, give the numbers of Keras.

use crate::recorded::{check, check_call, check_layer, numbers};
use ferroflow_nn::{
    Activation, Elu, Layer, Mode, PRelu, Regularizer, Relu, Sequential, Softmax, Weights,
};
use ferroflow_tracer::{DType, GradientTape, Result, Tensor};

#[track_caller]
fn check_one(name: &str, layer: impl Layer + Clone + 'static) {
    let x = (numbers(&[2, 3, 4]).unwrap() * 4.0).unwrap();
    check_call(name, &[], &x, move |x| layer.call(x, Mode::Inference));
}

#[test]
fn activations_are_those_of_keras() {
    for (name, activation) in [
        ("celu", Activation::Celu(1.5)),
        ("gelu_tanh", Activation::GeluTanh),
        ("hard_silu", Activation::HardSilu),
        ("mish", Activation::Mish),
        ("squareplus", Activation::Squareplus(3.0)),
        ("sparse_plus", Activation::SparsePlus),
        ("hard_sigmoid", Activation::HardSigmoid),
        ("sparse_sigmoid", Activation::SparseSigmoid),
        ("log_sigmoid", Activation::LogSigmoid),
        ("hard_tanh", Activation::HardTanh),
        ("tanh_shrink", Activation::TanhShrink),
        ("soft_shrink", Activation::SoftShrink(0.7)),
        ("hard_shrink", Activation::HardShrink(0.7)),
        ("threshold", Activation::Threshold { threshold: 0.3, value: -2.0 }),
        ("softsign", Activation::Softsign),
        ("exponential", Activation::Exponential),
        ("glu", Activation::Glu),
        ("softmax", Activation::Softmax),
        ("log_softmax", Activation::LogSoftmax),
    ] {
        check_one(name, activation);
    }
}

/// Keras 3.15 adds up cumulative sums in place of the last: where two elements are above the
/// threshold its results do not add up to 1.
#[test]
fn sparsemax_is_the_nearest_distribution() -> Result<()> {
    let x = Tensor::from([[1.8f32, -1.4, 0.0, 1.4], [0.2, 0.3, 0.1, 0.25], [5.0, 0.0, 0.0, 0.0]]);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = Activation::Sparsemax.apply(&x)?;
    let expected = [0.7, 0.0, 0.0, 0.3, 0.2375, 0.3375, 0.1375, 0.2875, 1.0, 0.0, 0.0, 0.0];
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near(&y.to_vec::<f32>()?, &expected), "{y}");
    let loss = (y * Tensor::from([1.0f32, 2.0, 3.0, 4.0]))?.sum_all()?;
    let by = tape.gradient(&loss, &x)?.expect("the input matters");
    let expected = [-1.5, 0.0, 0.0, 1.5, -1.5, -0.5, 0.5, 1.5, 0.0, 0.0, 0.0, 0.0];
    assert!(near(&by.to_vec::<f32>()?, &expected), "{by}");
    Ok(())
}

#[test]
fn activations_with_parameters() -> Result<()> {
    check_one("layer relu", Relu { max: Some(1.5), slope: 0.1, threshold: 0.3 });
    check_one("layer relu6", Relu { max: Some(6.0), ..Relu::default() });
    check_one("layer relu slope", Relu { slope: 0.2, ..Relu::default() });
    check_one("layer elu", Elu { alpha: 0.5 });
    check_one("layer softmax", Softmax::new([1, 2]));
    check_one("layer softmax axis", Softmax::new([1]));
    let x = numbers(&[2, 3, 4])?;
    check("layer softmax masked", &Softmax::default().masked(&x, &x.greater(0.0)?)?);
    check_layer("prelu", PRelu::new(&mut Weights::new(), &[1, 4]), &[2, 3, 4]);
    Ok(())
}

#[test]
fn activations_are_layers_of_integers_and_half_precision() -> Result<()> {
    let network = Sequential::new().then(Activation::HardSigmoid).then(Activation::Mish);
    let y = network.call(&Tensor::from([1, -9]), Mode::Inference)?;
    assert_eq!(y.dtype(), DType::F32);
    let half = network.call(&Tensor::from([1.0f32, -9.0]).cast(DType::F16)?, Mode::Inference)?;
    assert_eq!(half.dtype(), DType::F16);
    let (half, y) = (half.cast(DType::F32)?.to_vec::<f32>()?, y.to_vec::<f32>()?);
    assert!(half.iter().zip(&y).all(|(a, b)| (a - b).abs() < 1e-3), "{half:?} {y:?}");
    Ok(())
}

#[test]
fn activities_are_kept_small() -> Result<()> {
    let by = Regularizer { l1: 0.1, l2: 0.2 };
    check("activity", &by.of_activity(&numbers(&[2, 3, 4])?)?);
    Ok(())
}
