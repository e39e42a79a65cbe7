//! Loops and branches.

use crate::{
    Bench,
    builder::{Builder, define, ty},
    measure::{Unit::Nanoseconds, Workload},
};
use anyhow::Result;
use ferroflow::{
    ir::{AttrValue, Attrs, DType, FunctionDef, HostTensor, NameAttrList, Outlet, ValueType},
    runtime::{CallableFunction, EagerTensor},
};

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    let (int, float) = (ty(DType::I32, &[])?, ty(DType::F32, &[])?);
    Ok(Some(match name {
        "while10k" => {
            let state = [int.clone(), int];
            let body = define("body", &state, |b, args| Ok(vec![next(b, args[0])?, args[1]]))?;
            let f = loop_over(bench, &state, body, &[], 0)?;
            let args = [EagerTensor::scalar(10_000i32)];
            Workload::new(Nanoseconds, move || Ok(f.call(&args)?)).per(10_000.0)
        }
        "cond1000" => {
            let state = [int.clone(), int, float.clone()];
            let branch = |name: &str, op: &str, by: f32| {
                define(name, std::slice::from_ref(&float), |b, args| {
                    let by = b.number(by)?;
                    Ok(vec![b.op(op, &[args[0], by])?])
                })
            };
            let (even, odd) = (branch("even", "AddV2", 1.0)?, branch("odd", "Mul", 0.5)?);
            let body = define("body", &state, |b, args| {
                let two = b.constant(HostTensor::scalar(2i32))?;
                let zero = b.constant(HostTensor::scalar(0i32))?;
                let rest = b.op("FloorMod", &[args[0], two])?;
                let is_even = b.op("Equal", &[rest, zero])?;
                let attrs = Attrs::new()
                    .with("Tin", vec![DType::F32])
                    .with("Tout", vec![DType::F32])
                    .with("then_branch", AttrValue::Func(NameAttrList::new("even")))
                    .with("else_branch", AttrValue::Func(NameAttrList::new("odd")));
                let x = b.op_with("StatelessIf", attrs, &[is_even, args[2]])?;
                Ok(vec![next(b, args[0])?, args[1], x])
            })?;
            let f = loop_over(bench, &state, body, &[even, odd], 2)?;
            let args = [EagerTensor::scalar(1000i32), EagerTensor::scalar(1.0f32)];
            Workload::new(Nanoseconds, move || Ok(f.call(&args)?)).per(1000.0)
        }
        _ => return Ok(None),
    }))
}

fn next(b: &mut Builder, i: Outlet) -> Result<Outlet> {
    let one = b.constant(HostTensor::scalar(1i32))?;
    b.op("AddV2", &[i, one])
}

/// A function of all state but `i`, which starts at 0: loops while the first is less than the
/// second, and gives variable `result`.
fn loop_over(
    bench: &Bench,
    state: &[ValueType],
    body: FunctionDef,
    others: &[FunctionDef],
    result: usize,
) -> Result<CallableFunction> {
    let condition =
        define("condition", state, |b, args| Ok(vec![b.op("Less", &[args[0], args[1]])?]))?;
    let dtypes: Vec<DType> = state.iter().map(|ty| ty.dtype).collect();
    let f = define("f", &state[1..], |b, args| {
        let zero = b.constant(HostTensor::scalar(0i32))?;
        let attrs = Attrs::new()
            .with("T", dtypes)
            .with("cond", AttrValue::Func(NameAttrList::new("condition")))
            .with("body", AttrValue::Func(NameAttrList::new("body")));
        let inputs: Vec<Outlet> = std::iter::once(zero).chain(args.iter().copied()).collect();
        Ok(vec![b.ops_with("StatelessWhile", attrs, &inputs)?[result]])
    })?;
    let mut functions = vec![condition, body];
    functions.extend(others.iter().cloned());
    bench.of_library(f, functions, Vec::new())
}
