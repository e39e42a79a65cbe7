//! Effects while a function is traced, and when it runs.

use crate::support::printed;
use ferroflow::{
    ir::{
        FunctionDef, NodeDef, NodeId,
        pass::{cse::cse_function, prune::prune},
        registry,
    },
    runtime::{self, Context, EagerTensor},
    tracer::{Error, Function, Result, Tensor, function, ops, print},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering},
    },
    time::Instant,
};

// spec: 41, 43, 45
#[test]
fn code_runs_while_it_is_traced_and_ops_run_later() -> Result<()> {
    let text = printed(|out| {
        let f = {
            let out = out.clone();
            function(move |x: Tensor| {
                let y = x.square()?;
                out.line(format!("Tracing {y}"));
                print!("Executing", &y)?;
                ops::assert(&y.less(10)?, &[&y])?;
                Ok::<_, Error>(y)
            })
        };
        let concrete = f.concrete((2i32,))?;
        out.line("Traced");
        f.call((2i32,))?;
        concrete.call_flat(&[3i32.into()])?;
        assert!(f.call((4i32,)).is_err());
        assert_eq!(f.tracing_count(), 1);
        Ok(())
    })?;
    let expected = "Tracing Tensor(\"Square:0\", shape=(), dtype=int32)\nTraced\n\
                    Executing 4\nExecuting 9\nExecuting 16\n";
    assert_eq!(text, expected);
    Ok(())
}

// spec: 42
#[test]
fn running_is_much_faster_than_tracing() -> Result<()> {
    let f = function(|mut x: Tensor| {
        for _ in 0..200 {
            x = ((x * 0.5)? + 1.0)?;
        }
        Ok::<_, Error>(x)
    });
    let x = Tensor::from(3.0f32);
    let start = Instant::now();
    f.concrete((&x,))?;
    let tracing = start.elapsed();
    f.call((&x,))?;
    let running = (0..5).map(|_| {
        let start = Instant::now();
        f.call((&x,)).map(|_| start.elapsed())
    });
    let running: Vec<_> = running.collect::<Result<_>>()?;
    assert!(running.iter().min().is_some_and(|&running| running * 5 < tracing));
    Ok(())
}

// spec: 44
#[test]
fn double_is_traced_for_each_dtype() -> Result<()> {
    let text = printed(|out| {
        let double: Function<(Tensor,), Tensor> = {
            let out = out.clone();
            function(move |a: Tensor| {
                out.line(format!("Tracing with {a}"));
                &a + &a
            })
            .with_parameters(["a"])
        };
        out.line(format!("{:?}\n", double.call((1i32,))?));
        out.line(format!("{:?}\n", double.call((1.1f32,))?));
        out.line(format!("{:?}\n", double.call(("a",))?));
        out.line(format!("{:?}\n", double.call(("b",))?));
        out.line(double.signatures());
        Ok(())
    })?;
    let signature = |dtype: &str| {
        let spec = format!("TensorSpec(shape=(), dtype=tf.{dtype}, name=None)");
        format!(
            "Input Parameters:\n  a (POSITIONAL_OR_KEYWORD): {spec}\nOutput Type:\n  {spec}\n\
             Captures:\n  None\n\n"
        )
    };
    let expected = [
        "Tracing with Tensor(\"a:0\", shape=(), dtype=int32)\n".to_string(),
        "Tensor(2, shape=(), dtype=int32)\n\n".into(),
        "Tracing with Tensor(\"a:0\", shape=(), dtype=float32)\n".into(),
        "Tensor(2.2, shape=(), dtype=float32)\n\n".into(),
        "Tracing with Tensor(\"a:0\", shape=(), dtype=string)\n".into(),
        "Tensor(b'aa', shape=(), dtype=string)\n\n".into(),
        "Tensor(b'bb', shape=(), dtype=string)\n\n".into(),
        signature("int32"),
        signature("float32"),
        signature("string"),
    ];
    // The last signature ends its line, and there is no empty one after it.
    assert_eq!(text + "\n", expected.concat());
    Ok(())
}

// spec: 45, 46
#[test]
fn what_rust_does_and_computes_is_frozen() -> Result<()> {
    let number = Arc::new(AtomicI32::new(10));
    let f = {
        let number = number.clone();
        function(move |x: Tensor| x + (number.fetch_add(1, Ordering::Relaxed) * 2))
    };
    for x in [1i32, 2, 3] {
        assert_eq!(f.call((x,))?.to_scalar::<i32>()?, x + 20);
    }
    assert_eq!(number.load(Ordering::Relaxed), 11);
    let concrete = &f.concrete_functions()[0];
    let constants = concrete.graph().iter().filter(|(_, node)| node.op.name() == "Const");
    let constants: Vec<i32> = constants
        .map(|(_, node)| Ok(node.attrs.tensor("value")?.as_scalar()?))
        .collect::<Result<_>>()?;
    assert_eq!(constants, [20]);
    Ok(())
}

// spec: 52
#[test]
fn the_code_is_reached_through_the_function() -> Result<()> {
    let f = function(|x: Tensor| x.square());
    let y = (f.host_fn())((3.0f32.into(),))?;
    assert_eq!((y.to_scalar::<f32>()?, f.tracing_count()), (9.0, 0));
    Ok(())
}

// spec: 56
#[test]
fn code_that_works_eagerly_may_not_work_as_a_function() -> Result<()> {
    let code = |x: Tensor, y: Tensor| {
        if y.equal(0.0)?.to_bool()? { Ok(y) } else { x / y }
    };
    assert_eq!(code(2.0f32.into(), 2.0f32.into())?.to_scalar::<f32>()?, 1.0);
    let f = function(code).with_name("f");
    let error = f.call((2.0f32, 2.0f32)).unwrap_err();
    let expected = "Tensor(\"Equal:0\", shape=(), dtype=bool) has no value: it is symbolic while \
                    function `f` is traced, and branching on it in Rust works on eager tensors only";
    assert_eq!(error.to_string(), expected);
    Ok(())
}

/// Runs a function without the crate that traced it.
fn run(def: &FunctionDef, arg: f32) -> Result<f32> {
    let function = runtime::CallableFunction::new(&Context::new(), def.clone())?;
    let results = function.call(&[EagerTensor::scalar(arg)])?;
    Ok(results[0].host()?.as_scalar()?)
}

// spec: 57
#[test]
fn a_graph_is_made_of_ops_and_belongs_to_one_type() -> Result<()> {
    let f = function(|x: Tensor| (x * 3.0)? + 1.0);
    f.call((2.0f32,))?;
    f.call((2.0f64,))?;
    let concrete = f.concrete_functions();
    let dtypes: Vec<String> =
        concrete.iter().map(|concrete| concrete.def().arg_type(0).to_string()).collect();
    assert_eq!(dtypes, ["float32[]", "float64[]"]);
    drop(f);
    assert!(concrete[0].graph().iter().all(|(_, node)| registry::find(node.op.name()).is_some()));
    assert_eq!(run(concrete[0].def(), 2.0)?, 7.0);
    Ok(())
}

// spec: 10
#[test]
fn graphs_can_be_rewritten_before_they_run() -> Result<()> {
    let f = function(|x: Tensor| (&x * &x)? + (&x * &x)?);
    let mut def = FunctionDef::clone(f.concrete((3.0f32,))?.def());
    let count = |def: &FunctionDef, op: &str| {
        def.graph.iter().filter(|(_, node)| node.op.name() == op).count()
    };
    // A product of a tensor with itself becomes a square.
    let products: Vec<NodeId> = def
        .graph
        .ids()
        .filter(|&id| {
            let node = &def.graph[id];
            node.op.name() == "Mul" && node.inputs()[0] == node.inputs()[1]
        })
        .collect();
    for id in products {
        let product = def.graph[id].clone();
        let name = format!("{}_squared", product.name);
        let square = NodeDef::new(name, registry::find("Square").unwrap(), product.attrs.clone())
            .with_inputs([product.inputs()[0]])
            .with_outputs(product.outputs().to_vec());
        let square = def.graph.add(square)?;
        def.graph.replace_uses(id.into(), square.into());
    }
    // Equal squares become one; products that nobody uses go.
    cse_function(&mut def);
    let needed: Vec<NodeId> =
        def.args.iter().copied().chain(def.results.iter().map(|(_, outlet)| outlet.node)).collect();
    prune(&mut def.graph, needed)?;
    assert_eq!((count(&def, "Mul"), count(&def, "Square")), (0, 1));
    assert_eq!(run(&def, 3.0)?, 18.0);
    Ok(())
}

// spec: 58
#[test]
fn errors_of_rust_end_the_trace_and_nothing_else() -> Result<()> {
    let (fails, runs) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let f = {
        let (fails, runs) = (fails.clone(), runs.clone());
        function(move |x: Tensor| {
            runs.fetch_add(std::env::args().count(), Ordering::Relaxed);
            if fails.load(Ordering::Relaxed) {
                return Err(Error::host("the code says no"));
            }
            x.square()
        })
    };
    assert_eq!(f.call((3.0f32,)).unwrap_err().to_string(), "the code says no");
    assert!(f.concrete_functions().is_empty());
    fails.store(false, Ordering::Relaxed);
    assert_eq!(f.call((3.0f32,))?.to_scalar::<f32>()?, 9.0);
    fails.store(true, Ordering::Relaxed);
    assert_eq!(f.call((4.0f32,))?.to_scalar::<f32>()?, 16.0);
    assert_eq!(runs.load(Ordering::Relaxed), 2 * std::env::args().count());
    Ok(())
}
