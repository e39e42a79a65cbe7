use super::{near, values};
use ferroflow_ir::{DType, PartialShape, TensorSpec};
use ferroflow_tracer::{
    GradientTape, Result, Tensor, Variable, WhileOptions, cond, custom_gradient, function, ops,
    while_loop, while_loop_with,
};

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

/// A loop whose `seen` is as long as the round says, and that no round reads.
fn growing(x: &Tensor, rounds: i32) -> Result<(Tensor, Tensor)> {
    let unknown = PartialShape::vector(None);
    let options = WhileOptions {
        shape_invariants: vec![PartialShape::scalar(), PartialShape::scalar(), unknown],
        ..WhileOptions::default()
    };
    let (_, y, seen) = while_loop_with(
        &options,
        |(i, _, _): &(Tensor, Tensor, Tensor)| i.less(rounds),
        |(i, y, _): (Tensor, Tensor, Tensor)| {
            let i = (i + 1)?;
            let y = (y * x)?;
            let seen = ops::fill(&i.expand_dims(0)?, &y)?;
            Ok((i, y, seen))
        },
        (Tensor::from(0), x.clone(), Tensor::from([1.0f32, 1.0])),
    )?;
    Ok((y, seen))
}

#[test]
fn loops_that_replace_a_variable_by_one_of_another_shape() -> Result<()> {
    let f = function(|x: Tensor| growing(&x, 3));
    let x = Tensor::from(2.0f32);
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let (y, seen) = f.call((&x,))?;
    assert_eq!(seen.to_vec::<f32>()?, [16.0; 3]);
    near(&values(tape.gradient(&y, &x)?)?, &[32.0]);
    near(&values(tape.gradient(&seen, &x)?)?, &[96.0]);
    near(&values(tape.gradient(&(y, seen), &x)?)?, &[128.0]);
    let step = function(|x: Tensor| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let (y, seen) = growing(&x, 3)?;
        Ok::<_, ferroflow_tracer::Error>(tape.gradient(&(y, seen), &x)?.unwrap())
    });
    near(&values(Some(step.call((&x,))?))?, &[128.0]);
    Ok(())
}

#[test]
fn the_value_before_such_a_loop_has_a_gradient_of_its_shape() -> Result<()> {
    let f = function(|first: Tensor, x: Tensor| {
        let options = WhileOptions {
            shape_invariants: vec![PartialShape::scalar(), PartialShape::vector(None)],
            ..WhileOptions::default()
        };
        let (_, last) = while_loop_with(
            &options,
            |(i, _): &(Tensor, Tensor)| i.less(2),
            |(i, _): (Tensor, Tensor)| {
                let i = (i + 1)?;
                let last = ops::fill(&i.expand_dims(0)?, &x)?;
                Ok((i, last))
            },
            (Tensor::from(0), first.square()?),
        )?;
        Ok::<_, ferroflow_tracer::Error>(last)
    });
    let (first, x) = (Tensor::from([1.0f32, 2.0, 3.0]), Tensor::from(2.0f32));
    let tape = GradientTape::new();
    tape.watch(&(first.clone(), x.clone()))?;
    let y = f.call((&first, &x))?;
    let (dfirst, dx) = tape.gradient(&y, &(&first, &x))?;
    near(&values(dfirst)?, &[0.0; 3]);
    near(&values(dx)?, &[2.0]);
    Ok(())
}

/// The first row of `x`, taken twice in a loop.
fn first_row(x: &Tensor) -> Result<Tensor> {
    let options = WhileOptions {
        shape_invariants: vec![PartialShape::scalar(), PartialShape::ranked([None, None])],
        ..WhileOptions::default()
    };
    let (_, row) = while_loop_with(
        &options,
        |(i, _): &(Tensor, Tensor)| i.less(2),
        |(i, rows): (Tensor, Tensor)| Ok(((i + 1)?, rows.gather(&Tensor::from([0]))?)),
        (Tensor::from(0), x.clone()),
    )?;
    Ok(row)
}

#[test]
fn rows_that_a_loop_leaves_out_have_gradients_of_zero() -> Result<()> {
    let any = TensorSpec::new(DType::F32, PartialShape::ranked([None, None]));
    let alone = function(|x: Tensor| first_row(&x)).with_input_signature([any.clone()]);
    let in_branch = function(|x: Tensor| {
        let row = first_row(&x)?;
        cond(&x.sum_all()?.less(0.0)?, || Ok(row.clone()), || Ok(x.clone()))
    });
    let in_branch = in_branch.with_input_signature([any]);
    let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let first = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    for (f, x, expected) in
        [(&alone, x.clone(), first), (&in_branch, x.clone(), [1.0; 6]), (&in_branch, (-x)?, first)]
    {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = f.call((&x,))?;
        let gradient = tape.gradient(&y, &x)?;
        assert_eq!(gradient.as_ref().map(|dx| dx.shape().to_string()), Some("[3,2]".into()));
        near(&values(gradient)?, &expected);
    }
    Ok(())
}

/// `x` to the power of 4 where it is positive: a loop in a loop that changes a variable, and
/// truth values that its gradient keeps of each iteration.
fn fourth_power(x: &Tensor, state: &Variable) -> Result<Tensor> {
    let (_, y) = while_loop(
        |(i, _): &(Tensor, Tensor)| i.less(2),
        |(i, y): (Tensor, Tensor)| {
            let (_, square) = while_loop(
                |(j, _): &(Tensor, Tensor)| j.less(1),
                |(j, z): (Tensor, Tensor)| {
                    state.assign_sub(1.0f32)?;
                    Ok(((j + 1)?, z.square()?))
                },
                (Tensor::from(0i32), y.clone()),
            )?;
            Ok(((i + 1)?, y.greater(0.0)?.select(square, &y)?))
        },
        (Tensor::from(0i32), x.clone()),
    )?;
    Ok(y)
}

#[test]
fn gradients_of_gradients_of_loops_that_keep_truth_values_and_change_variables() -> Result<()> {
    let state = Variable::new(0.0f32)?;
    let any = TensorSpec::new(DType::F32, PartialShape::Unknown);
    let f = {
        let state = state.clone();
        function(move |x: Tensor| -> Result<_> {
            let tape = GradientTape::new();
            tape.watch(&x)?;
            Ok(tape.gradient(&fourth_power(&x, &state)?, &x)?.unwrap())
        })
        .with_input_signature([any])
    };
    let x = Tensor::from([2.0f32, -3.0]);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let first = f.call((&x,))?;
    near(&values(Some(first.clone()))?, &[32.0, 1.0]);
    near(&values(tape.gradient(&first, &x)?)?, &[48.0, 0.0]);
    assert_eq!(state.read()?.to_scalar::<f32>()?, -2.0);
    Ok(())
}

#[test]
fn what_no_result_with_a_gradient_depends_on_has_one_of_zero() -> Result<()> {
    // The root of 0 is a variable of the loop, on which `x` does not depend: its slope is infinite.
    let f = function(|x: Tensor| -> Result<Tensor> {
        let root = x.sqrt()?;
        let (_, y, _) = while_loop(
            |(i, ..): &(Tensor, Tensor, Tensor)| i.less(3),
            |(i, y, root): (Tensor, Tensor, Tensor)| {
                root.reshape(&[])?;
                Ok(((i + 1)?, (y * 2.0)?, root))
            },
            (Tensor::from(0i32), x, root),
        )?;
        Ok(y)
    });
    let alone = function(|x: Tensor, z: Tensor| -> Result<Tensor> {
        let (_, y, _) = while_loop(
            |(i, ..): &(Tensor, Tensor, Tensor)| i.less(3),
            |(i, y, z): (Tensor, Tensor, Tensor)| Ok(((i + 1)?, (y * 2.0)?, z.square()?)),
            (Tensor::from(0i32), x, z),
        )?;
        Ok(y)
    });
    let (x, z) = (Tensor::from(0.0f32), Tensor::from([1.0f32, 2.0]));
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    tape.watch(&z)?;
    let (y, both) = (f.call((&x,))?, alone.call((&x, &z))?);
    near(&values(tape.gradient(&y, &x)?)?, &[8.0]);
    let found = tape.gradient(&both, &(&x, &z))?;
    near(&values(found.0)?, &[8.0]);
    near(&values(found.1)?, &[0.0, 0.0]);
    Ok(())
}

#[test]
fn what_no_branch_makes_a_result_of_has_no_gradient() -> Result<()> {
    let f = function(|x: Tensor, unused: Tensor| -> Result<Tensor> {
        cond(
            &x.greater(0.0)?,
            || {
                (&x * &unused)?;
                &x * 2.0
            },
            || &x * 3.0,
        )
    });
    let (x, unused) = (Tensor::from(5.0f32), Tensor::from(7.0f32));
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    tape.watch(&unused)?;
    let y = f.call((&x, &unused))?;
    let found = tape.gradient(&y, &(&x, &unused))?;
    near(&values(found.0)?, &[2.0]);
    assert!(found.1.is_none(), "as TensorFlow, which has None here");
    Ok(())
}

#[test]
fn gradients_of_zero_are_given_to_custom_gradients() -> Result<()> {
    // As in TensorFlow: the loop has a gradient of zero for what it does not use, and the program's
    // own gradient of that adds 1 to any.
    let code = |args: &[Tensor]| {
        let backward = |dys: &[Tensor]| Ok(vec![Some((&dys[0] + 1.0)?)]);
        Ok((vec![args[0].square()?], backward))
    };
    let outside = function(move |x: Tensor| -> Result<Tensor> {
        let unused = custom_gradient(code, std::slice::from_ref(&x))?.remove(0);
        let (_, y, _) = while_loop(
            |(i, ..): &(Tensor, Tensor, Tensor)| i.less(3),
            |(i, y, unused): (Tensor, Tensor, Tensor)| {
                unused.square()?;
                Ok(((i + 1)?, (y * 2.0)?, unused))
            },
            (Tensor::from(0i32), x, unused),
        )?;
        Ok(y)
    });
    let x = Tensor::from(3.0f32);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = outside.call((&x,))?;
    near(&values(tape.gradient(&y, &x)?)?, &[9.0]);
    Ok(())
}
