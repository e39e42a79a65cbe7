//! Layers compute in the dtype of the floats they are given, and with integers as floats.

use ferroflow_nn::{
    Activation, AdditiveAttention, AlphaDropout, AttentionOptions, AveragePooling2D, Bidirectional,
    CenterCrop, Conv1D, Conv1DTranspose, Conv2DTranspose, ConvLstm1D, ConvLstmOptions, ConvOptions,
    Cropping1D, DepthwiseConv1D, Discretization, DotProductAttention, Elu, Flatten,
    GaussianDropout, GaussianNoise, GlobalAveragePooling, GlobalMaxPooling, GroupNorm,
    GroupNormOptions, GroupedQueryAttention, GroupedQueryOptions, Gru, Interpolation, Layer,
    MaxPooling1D, MergeMode, Mode, Module, Normalization, PRelu, Permute, RandomBrightness,
    RandomContrast, RandomCrop, RandomFlip, RandomRotation, RandomTranslation, RandomZoom, Relu,
    RepeatVector, Rescaling, Reshape, Resizing, RmsNorm, SeparableConv1D, SimpleRnn, Softmax,
    SpatialDropout, TimeDistributed, UnitNorm, UpSampling1D, UpSampling2D, Weights, ZeroPadding1D,
};
use ferroflow_tracer::{DType, GradientTape, Result, Tensor};

type Named = (&'static str, Box<dyn Layer>);

/// Layers of sequences `[2, 4, 4]` with weights.
fn with_weights() -> Result<Vec<Named>> {
    let w = &mut Weights::seeded(7);
    let groups = GroupNormOptions { groups: 2, ..GroupNormOptions::default() };
    let (a, b) = (Gru::new(w, 4, 2)?, SimpleRnn::new(w, 4, 2)?);
    let scaled = AttentionOptions { scale: true, ..AttentionOptions::default() };
    let grouped = GroupedQueryOptions::new(2, 1, 3);
    let conv = Conv1D::new(w, [2], 4, 2, &ConvOptions::default())?;
    let shaped = Reshape::new([4, 4, 1])?;
    let images = ConvLstm1D::new(w, [2], [1, 2], &ConvLstmOptions::default())?;
    let images = ferroflow_nn::Sequential::new().then(shaped).then(images);
    Ok(vec![
        ("group norm", Box::new(GroupNorm::with_options(w, 4, &groups)?)),
        ("rms norm", Box::new(RmsNorm::new(w, 4)?)),
        ("transposed", Box::new(Conv1DTranspose::new(w, [2], 4, 3, &Default::default())?)),
        ("separable", Box::new(SeparableConv1D::new(w, [2], [4, 3], 1, &Default::default())?)),
        ("depthwise", Box::new(DepthwiseConv1D::new(w, [2], 4, 1, &Default::default())?)),
        ("rnn", Box::new(SimpleRnn::new(w, 4, 3)?)),
        ("bidirectional", Box::new(Bidirectional::new(a, b, MergeMode::Concat)?)),
        ("by step", Box::new(TimeDistributed::new(ferroflow_nn::Dense::new(w, 4, 2)?))),
        ("conv", Box::new(conv)),
        ("conv lstm", Box::new(images)),
        ("prelu", Box::new(PRelu::with_initializer(w, &[4, 4], constant(0.25))?)),
        ("dot attention", Box::new(DotProductAttention::new(w, &scaled)?)),
        ("additive attention", Box::new(AdditiveAttention::new(w, 4)?)),
        ("grouped attention", Box::new(GroupedQueryAttention::new(w, 4, &grouped)?)),
    ])
}

fn constant(value: f64) -> ferroflow_nn::initializers::Initializer {
    ferroflow_nn::initializers::Initializer::Constant(value)
}

/// Layers of sequences `[2, 4, 4]` that compute without weights.
fn without_weights() -> Result<Vec<Named>> {
    let mut all: Vec<Named> = vec![
        ("unit norm", Box::new(UnitNorm::default())),
        ("normalization", Box::new(Normalization::of(0.5f32, 4.0f32)?)),
        ("average", Box::new(GlobalAveragePooling::default())),
        ("elu", Box::new(Elu { alpha: 0.5 })),
        ("relu", Box::new(Relu { max: Some(0.5), slope: 0.1, threshold: 0.2 })),
        ("softmax", Box::new(Softmax::new([1, 2]))),
        ("rescaling", Box::new(Rescaling::new(2.0f32, 0.5f32))),
    ];
    let activations = [
        Activation::Celu(0.5),
        Activation::GeluTanh,
        Activation::HardSilu,
        Activation::Mish,
        Activation::Squareplus(2.0),
        Activation::SparsePlus,
        Activation::SparseSigmoid,
        Activation::LogSigmoid,
        Activation::HardTanh,
        Activation::TanhShrink,
        Activation::SoftShrink(0.25),
        Activation::HardShrink(0.25),
        Activation::Threshold { threshold: 0.3, value: -1.0 },
        Activation::Softsign,
        Activation::Exponential,
        Activation::Glu,
        Activation::LogSoftmax,
        Activation::Sparsemax,
    ];
    all.extend(activations.map(|activation| -> Named { ("activation", Box::new(activation)) }));
    Ok(all)
}

/// Layers that pass on elements of sequences `[2, 4, 4]`.
fn passing() -> Result<Vec<Named>> {
    Ok(vec![
        ("maximum", Box::new(GlobalMaxPooling::default())),
        ("pooling", Box::new(MaxPooling1D::new([2]))),
        ("up", Box::new(UpSampling1D::default())),
        ("padding", Box::new(ZeroPadding1D::default())),
        ("cropping", Box::new(Cropping1D::new([[1, 0]]))),
        ("flatten", Box::new(Flatten)),
        ("permute", Box::new(Permute::new([2, 1])?)),
        ("reshape", Box::new(Reshape::new([2, -1])?)),
    ])
}

/// Layers of images `[2, 4, 4, 3]`.
fn of_images() -> Result<Vec<Named>> {
    let w = &mut Weights::seeded(7);
    let up = UpSampling2D::default();
    Ok(vec![
        ("transposed", Box::new(Conv2DTranspose::new(w, [2, 2], 3, 2, &Default::default())?)),
        ("pooling", Box::new(AveragePooling2D::new([2, 2]))),
        ("linear", Box::new(up.interpolated(Interpolation::Bilinear))),
        ("cubic", Box::new(up.interpolated(Interpolation::Bicubic))),
        ("lanczos", Box::new(up.interpolated(Interpolation::Lanczos3))),
        ("center", Box::new(CenterCrop::new(2, 2))),
        ("larger center", Box::new(CenterCrop::new(6, 5))),
    ])
}

/// Multiples of a quarter, which all dtypes hold.
fn quarters(shape: &[usize]) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    Tensor::from_slice(shape, &(0..n).map(|n| (n * 5 % 9) as f32 / 4.0 - 1.0).collect::<Vec<_>>())
}

#[track_caller]
fn near(name: &str, found: &Tensor, expected: &[f32]) -> Result<()> {
    let found = found.cast(DType::F32)?.to_vec::<f32>()?;
    let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.04 * b.abs().max(1.0));
    assert!(near && found.len() == expected.len(), "{name}: {found:?} {expected:?}");
    Ok(())
}

fn check(layers: Vec<Named>, shape: &[usize]) -> Result<()> {
    let x = quarters(shape)?;
    for (name, layer) in layers {
        let expected = layer.call(&x, Mode::Inference)?.to_vec::<f32>()?;
        let weights = layer.trainable_variables()?;
        for dtype in [DType::F16, DType::BF16, DType::F64] {
            let tape = GradientTape::new();
            let y = layer.call(&x.cast(dtype)?, Mode::Inference)?;
            assert_eq!(y.dtype(), dtype, "{name}");
            near(name, &y, &expected)?;
            let loss = y.square()?.sum_all()?;
            let by = tape.variable_gradients(&loss, &weights)?;
            assert!(by.into_iter().flatten().all(|by| by.dtype() == DType::F32), "{name}");
        }
    }
    Ok(())
}

#[test]
fn floats_keep_their_dtype() -> Result<()> {
    check(with_weights()?, &[2, 4, 4])?;
    check(without_weights()?, &[2, 4, 4])?;
    check(passing()?, &[2, 4, 4])?;
    check(of_images()?, &[2, 4, 4, 3])?;
    check(vec![("repeated", Box::new(RepeatVector::new(2)))], &[2, 4])?;
    check(vec![("resized", Box::new(Resizing::new(3, 3)))], &[2, 4, 4, 3])
}

#[test]
fn integers_become_floats() -> Result<()> {
    let layers = with_weights()?.into_iter().chain(without_weights()?);
    let x = (quarters(&[2, 4, 4])?.cast(DType::I32)? + 1)?;
    for (name, layer) in layers {
        let expected = layer.call(&x.cast(DType::F32)?, Mode::Inference)?.to_vec::<f32>()?;
        for dtype in [DType::U8, DType::I32, DType::I64] {
            let y = layer.call(&x.cast(dtype)?, Mode::Inference)?;
            assert_eq!(y.dtype(), DType::F32, "{name}");
            assert_eq!(y.to_vec::<f32>()?, expected, "{name}");
        }
    }
    for (name, layer) in passing()? {
        for dtype in [DType::U8, DType::I32, DType::I64] {
            assert_eq!(layer.call(&x.cast(dtype)?, Mode::Inference)?.dtype(), dtype, "{name}");
        }
    }
    let bins = Discretization::new([0.5])?.call(&x.cast(DType::U8)?, Mode::Inference)?;
    assert_eq!(bins.dtype(), DType::I32);
    Ok(())
}

#[test]
fn noise_is_of_the_dtype_of_the_input() -> Result<()> {
    let layers: Vec<Named> = vec![
        ("spatial", Box::new(SpatialDropout::new(0.5)?)),
        ("noise", Box::new(GaussianNoise::new(0.5)?)),
        ("gaussian", Box::new(GaussianDropout::new(0.5)?)),
        ("alpha", Box::new(AlphaDropout::new(0.5)?)),
        ("flip", Box::new(RandomFlip::default())),
        ("crop", Box::new(RandomCrop::new(2, 2))),
        ("larger crop", Box::new(RandomCrop::new(5, 5))),
        ("brightness", Box::new(RandomBrightness::new([-0.5, 0.5], [-1.0, 1.0])?)),
        ("contrast", Box::new(RandomContrast::new([0.5, 0.5], [-1.0, 1.0])?)),
        ("rotation", Box::new(RandomRotation::new([-0.5, 0.5])?)),
        ("zoom", Box::new(RandomZoom::new([-0.5, 0.5], None)?)),
        ("translation", Box::new(RandomTranslation::new([-0.5, 0.5], [0.0, 0.5])?)),
    ];
    let x = quarters(&[2, 4, 4, 3])?;
    for (name, layer) in layers {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let y = layer.call(&x.cast(dtype)?, Mode::Training);
            assert_eq!(
                y.map_err(|error| format!("{name} {dtype}: {error}")).unwrap().dtype(),
                dtype
            );
        }
    }
    Ok(())
}
