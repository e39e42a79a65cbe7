//! Attention gives the numbers of Keras.

use crate::recorded::{check_call, check_layer, filled, numbers};
use ferroflow_nn::{
    Activation, AdditiveAttention, AttentionMasks, AttentionOptions, DotProductAttention,
    EinsumDense, EinsumOptions, GroupedQueryAttention, GroupedQueryOptions, Layer, Mode, Module,
    MultiHeadAttention, MultiHeadOptions, ScoreMode, Weights,
};
use ferroflow_tracer::{DType, Result, Tensor};

const SHAPE: [usize; 3] = [2, 5, 3];

/// A mask of `[batch, steps]`.
fn mask(is_there: impl Fn(i32) -> bool) -> Result<Tensor> {
    let mask: Vec<f32> = (0..10).map(|n| f32::from(is_there(n))).collect();
    Tensor::from_slice(&[2, 5], &mask)?.cast(DType::Bool)
}

#[test]
fn attention_by_dot_products() -> Result<()> {
    let weights = &mut Weights::new();
    let of = |options: &AttentionOptions| DotProductAttention::new(&mut Weights::new(), options);
    let plain = AttentionOptions::default();
    check_layer("attention", of(&plain), &SHAPE);
    let scaled = AttentionOptions { scale: true, ..plain };
    check_layer("attention scale", of(&scaled), &SHAPE);
    let (query, value) = (mask(|n| n % 3 > 0)?, mask(|n| n % 4 != 2)?);
    let concat = AttentionOptions { scale: true, score: ScoreMode::Concat, ..plain };
    for (name, options, causal) in
        [("attention concat", concat, false), ("attention causal", plain, true)]
    {
        let layer = filled(DotProductAttention::new(weights, &options))?;
        let variables = layer.trainable_variables()?;
        let (query, value) = (query.clone(), value.clone());
        check_call(name, &variables, &numbers(&SHAPE)?, move |x| {
            let masks = AttentionMasks { query: Some(&query), value: Some(&value), causal };
            layer.attend([x; 3], &masks, Mode::Training)
        });
    }
    Ok(())
}

#[test]
fn attention_by_sums() -> Result<()> {
    let (query, value) = (mask(|n| n % 3 > 0)?, mask(|n| n % 4 != 2)?);
    let layer = filled(AdditiveAttention::new(&mut Weights::new(), 3))?;
    let variables = layer.trainable_variables()?;
    check_call("attention additive", &variables, &numbers(&SHAPE)?, move |x| {
        let masks = AttentionMasks { query: Some(&query), value: Some(&value), causal: false };
        layer.attend([x; 3], &masks, Mode::Training)
    });
    check_call("attention unscaled", &[], &numbers(&SHAPE)?, |x| {
        let masks = AttentionMasks { causal: true, ..AttentionMasks::default() };
        AdditiveAttention::unscaled().attend([x; 3], &masks, Mode::Training)
    });
    Ok(())
}

#[test]
fn heads_share_keys_and_values() -> Result<()> {
    let weights = &mut Weights::new();
    let options = GroupedQueryOptions::new(4, 2, 3);
    check_layer("attention grouped", GroupedQueryAttention::new(weights, 3, &options), &SHAPE);
    let options = GroupedQueryOptions {
        bias: false,
        gate: true,
        causal: true,
        window: Some(2),
        ..GroupedQueryOptions::new(4, 1, 3)
    };
    check_layer("attention windowed", GroupedQueryAttention::new(weights, 3, &options), &SHAPE);
    let options = GroupedQueryOptions::new(2, 2, 2);
    let layer = filled(GroupedQueryAttention::new(weights, 3, &options))?;
    let mask = mask(|n| n % 4 != 2)?.expand_dims(1)?;
    let variables = layer.trainable_variables()?;
    check_call("attention masked", &variables, &numbers(&SHAPE)?, move |x| {
        layer.attend([x; 3], Some(&mask), Mode::Training)
    });
    let error = GroupedQueryAttention::new(weights, 3, &GroupedQueryOptions::new(4, 3, 2));
    assert!(error.unwrap_err().to_string().contains("4 of queries and 3 of keys"));
    Ok(())
}

#[test]
fn products_by_equation() {
    let w = &mut Weights::new();
    let options = EinsumOptions {
        bias: Some(vec![4, 2]),
        activation: Activation::Tanh,
        ..EinsumOptions::default()
    };
    check_layer("einsum", EinsumDense::new(w, "abc,cde->abde", &[3, 4, 2], &options), &SHAPE);
    let plain = EinsumDense::new(w, "...x,xy->...y", &[3, 4], &EinsumOptions::default());
    check_layer("einsum plain", plain, &SHAPE);
}

#[test]
fn heads_have_values_of_another_size() -> Result<()> {
    let (w, x) = (&mut Weights::seeded(3), numbers(&SHAPE)?);
    let options =
        MultiHeadOptions { value_size: Some(4), bias: false, ..MultiHeadOptions::default() };
    let layer = MultiHeadAttention::with_options(w, 3, [2, 3], &options);
    check_layer("attention heads", layer, &SHAPE);
    let drops = MultiHeadOptions { dropout: 0.5, seed: 3, ..options };
    let layer = MultiHeadAttention::with_options(w, 3, [2, 3], &drops)?;
    let (y, z) = (layer.call(&x, Mode::Training)?, layer.call(&x, Mode::Inference)?);
    assert_ne!(y.to_vec::<f32>()?, z.to_vec::<f32>()?);
    assert_eq!(layer.attend(&x, &x, &x, None)?.to_vec::<f32>()?, z.to_vec::<f32>()?);
    let wrong = MultiHeadOptions { dropout: 1.0, ..drops };
    assert!(MultiHeadAttention::with_options(w, 3, [2, 3], &wrong).is_err());
    Ok(())
}

#[test]
fn weights_are_dropped_in_training_only() -> Result<()> {
    let x = numbers(&SHAPE)?;
    let options = AttentionOptions { dropout: 0.5, seed: 3, ..AttentionOptions::default() };
    let layer = DotProductAttention::new(&mut Weights::new(), &options)?;
    let plain = DotProductAttention::new(&mut Weights::new(), &AttentionOptions::default())?;
    let expected = plain.call(&x, Mode::Training)?.to_vec::<f32>()?;
    assert_eq!(layer.call(&x, Mode::Inference)?.to_vec::<f32>()?, expected);
    assert_ne!(layer.call(&x, Mode::Training)?.to_vec::<f32>()?, expected);
    assert!(AdditiveAttention::unscaled().with_dropout(1.0, 0).is_err());
    Ok(())
}
