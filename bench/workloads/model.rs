//! Whole models: SavedModels with a signature of `x` and `y`.

use crate::{
    Bench,
    builder::{define, ty},
    inputs::{array, floats, ids},
    measure::{
        Unit::{Microseconds, Milliseconds},
        Workload,
    },
};
use anyhow::{Context as _, Result};
use ferroflow::{
    ir::{Attrs, DType, HostTensor, Shape},
    runtime::{CapturedInput, EagerTensor, ResourceVariable, RunOptions, TraceLevel},
    saved_model::{LoadOptions, load},
};
use std::{collections::BTreeMap, rc::Rc};

/// The input of a model: `batch` examples.
pub(crate) fn input(model: &str, batch: usize) -> Result<Option<EagerTensor>> {
    Ok(Some(match model {
        "mlp" => array(31, &[batch, 784], 0.0, 1.0)?,
        "mobilenetv2" | "resnet50" => array(31, &[batch, 224, 224, 3], 0.0, 1.0)?,
        "bert_base" => ids(31, &[batch, 128], 30522)?,
        "lstm" => array(31, &[batch, 100, 64], 0.0, 1.0)?,
        _ => return Ok(None),
    }))
}

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    if name == "mlp_b1_fn" {
        return direct(bench).map(Some);
    }
    let Some((model, batch)) = name.rsplit_once("_b") else { return Ok(None) };
    let batch: usize = batch.parse().context("a batch size")?;
    let Some(x) = input(model, batch)? else { return Ok(None) };
    let folder = bench.models.join(model);
    let loaded = load(&bench.context, folder, &LoadOptions::default())?;
    let inputs = BTreeMap::from([("x".to_string(), x)]);
    let unit = if model == "mlp" { Microseconds } else { Milliseconds };
    let called = Rc::new((loaded, inputs));
    let profiled = called.clone();
    let body = move || {
        let outputs = called.0.call_signature("serving_default", &called.1)?;
        Ok(outputs.into_values().collect::<Vec<_>>())
    };
    let profile = move || {
        let options = RunOptions { trace_level: TraceLevel::Ops };
        let (loaded, inputs) = &*profiled;
        Ok(loaded.call_signature_with("serving_default", inputs, &options)?.1)
    };
    let budget = if model == "mlp" { 1.0 } else { 2.0 };
    let workload = Workload::new(unit, body).budget(budget);
    Ok(Some(Workload { profile: Some(Box::new(profile)), ..workload }))
}

/// The MLP as a function of this program that captures variables.
fn direct(bench: &Bench) -> Result<Workload<'_>> {
    let sizes = [784usize, 512, 256, 10];
    let mut variables = Vec::new();
    for (layer, pair) in sizes.windows(2).enumerate() {
        let bound = (3.0 / pair[0] as f32).sqrt();
        variables
            .push(ResourceVariable::new("w", floats(100 + layer as u64, pair, -bound, bound)?));
        let bias = HostTensor::zeros(DType::F32, Shape::new([pair[1]])?)?;
        variables.push(ResourceVariable::new("b", bias));
    }
    let mut types = vec![ty(DType::F32, &[1, 784])?];
    types.extend(std::iter::repeat_n(ty(DType::Resource, &[])?, variables.len()));
    let def = define("f", &types, |b, args| {
        let mut h = args[0];
        for layer in 0..3 {
            let mut read = |index: usize| {
                let attrs = Attrs::new().with("dtype", DType::F32);
                b.op_with("ReadVariableOp", attrs, &[args[1 + index]])
            };
            let (weights, bias) = (read(2 * layer)?, read(2 * layer + 1)?);
            let logits = b.op("MatMul", &[h, weights])?;
            let sum = b.op("AddV2", &[logits, bias])?;
            h = b.op(if layer < 2 { "Relu" } else { "Softmax" }, &[sum])?;
        }
        Ok(vec![h])
    })?;
    let captures =
        variables.iter().map(|variable| CapturedInput::Resource(variable.handle())).collect();
    let f = bench.of_library(def, Vec::new(), captures)?;
    let args = [array(31, &[1, 784], 0.0, 1.0)?];
    Ok(Workload::new(Microseconds, move || {
        // The function knows the variables but does not own them.
        std::hint::black_box(&variables);
        Ok(f.call(&args)?)
    }))
}
