//! Integers given to layers: they are computed with as floats, by weights that stay what they are.

use ferroflow_nn::{
    BatchNorm, Conv1D, Conv2D, Conv3D, ConvOptions, Dense, DepthwiseConv2D, Dropout, Embedding,
    Gru, GruCell, Layer, LayerNorm, Lstm, LstmCell, LstmState, Mode, MultiHeadAttention, Padding,
    Weights, global_avg_pool, max_pool,
};
use ferroflow_tracer::{DType, Result, Tensor};

const INTEGERS: [DType; 5] = [DType::U8, DType::I32, DType::I64, DType::I16, DType::Bool];

/// Zeros and ones.
fn bits(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let bits: Vec<f32> = (0..n).map(|index| f32::from(index * index % 7 < 3)).collect();
    Tensor::from_slice(shape, &bits)?.cast(dtype)
}

/// Compares what is made of integers with what is made of the same numbers as floats.
fn check(shape: &[usize], f: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<()> {
    let expected = f(&bits(shape, DType::F32)?)?;
    assert!(expected.to_vec::<f32>()?.iter().any(|&y| y != 0.0));
    for dtype in INTEGERS {
        let found = f(&bits(shape, dtype)?)?;
        assert_eq!(found.dtype(), DType::F32, "{dtype}");
        assert_eq!(found.to_vec::<f32>()?, expected.to_vec::<f32>()?, "{dtype}");
    }
    Ok(())
}

fn check_layer(layer: &dyn Layer, shape: &[usize]) -> Result<()> {
    check(shape, &|x| layer.call(x, Mode::Inference))
}

#[test]
fn layers_compute_with_integers_as_floats() -> Result<()> {
    let weights = &mut Weights::seeded(5);
    let causal = ConvOptions { padding: Padding::Causal, ..ConvOptions::default() };
    check_layer(&Dense::new(weights, 3, 2)?, &[4, 3])?;
    check_layer(&Dense::new(weights, 3, 2)?, &[2, 4, 3])?;
    check_layer(&Conv1D::new(weights, [2], 3, 2, &causal)?, &[1, 4, 3])?;
    check_layer(&Conv2D::new(weights, [2, 2], 3, 2, &ConvOptions::default())?, &[1, 4, 4, 3])?;
    let volume = Conv3D::new(weights, [2, 2, 2], 2, 2, &ConvOptions::default())?;
    check_layer(&volume, &[1, 3, 3, 3, 2])?;
    let depthwise = DepthwiseConv2D::new(weights, [2, 2], 3, 1, &ConvOptions::default())?;
    check_layer(&depthwise, &[1, 4, 4, 3])?;
    check_layer(&LayerNorm::new(weights, 3)?, &[4, 3])?;
    check_layer(&Lstm::new(weights, 3, 2)?, &[2, 4, 3])?;
    check_layer(&Gru::new(weights, 3, 2)?, &[2, 4, 3])?;
    check_layer(&MultiHeadAttention::new(weights, 3, 1, 2)?.causal(), &[2, 4, 3])?;
    for mode in [Mode::Inference, Mode::Training] {
        check(&[4, 3], &|x| BatchNorm::new(&mut Weights::seeded(5), 3)?.call(x, mode))?;
    }
    Ok(())
}

#[test]
fn cells_and_attention_to_others_do_too() -> Result<()> {
    let weights = &mut Weights::seeded(6);
    let state = Tensor::from([[0.5f32, -0.25]; 4]);
    let (lstm, gru) = (LstmCell::new(weights, 3, 2)?, GruCell::new(weights, 3, 2)?);
    let before = LstmState { output: state.clone(), memory: state.clone() };
    check(&[4, 3], &|x| Ok(lstm.step(x, &before)?.memory))?;
    check(&[4, 3], &|x| gru.step(x, &state))?;
    let attention = MultiHeadAttention::new(weights, 3, 2, 2)?;
    let key = bits(&[2, 5, 3], DType::F32)?;
    check(&[2, 4, 3], &|x| attention.attend(x, &key, &key, None))?;
    check(&[2, 4, 3], &|x| attention.attend(&key, x, &x.cast(DType::F32)?, None))
}

#[test]
fn integers_take_the_dtype_of_the_weights() -> Result<()> {
    let dense = Dense::new(&mut Weights::seeded(5).with_dtype(DType::F64), 3, 2)?;
    assert_eq!(dense.call(&bits(&[1, 3], DType::U8)?, Mode::Inference)?.dtype(), DType::F64);
    Ok(())
}

#[test]
fn what_only_picks_or_passes_on_keeps_integers() -> Result<()> {
    let image = bits(&[1, 4, 4, 2], DType::I32)?;
    assert_eq!(max_pool(&image, [2, 2])?.dtype(), DType::I32);
    assert_eq!(Dropout::new(0.5)?.call(&image, Mode::Inference)?.dtype(), DType::I32);
    assert!(Dropout::new(0.5)?.call(&image, Mode::Training).is_err());
    check(&[1, 4, 4, 2], &global_avg_pool)?;
    let embedding = Embedding::new(&mut Weights::seeded(5), 2, 3)?;
    check(&[2, 4], &|x| embedding.call(x, Mode::Inference))
}
