//! Attention gives the numbers of Keras.

use crate::recorded::{check_call, check_layer, filled, numbers};
use ferroflow_nn::{
    AdditiveAttention, AttentionMasks, AttentionOptions, DotProductAttention,
    GroupedQueryAttention, GroupedQueryOptions, Layer, Mode, Module, ScoreMode, Weights,
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
