//! Merged tensors have the numbers of Keras.

use crate::recorded::{check, numbers};
use ferroflow_nn::merge;
use ferroflow_tracer::{DType, Error, Result, Tensor, function, ops, spec};

/// Three tensors, of which the last is an example without its second dimension.
fn three() -> Result<[Tensor; 3]> {
    let a = numbers(&[2, 3, 4])?;
    let b = (ops::reverse_v2(&a, &Tensor::from([0, 2]))? + 0.3)?;
    Ok([a, b, numbers(&[2, 4])?])
}

#[test]
fn tensors_are_merged() -> Result<()> {
    let [a, b, c] = &three()?;
    let xs = &[a, b, c];
    check("merge add", &merge::add(xs)?);
    check("merge multiply", &merge::multiply(xs)?);
    check("merge average", &merge::average(xs)?);
    check("merge maximum", &merge::maximum(xs)?);
    check("merge minimum", &merge::minimum(xs)?);
    check("merge subtract", &merge::subtract(a, c)?);
    check("merge concatenate", &merge::concatenate(&[a, b], 1)?);
    assert!(merge::add(&[]).is_err() && merge::add(&[a, &numbers(&[3, 4])?]).is_err());
    Ok(())
}

#[test]
fn dot_products_are_of_any_axes() -> Result<()> {
    let [a, b, c] = &three()?;
    check("merge dot", &merge::dot(a, b, [2, 2])?);
    check("merge dot first", &merge::dot(a, b, [1, 1])?);
    check("merge dot vector", &merge::dot(c, a, [1, 2])?);
    check("merge dot vectors", &merge::dot(c, &(c + 1.0)?, [-1, -1])?);
    let (x, y) = (numbers(&[2, 3, 2, 4])?, numbers(&[2, 4, 5])?);
    check("merge cosine", &merge::cosine(&x, &y, [3, 1])?);
    assert!(merge::dot(a, b, [0, 1]).is_err() && merge::dot(a, b, [3, 1]).is_err());
    assert!(merge::dot(a, b, [1, 2]).is_err());
    Ok(())
}

#[test]
fn dot_products_of_unknown_sizes() -> Result<()> {
    let [a, b, _] = three()?;
    let staged = function(|a: Tensor, b: Tensor| {
        let y = merge::dot(&a, &b, [2, 2])?;
        assert_eq!(y.shape().to_string(), "[?,?,3]");
        Ok::<_, Error>(y)
    });
    let any = spec(DType::F32, [None, None, Some(4)]);
    let staged = staged.with_input_signature([any, spec(DType::F32, [None, Some(3), Some(4)])]);
    check("merge dot", &staged.call((a, b))?);
    Ok(())
}
