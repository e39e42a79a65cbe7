//! Budgets of calls: deadlines, cancellation, rounds of loops.

use crate::support::*;
use ferroflow_ir::{Attrs, Code, DType, FunctionDef, HostTensor, Limits, Shape, ValueType};
use ferroflow_runtime::{
    CallOptions, CallableFunction, Cancellation, Context, ContextOptions, EagerTensor, Error,
    Interruption, execute, variable::ResourceVariable,
};
use std::{
    thread,
    time::{Duration, Instant},
};

fn int() -> ValueType {
    ValueType::new(DType::I64, Shape::scalar())
}

/// Counts to its argument.
fn counting(context: &Context) -> CallableFunction {
    let args = [("i", int()), ("n", int())];
    let below = function("below", &args, |b, args| b.call("Less", "less", &args[..2]));
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i64))?;
        Ok(vec![b.call("AddV2", "next", &[args[0], one])?[0], args[1]])
    });
    let count = function("count", &[("n", int())], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i64))?;
        let attrs = Attrs::new()
            .with("T", vec![DType::I64; 2])
            .with("cond", func("below"))
            .with("body", func("body"));
        Ok(b.call_with("While", "loop", attrs, &[zero, args[0]])?[..1].to_vec())
    });
    concrete(context, count, vec![below, body], Vec::new())
}

#[track_caller]
fn interrupted(result: Result<Vec<EagerTensor>, Error>, expected: Interruption) -> Error {
    let error = result.expect_err("an interruption");
    let mut cause = &error;
    while let Error::AtNode { source, .. } = cause {
        cause = source;
    }
    assert!(matches!(cause, Error::Interrupted(found) if *found == expected), "{error}");
    error
}

/// The function goes on as if nothing had happened.
#[track_caller]
fn counts(count: &CallableFunction) {
    let five = count.call(&[EagerTensor::scalar(5i64)]).unwrap();
    assert_eq!(five[0].host().unwrap().as_scalar::<i64>().unwrap(), 5);
    let options = CallOptions { loop_rounds: Some(5), ..CallOptions::default() };
    let five = count.call_within(&options, &[&EagerTensor::scalar(5i64)]).unwrap();
    assert_eq!(five[0].host().unwrap().as_scalar::<i64>().unwrap(), 5);
}

#[test]
fn a_call_ends_at_its_deadline() {
    let count = counting(&context());
    let deadline = Instant::now() + Duration::from_millis(30);
    let options = CallOptions { deadline: Some(deadline), ..CallOptions::default() };
    let n = EagerTensor::scalar(1i64 << 62);
    let error = interrupted(count.call_within(&options, &[&n]), Interruption::Deadline);
    assert_eq!(error.code(), Code::DeadlineExceeded);
    // A deadline that has passed leaves no time to begin.
    interrupted(count.call_within(&options, &[&n]), Interruption::Deadline);
    counts(&count);
}

#[test]
fn another_thread_cancels_a_call() {
    let count = counting(&context());
    let cancellation = Cancellation::new();
    let options =
        CallOptions { cancellation: Some(cancellation.clone()), ..CallOptions::default() };
    let n = EagerTensor::scalar(1i64 << 62);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            cancellation.cancel();
        });
        let error = interrupted(count.call_within(&options, &[&n]), Interruption::Cancelled);
        assert_eq!(error.code(), Code::Cancelled);
    });
    counts(&count);
}

#[test]
fn loops_go_no_more_rounds_than_they_may() {
    let count = counting(&context());
    let options = CallOptions { loop_rounds: Some(100), ..CallOptions::default() };
    let call = |n: i64| count.call_within(&options, &[&EagerTensor::scalar(n)]);
    assert_eq!(call(100).unwrap()[0].host().unwrap().as_scalar::<i64>().unwrap(), 100);
    let error = interrupted(call(101), Interruption::LoopRounds);
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(error.to_string().contains("node `"), "{error}");
    counts(&count);
}

/// Takes a number out of a queue.
fn taking() -> FunctionDef {
    let handle = ValueType::new(DType::Resource, Shape::scalar());
    function("take", &[("queue", handle)], |b, args| {
        let attrs = Attrs::new().with("component_types", vec![DType::I64]);
        b.call_with("QueueDequeueV2", "take", attrs, args)
    })
}

#[test]
fn a_call_that_waits_for_others_ends_too() {
    let context = context();
    let attrs = Attrs::new().with("component_types", vec![DType::I64]);
    let queue = execute(&context, "FIFOQueueV2", attrs, &[]).unwrap().remove(0);
    let take = CallableFunction::new(&context, taking()).unwrap();
    let soon = || CallOptions {
        deadline: Some(Instant::now() + Duration::from_millis(30)),
        ..CallOptions::default()
    };
    interrupted(take.call_within(&soon(), &[&queue]), Interruption::Deadline);
    let seven = [queue.clone(), EagerTensor::scalar(7i64)];
    execute(&context, "QueueEnqueueV2", Attrs::new(), &seven).unwrap();
    let found = take.call_within(&soon(), &[&queue]).unwrap();
    assert_eq!(found[0].host().unwrap().as_scalar::<i64>().unwrap(), 7);
}

fn within_memory(bytes: usize) -> CallOptions {
    CallOptions { memory: Some(bytes), ..CallOptions::default() }
}

#[track_caller]
fn exhausted<R: std::fmt::Debug>(result: Result<R, Error>, what: &str) {
    let error = result.expect_err("an error of the budget");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    assert!(error.to_string().contains(what), "{error}");
}

/// Fills a tensor with so many zeros and adds one to each.
fn filling(n: i32) -> FunctionDef {
    function("fill", &[("x", ValueType::new(DType::F32, Shape::scalar()))], |b, args| {
        let dims = b.constant("dims", HostTensor::vector(&[n]).unwrap())?;
        let zeros = b.call("Fill", "zeros", &[dims, args[0]])?[0];
        b.call("Exp", "exp", &[zeros])
    })
}

#[test]
fn arenas_tensors_and_workspaces_count() {
    let context = context();
    let fill = CallableFunction::new(&context, filling(1 << 20)).unwrap();
    let x = EagerTensor::scalar(0f32);
    let call = |bytes: usize| fill.call_within(&within_memory(bytes), &[&x]);
    exhausted(call(1 << 20), "the memory of the call needs");
    let estimate = fill.memory_estimate(&[ValueType::new(DType::F32, Shape::scalar())]).unwrap();
    assert!(estimate.total() >= 4 << 20 && estimate.n_unknown == 0, "{estimate:?}");
    assert!(call(estimate.total() + (1 << 16)).is_ok(), "{estimate:?}");
    // The arena stays with the function, and counts in each call.
    exhausted(call(1 << 20), "the memory of the call needs");
    assert!(fill.call(&[x]).is_ok());
}

/// Packed operands of a matmul count, and a budget that they exceed is a typed error as any other.
#[test]
fn packing_ends_by_the_budget() {
    for (dtype, n) in [(DType::F32, 512), (DType::BF16, 256), (DType::F64, 128)] {
        let context = context();
        let matrix = ValueType::new(dtype, Shape::new([n, n]).unwrap());
        let square = function("square", &[("x", matrix)], |b, args| {
            b.call("MatMul", "matmul", &[args[0], args[0]])
        });
        let square = CallableFunction::new(&context, square).unwrap();
        let x = EagerTensor::from(HostTensor::zeros(dtype, Shape::new([n, n]).unwrap()).unwrap());
        let mut within = 0;
        for budget in (12..60).map(|half| (1usize << (half / 2)) * (2 + half % 2)) {
            match square.call_within(&within_memory(budget), &[&x]) {
                Ok(_) => within += 1,
                Err(error) => {
                    assert_eq!(error.code(), Code::ResourceExhausted, "{budget}: {error}")
                }
            }
        }
        assert!(within > 0, "some budgets are enough");
        assert!(square.call(&[x]).is_ok(), "the context stays usable");
    }
}

#[test]
fn a_context_bounds_what_all_its_calls_keep() {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
    let context = Context::with_options(ContextOptions { limits, ..ContextOptions::default() });
    let n = EagerTensor::from(HostTensor::vector(&[1i32 << 14]).unwrap());
    let zeros = || {
        let inputs = [n.clone(), EagerTensor::scalar(0f32)];
        execute(&context, "Fill", Attrs::new(), &inputs).map(|mut results| results.remove(0))
    };
    let mut kept: Vec<EagerTensor> = (0..15).map(|_| zeros().unwrap()).collect();
    assert!(context.memory_in_use().unwrap() >= 15 << 16);
    exhausted(
        zeros().and_then(|_| zeros()).and_then(|x| {
            kept.push(x);
            zeros()
        }),
        "the context",
    );
    kept.clear();
    assert_eq!(context.memory_in_use(), Some(0));
    assert!(zeros().is_ok());
}

#[test]
fn what_queues_and_tables_keep_counts() {
    let context = context();
    let attrs = Attrs::new().with("component_types", vec![DType::I64]);
    let queue = execute(&context, "FIFOQueueV2", attrs, &[]).unwrap().remove(0);
    let attrs = Attrs::new().with("key_dtype", DType::I64).with("value_dtype", DType::I64);
    let table = execute(&context, "MutableHashTableV2", attrs, &[]).unwrap().remove(0);
    let flood = |op: &str, n_inputs: usize| {
        context.within(&within_memory(1 << 18), || -> Result<(), Error> {
            for number in 0..100_000i64 {
                let number = EagerTensor::from(HostTensor::vector(&[number])?);
                let mut inputs = vec![number; n_inputs];
                inputs[0] = if op.starts_with("Queue") { queue.clone() } else { table.clone() };
                execute(&context, op, Attrs::new(), &inputs)?;
            }
            Ok(())
        })
    };
    exhausted(flood("QueueEnqueueV2", 2), "the memory of the call");
    exhausted(flood("LookupTableInsertV2", 3), "the memory of the call");
}

#[test]
fn a_flood_of_text_ends() {
    let context = context();
    context.set_printer(|_| {});
    let options = CallOptions { printed_bytes: Some(1000), ..CallOptions::default() };
    let text = EagerTensor::from(HostTensor::scalar_string("x".repeat(99)));
    let printed = context.within(&options, || -> Result<(), Error> {
        loop {
            execute(&context, "PrintV2", Attrs::new(), std::slice::from_ref(&text))?;
        }
    });
    exhausted(printed, "the text that the call prints needs 1100 bytes");
}

/// Kernels end between blocks of their work, which would take seconds to minutes.
#[test]
fn long_kernels_end_too() {
    let context = context();
    let zeros = |dtype, dims: &[usize]| {
        let shape = Shape::new(dims.iter().copied()).unwrap();
        EagerTensor::from(HostTensor::zeros(dtype, shape).unwrap())
    };
    let end_early = |op: &str, inputs: &[EagerTensor]| {
        let deadline = Some(Instant::now() + Duration::from_millis(50));
        let options = CallOptions { deadline, ..CallOptions::default() };
        let began = Instant::now();
        let result = context.within(&options, || execute(&context, op, Attrs::new(), inputs));
        interrupted(result.map(|results| results.into_vec()), Interruption::Deadline);
        let took = began.elapsed();
        println!("{op}: {took:?}, with 50 ms until the deadline");
        assert!(took < Duration::from_secs(10), "{op} took {took:?}");
    };
    end_early("Where", &[zeros(DType::Bool, &[1_000_000_000])]);
    let matrix = zeros(DType::F32, &[6000, 6000]);
    end_early("MatMul", &[matrix.clone(), matrix.clone()]);
    end_early("Exp", &[zeros(DType::F64, &[100_000_000])]);
    end_early("Unique", &[zeros(DType::I64, &[20_000_000])]);
    let all = EagerTensor::scalar(4_000_000i32);
    end_early("TopKV2", &[zeros(DType::F32, &[5_000_000]), all]);
    // The context goes on as if nothing had happened.
    let x = EagerTensor::from(HostTensor::vector(&[0f32; 64]).unwrap());
    assert_eq!(execute(&context, "Exp", Attrs::new(), &[x]).unwrap()[0].shape()[..], [64]);
}

/// Adds one to all elements of a variable, in a loop without end.
fn adding() -> (FunctionDef, Vec<FunctionDef>) {
    let handle = ValueType::new(DType::Resource, Shape::scalar());
    let always = function("always", &[("v", handle.clone())], |b, _| {
        Ok(vec![b.constant("true", HostTensor::scalar_bool(true))?])
    });
    let body = function("body", &[("v", handle.clone())], |b, args| {
        let attrs = || Attrs::new().with("dtype", DType::F32);
        let value = b.call_with("ReadVariableOp", "read", attrs(), args)?[0];
        let one = b.constant("one", HostTensor::scalar(1f32))?;
        let next = b.call("AddV2", "next", &[value, one])?[0];
        b.call_with("AssignVariableOp", "assign", attrs(), &[args[0], next])?;
        Ok(vec![args[0]])
    });
    let add = function("add", &[("v", handle)], |b, args| {
        let attrs = Attrs::new()
            .with("T", vec![DType::Resource])
            .with("cond", func("always"))
            .with("body", func("body"));
        b.call_with("While", "loop", attrs, args)
    });
    (add, vec![always, body])
}

/// Cancels calls at random moments on several threads; `FERROFLOW_CANCELLATIONS` says how many.
#[test]
fn cancellations_leave_variables_whole() {
    let n: u64 = std::env::var("FERROFLOW_CANCELLATIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200);
    let context = context();
    let (add, library) = adding();
    let add = concrete(&context, add, library, Vec::new());
    let mut resident = Vec::new();
    for part in 0..4 {
        thread::scope(|scope| {
            for worker in 0..8u64 {
                let (add, context) = (&add, &context);
                scope.spawn(move || {
                    let value = HostTensor::zeros(DType::F32, Shape::new([100_000]).unwrap());
                    let variable = ResourceVariable::new("v", value.unwrap());
                    let handle = EagerTensor::from(variable.handle().to_tensor());
                    for number in 0..n / 32 {
                        let moment = (number * 8 + worker) * 2_654_435_761 % 7_000;
                        let cancellation = Cancellation::new();
                        let options = CallOptions {
                            cancellation: Some(cancellation.clone()),
                            ..CallOptions::default()
                        };
                        thread::scope(|scope| {
                            scope.spawn(move || {
                                thread::sleep(Duration::from_micros(moment));
                                cancellation.cancel();
                            });
                            let ended = add.call_within(&options, &[&handle]);
                            interrupted(ended, Interruption::Cancelled);
                        });
                        let value = variable.read().unwrap();
                        let elements = value.as_slice::<f32>().unwrap();
                        assert!(elements.iter().all(|x| *x == elements[0]), "a torn variable");
                    }
                    let _ = context;
                });
            }
        });
        resident.push((part, resident_bytes()));
    }
    let grown = resident[3].1.saturating_sub(resident[1].1);
    assert!(grown < 64 << 20, "{resident:?}");
    if n > 200 {
        println!("{n} cancellations, resident bytes after each quarter: {resident:?}");
    }
}

/// Bytes of memory that the process has, where the system tells.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
