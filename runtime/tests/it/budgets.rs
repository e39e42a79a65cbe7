//! Budgets of calls: deadlines, cancellation, rounds of loops.

use crate::support::*;
use ferroflow_ir::{Attrs, Code, DType, FunctionDef, HostTensor, Shape, ValueType};
use ferroflow_runtime::{
    CallOptions, Cancellation, ConcreteFunction, Context, EagerTensor, Error, Interruption, execute,
};
use std::{
    thread,
    time::{Duration, Instant},
};

fn int() -> ValueType {
    ValueType::new(DType::I64, Shape::scalar())
}

/// Counts to its argument.
fn counting(context: &Context) -> ConcreteFunction {
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
fn counts(count: &ConcreteFunction) {
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
    let take = ConcreteFunction::new(&context, taking()).unwrap();
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
