//! Models of the pool of frames.

use super::*;
use crate::{
    context::{Context, ContextOptions},
    interleavings::{FAILS, FAILURE, check, context, switching_function, vector, vectors},
    specializations::Specialization,
};
use ferroflow_ir::{FunctionLibrary, Limits, sync::explore};
use shuttle::thread;
use std::sync::Arc;

/// The function, compiled for vectors of two elements.
fn compiled(context: &Context, library: &Arc<FunctionLibrary>) -> Arc<Specialization> {
    let scope = Scope::eager(context, library);
    let types = vec![vectors(Some(2))];
    Specialization::on_host(scope, &switching_function(), types).expect("it compiles")
}

/// The number of frames that rest. They have the tensors of constants, and no others.
fn n_resting(executable: &Executable) -> usize {
    let (first, others) = (executable.first.lock(), executable.others.lock());
    let frames: Vec<&Frame> = first.iter().chain(&*others).collect();
    for frame in &frames {
        for slot in 0..executable.program.n_slots {
            let is_constant = executable.program.constants.iter().any(|(other, _)| *other == slot);
            assert_eq!(frame.slot(slot).is_some(), is_constant, "slot {slot}");
        }
    }
    frames.len()
}

/// Calls from a thread for each value, twice each. A call of [`FAILS`] panics.
fn call_at_once(context: &Context, function: &Specialization, values: &[f32]) {
    let library = Arc::new(FunctionLibrary::new());
    thread::scope(|scope| {
        for &value in values {
            let library = &library;
            scope.spawn(move || {
                for _ in 0..2 {
                    let x = EagerTensor::from(vector(2, value));
                    match function.run(Scope::eager(context, library), &[x]) {
                        Ok(results) => check(&results, 2, value),
                        Err(error) => {
                            assert!(value == FAILS && error.is_panic(), "{error}");
                            assert!(error.to_string().contains(FAILURE), "{error}");
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn calls_at_once_have_a_frame_each_and_put_it_back() {
    explore(400, || {
        let (context, library) = (context(ContextOptions::default()), Arc::default());
        let function = compiled(&context, &library);
        call_at_once(&context, &function, &[1.0, 2.0, 3.0]);
        let n_frames = n_resting(&function.executable);
        assert!((1..=3).contains(&n_frames), "{n_frames} frames");
    });
}

#[test]
fn the_frame_of_a_panic_is_dropped_and_no_other() {
    explore(400, || {
        let (context, library) = (context(ContextOptions::default()), Arc::default());
        let function = compiled(&context, &library);
        call_at_once(&context, &function, &[FAILS]);
        assert_eq!(n_resting(&function.executable), 0);
        call_at_once(&context, &function, &[FAILS, 2.0]);
        let n_frames = n_resting(&function.executable);
        assert!(n_frames <= 2, "{n_frames} frames");
        call_at_once(&context, &function, &[5.0]);
        assert!((1..=2).contains(&n_resting(&function.executable)));
    });
}

#[test]
fn memory_of_calls_is_counted_as_long_as_it_is_in_use() {
    explore(250, || {
        let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
        let (context, library) =
            (context(ContextOptions { limits, ..Default::default() }), Arc::default());
        let function = compiled(&context, &library);
        call_at_once(&context, &function, &[FAILS, 2.0, 3.0]);
        let n_frames = n_resting(&function.executable);
        let arena = function.executable.arena_bytes();
        assert!(arena > 0);
        assert_eq!(context.memory_in_use(), Some(n_frames * arena));
        drop(function);
        assert_eq!(context.memory_in_use(), Some(0));
    });
}
