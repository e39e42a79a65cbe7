use super::{near, values};
use ferroflow_ir::Code;
use ferroflow_tracer::{
    Error, GradientOptions, GradientTape, Result, TapeOptions, Tensor, TensorGradient, Variable,
    VariableOptions, init_scope, ops,
};

#[test]
fn trainable_variables_are_watched_when_they_are_read() -> Result<()> {
    let v = Variable::named("v", 3.0f32)?;
    let options = VariableOptions { trainable: false, ..VariableOptions::default() };
    let fixed = Variable::with_options(2.0f32, options)?;
    let tape = GradientTape::new();
    let y = (v.read()? * &fixed)?;
    let watched: Vec<String> =
        tape.watched_variables().iter().map(|variable| variable.name().into()).collect();
    assert_eq!(watched, ["v"]);
    let (dv, df) = tape.gradient(&y, &(&v, &fixed))?;
    near(&values(dv)?, &[2.0]);
    assert!(df.is_none());
    let options = TapeOptions { watch_accessed_variables: false, ..TapeOptions::default() };
    let tape = GradientTape::with_options(options);
    let y = v.read()?.square()?;
    assert!(tape.gradient(&y, &v)?.is_none());
    Ok(())
}

#[test]
fn sources_that_are_not_connected_get_nothing_or_zeros() -> Result<()> {
    let (x, z) = (Tensor::from([1.0f32, 2.0]), Tensor::from([5.0f32]));
    let v = Variable::new([1.0f32, 1.0])?;
    let tape = GradientTape::persistent();
    tape.watch(&(x.clone(), z.clone()))?;
    let y = x.square()?;
    let (dx, dz, dv) = tape.gradient(&y, &(&x, &z, &v))?;
    near(&values(dx)?, &[2.0, 4.0]);
    assert!(dz.is_none() && dv.is_none());
    let options = GradientOptions { zero_unconnected: true, ..GradientOptions::default() };
    let found = tape.gradient_with(&y, &(&z, &v), &options)?;
    near(&values(found.0)?, &[0.0]);
    near(&values(found.1)?, &[0.0, 0.0]);
    Ok(())
}

#[test]
fn targets_may_be_many_and_weighted() -> Result<()> {
    let x = Tensor::from([1.0f32, 2.0]);
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let (y, z) = (x.square()?, (&x * 10.0)?);
    near(&values(tape.gradient(&(y.clone(), z.clone()), &x)?)?, &[12.0, 14.0]);
    let weights = vec![Some(Tensor::from([1.0f32, 100.0])), None];
    let options = GradientOptions { output_gradients: Some(weights), ..Default::default() };
    near(&values(tape.gradient_with(&(y, z), &x, &options)?)?, &[12.0, 410.0]);
    Ok(())
}

#[test]
fn what_shares_memory_is_told_apart() -> Result<()> {
    let x = Tensor::from([2.0f32]);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let same = x.identity()?;
    let stopped = x.stop_gradient()?;
    let y = ((&same * &same)? + (&stopped * 7.0)?)?;
    near(&values(tape.gradient(&y, &x)?)?, &[4.0]);
    Ok(())
}

#[test]
fn recording_stops_and_starts_again() -> Result<()> {
    let x = Tensor::from(3.0f32);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let hidden = tape.stop_recording(|| x.square())?;
    let y = (x.square()? + &hidden)?;
    near(&values(tape.gradient(&y, &x)?)?, &[6.0]);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    tape.end();
    let y = x.square()?;
    assert!(tape.gradient(&y, &x)?.is_none());
    Ok(())
}

#[test]
fn derivatives_of_any_order_by_tapes_in_tapes() -> Result<()> {
    let x = Tensor::from(2.0f32);
    let [a, b, c] = [(), (), ()].map(|()| GradientTape::new());
    for tape in [&a, &b, &c] {
        tape.watch(&x)?;
    }
    let y = (x.square()? * x.square()?)?;
    let first = c.gradient(&y, &x)?.unwrap();
    let second = b.gradient(&first, &x)?.unwrap();
    let third = a.gradient(&second, &x)?;
    near(&values(Some(first))?, &[32.0]);
    near(&values(Some(second))?, &[48.0]);
    near(&values(third)?, &[48.0]);
    Ok(())
}

#[test]
fn a_persistent_tape_differentiates_its_own_gradients() -> Result<()> {
    let x = Tensor::from(2.0f32);
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let y = (x.square()? * &x)?;
    let first = tape.gradient(&y, &x)?.unwrap();
    near(&values(tape.gradient(&first, &x)?)?, &[12.0]);
    Ok(())
}

#[test]
fn what_has_no_gradient_is_said() -> Result<()> {
    let n = Tensor::from([1i32, 2]);
    let tape = GradientTape::persistent();
    let error = tape.watch(&n).unwrap_err();
    assert!(error.to_string().contains("found int32[2]"), "{error}");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(matches!(tape.gradient(&n, &n), Err(Error::NotDifferentiable { .. })));
    let x = Tensor::from([0.3f32]);
    tape.watch(&x)?;
    let y = ops::prevent_gradient(&x)?;
    let error = tape.gradient(&y, &x).unwrap_err();
    assert!(error.to_string().contains("PreventGradient"), "{error}");
    assert_eq!(error.code(), Code::Unimplemented);
    Ok(())
}

#[test]
fn rows_that_were_gathered_give_rows() -> Result<()> {
    let table = Variable::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    let tape = GradientTape::persistent();
    let rows = table.read()?.gather(&Tensor::from([2i32, 0, 2]))?;
    let y = (rows * 2.0)?;
    let found = tape.variable_gradients(&y, std::slice::from_ref(&table))?.remove(0).unwrap();
    let TensorGradient::Slices(slices) = &found else { panic!("{found:?} has no rows") };
    assert_eq!(slices.indices.to_vec::<i32>()?, [2, 0, 2]);
    assert_eq!(found.dense()?.to_vec::<f32>()?, [2.0, 2.0, 0.0, 0.0, 4.0, 4.0]);
    near(&values(tape.gradient(&y, &table)?)?, &[2.0, 2.0, 0.0, 0.0, 4.0, 4.0]);
    Ok(())
}

#[test]
fn a_tape_sees_the_trace_it_belongs_to_only() -> Result<()> {
    let x = Tensor::from(3.0f32);
    let f = ferroflow_tracer::function(|x: Tensor| -> Result<_> {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let outside = init_scope(|| Tensor::from(2.0f32).square())?;
        let y = (x.square()? * &outside)?;
        Ok(tape.gradient(&y, &x)?.unwrap())
    });
    assert_eq!(f.call((&x,))?.to_scalar::<f32>()?, 24.0);
    Ok(())
}
