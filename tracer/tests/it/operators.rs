//! Operators of Rust on tensors.

use ferroflow_tracer::{GradientTape, Result, Tensor, Variable, function};

fn vector(values: [f32; 2]) -> Tensor {
    Tensor::from(values)
}

#[test]
fn an_operator_takes_what_another_gives() -> Result<()> {
    let (x, b) = (vector([1.0, 2.0]), vector([0.5, -0.5]));
    let w = Variable::new([3.0f32, 4.0])?;
    for y in [&x * &w + &b, &b + &x * &w, &x * &w + b.clone(), b.clone() + &x * &w] {
        assert_eq!(y?.to_vec::<f32>()?, [3.5, 7.5]);
    }
    assert_eq!(((&x * &x * &x - &w)? + &x / &x)?.to_vec::<f32>()?, [-1.0, 5.0]);
    assert_eq!((&x + &x).and_then(|y| y % 3)?.to_vec::<f32>()?, [2.0, 1.0]);
    Ok(())
}

#[test]
fn the_first_error_is_the_one_that_is_told() {
    let (x, y) = (vector([1.0, 2.0]), Tensor::from([1.0f32, 2.0, 3.0]));
    let error = (&x * &y + &x).unwrap_err().to_string();
    assert!(error.contains("[2] vs. [3]"), "{error}");
}

#[test]
fn operators_that_assign_leave_errors_in_the_tensor() -> Result<()> {
    let (x, y) = (vector([1.0, 2.0]), Tensor::from([1.0f32, 2.0, 3.0]));
    let mut total = x.clone();
    total += &x;
    total *= 2.0;
    total -= &x * &x;
    assert_eq!(total.to_vec::<f32>()?, [3.0, 4.0]);
    total /= &y;
    // Dtype and shape are those before; everything else is the error.
    assert_eq!(total.spec(), x.spec());
    assert!(total.to_string().starts_with("<failed: "), "{total}");
    let same = |error: ferroflow_tracer::Error| {
        let text = error.to_string();
        assert!(text.contains("[2] vs. [3]"), "{text}");
    };
    same(total.square().unwrap_err());
    same(total.to_vec::<f32>().unwrap_err());
    same((&x + &total).unwrap_err());
    same(function(|x: Tensor| x.square()).call((total.clone(),)).unwrap_err());
    total += 1.0;
    same(total.into_eager().unwrap_err());
    Ok(())
}

#[test]
fn errors_left_in_tensors_end_traces() -> Result<()> {
    let added = function(|x: Tensor, y: Tensor| -> Result<Tensor> {
        let mut total = x;
        total += &y;
        Ok(total)
    });
    let x = vector([1.0, 2.0]);
    assert_eq!(added.call((x.clone(), x.clone()))?.to_vec::<f32>()?, [2.0, 4.0]);
    let error = added.call((x.clone(), Tensor::from([1.0f32, 2.0, 3.0]))).unwrap_err();
    assert!(error.to_string().contains("[2] vs. [3]"), "{error}");
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let mut y = x.square()?;
    y *= &x;
    assert_eq!(tape.gradient(&y, &x)?.unwrap().to_vec::<f32>()?, [3.0, 12.0]);
    Ok(())
}

#[function]
fn polynomial(x: &Tensor, n: usize) -> Result<Tensor> {
    let scale = (n * 2 + 1) as f32 / 2.0 - 0.5;
    let parts = [0.5; 2 + 1];
    let size = -(parts.len() as i64 - 4) + 1;
    let y = 1.0 - x * 2.0 + x * x * scale;
    (-(y? - size) * 2.0 + 1.0).maximum(-(x * 3.0))
}

#[test]
fn in_functions_numbers_follow_operators() -> Result<()> {
    // -(1 - 2x + x²·1.5·... ) is taken at two points by hand: n = 1 gives the scale 1.
    let y = polynomial(&vector([1.0, -1.0]), 1)?;
    assert_eq!(y.to_vec::<f32>()?, [5.0, 3.0]);
    Ok(())
}
