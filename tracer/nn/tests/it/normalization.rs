//! Normalizations give the numbers of Keras.

use crate::recorded::{check, check_layer, filled, numbers};
use ferroflow_nn::{
    BatchNorm, BatchNormOptions, Dense, GroupNorm, GroupNormOptions, Layer, LayerNorm,
    LayerNormOptions, Mode, Module, Normalization, RmsNorm, SpectralNorm, UnitNorm, Weights,
};
use ferroflow_tracer::{DType, Result, Tensor, function};

#[test]
fn channels_are_normalized_in_groups() {
    let of = |groups: usize| GroupNormOptions { groups, ..GroupNormOptions::default() };
    let weights = &mut Weights::new();
    check_layer("group_norm", GroupNorm::with_options(weights, 6, &of(2)), &[2, 3, 4, 6]);
    let plain = GroupNormOptions { center: false, scale: false, epsilon: 0.01, ..of(3) };
    check_layer("group_norm plain", GroupNorm::with_options(weights, 6, &plain), &[2, 6]);
    let error = GroupNorm::new(weights, 33).unwrap_err().to_string();
    assert!(error.contains("33 channels in 32 groups"), "{error}");
}

#[test]
fn vectors_are_normalized() {
    check_layer("rms_norm", RmsNorm::new(&mut Weights::new(), 3), &[2, 5, 3]);
    check_layer("unit_norm", Ok(UnitNorm::default()), &[2, 5, 3]);
    check_layer("unit_norm axes", Ok(UnitNorm::new([1, 2])), &[2, 5, 3]);
}

#[test]
fn shifts_and_scales_may_be_left_out() -> Result<()> {
    let (w, shape) = (&mut Weights::new(), &[2, 5, 3]);
    let all = LayerNormOptions::default();
    let wide = LayerNormOptions { epsilon: 0.01, ..all };
    check_layer("layer_norm axes", LayerNorm::with_options(w, &[5, 3], &wide), shape);
    let plain = LayerNormOptions { center: false, scale: false, ..all };
    check_layer("layer_norm plain", LayerNorm::with_options(w, &[3], &plain), shape);
    let scaled = LayerNormOptions { center: false, ..all };
    check_layer("layer_norm scaled", LayerNorm::with_options(w, &[3], &scaled), shape);
    let plain = BatchNormOptions { center: false, scale: false, ..BatchNormOptions::default() };
    let layer = BatchNorm::with_options(w, 3, &plain)?;
    assert!(layer.trainable_variables()?.is_empty());
    check("batch_norm plain", &layer.call(&numbers(shape)?, Mode::Training)?);
    Ok(())
}

#[test]
fn zero_and_half_precision_are_normalized() -> Result<()> {
    let zeros = Tensor::from([[0.0f32; 4]; 2]);
    assert_eq!(UnitNorm::default().call(&zeros, Mode::Inference)?.to_vec::<f32>()?, [0.0; 8]);
    let norm = RmsNorm::new(&mut Weights::new(), 2)?;
    let large = Tensor::from([[300.0f32, 400.0]]).cast(DType::F16)?;
    let y = norm.call(&large, Mode::Inference)?;
    assert_eq!(y.dtype(), DType::F16);
    let y = y.cast(DType::F32)?.to_vec::<f32>()?;
    assert!((y[0] - 0.8485).abs() < 1e-3 && (y[1] - 1.1313).abs() < 1e-3, "{y:?}");
    Ok(())
}

#[test]
fn features_are_normalized_by_the_statistics_of_data() -> Result<()> {
    let (x, weights) = (numbers(&[2, 5, 3])?, &mut Weights::new());
    let more = (numbers(&[4, 5, 3])? + 1.0)?;
    let layer = Normalization::new(weights, &[3])?;
    assert_eq!(layer.call(&x, Mode::Inference)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
    layer.adapt([&x, &more])?;
    let variables = layer.variables()?;
    assert!(layer.trainable_variables()?.is_empty());
    check("normalization mean", &variables[0].read()?);
    check("normalization variance", &variables[1].read()?);
    check("normalization", &layer.call(&x, Mode::Inference)?);
    check("normalization invert", &layer.clone().inverted().call(&x, Mode::Inference)?);
    let all = Normalization::new(weights, &[])?;
    all.adapt([&x])?;
    check("normalization all", &all.call(&x, Mode::Inference)?);
    let given = Normalization::of([1.0f32, 2.0, 0.5], [2.0f32, 0.0, 0.25])?;
    check("normalization given", &given.call(&x, Mode::Inference)?);
    assert!(given.adapt([&x]).is_err() && layer.adapt([&numbers(&[2, 4])?]).is_err());
    assert!(layer.adapt(Vec::<Tensor>::new()).is_err());
    assert!(Normalization::of(1.0f32, [1.0f32]).is_err());
    Ok(())
}

#[test]
fn kernels_are_divided_by_their_spectral_norm() -> Result<()> {
    let run = |staged: bool| -> Result<()> {
        let weights = &mut Weights::new();
        let dense = filled(Dense::new(weights, 3, 4))?;
        let kernel = dense.kernel().clone();
        let layer = SpectralNorm::new(weights, dense, &kernel, 3)?;
        let vector_u = layer.variables()?.into_iter().find(|v| !v.is_trainable());
        let vector_u = vector_u.expect("a vector that is not trained");
        vector_u.assign(&numbers(&[1, 4])?)?;
        let call = move |x: Tensor| layer.call(&x, Mode::Training);
        let x = numbers(&[2, 3])?;
        let y = if staged { function(call).call((x,))? } else { call(x)? };
        check("spectral_norm", &y);
        check("spectral_norm kernel", &kernel.read()?);
        check("spectral_norm vector_u", &vector_u.read()?);
        Ok(())
    };
    run(false)?;
    run(true)?;
    let (weights, zero) = (&mut Weights::new(), numbers(&[3, 4])?.zeros_like()?);
    let dense = Dense::new(weights, 3, 4)?;
    let kernel = dense.kernel().clone();
    kernel.assign(&zero)?;
    SpectralNorm::new(weights, dense, &kernel, 1)?.call(&numbers(&[2, 3])?, Mode::Training)?;
    assert_eq!(kernel.read()?.to_vec::<f32>()?, [0.0; 12]);
    Ok(())
}
