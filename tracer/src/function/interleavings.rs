//! Models of the traces of a function, run by `cargo xtask interleavings`: first calls at once, eviction, panics.

use crate::{
    context,
    error::Result,
    function::{Function, FunctionOptions, function, function_with},
    tensor::Tensor,
};
use ferroflow_ir::sync::{
    atomic::{AtomicUsize, Ordering},
    explore,
};
use ferroflow_runtime::{Context, ContextOptions};
use shuttle::thread;
use std::{
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, OnceLock, Weak},
};

fn one_thread() -> Context {
    let threads = Some(NonZeroUsize::MIN);
    Context::with_options(ContextOptions { threads, ..ContextOptions::default() })
}

/// `x + x`, in whose code other threads have a chance to run.
fn doubled(x: &Tensor) -> Result<Tensor> {
    thread::yield_now();
    x + x
}

fn vector(len: usize) -> Tensor {
    Tensor::from(vec![3.0f32; len])
}

/// Calls for vectors of these lengths.
fn call(context: &Context, f: &VectorFunction, lengths: &[usize]) {
    let _context = context::enter(context);
    for &len in lengths {
        let y = f.call((vector(len),)).expect("it runs");
        assert_eq!(y.to_vec::<f32>().expect("floats"), vec![6.0; len]);
    }
}

/// Calls from a thread for each list of lengths.
fn call_at_once(context: &Context, f: &VectorFunction, threads: &[&[usize]]) {
    thread::scope(|scope| {
        for &lengths in threads {
            scope.spawn(move || call(context, f, lengths));
        }
    });
}

#[test]
fn first_calls_at_once_share_a_trace() {
    explore(200, || {
        let (context, f) = (one_thread(), function(|x: Tensor| doubled(&x)));
        call_at_once(&context, &f, &[&[2], &[2], &[2, 2]]);
        assert_eq!((f.tracing_count(), f.concrete_functions().len()), (1, 1));
    });
}

#[test]
fn concrete_functions_that_are_asked_for_at_once_share_a_trace() {
    explore(200, || {
        let (context, f) = (one_thread(), function(|x: Tensor| doubled(&x)));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _context = context::enter(&context);
                f.call((vector(2),)).map(drop).expect("it runs");
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let _context = context::enter(&context);
                    f.concrete((vector(2),)).map(drop).expect("it is traced");
                });
            }
        });
        assert_eq!((f.tracing_count(), f.concrete_functions().len()), (1, 1));
    });
}

#[test]
fn a_trace_that_is_dropped_serves_the_calls_that_found_it() {
    explore(200, || {
        let context = one_thread();
        let options = FunctionOptions { max_traces: 1, ..FunctionOptions::default() };
        let f = function_with(options, |x: Tensor| doubled(&x));
        call_at_once(&context, &f, &[&[1, 2], &[2, 3], &[3]]);
        assert_eq!(f.concrete_functions().len(), 1);
        assert!((3..=5).contains(&f.tracing_count()));
    });
}

#[test]
fn a_panic_in_traced_code_leaves_the_trace_to_the_next_call() {
    explore(200, || {
        let (context, n_calls) = (one_thread(), Arc::new(AtomicUsize::new(0)));
        let count = n_calls.clone();
        let f = function(move |x: Tensor| {
            let y = doubled(&x);
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                resume_unwind(Box::new("the code fails"));
            }
            y
        });
        let call = || {
            let _context = context::enter(&context);
            let y = catch_unwind(AssertUnwindSafe(|| f.call((vector(2),)))).ok()?;
            assert!(!context::is_tracing(), "the trace goes on after the call");
            Some(y.expect("it runs").to_vec::<f32>().expect("floats"))
        };
        let found = thread::scope(|scope| {
            [(); 3].map(|()| scope.spawn(call)).map(|thread| thread.join().expect("it ends"))
        });
        assert_eq!(found.iter().flatten().count(), 2);
        assert!(found.iter().flatten().all(|y| *y == [6.0; 2]));
        assert_eq!((f.tracing_count(), f.concrete_functions().len()), (2, 1));
    });
}

type VectorFunction = Function<(Tensor,), Tensor>;

/// `x + x`, for longer vectors by way of another function and its trace for shorter ones.
fn doubled_by(other: &OnceLock<Weak<VectorFunction>>, x: &Tensor) -> Result<Tensor> {
    let y = doubled(x)?;
    if x.shape() == vector(1).shape() {
        return Ok(y);
    }
    let other = other.get().and_then(Weak::upgrade).expect("it lives");
    let sum = (other.call((vector(1),))? + y)?;
    sum - 6.0f32
}

#[test]
fn functions_that_trace_each_other_do_not_wait_for_each_other() {
    explore(200, || {
        let context = one_thread();
        let [for_first, for_second] = [(); 2].map(|()| Arc::new(OnceLock::new()));
        let (other, another) = (for_first.clone(), for_second.clone());
        let first = Arc::new(function(move |x: Tensor| doubled_by(&other, &x)));
        let second = Arc::new(function(move |x: Tensor| doubled_by(&another, &x)));
        for_first.set(Arc::downgrade(&second)).expect("it is empty");
        for_second.set(Arc::downgrade(&first)).expect("it is empty");
        thread::scope(|scope| {
            scope.spawn(|| call(&context, &first, &[2]));
            scope.spawn(|| call(&context, &second, &[2]));
        });
        assert_eq!((first.tracing_count(), second.tracing_count()), (2, 2));
    });
}
