//! Cost of a call besides its work, as user code makes it.

use crate::{
    inputs,
    measure::{CallOutput, Unit::Milliseconds, Unit::Nanoseconds, Workload},
};
use anyhow::Result;
use ferroflow::{GradientTape, Tensor, Variable, function, ops, tracer, tracer::Function};

type Unary = Function<(Tensor,), Tensor>;

pub(crate) fn find<'a>(name: &str) -> Result<Option<Workload<'a>>> {
    let [x, y, z] = [0.5f32, 0.25, 0.75].map(Tensor::from);
    let workload = match name {
        "eager_add_scalar" => Workload::new(Nanoseconds, move || outcome(&x + &y)),
        "eager_add_raw" => Workload::new(Nanoseconds, move || outcome(ops::add_v2(&x, &y))),
        "eager_matmul8" => {
            let [a, b]: [Tensor; 2] = [
                inputs::array(1, &[8, 8], -1.0, 1.0)?.into(),
                inputs::array(2, &[8, 8], -1.0, 1.0)?.into(),
            ];
            Workload::new(Nanoseconds, move || outcome(ops::matmul(&a, &b)))
        }
        "eager_chain100" => {
            Workload::new(Nanoseconds, move || outcome(chain(&x, &y, &z, 100))).per(100.0)
        }
        "fn_1op" => {
            let f: Unary = function(|x: Tensor| &x + &x);
            Workload::new(Nanoseconds, move || outcome(f.call((&x,))))
        }
        "fn_5args" => {
            let f = function(|a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor| {
                &(&(&(&a + &b)? + &c)? + &d)? + &e
            });
            Workload::new(Nanoseconds, move || outcome(f.call((&x, &y, &z, &x, &y))))
        }
        "fn_capture" => {
            let variable = Variable::new(1.5f32)?;
            // The function knows the variable but does not own it.
            let captured = variable.clone();
            let f: Unary = function(move |x: Tensor| &x + &captured);
            Workload::new(Nanoseconds, move || {
                std::hint::black_box(&variable);
                outcome(f.call((&x,)))
            })
        }
        "fn_chain100" | "fn_chain100_call" => {
            let f = function(|x: Tensor, y: Tensor, z: Tensor| chain(&x, &y, &z, 100));
            let per = if name == "fn_chain100" { 100.0 } else { 1.0 };
            Workload::new(Nanoseconds, move || outcome(f.call((&x, &y, &z)))).per(per)
        }
        "concrete_call" => {
            let f: Unary = function(|x: Tensor| &x + &x);
            let concrete = f.concrete((&x,))?;
            let args = [x];
            Workload::new(Nanoseconds, move || {
                outcome(concrete.call_flat(&args).map(|mut results| results.remove(0)))
            })
        }
        "atomic_call" => {
            let f: Unary = function(|x: Tensor| &x + &x);
            let atomic = f.concrete((&x,))?.inference_fn();
            let args = [x.eager()?.clone()];
            Workload::new(Nanoseconds, move || Ok(atomic.call(&args)?))
        }
        "cache_lookup100" => {
            let f = function(|x: Tensor, number: i64| &x + number as f32);
            let in_turn = move || {
                for number in 0..99 {
                    f.call((&x, number))?;
                }
                f.call((&x, 99))
            };
            Workload::new(Nanoseconds, move || outcome(in_turn())).per(100.0)
        }
        "trace_1000ops" => Workload::new(Milliseconds, move || {
            let f = function(|x: Tensor, y: Tensor, z: Tensor| chain(&x, &y, &z, 1000));
            f.concrete((&x, &y, &z))?;
            Ok(CallOutput::new())
        })
        .unchecked(),
        "trace_first_call_1000ops" => Workload::new(Milliseconds, move || {
            let f = function(|x: Tensor, y: Tensor, z: Tensor| chain(&x, &y, &z, 1000));
            outcome(f.call((&x, &y, &z)))
        }),
        "tape_10ops" => Workload::new(Nanoseconds, move || {
            let tape = GradientTape::new();
            tape.watch(&x)?;
            let y = chain(&x, &y, &z, 10)?;
            let gradient = tape.gradient(&y, &x)?.expect("the chain begins with x");
            outcome(Ok(gradient))
        }),
        _ => return Ok(None),
    };
    Ok(Some(workload))
}

fn outcome(result: tracer::Result<Tensor>) -> Result<CallOutput> {
    Ok(CallOutput::from_buf([result?.into_eager()?]))
}

/// The chain that many workloads run: four ops in turn.
fn chain(x: &Tensor, y: &Tensor, z: &Tensor, n_ops: usize) -> tracer::Result<Tensor> {
    let mut t = x.clone();
    for step in 0..n_ops {
        t = match step % 4 {
            0 => &t + y,
            1 => &t * z,
            2 => &t - y,
            _ => t.maximum(z),
        }?;
    }
    Ok(t)
}
