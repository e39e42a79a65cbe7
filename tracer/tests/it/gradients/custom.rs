//! Custom gradients, wherever the function that has one is traced and differentiated.

use super::{near, values};
use ferroflow_tracer::{
    GradientTape, Result, Tensor, Variable, cond, custom_gradient, function, ops, recompute_grad,
    while_loop,
};

/// `x²`, whose gradient is said to be 100.
fn hundred(x: &Tensor) -> Result<Tensor> {
    let f = |args: &[Tensor]| {
        let y = args[0].square()?;
        Ok((vec![y], |dys: &[Tensor]| Ok(vec![Some((&dys[0] * 100.0)?)])))
    };
    Ok(custom_gradient(f, std::slice::from_ref(x))?.remove(0))
}

/// `x` rounded, with the gradient of `x`.
fn rounded(x: &Tensor) -> Result<Tensor> {
    let f = |args: &[Tensor]| {
        Ok((vec![ops::round(&args[0])?], |dys: &[Tensor]| Ok(vec![Some(dys[0].clone())])))
    };
    Ok(custom_gradient(f, std::slice::from_ref(x))?.remove(0))
}

/// The gradient of a function by a tape around its call.
fn from_outside(f: impl Fn(&Tensor) -> Result<Tensor>, x: f32) -> Result<Vec<f64>> {
    let x = Tensor::from(x);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f(&x)?;
    values(tape.gradient(&y, &x)?)
}

#[test]
fn tapes_around_the_call_find_them() -> Result<()> {
    near(&from_outside(hundred, 1.0)?, &[100.0]);
    let f = function(|x: Tensor| hundred(&x));
    near(&from_outside(|x| f.call((x,)), 1.0)?, &[100.0]);
    Ok(())
}

#[test]
fn functions_that_were_traced_without_a_tape_have_them() -> Result<()> {
    let f = function(|x: Tensor| hundred(&x));
    assert_eq!(f.call((3.0f32,))?.to_scalar::<f32>()?, 9.0);
    near(&from_outside(|x| f.call((x,)), 1.0)?, &[100.0]);
    let step = function(move |x: Tensor| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = f.call((&x,))?;
        Ok::<_, ferroflow_tracer::Error>(tape.gradient(&y, &x)?.unwrap())
    });
    assert_eq!(step.call((1.0f32,))?.to_scalar::<f32>()?, 100.0);
    Ok(())
}

#[test]
fn functions_in_functions_have_them() -> Result<()> {
    let inner = function(|x: Tensor| hundred(&x));
    let outer = function(move |x: Tensor| inner.call((x,))? * 2.0);
    near(&from_outside(|x| outer.call((x,)), 1.0)?, &[200.0]);
    Ok(())
}

#[test]
fn branches_and_loops_have_them() -> Result<()> {
    let branch = function(|x: Tensor| {
        cond(&x.greater(0.0)?, || hundred(&x), || Ok::<_, ferroflow_tracer::Error>(x.clone()))
    });
    near(&from_outside(|x| branch.call((x,)), 1.0)?, &[100.0]);
    near(&from_outside(|x| branch.call((x,)), -1.0)?, &[1.0]);
    let repeated = function(|x: Tensor| {
        let (_, y) = while_loop(
            |(i, _): &(Tensor, Tensor)| i.less(2),
            |(i, y): (Tensor, Tensor)| Ok(((i + 1)?, hundred(&y)?)),
            (Tensor::from(0), x),
        )?;
        Ok::<_, ferroflow_tracer::Error>(y)
    });
    near(&from_outside(|x| repeated.call((x,)), 1.0)?, &[10_000.0]);
    let step = function(|x: Tensor| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = cond(&x.greater(0.0)?, || hundred(&x), || Ok(x.clone()))?;
        Ok::<_, ferroflow_tracer::Error>(tape.gradient(&y, &x)?.unwrap())
    });
    assert_eq!(step.call((1.0f32,))?.to_scalar::<f32>()?, 100.0);
    Ok(())
}

#[test]
fn gradients_go_straight_through_what_is_flat() -> Result<()> {
    let f = function(|x: Tensor| rounded(&x)? * 3.0);
    near(&from_outside(|x| f.call((x,)), 1.7)?, &[3.0]);
    assert_eq!(f.call((1.7f32,))?.to_scalar::<f32>()?, 6.0);
    Ok(())
}

#[test]
fn they_use_values_of_the_trace_around_them() -> Result<()> {
    let w = Variable::new(3.0f32)?;
    let f = function(move |x: Tensor| {
        let twice = (&x * 2.0)?;
        let f = |args: &[Tensor]| {
            // What only the gradient uses is computed for it.
            let (e, unused) = (args[0].exp()?, args[0].sin()?);
            let y = (&e + 1.0)?.log()?;
            let (w, twice) = (w.clone(), twice.clone());
            let backward = move |dys: &[Tensor]| {
                let slope = (((&e + &unused)? + &twice)? * w.read()?)?;
                Ok(vec![Some((&dys[0] * slope)?)])
            };
            Ok((vec![y], backward))
        };
        Ok::<_, ferroflow_tracer::Error>(custom_gradient(f, &[x])?.remove(0))
    });
    let expected = 3.0 * (0.5f64.exp() + 0.5f64.sin() + 1.0);
    near(&from_outside(|x| f.call((x,)), 0.5)?, &[expected]);
    Ok(())
}

#[test]
fn they_are_differentiated_in_turn() -> Result<()> {
    let f = function(|x: Tensor| {
        let f = |args: &[Tensor]| {
            let x = args[0].clone();
            let y = x.square()?;
            Ok((vec![y], move |dys: &[Tensor]| Ok(vec![Some(((&dys[0] * &x)? * &x)?)])))
        };
        Ok::<_, ferroflow_tracer::Error>(custom_gradient(f, &[x])?.remove(0))
    });
    let x = Tensor::from(3.0f32);
    let outer = GradientTape::new();
    outer.watch(&x)?;
    let inner = GradientTape::new();
    inner.watch(&x)?;
    let y = f.call((&x,))?;
    let first = inner.gradient(&y, &x)?.unwrap();
    near(&values(outer.gradient(&first, &x)?)?, &[6.0]);
    near(&values(Some(first))?, &[9.0]);
    Ok(())
}

#[test]
fn several_arguments_and_results() -> Result<()> {
    let f = function(|a: Tensor, n: Tensor, b: Tensor| {
        let f = |args: &[Tensor]| {
            let results = vec![(&args[0] * &args[2])?, args[2].clone()];
            let backward =
                |dys: &[Tensor]| Ok(vec![None, None, Some(((&dys[0] * 10.0)? + &dys[1])?)]);
            Ok((results, backward))
        };
        let mut found = custom_gradient(f, &[a, n, b])?;
        Ok::<_, ferroflow_tracer::Error>((found.remove(0), found.remove(0)))
    });
    let (a, b) = (Tensor::from(2.0f32), Tensor::from(5.0f32));
    let tape = GradientTape::persistent();
    tape.watch(&(a.clone(), b.clone()))?;
    let (product, same) = f.call((&a, 4, &b))?;
    let (da, db) = tape.gradient(&product, &(&a, &b))?;
    assert!(da.is_none_or(|da| da.to_scalar::<f32>().unwrap() == 0.0));
    near(&values(db)?, &[10.0]);
    near(&values(tape.gradient(&same, &b)?)?, &[1.0]);
    Ok(())
}

#[test]
fn errors_of_a_gradient_are_told_when_it_is_asked_for() -> Result<()> {
    let f = function(|x: Tensor| {
        let f = |args: &[Tensor]| {
            let backward = |_: &[Tensor]| -> Result<Vec<Option<Tensor>>> {
                Tensor::from([1.0f32]).matmul(Tensor::from([2.0f32]))?;
                Ok(Vec::new())
            };
            Ok((vec![args[0].square()?], backward))
        };
        Ok::<_, ferroflow_tracer::Error>(custom_gradient(f, &[x])?.remove(0))
    });
    assert_eq!(f.call((3.0f32,))?.to_scalar::<f32>()?, 9.0);
    let error = from_outside(|x| f.call((x,)), 1.0).unwrap_err().to_string();
    assert!(error.contains("MatMul"), "{error}");
    Ok(())
}

#[test]
fn recomputed_functions_have_gradients_by_variables_from_outside() -> Result<()> {
    let w = Variable::new(3.0f32)?;
    let cube = {
        let w = w.clone();
        move |x: &[Tensor]| Ok(vec![((x[0].square()? * &x[0])? * &w)?])
    };
    let f = function(move |x: Tensor| {
        Ok::<_, ferroflow_tracer::Error>(recompute_grad(cube.clone(), &[x])?.remove(0))
    });
    let x = Tensor::from(2.0f32);
    assert_eq!(f.call((&x,))?.to_scalar::<f32>()?, 24.0);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f.call((&x,))?;
    let (dx, dw) = tape.gradient(&y, &(&x, &w))?;
    near(&values(dx)?, &[36.0]);
    near(&values(dw)?, &[8.0]);
    Ok(())
}

/// A tape that a function with a custom gradient makes records, as in TensorFlow; tapes around it
/// see the custom gradient alone.
#[test]
fn tapes_inside_record() -> Result<()> {
    let slope = |x: &Tensor| {
        let f = |args: &[Tensor]| {
            let tape = GradientTape::new();
            tape.watch(&args[0])?;
            let y = (args[0].square()? * &args[0])?;
            let slope = tape.gradient(&y, &args[0])?.expect("the tape has recorded");
            Ok((vec![slope], |dys: &[Tensor]| Ok(vec![Some((&dys[0] * 100.0)?)])))
        };
        Ok::<_, ferroflow_tracer::Error>(custom_gradient(f, std::slice::from_ref(x))?.remove(0))
    };
    let staged = function(move |x: Tensor| slope(&x));
    for x in [2.0f32, -1.0] {
        let expected = 3.0 * x * x;
        assert_eq!(slope(&Tensor::from(x))?.to_scalar::<f32>()?, expected);
        assert_eq!(staged.call((x,))?.to_scalar::<f32>()?, expected);
        near(&from_outside(slope, x)?, &[100.0]);
        near(&from_outside(|x| staged.call((x,)), x)?, &[100.0]);
    }
    Ok(())
}
