//! Functions are called, give tensors, use state, and call each other.

use ferroflow::{
    ir::{DType, TraceType},
    runtime::{Context, ResourceHandle},
    tracer::{Error, Nest, Result, Tensor, Variable, function, ops, v1, with_context},
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

fn ones(shape: &[i32]) -> Result<Tensor> {
    ops::fill(&Tensor::from(shape), &Tensor::from(1.0f32))
}

// spec: 1, 7, 8
#[test]
fn a_function_calls_another() -> Result<()> {
    let compute_z1 =
        function(|x: Tensor, y: Tensor| x + y).with_name("compute_z1").with_parameters(["x", "y"]);
    let compute_z0 = {
        let compute_z1 = compute_z1.clone();
        function(move |x: Tensor| compute_z1(x.clone(), x.square()?)).with_parameters(["x"])
    };
    let z0 = compute_z0.call((2.0f32,))?;
    let z1 = compute_z1.call((2.0f32, 2.0f32))?;
    assert_eq!((z0.to_scalar::<f32>()?, z1.to_scalar::<f32>()?), (6.0, 4.0));
    let (inner, outer) = (&compute_z1.concrete_functions()[0], &compute_z0.concrete_functions()[0]);
    assert!(outer.graph().iter().any(|(_, node)| node.op.name() == "PartitionedCall"));
    let scalar = "TensorSpec(shape=(), dtype=tf.float32, name=None)";
    assert_eq!(
        inner.function_type().to_string(),
        format!("(x: {scalar}, y: {scalar}) -> {scalar}")
    );
    Ok(())
}

// spec: 4
#[test]
fn code_is_eager_unless_it_is_made_a_function() -> Result<()> {
    let y = Tensor::from(3.0f32).square()?;
    assert!(!y.is_symbolic());
    assert_eq!(y.to_scalar::<f32>()?, 9.0);
    let f = function(|x: Tensor| {
        assert!(x.square()?.is_symbolic());
        x.square()
    });
    assert_eq!(f.call((3.0f32,))?.to_scalar::<f32>()?, 9.0);
    Ok(())
}

/// The product and sum of the minimal program.
fn product_and_sum(b: &Variable) -> Result<Tensor> {
    let a = Tensor::from([[10.0f32, 10.0], [11.0, 1.0]]);
    let x = Tensor::from([[1.0f32, 0.0], [0.0, 1.0]]);
    a.matmul(&x)? + b
}

// spec: 54
#[test]
fn the_minimal_program_gives_the_same_in_all_forms() -> Result<()> {
    let wrapped =
        v1::wrap_function(|| product_and_sum(&Variable::new(12.0f32)?), Vec::<TraceType>::new())?;
    let session = wrapped.call(&[])?.tensor()?.clone();
    let b = Variable::new(12.0f32)?;
    let eager = product_and_sum(&b)?;
    let f = function(move || product_and_sum(&b));
    for y in [session, eager, f()?] {
        assert_eq!(y.to_string(), "[[22. 22.]\n [23. 13.]]");
    }
    Ok(())
}

// spec: 38, 39
#[test]
fn a_dense_layer_calls_add() -> Result<()> {
    let add = function(|a: Tensor, b: Tensor| a + b);
    let twos = add(ones(&[2, 2])?, ones(&[2, 2])?)?;
    assert_eq!(twos.to_string(), "[[2. 2.]\n [2. 2.]]");
    let dense_layer = function(move |x: Tensor, w: Tensor, b: Tensor| add(x.matmul(w)?, b));
    let y = dense_layer(ones(&[3, 2])?, ones(&[2, 2])?, ones(&[2])?)?;
    assert_eq!(y.to_string(), "[[3. 3.]\n [3. 3.]\n [3. 3.]]");
    Ok(())
}

// spec: 11, 15
#[test]
fn results_are_any_number_of_tensors() -> Result<()> {
    fn check<R: Nest + 'static>(body: fn(Tensor) -> Result<R>, expected: &[f32]) -> Result<R> {
        let f = function(body);
        let concrete = f.concrete((2.0f32,))?;
        let results = concrete.call_flat(&[2.0f32.into()])?;
        let results: Vec<f32> = results.iter().map(Tensor::to_scalar).collect::<Result<_>>()?;
        assert_eq!(results, expected);
        f.call((2.0f32,))
    }
    check(|_| Ok(()), &[])?;
    check(|x| x.square(), &[4.0])?;
    let (x, y) = check(|x| Ok((x.clone(), x.square()?)), &[2.0, 4.0])?;
    assert_eq!((x.to_scalar::<f32>()?, y.to_scalar::<f32>()?), (2.0, 4.0));
    let list = check(|x| Ok(vec![x.clone(), x.square()?, x]), &[2.0, 4.0, 2.0])?;
    assert_eq!(list.len(), 3);
    let named = check(|x| Ok(BTreeMap::from([("y".to_string(), x.square()?)])), &[4.0])?;
    assert_eq!(named["y"].to_scalar::<f32>()?, 4.0);
    Ok(())
}

// spec: 36
#[test]
fn results_are_tensors_only() {
    let f = function(|| 5i64).with_name("five");
    let error = f().unwrap_err();
    assert!(matches!(error, Error::Output { .. }), "{error}");
    let expected = "function `five` must return tensors, nothing, or structures of them; found \
                    return value 5";
    assert_eq!(error.to_string(), expected);
    assert!(f.concrete_functions().is_empty());
}

// spec: 16, 17, 18
#[test]
fn state_is_captured_and_needs_neither_initialisation_nor_control_dependencies() -> Result<()> {
    let w = Variable::new(ones(&[10, 10])?)?;
    let b = Variable::new(Tensor::from([0.0f32; 10]))?;
    let c = Variable::new(0i32)?;
    let f = {
        let (w, b, c) = (w.clone(), b.clone(), c.clone());
        function(move |x: Tensor| {
            c.assign_add(1)?;
            x.matmul(&w)? + &b
        })
    };
    let y = f(ones(&[1, 10])?)?;
    assert_eq!(y.to_vec::<f32>()?, [10.0; 10]);
    assert_eq!(c.read()?.to_scalar::<i32>()?, 1);
    let concrete = &f.concrete_functions()[0];
    assert_eq!(concrete.function_type().parameters.len(), 1);
    let captured = concrete.variables();
    assert!(captured.len() == 3 && [&c, &w, &b].iter().zip(&captured).all(|(a, b)| a.is(b)));
    let must_run = concrete.def().control_results.iter();
    let ops: Vec<&str> = must_run.map(|&id| concrete.graph()[id].op.name()).collect();
    assert_eq!(ops, ["AssignAddVariableOp"]);
    Ok(())
}

// spec: 2
#[test]
fn state_lives_as_long_as_what_owns_it() -> Result<()> {
    let context = Context::new();
    let (variable, table) = with_context(&context, || -> Result<_> {
        let table = ops::anonymous_hash_table(DType::String, DType::I64)?;
        ops::lookup_table_import_v2(&table, &["a"].into(), &[7i64].into())?;
        Ok((Variable::new(1.0f32)?, table))
    })?;
    drop(context);
    assert_eq!(variable.read()?.to_scalar::<f32>()?, 1.0);
    assert_eq!(ops::lookup_table_size_v2(&table)?.to_scalar::<i64>()?, 1);
    let known = |tensor: &Tensor| Ok::<_, Error>(ResourceHandle::of(tensor.host()?)?.downgrade());
    let handles = [known(&variable.handle())?, known(&table)?];
    assert!(handles.iter().all(|handle| handle.resource().is_ok()));
    drop((variable, table));
    assert!(handles.iter().all(|handle| handle.resource().is_err()));
    Ok(())
}

// spec: 9
#[test]
fn errors_tell_the_line_of_the_code() -> Result<()> {
    let check = |error: Error, line: u32| {
        let place = format!("{}:{line}", file!());
        assert!(error.to_string().contains(&place), "{error}");
    };
    let line = line!() + 1;
    let f = function(|x: Tensor| x.reshape(&[2, 5]));
    check(f.call(([1.0f32, 2.0, 3.0],)).unwrap_err(), line);
    let line = line!() + 1;
    let row = function(|x: Tensor, index: Tensor| x.gather(&index));
    let outer = function(move |x: Tensor, index: Tensor| row(x, index)?.square());
    assert_eq!(outer.call(([1.0f32, 2.0], 1i32))?.to_scalar::<f32>()?, 4.0);
    check(outer.call(([1.0f32, 2.0], 2i32)).unwrap_err(), line);
    Ok(())
}

/// The shortest of some runs.
fn fastest(mut run: impl FnMut() -> Result<Tensor>) -> Result<Duration> {
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        run()?;
        fastest = fastest.min(start.elapsed());
    }
    Ok(fastest)
}

// spec: 40
#[test]
fn many_small_ops_are_faster_as_a_function() -> Result<()> {
    let body = |mut x: Tensor| {
        for _ in 0..200 {
            x = ((x * 0.5)? + 1.0)?;
        }
        Ok(x)
    };
    let f = function(body);
    let x = Tensor::from(3.0f32);
    assert_eq!(f(x.clone())?.to_scalar::<f32>()?, body(x.clone())?.to_scalar::<f32>()?);
    assert!(fastest(|| f(x.clone()))? < fastest(|| body(x.clone()))?);
    Ok(())
}

// spec: 40
#[test]
fn a_convolution_is_the_same_op_eagerly_and_in_a_function() -> Result<()> {
    let filter = Variable::new(ops::fill(&[3i32, 3, 4, 5].into(), &0.25f32.into())?)?;
    let conv_layer = move |image: Tensor| ops::conv2d(&image, &filter.read()?, &[1; 4], "VALID");
    let conv_fn = function(conv_layer.clone());
    let image = ops::fill(&[1i32, 20, 20, 4].into(), &2.0f32.into())?;
    let (eager, traced) = (conv_layer(image.clone())?, conv_fn(image)?);
    assert_eq!(traced.shape().to_string(), "[1,18,18,5]");
    assert_eq!(traced.to_vec::<f32>()?, vec![18.0; 18 * 18 * 5]);
    assert_eq!(eager.to_vec::<f32>()?, traced.to_vec::<f32>()?);
    let graph = conv_fn.concrete_functions()[0].graph().clone();
    let ops: Vec<&str> = graph.iter().map(|(_, node)| node.op.name()).collect();
    assert_eq!(ops, ["_Arg", "_Arg", "ReadVariableOp", "Conv2D", "Identity"]);
    Ok(())
}
