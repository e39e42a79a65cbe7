//! What a call costs besides its work.

use crate::{
    Bench,
    builder::{Builder, define, ty, type_of},
    inputs,
    measure::{Unit::Nanoseconds, Workload},
};
use anyhow::Result;
use ferroflow::{
    ir::{Attrs, DType, HostTensor, Outlet},
    runtime::{Capture, EagerTensor, Variable, execute},
};

/// The chain that many workloads run: four ops in turn.
const CHAIN: [&str; 4] = ["AddV2", "Mul", "Sub", "Maximum"];

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    let args: Vec<EagerTensor> = [0.5f32, 0.25, 0.75].map(EagerTensor::scalar).into();
    let x = args[0].clone();
    let context = &bench.context;
    Ok(Some(match name {
        "eager_add_scalar" | "eager_add_raw" => {
            let pair = [args[0].clone(), args[1].clone()];
            Workload::new(Nanoseconds, move || {
                Ok(execute(context, "AddV2", Attrs::new(), &pair)?.into_iter().collect())
            })
        }
        "eager_matmul8" => {
            let pair =
                [inputs::array(1, &[8, 8], -1.0, 1.0)?, inputs::array(2, &[8, 8], -1.0, 1.0)?];
            Workload::new(Nanoseconds, move || bench.eager("MatMul", Attrs::new(), &pair))
        }
        "eager_chain100" => Workload::new(Nanoseconds, move || {
            let mut t = args[0].clone();
            for step in 0..100 {
                let other = &args[1 + step % 2];
                t = bench.one(CHAIN[step % 4], &[t, other.clone()])?;
            }
            Ok(vec![t])
        })
        .per(100.0),
        "fn_1op" | "concrete_call" | "atomic_call" => {
            let args = [x];
            let f =
                bench.function(&args, |b, args| Ok(vec![b.op("AddV2", &[args[0], args[0]])?]))?;
            Workload::new(Nanoseconds, move || Ok(f.call(&args)?))
        }
        "fn_5args" => {
            let args: Vec<EagerTensor> = [0, 1, 2, 0, 1].map(|index| args[index].clone()).into();
            let f = bench.function(&args, |b, args| {
                let sum = |sum: Result<Outlet>, &arg: &Outlet| b.op("AddV2", &[sum?, arg]);
                Ok(vec![args[1..].iter().fold(Ok(args[0]), sum)?])
            })?;
            Workload::new(Nanoseconds, move || Ok(f.call(&args)?))
        }
        "fn_capture" => {
            let variable = Variable::new("v", HostTensor::scalar(1.5f32));
            let types = [type_of(&x), ty(DType::Resource, &[])?];
            let def = define("f", &types, |b, args| {
                let read = Attrs::new().with("dtype", DType::F32);
                let value = b.op_with("ReadVariableOp", read, &args[1..])?;
                Ok(vec![b.op("AddV2", &[args[0], value])?])
            })?;
            let captures = vec![Capture::Resource(variable.handle())];
            let f = bench.of_library(def, Vec::new(), captures)?;
            let args = [x];
            Workload::new(Nanoseconds, move || {
                // The function knows the variable but does not own it.
                std::hint::black_box(&variable);
                Ok(f.call(&args)?)
            })
        }
        "fn_chain100" | "fn_chain100_call" => {
            let f = bench.function(&args, |b, args| chain(b, args, 100))?;
            let per = if name == "fn_chain100" { 100.0 } else { 1.0 };
            Workload::new(Nanoseconds, move || Ok(f.call(&args)?)).per(per)
        }
        _ => return Ok(None),
    }))
}

fn chain(b: &mut Builder, args: &[Outlet], n_ops: usize) -> Result<Vec<Outlet>> {
    let step = |t: Result<Outlet>, step: usize| b.op(CHAIN[step % 4], &[t?, args[1 + step % 2]]);
    Ok(vec![(0..n_ops).fold(Ok(args[0]), step)?])
}
