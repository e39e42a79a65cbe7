//! Gradients, as the specification tells of them.

use ferroflow::{
    Tensor, TensorArray, TensorArrayOptions, Variable, function,
    ir::DType,
    ops,
    tracer::{Error, GradientTape, Result},
    while_loop,
};

fn scalar(tensor: Option<Tensor>) -> Result<f32> {
    tensor.expect("the target depends on the source").to_scalar::<f32>()
}

// spec: 37, 200
#[test]
fn functions_are_called_differentiated_and_nested_like_ops() -> Result<()> {
    let f = function(|x: Tensor| x.square()? * 3.0);
    assert_eq!(f.call((2.0f32,))?.to_scalar::<f32>()?, 12.0);
    let g = {
        let f = f.clone();
        function(move |x: Tensor| f.call((x.exp()?,)))
    };
    let x = Tensor::from(0.5f32);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = g.call((&x,))?;
    // d(3·exp(2x))/dx = 6·exp(2x)
    let expected = 6.0 * 1.0f32.exp();
    assert!((scalar(tape.gradient(&y, &x)?)? - expected).abs() < 1e-4);
    Ok(())
}

// spec: 201
#[test]
fn the_gradient_of_adding_one_is_one() -> Result<()> {
    let add = function(|a: Tensor, b: Tensor| a + b);
    let v = Variable::new(1.0f32)?;
    let tape = GradientTape::new();
    let y = add.call((v.read()?, 1.0f32))?;
    assert_eq!(scalar(tape.gradient(&y, &v)?)?, 1.0);
    Ok(())
}

// spec: 202
#[test]
fn the_function_beneath_gives_values_only() -> Result<()> {
    let f = function(|x: Tensor| x.square());
    let x = Tensor::from(3.0f32);
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let concrete = f.concrete((&x,))?;
    let differentiated = concrete.call_flat(std::slice::from_ref(&x))?.remove(0);
    let inferred = concrete.inference_fn().call(&[x.eager()?.clone()])?.remove(0);
    let inferred = Tensor::from(inferred);
    assert_eq!(inferred.to_scalar::<f32>()?, 9.0);
    assert_eq!(scalar(tape.gradient(&differentiated, &x)?)?, 6.0);
    assert!(tape.gradient(&inferred, &x)?.is_none());
    Ok(())
}

// spec: b33
#[test]
fn first_and_second_order_through_functions() -> Result<()> {
    let x = Tensor::from(1.0f32);
    let square = function(|x: Tensor| &x * &x);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = square.call((&x,))?;
    assert_eq!(scalar(tape.gradient(&y, &x)?)?, 2.0);

    let cube = function(|x: Tensor| x.square()? * &x);
    let outer = GradientTape::new();
    outer.watch(&x)?;
    let inner = GradientTape::new();
    inner.watch(&x)?;
    let y = cube.call((&x,))?;
    let first = inner.gradient(&y, &x)?.expect("connected");
    assert_eq!(first.to_scalar::<f32>()?, 3.0);
    assert_eq!(scalar(outer.gradient(&first, &x)?)?, 6.0);
    Ok(())
}

// spec: b34
#[test]
fn a_tape_gives_gradients_once() -> Result<()> {
    let x = Tensor::from(3.0f32);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = x.square()?;
    assert_eq!(scalar(tape.gradient(&y, &x)?)?, 6.0);
    assert!(matches!(tape.gradient(&y, &x), Err(Error::TapeUsed)));
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let (y, z) = (x.square()?, x.exp()?);
    assert_eq!(scalar(tape.gradient(&y, &x)?)?, 6.0);
    assert_eq!(scalar(tape.gradient(&z, &x)?)?, 3.0f32.exp());
    Ok(())
}

// spec: 37, 200
#[test]
fn a_traced_step_is_one_function_of_forward_backward_and_update() -> Result<()> {
    let w = Variable::new([[1.0f32], [1.0]])?;
    let step = {
        let w = w.clone();
        function(move |x: Tensor, y: Tensor| -> Result<_> {
            let tape = GradientTape::new();
            let error = (x.matmul(&w)? - &y)?;
            let loss = error.square()?.mean_all()?;
            let dw = tape.gradient(&loss, &w)?.expect("the loss depends on the weights");
            w.assign_sub((dw * 0.1)?)?;
            Ok(loss)
        })
    };
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let y = Tensor::from([[0.0f32], [0.0]]);
    // loss = mean((3, 7)²) = 29; dw = xᵀ·(3, 7) = (24, 34)
    assert_eq!(step.call((&x, &y))?.to_scalar::<f32>()?, 29.0);
    let found = w.read()?.to_vec::<f32>()?;
    assert!((found[0] + 1.4).abs() < 1e-5 && (found[1] + 2.4).abs() < 1e-5, "{found:?}");
    Ok(())
}

#[test]
fn a_list_that_is_read_and_grown_has_a_gradient_of_its_own_length() -> Result<()> {
    let f = function(|x: Tensor| {
        let options = TensorArrayOptions { dynamic_size: true, ..TensorArrayOptions::default() };
        let array = TensorArray::with_options(DType::F32, 1, options)?.write(0, x.square()?)?;
        let grown = array.write(2, &x * 5.0)?.write(1, &x)?;
        let total = |array: &TensorArray| ops::sum(&array.stack()?, &Tensor::from(vec![0]));
        total(&array)? + total(&grown)? * 10.0
    });
    let x = Tensor::from(3.0f32);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f.call((&x,))?;
    assert_eq!(y.to_scalar::<f32>()?, 9.0 + 10.0 * (9.0 + 15.0 + 3.0));
    assert_eq!(scalar(tape.gradient(&y, &x)?)?, 6.0 + 10.0 * (6.0 + 5.0 + 1.0));
    Ok(())
}

#[test]
fn a_list_that_rows_were_scattered_beyond_has_a_gradient_of_its_own_length() -> Result<()> {
    let f = function(|x: Tensor| {
        let any = Tensor::from(-1);
        let list = ops::tensor_list_from_tensor(&x, &any)?;
        let indices = Tensor::from(vec![3, 0]);
        let grown = ops::tensor_list_scatter_into_existing_list(&list, &x.square()?, &indices)?;
        let total = |list: &Tensor| {
            let rows = ops::tensor_list_gather(list, &indices.minimum(1)?, &any, DType::F32)?;
            ops::sum(&rows, &Tensor::from(vec![0]))
        };
        total(&list)? + ops::tensor_list_get_item(&grown, &Tensor::from(3), &any, DType::F32)?
    });
    let x = Tensor::from(vec![3.0f32, 4.0]);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f.call((&x,))?;
    assert_eq!(y.to_scalar::<f32>()?, 7.0 + 9.0);
    let gradient = tape.gradient(&y, &x)?.expect("the target depends on the source");
    assert_eq!(gradient.to_vec::<f32>()?, [1.0 + 6.0, 1.0]);
    Ok(())
}

#[test]
fn a_loop_without_a_gradient_is_refused_only_where_a_gradient_reaches_it() -> Result<()> {
    let through = |takes_counter: bool| -> Result<Option<Tensor>> {
        let f = function(move |x: Tensor| {
            let (last, counter) = while_loop(
                |(_, n): &(Tensor, Tensor)| n.greater(0),
                |(v, n): (Tensor, Tensor)| {
                    let [found, _] = ops::unique(&v.reshape(&[1])?)?;
                    Ok((ops::sum(&found, &Tensor::from(vec![0]))?, (n - 1)?))
                },
                (x.clone(), Tensor::from(3)),
            )?;
            let other = if takes_counter { counter.cast(DType::F32)? } else { last };
            x * 3.0 + other
        });
        let x = Tensor::from(2.0f32);
        let tape = GradientTape::new();
        tape.watch(&x)?;
        tape.gradient(&f.call((&x,))?, &x)
    };
    assert_eq!(scalar(through(true)?)?, 3.0);
    let error = through(false).unwrap_err().to_string();
    assert!(error.contains("Unique is not supported: it has no gradient"), "{error}");
    Ok(())
}
