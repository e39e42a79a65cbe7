//! Gradients of functions that were traced without knowing shapes.

use super::{near, values};
use ferroflow_ir::{PartialShape, TensorSpec};
use ferroflow_tracer::{DType, Function, GradientTape, Result, Tensor, function, ops};

type Binary = Function<(Tensor, Tensor), Tensor>;

fn numbers(dims: &[usize], from: f32) -> Result<Tensor> {
    let n: usize = dims.iter().product();
    let numbers: Vec<f32> = (0..n).map(|i| from + (i * 7 % 11) as f32 * 0.25).collect();
    Tensor::from_slice(dims, &numbers)
}

/// The gradients of a function of two tensors, weighed.
fn gradients(
    f: &dyn Fn(&Tensor, &Tensor) -> Result<Tensor>,
    a: &Tensor,
    b: &Tensor,
) -> Result<[Vec<f64>; 2]> {
    let tape = GradientTape::new();
    tape.watch(&(a.clone(), b.clone()))?;
    let y = f(a, b)?;
    let weights = numbers(y.shape().known().unwrap().dims(), -1.0)?;
    let (da, db) = tape.gradient(&(y * weights)?, &(a, b))?;
    let zeros = |x: &Tensor, dx: Option<Tensor>| match dx {
        Some(dx) => values(Some(dx)),
        None => values(Some(x.zeros_like()?)),
    };
    Ok([zeros(a, da)?, zeros(b, db)?])
}

/// Compares the gradients of a function of known shapes with those where ranks, or less, is known.
fn check(
    f: impl Fn(&Tensor, &Tensor) -> Result<Tensor> + Clone + Send + Sync + 'static,
    a: &Tensor,
    b: &Tensor,
) -> Result<()> {
    let expected = gradients(&f, a, b)?;
    let ranks = [a, b].map(|x| PartialShape::of_rank(x.shape().rank().unwrap()));
    for shapes in [ranks, [PartialShape::Unknown, PartialShape::Unknown]] {
        let specs = shapes.clone().map(|shape| TensorSpec::new(DType::F32, shape));
        let f = f.clone();
        let traced: Binary = function(move |a: Tensor, b: Tensor| f(&a, &b));
        let traced = traced.with_parameters(["a", "b"]).with_input_signature(specs);
        let found = gradients(&|a, b| traced.call((a, b)), a, b)?;
        for (found, expected) in found.iter().zip(&expected) {
            near(found, expected);
        }
    }
    Ok(())
}

#[test]
fn products_of_labelled_axes() -> Result<()> {
    for (equation, a, b) in [
        ("ab,bc->ac", &[2, 3][..], &[3, 4][..]),
        ("ab,cb->ca", &[2, 3], &[4, 3]),
        ("ab,ab->", &[2, 3], &[2, 3]),
        ("ab,c->ca", &[2, 3], &[4]),
        ("abc,cd->d", &[2, 3, 4], &[4, 2]),
        ("aab,b->a", &[3, 3, 2], &[2]),
        ("aa,b->b", &[3, 3], &[2]),
        ("ab,b->aab", &[2, 3], &[3]),
        ("...ab,bc->...ac", &[5, 2, 3], &[3, 4]),
        ("...ab,...bc->...ac", &[5, 2, 3], &[1, 3, 4]),
        ("a...b,bc->ca...", &[2, 5, 3], &[3, 4]),
        ("ab...,...b->a...", &[2, 3, 4], &[4, 3]),
        ("...,...->...", &[2, 1], &[3]),
        ("a...,b->b...", &[2, 4], &[3]),
    ] {
        let product = move |a: &Tensor, b: &Tensor| ops::einsum(&[a, b], equation);
        check(product, &numbers(a, 0.5)?, &numbers(b, -0.75)?)
            .inspect_err(|_| println!("{equation}"))?;
    }
    for (equation, a) in [
        ("ab->ba", &[2, 3][..]),
        ("ab->a", &[2, 3]),
        ("aa->a", &[3, 3]),
        ("aab->b", &[3, 3, 2]),
        ("a->aa", &[3]),
        ("a...->...", &[2, 3]),
        ("ab...->...a", &[2, 3, 4]),
    ] {
        let turned = move |a: &Tensor, b: &Tensor| ops::einsum(&[a], equation)? * b;
        check(turned, &numbers(a, 0.5)?, &Tensor::from(2.0f32))
            .inspect_err(|_| println!("{equation}"))?;
    }
    Ok(())
}

#[test]
fn formulas_that_need_shapes() -> Result<()> {
    let contrast = |x: &Tensor, factor: &Tensor| ops::adjust_contrast_v2(x, factor);
    check(contrast, &numbers(&[2, 3, 4, 3], 0.5)?, &Tensor::from(1.5f32))?;
    let solved = |a: &Tensor, b: &Tensor| ops::matrix_solve_ls(a, b, &Tensor::from(0.1f64));
    check(solved, &numbers(&[3, 2], 0.5)?, &numbers(&[3, 1], -0.5)?)?;
    let squared = |a: &Tensor, b: &Tensor| {
        let y = ops::einsum(&[a, b], "ab,bc->ac")?;
        ops::matrix_solve_ls(&y, b, &Tensor::from(0.5f64))
    };
    check(squared, &numbers(&[3, 3], 0.5)?, &numbers(&[3, 2], -0.75)?)
}

#[test]
fn rules_that_need_shapes() -> Result<()> {
    let tiled = |a: &Tensor, b: &Tensor| ops::tile(a, &Tensor::from([2, 1]))? * b;
    check(tiled, &numbers(&[2, 3], 0.5)?, &Tensor::from(2.0f32))?;
    let rows = |a: &Tensor, b: &Tensor| {
        let rows = ops::gather_v2(a, &Tensor::from([1, 0, 1]), &Tensor::from(1))?;
        rows * b
    };
    check(rows, &numbers(&[2, 3], 0.5)?, &Tensor::from(2.0f32))?;
    let largest = |a: &Tensor, b: &Tensor| &ops::top_k_v2(a, &Tensor::from(2))?[0] * b;
    check(largest, &numbers(&[2, 4], 0.5)?, &Tensor::from(2.0f32))
}

#[test]
fn formulas_that_need_shapes_twice() -> Result<()> {
    let f = |x: Tensor| {
        let factor = Tensor::from(2.0f32);
        (ops::adjust_contrast_v2(&x, &factor)? * &x)?.square()
    };
    let traced = function(f).with_parameters(["x"]);
    let traced =
        traced.with_input_signature([TensorSpec::new(DType::F32, PartialShape::of_rank(3))]);
    let second = |f: &dyn Fn(&Tensor) -> Result<Tensor>| -> Result<Vec<f64>> {
        let x = numbers(&[2, 2, 3], 0.5)?;
        let outer = GradientTape::new();
        outer.watch(&x)?;
        let inner = GradientTape::new();
        inner.watch(&x)?;
        let y = f(&x)?;
        let first = inner.gradient(&y, &x)?.unwrap();
        values(outer.gradient(&first, &x)?)
    };
    near(&second(&|x| traced.call((x,)))?, &second(&|x| f(x.clone()))?);
    Ok(())
}
