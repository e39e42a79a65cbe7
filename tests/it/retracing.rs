//! Controlling how often functions are traced.

use crate::support::{Out, printed};
use ferroflow::{
    ir::{DType, trace_type::Literal},
    tracer::{Function, NestedValue, Result, Tensor, function, print, spec},
};

/// The guide's `g`, which gives what it takes.
fn g(out: &Out) -> Function<(Tensor,), Tensor> {
    let out = out.clone();
    let g = function(move |x: Tensor| {
        out.line(format!("Tracing with {x}"));
        x
    });
    g.with_parameters(["x"])
}

/// Checks what is printed when `g` is called with vectors of these lengths.
fn check(
    options: impl FnOnce(Function<(Tensor,), Tensor>) -> Function<(Tensor,), Tensor>,
    lengths: &[i32],
    expected: &str,
) -> Result<()> {
    let text = printed(|out| {
        let g = options(g(out));
        for &length in lengths {
            let x: Vec<i32> = (1..=length).collect();
            out.line(format!("{:?}", g.call((x,))?));
        }
        Ok(())
    })?;
    assert_eq!(text, expected);
    Ok(())
}

// spec: 94, 95
#[test]
fn an_unknown_size_shares_a_trace() -> Result<()> {
    check(
        |g| g.with_input_signature([spec(DType::I32, [None])]),
        &[3, 5],
        "Tracing with Tensor(\"x:0\", shape=(None,), dtype=int32)\n\
         Tensor([1 2 3], shape=(3,), dtype=int32)\n\
         Tensor([1 2 3 4 5], shape=(5,), dtype=int32)\n",
    )
}

// spec: 96, 97
#[test]
fn reduce_retracing_widens_types() -> Result<()> {
    check(
        |g| g.reduce_retracing(),
        &[3, 5, 7, 9],
        "Tracing with Tensor(\"x:0\", shape=(3,), dtype=int32)\n\
         Tensor([1 2 3], shape=(3,), dtype=int32)\n\
         Tracing with Tensor(\"x:0\", shape=(None,), dtype=int32)\n\
         Tensor([1 2 3 4 5], shape=(5,), dtype=int32)\n\
         Tensor([1 2 3 4 5 6 7], shape=(7,), dtype=int32)\n\
         Tensor([1 2 3 4 5 6 7 8 9], shape=(9,), dtype=int32)\n",
    )
}

/// The number of steps, as it is printed when the program runs.
fn shown(num_steps: &NestedValue) -> Tensor {
    match num_steps {
        NestedValue::Tensor(tensor) => tensor.clone(),
        NestedValue::Literal(Literal::Int(number)) => (*number).into(),
        other => panic!("a number of steps, not {other:?}"),
    }
}

// spec: 99, 100
#[test]
fn tensors_share_a_trace_where_numbers_of_rust_do_not() -> Result<()> {
    let text = printed(|out| {
        let train = {
            let out = out.clone();
            function(move |num_steps: NestedValue| {
                out.line(format!("Tracing with num_steps =  {num_steps:?}"));
                print!("Executing with num_steps = ", shown(&num_steps))
            })
            .with_parameters(["num_steps"])
        };
        out.line("Retracing occurs for different Python arguments.");
        train.call_named(&[], &[("num_steps", 10.into())])?;
        train.call_named(&[], &[("num_steps", 20.into())])?;
        out.line("\nTraces are reused for Tensor arguments.");
        train.call_named(&[], &[("num_steps", Tensor::from(10).into())])?;
        train.call_named(&[], &[("num_steps", Tensor::from(20).into())])?;
        assert_eq!(train.tracing_count(), 3);
        Ok(())
    })?;
    let expected = "Retracing occurs for different Python arguments.\n\
                    Tracing with num_steps =  10\nExecuting with num_steps =  10\n\
                    Tracing with num_steps =  20\nExecuting with num_steps =  20\n\n\
                    Traces are reused for Tensor arguments.\n\
                    Tracing with num_steps =  Tensor(\"num_steps:0\", shape=(), dtype=int32)\n\
                    Executing with num_steps =  10\nExecuting with num_steps =  20\n";
    assert_eq!(text, expected);
    Ok(())
}

// spec: 93, 99
#[test]
fn a_number_that_keeps_changing_is_warned_of() -> Result<()> {
    let step = function(|x: Tensor, n: i64| x * n as f64).with_parameters(["x", "n"]);
    for n in 0..10 {
        step.call((1.0f32, n))?;
    }
    let warnings = step.retrace_warnings();
    let [first, second] = &warnings[..] else { panic!("two warnings, not {warnings:?}") };
    assert!(first.contains("argument `n` was Literal[4], after Literal[3]"), "{first}");
    assert!(second.contains("give tensors in place of values that change"), "{second}");
    let step = function(|x: Tensor, n: Tensor| x * n);
    for n in 0..10 {
        step.call((1.0f32, n as f32))?;
    }
    assert!(step.retrace_warnings().is_empty());
    Ok(())
}

// spec: 101
#[test]
fn a_new_function_is_traced_again() -> Result<()> {
    let f = function(|x: Tensor| x.square());
    f.call((2.0f32,))?;
    f.call((3.0f32,))?;
    assert_eq!(f.tracing_count(), 1);
    let again = f.clone_untraced();
    assert_eq!(again.tracing_count(), 0);
    again.call((2.0f32,))?;
    assert_eq!((again.tracing_count(), f.tracing_count()), (1, 1));
    Ok(())
}
