//! Traces of a function, and the calls that make a new one.

use super::operand;
use crate::support::printed;
use ferroflow::{
    ir::DType,
    runtime::Context,
    tracer::{
        Args, Error, Function, FunctionOptions, IntoArgs, NestedValue, Result, RetracePolicy,
        Tensor, device, function, function_with, print, with_context,
    },
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// Calls `f` and checks the result and the number of graphs there are then.
fn check<A: Args + 'static>(
    f: &Function<A, Tensor>,
    args: impl IntoArgs<A>,
    expected: f64,
    n_graphs: usize,
) -> Result<()> {
    let y = f.call(args)?.cast(DType::F64)?;
    assert_eq!(
        (y.sum_all()?.to_scalar::<f64>()?, f.concrete_functions().len()),
        (expected, n_graphs)
    );
    Ok(())
}

// spec: 24, 25, 26, 47
#[test]
fn each_dtype_and_each_number_has_a_graph() -> Result<()> {
    let f = function(|x: NestedValue| operand(&x)?.square());
    check(&f, (&Tensor::from(1i32),), 1.0, 1)?;
    check(&f, (&Tensor::from(1.0f32),), 1.0, 2)?;
    check(&f, (1.0,), 1.0, 3)?;
    check(&f, (2.0,), 4.0, 4)?;
    check(&f, (&Tensor::from(3i32),), 9.0, 4)?;
    check(&f, (1.0,), 1.0, 4)?;
    assert_eq!(f.tracing_count(), 4);
    Ok(())
}

// spec: 22, 27
#[test]
fn a_flag_is_part_of_the_key() -> Result<()> {
    let f =
        function(|x: Tensor, use_multiply: bool| if use_multiply { &x * &x } else { x.square() });
    check(&f, (2.0f32, true), 4.0, 1)?;
    check(&f, (2.0f32, false), 4.0, 2)?;
    check(&f, (3.0f32, true), 9.0, 2)?;
    let ops = f
        .concrete_functions()
        .iter()
        .map(|graph| {
            let ops: Vec<&str> = graph.graph().iter().map(|(_, node)| node.op.name()).collect();
            ops.join(" ")
        })
        .collect::<Vec<_>>();
    assert_eq!(ops, ["_Arg Mul Identity", "_Arg Square Identity"]);
    Ok(())
}

// spec: 28
#[test]
fn each_shape_has_a_graph() -> Result<()> {
    let f = function(|x: Tensor| x + 1.0);
    check(&f, ([2.0f32],), 3.0, 1)?;
    check(&f, ([2.0f32, 3.0],), 7.0, 2)?;
    check(&f, ([[2.0f32]],), 3.0, 3)?;
    check(&f, ([3.0f32],), 4.0, 3)?;
    check(&f, ([4.0f32, 5.0],), 11.0, 3)
}

// spec: 13, 19, 20, 21, 22
#[test]
fn keys_are_made_of_types_and_values() -> Result<()> {
    let f = function(|x: Tensor, list: Vec<Tensor>, _: (bool, String)| {
        list.iter().try_fold(x, |sum, item| sum + item)
    });
    let key = |args: (Tensor, Vec<Tensor>, (bool, String))| -> Result<String> {
        Ok(f.types_of(&args)?.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "))
    };
    let zeros = || Tensor::from([[0.0f32; 3]; 2]);
    assert_eq!(
        key((zeros(), vec![1i32.into(), [1i32].into()], (true, "a".into())))?,
        "TensorSpec(shape=(2, 3), dtype=tf.float32, name=None) | \
         List[TensorSpec(shape=(), dtype=tf.int32, name=None), \
         TensorSpec(shape=(1,), dtype=tf.int32, name=None)] | \
         Tuple[Literal[True], Literal['a']]"
    );
    let call = |list: Vec<Tensor>, flag: bool, text: &str| {
        f.call(([[0.0f32; 3]; 2], list, (flag, text.to_string())))?;
        Ok::<_, Error>(f.tracing_count())
    };
    let one = || Tensor::from(1.0f32);
    assert_eq!(call(vec![one()], true, "a")?, 1);
    assert_eq!(call(vec![one(), one()], true, "a")?, 2);
    assert_eq!(call(vec![one(), [1.0f32].into()], true, "a")?, 3);
    assert_eq!(call(vec![one(), one()], false, "a")?, 4);
    assert_eq!(call(vec![one(), one()], true, "b")?, 5);
    assert_eq!(call(vec![2.0f32.into(), 3.0f32.into()], true, "a")?, 5);
    Ok(())
}

// spec: 14, 51
#[test]
fn code_runs_once_for_an_unseen_key() -> Result<()> {
    let runs = Arc::new(AtomicUsize::new(0));
    let f = {
        let runs = runs.clone();
        function(move |x: Tensor| {
            runs.fetch_add(1, Ordering::Relaxed);
            x.square()
        })
    };
    let n_runs = || runs.load(Ordering::Relaxed);
    assert_eq!((n_runs(), f.concrete_functions().len()), (0, 0));
    for (x, expected) in [(1.0f32, 1.0), (2.0, 4.0), (3.0, 9.0)] {
        check(&f, (x,), expected, 1)?;
        assert_eq!(n_runs(), 1);
    }
    check(&f, ([1.0f32, 2.0],), 5.0, 2)?;
    assert_eq!(n_runs(), 2);
    Ok(())
}

// spec: 29
#[test]
fn the_device_around_a_call_makes_no_graph() -> Result<()> {
    let f = function(|x: Tensor| {
        let pinned = device("/device:CPU:0", || &x + 1.0)?;
        pinned * 1.0
    });
    device("/device:CPU:0", || check(&f, (2.0f32,), 3.0, 1))?;
    device("/device:GPU:0", || check(&f, (2.0f32,), 3.0, 1))?;
    let devices: Vec<(String, String)> = f.concrete_functions()[0]
        .graph()
        .iter()
        .filter(|(_, node)| matches!(node.op.name(), "AddV2" | "Mul"))
        .map(|(_, node)| (node.op.name().to_string(), node.device.to_string()))
        .collect();
    assert_eq!(devices, [("AddV2".into(), "/device:CPU:0".into()), ("Mul".into(), "".into())]);
    Ok(())
}

// spec: 23
#[test]
fn the_context_of_a_call_is_part_of_the_key() -> Result<()> {
    let (a, b) = (Context::new(), Context::new());
    let f = function(|x: Tensor| x.square());
    for (context, n_graphs) in [(&a, 1), (&b, 2), (&a, 2), (&b, 2)] {
        with_context(context, || check(&f, (3.0f32,), 9.0, n_graphs))?;
    }
    check(&f, (3.0f32,), 9.0, 3)
}

// spec: 30
#[test]
fn graphs_of_dropped_objects_are_dropped() -> Result<()> {
    let f = function(|x: Tensor, factor: Arc<f32>| x * *factor);
    for factor in [2.0f32, 3.0, 4.0] {
        check(&f, (1.0f32, Arc::new(factor)), factor.into(), 1)?;
    }
    assert_eq!(f.tracing_count(), 3);
    let options = FunctionOptions { max_traces: 2, ..FunctionOptions::default() };
    let f = function_with(options, |x: Tensor, factor: f64| x * factor);
    for (factor, n_graphs) in [(1.0, 1), (2.0, 2), (3.0, 2), (3.0, 2)] {
        check(&f, (1.0f32, factor), factor, n_graphs)?;
    }
    assert_eq!(f.tracing_count(), 3);
    Ok(())
}

// spec: 31
#[test]
fn a_function_that_is_traced_too_often_warns_or_fails() -> Result<()> {
    let with_policy = |retrace_policy| {
        let options = FunctionOptions { retrace_policy, ..FunctionOptions::default() };
        function_with(options, |x: Tensor, n: i64| x * n as f64)
            .with_name("scale")
            .with_parameters(["x", "n"])
    };
    let warns = with_policy(RetracePolicy::Warn);
    for n in 0..5 {
        assert!(warns.retrace_warnings().is_empty());
        warns.call((1.0f32, n))?;
    }
    let [warning] = &warns.retrace_warnings()[..] else { panic!("one warning") };
    let expected = "5 of the last 5 calls of function `scale` were traced anew; the last time \
                    argument `n` was Literal[4], after Literal[3].";
    assert!(warning.starts_with(expected), "{warning}");
    let fails = with_policy(RetracePolicy::Error);
    (0..4).try_for_each(|n| fails.call((1.0f32, n)).map(drop))?;
    let error = fails.call((1.0f32, 4)).unwrap_err();
    assert!(matches!(error, Error::TooManyTraces { traces: 4, .. }), "{error}");
    check(&fails, (1.0f32, 3), 3.0, 4)
}

// spec: 32, 33
#[test]
fn a_change_of_an_object_makes_no_graph() -> Result<()> {
    struct Params {
        multiply: AtomicBool,
    }
    let f = function(
        |x: Tensor, y: Arc<Params>| {
            if y.multiply.load(Ordering::Relaxed) { x * 2.0 } else { x + 2.0 }
        },
    );
    let p = Arc::new(Params { multiply: true.into() });
    check(&f, (3.0f32, &p), 6.0, 1)?;
    p.multiply.store(false, Ordering::Relaxed);
    check(&f, (3.0f32, &p), 6.0, 1)?;
    check(&f, (3.0f32, Arc::new(Params { multiply: false.into() })), 5.0, 2)
}

// spec: 34
#[test]
fn arguments_may_be_nested() -> Result<()> {
    type Nested = (Vec<(Tensor, Tensor)>, BTreeMap<String, Tensor>, Option<Tensor>);
    let f = function(|(pairs, named, rest): Nested| {
        let mut sum = (&named["a"] - &named["b"])?;
        for (x, y) in &pairs {
            sum = (sum + (x * y)?)?;
        }
        match rest {
            Some(rest) => sum + rest,
            None => Ok(sum),
        }
    });
    let nested = |scale: f32, n_pairs: usize, rest: Option<f32>| -> (Nested,) {
        let pairs = (0..n_pairs).map(|_| (Tensor::from(scale), Tensor::from(2.0f32))).collect();
        let named = [("a", 5.0f32), ("b", 1.0)].map(|(key, x)| (key.to_string(), x.into()));
        ((pairs, named.into(), rest.map(Tensor::from)),)
    };
    check(&f, nested(3.0, 2, None), 16.0, 1)?;
    check(&f, nested(4.0, 2, None), 20.0, 1)?;
    check(&f, nested(3.0, 1, None), 10.0, 2)?;
    check(&f, nested(3.0, 1, Some(0.5)), 10.5, 3)
}

// spec: 35
#[test]
fn a_signature_may_be_inferred_from_the_first_call() -> Result<()> {
    let infer_signature_from_first_call = true;
    let options = FunctionOptions { infer_signature_from_first_call, ..Default::default() };
    let f = function_with(options, |x: Tensor| x * 2.0);
    check(&f, ([1.0f32, 2.0],), 6.0, 1)?;
    check(&f, ([1.0f32, 2.0, 3.0],), 12.0, 2)?;
    check(&f, ([1.0f32],), 2.0, 2)?;
    let error = f.call(([[1.0f32]],)).unwrap_err();
    assert!(matches!(error, Error::Binding { .. }), "{error}");
    assert!(matches!(f.call(([1i32],)), Err(Error::Binding { .. })));
    Ok(())
}

// spec: 48, 49
#[test]
fn two_functions_of_the_same_code_share_no_graphs() -> Result<()> {
    let text = printed(|out| {
        let code = {
            let out = out.clone();
            move || {
                out.line("Tracing!");
                print!("Executing")
            }
        };
        function(code.clone())()?;
        function(code)()
    })?;
    assert_eq!(text, "Tracing!\nExecuting\nTracing!\nExecuting\n");
    Ok(())
}

// spec: 50
#[test]
fn graphs_have_names_of_their_own() -> Result<()> {
    let f = function(|x: Tensor| x.square()).with_name("f");
    let g = f.clone_untraced();
    check(&f, (1.0f32,), 1.0, 1)?;
    check(&f, (1i32,), 1.0, 2)?;
    check(&g, (1.0f32,), 1.0, 1)?;
    let concrete = [f.concrete_functions(), g.concrete_functions()].concat();
    let mut names: Vec<&str> = concrete.iter().map(|concrete| concrete.name()).collect();
    assert!(names.iter().all(|name| name.starts_with("__inference_f_")), "{names:?}");
    names.dedup();
    assert_eq!(names.len(), 3);
    Ok(())
}
