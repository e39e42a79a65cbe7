use super::{near, values};
use ferroflow_tracer::{GradientTape, Result, Tensor, Variable, cond, function, summary};

#[test]
fn functions_are_run_once_whatever_their_gradient_needs() -> Result<()> {
    let count = Variable::new(0i32)?;
    let w = Variable::new(2.0f32)?;
    let f = {
        let (count, w) = (count.clone(), w.clone());
        function(move |x: Tensor| -> Result<_> {
            count.assign_add(1)?;
            let y = (x.square()? * &w)?;
            w.assign(10.0f32)?;
            Ok(y)
        })
    };
    let x = Tensor::from(3.0f32);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f.call((&x,))?;
    let (dx, dw) = tape.gradient(&y, &(&x, &w))?;
    // The value that was read counts, not the one that is there when the gradient is asked for.
    near(&values(dx)?, &[12.0]);
    near(&values(dw)?, &[9.0]);
    assert_eq!(count.read()?.to_scalar::<i32>()?, 1);
    Ok(())
}

#[test]
fn third_order_through_functions_in_functions() -> Result<()> {
    let inner = function(|x: Tensor| x.square());
    let f = {
        let inner = inner.clone();
        function(move |x: Tensor| inner.call((&x,))? * inner.call((&x,))?)
    };
    let x = Tensor::from(2.0f32);
    let [a, b, c] = [(), (), ()].map(|()| GradientTape::new());
    for tape in [&a, &b, &c] {
        tape.watch(&x)?;
    }
    let y = f.call((&x,))?;
    let first = c.gradient(&y, &x)?.unwrap();
    let second = b.gradient(&first, &x)?.unwrap();
    near(&values(a.gradient(&second, &x)?)?, &[48.0]);
    near(&values(Some(second))?, &[48.0]);
    near(&values(Some(first))?, &[32.0]);
    Ok(())
}

#[test]
fn gradients_in_a_trace_through_calls_in_it() -> Result<()> {
    let layer = function(|x: Tensor, w: Tensor| x.matmul(&w)?.tanh());
    let f = {
        let layer = layer.clone();
        function(move |x: Tensor, w: Tensor| -> Result<_> {
            let outer = GradientTape::new();
            outer.watch(&w)?;
            let inner = GradientTape::new();
            inner.watch(&x)?;
            let y = layer.call((&x, &w))?;
            let dx = inner.gradient(&y, &x)?.unwrap();
            let dw = outer.gradient(&dx, &w)?.unwrap();
            Ok((dx, dw))
        })
    };
    let (x, w) = (Tensor::from([[0.5f32]]), Tensor::from([[2.0f32]]));
    let (dx, dw) = f.call((&x, &w))?;
    // y = tanh(xw); dx = w(1 - y²); d(dx)/dw = 1 - y² - 2wxy(1 - y²)
    let y = 1.0f64.tanh();
    let slope = 1.0 - y * y;
    near(&values(Some(dx))?, &[2.0 * slope]);
    near(&values(Some(dw))?, &[slope - 2.0 * 2.0 * 0.5 * y * slope]);
    Ok(())
}

#[test]
fn unknown_shapes_are_found_when_the_gradient_runs() -> Result<()> {
    use ferroflow_tracer::{FunctionOptions, function_with, spec};
    let options = FunctionOptions {
        input_signature: Some(vec![
            spec(ferroflow_ir::DType::F32, [None, None]).into(),
            spec(ferroflow_ir::DType::F32, [None]).into(),
        ]),
        ..FunctionOptions::default()
    };
    let f = function_with(options, |x: Tensor, b: Tensor| -> Result<_> {
        let tape = GradientTape::new();
        tape.watch(&(x.clone(), b.clone()))?;
        let y = (x + &b)?.square()?.mean(&[0])?;
        let db = tape.gradient(&y, &b)?.unwrap();
        Ok(db)
    });
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    near(
        &values(Some(f.call((&x, Tensor::from([1.0f32])))?))?,
        &[2.0 * (2.0 + 3.0 + 4.0 + 5.0 + 6.0 + 7.0) / 3.0],
    );
    near(&values(Some(f.call((&x, Tensor::from([0.0f32, 1.0])))?))?, &[6.0, 10.0]);
    Ok(())
}

#[test]
fn embeddings_in_functions_give_rows() -> Result<()> {
    let table = Variable::new([[1.0f32], [2.0], [3.0], [4.0]])?;
    let f = {
        let table = table.clone();
        function(move |ids: Tensor| table.read()?.gather(&ids)?.square())
    };
    let tape = GradientTape::new();
    let y = f.call((Tensor::from([1i32, 1, 3]),))?;
    let found = tape.variable_gradients(&y, std::slice::from_ref(&table))?.remove(0).unwrap();
    assert!(matches!(found, ferroflow_tracer::TensorGradient::Slices(_)), "{found:?}");
    assert_eq!(found.dense()?.to_vec::<f32>()?, [0.0, 8.0, 0.0, 8.0]);
    Ok(())
}

#[test]
fn functions_that_were_loaded_have_gradients_too() -> Result<()> {
    use ferroflow_ir::{
        DType, FunctionLibrary, PartialShape, TensorSpec, ValueType, build::GraphBuilder,
    };
    use ferroflow_runtime::{CallableFunction as Loaded, CapturedInput};
    use std::sync::Arc;

    let w = Variable::new(4.0f32)?;
    let scalar = ValueType::new(DType::F32, PartialShape::scalar());
    let spec = TensorSpec::new(DType::F32, PartialShape::scalar());
    let mut builder = GraphBuilder::new();
    let x = builder.arg("x", scalar)?;
    let handle = builder.arg("w", ValueType::handle(DType::Resource, spec))?;
    let attrs = ferroflow_ir::Attrs::new().with("dtype", DType::F32);
    let read = builder.call_with("ReadVariableOp", "read", attrs, &[handle])?[0];
    let y = builder.call("Mul", "y", &[x, read])?[0];
    let def = Arc::new(builder.finish_function("loaded", &[("y", y)]));
    let context = ferroflow_tracer::context::context();
    let captures = vec![CapturedInput::Resource(w.owned()?.handle())];
    let (library, resources) = (Arc::new(FunctionLibrary::new()), context.resources().clone());
    let loaded = Loaded::with_captures(&context, def, library, resources, captures);

    let f = ferroflow_tracer::ConcreteFunction::from_runtime(&loaded)?;
    let x = Tensor::from(3.0f32);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f.call_flat(std::slice::from_ref(&x))?.remove(0);
    let (dx, dw) = tape.gradient(&y, &(&x, &w))?;
    near(&values(dx)?, &[4.0]);
    near(&values(dw)?, &[3.0]);
    Ok(())
}

#[test]
fn functions_without_a_gradient_run_until_one_is_asked_for() -> Result<()> {
    let f = function(|x: Tensor| ferroflow_tracer::ops::prevent_gradient(&x.square()?));
    let x = Tensor::from(3.0f32);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f.call((&x,))?;
    assert_eq!(y.to_scalar::<f32>()?, 9.0);
    let error = tape.gradient(&y, &x).unwrap_err();
    assert!(error.to_string().contains("PreventGradient"), "{error}");
    Ok(())
}

#[test]
fn summaries_between_the_loss_and_its_gradient() -> Result<()> {
    let f = function(|x: Tensor| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let loss = x.square()?;
        summary::scalar("loss", &loss, 1)?;
        let dx = tape.gradient(&loss, &x)?.unwrap();
        summary::scalar("slope", &dx, 1)?;
        Ok::<_, ferroflow_tracer::Error>(dx)
    });
    assert_eq!(f.call((3.0f32,))?.to_scalar::<f32>()?, 6.0);
    // In a branch, and in a function that is called.
    let inner = f.clone();
    let g = function(move |x: Tensor| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = cond(
            &x.greater(0.0)?,
            || {
                summary::scalar("branch", &x, 1)?;
                x.square()
            },
            || inner.call((&x,)),
        )?;
        Ok::<_, ferroflow_tracer::Error>(tape.gradient(&y, &x)?.unwrap())
    });
    assert_eq!(g.call((3.0f32,))?.to_scalar::<f32>()?, 6.0);
    assert_eq!(g.call((-3.0f32,))?.to_scalar::<f32>()?, 2.0);
    Ok(())
}
