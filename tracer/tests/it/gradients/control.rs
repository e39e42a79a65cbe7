use super::{near, values};
use ferroflow_tracer::{GradientTape, Result, Tensor, Variable, cond, function, while_loop};

#[test]
fn branches_differentiate_the_one_that_ran() -> Result<()> {
    let w = Variable::new(5.0f32)?;
    let f = {
        let w = w.clone();
        function(move |x: Tensor| cond(&x.greater(0.0)?, || x.square()? * &w, || x.exp()))
    };
    for (x, dx, dw) in [(3.0f32, 30.0, 9.0), (-1.0, f64::from((-1.0f32).exp()), 0.0)] {
        let x = Tensor::from(x);
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = f.call((&x,))?;
        let found = tape.gradient(&y, &(&x, &w))?;
        near(&values(found.0)?, &[dx]);
        near(&values(found.1)?, &[dw]);
    }
    Ok(())
}

#[test]
fn branches_in_the_trace_of_the_tape() -> Result<()> {
    let f = function(|x: Tensor| -> Result<_> {
        let outer = GradientTape::new();
        outer.watch(&x)?;
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = cond(&x.greater(0.0)?, || x.square()? * &x, || Ok(x.clone()))?;
        let first = tape.gradient(&y, &x)?.unwrap();
        let second = outer.gradient(&first, &x)?.unwrap();
        Ok((first, second))
    });
    let (first, second) = f.call((2.0f32,))?;
    assert_eq!((first.to_scalar::<f32>()?, second.to_scalar::<f32>()?), (12.0, 12.0));
    let (first, second) = f.call((-2.0f32,))?;
    assert_eq!((first.to_scalar::<f32>()?, second.to_scalar::<f32>()?), (1.0, 0.0));
    Ok(())
}

/// `x^n` by a loop.
fn power(x: &Tensor, n: &Tensor) -> Result<Tensor> {
    let start = (Tensor::from(0i32), x.ones_like()?);
    let (_, y) = while_loop(
        |(i, _): &(Tensor, Tensor)| i.less(n),
        |(i, y): (Tensor, Tensor)| Ok(((i + 1)?, (y * x)?)),
        start,
    )?;
    Ok(y)
}

#[test]
fn loops_run_backwards() -> Result<()> {
    let f = function(|x: Tensor, n: Tensor| power(&x, &n));
    for n in [0, 1, 4] {
        let x = Tensor::from([2.0f32, 3.0]);
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = f.call((&x, n))?;
        let expected = [2.0f64, 3.0].map(|x| f64::from(n) * x.powi(n - 1));
        let found = tape.gradient(&y, &x)?;
        near(&values(found)?, &expected);
    }
    Ok(())
}

#[test]
fn loops_twice() -> Result<()> {
    let f = function(|x: Tensor, n: Tensor| power(&x, &n));
    let x = Tensor::from(2.0f32);
    let outer = GradientTape::new();
    outer.watch(&x)?;
    let inner = GradientTape::new();
    inner.watch(&x)?;
    let y = f.call((&x, 4))?;
    let first = inner.gradient(&y, &x)?.unwrap();
    near(&values(outer.gradient(&first, &x)?)?, &[48.0]);
    near(&values(Some(first))?, &[32.0]);
    Ok(())
}

#[test]
fn loops_in_the_trace_of_the_tape_use_variables() -> Result<()> {
    let w = Variable::new(3.0f32)?;
    let f = {
        let w = w.clone();
        function(move |x: Tensor, n: Tensor| -> Result<_> {
            let tape = GradientTape::new();
            let (_, y) = while_loop(
                |(i, _): &(Tensor, Tensor)| i.less(&n),
                |(i, y): (Tensor, Tensor)| Ok(((i + 1)?, (y * &w)?)),
                (Tensor::from(0i32), x.clone()),
            )?;
            Ok(tape.gradient(&y, &w)?.unwrap())
        })
    };
    // y = 2·w³; dw = 6·w²
    assert_eq!(f.call((2.0f32, 3))?.to_scalar::<f32>()?, 54.0);
    Ok(())
}

#[test]
fn arrays_of_tensors_in_loops() -> Result<()> {
    let f =
        function(|x: Tensor| ferroflow_tracer::map_fn(|row: Tensor| row.square()?.sum_all(), &x));
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = f.call((&x,))?;
    near(&values(tape.gradient(&y, &x)?)?, &[2.0, 4.0, 6.0, 8.0]);
    Ok(())
}
