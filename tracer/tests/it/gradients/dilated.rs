//! Gradients of convolutions whose taps lie apart. The numbers are TensorFlow's with XLA, as its own
//! kernels for CPUs have no such gradients.

use super::{near, values};
use ferroflow_tracer::{GradientTape, Result, Tensor, ops};

/// Numbers without a pattern: `i * factor % modulus - offset`.
fn numbers(dims: &[i64], factor: usize, modulus: usize, offset: f32) -> Result<Tensor> {
    let len = dims.iter().product::<i64>() as usize;
    let numbers = (0..len).map(|index| (index * factor % modulus) as f32 - offset);
    Tensor::from(numbers.collect::<Vec<_>>()).reshape(dims)
}

fn check(padding: &str, dilations: [i64; 2], dx: &[f64], dw: &[f64]) -> Result<()> {
    let x = numbers(&[1, 6, 5, 2], 7, 11, 5.0)?;
    let w = numbers(&[2, 3, 2, 2], 5, 7, 3.0)?;
    let tape = GradientTape::new();
    tape.watch(&x)?;
    tape.watch(&w)?;
    let attrs = ops::Conv2DAttrs {
        dilations: vec![1, dilations[0], dilations[1], 1],
        ..Default::default()
    };
    let y = ops::conv2d_with(&x, &w, &[1, 1, 1, 1], padding, &attrs)?;
    let weights = numbers(&y.shape().known().expect("known").to_i64(), 3, 5, 2.0)?;
    let (by_x, by_w) = tape.gradient(&(&y * &weights)?.sum_all()?, &(&x, &w))?;
    near(&values(by_x)?, dx);
    near(&values(by_w)?, dw);
    Ok(())
}

#[test]
fn gradients_of_dilated_convolutions_are_those_of_tensorflow() -> Result<()> {
    #[rustfmt::skip]
    check(
        "SAME",
        [2, 1],
        &[
            2., -5., -9., 6., -9., 16., -4., -4., 8., -7., -3., -3., -12., -3., -8., 7., 6., -8.,
            10., 1., -3., -3., -12., -3., -8., 7., 6., -8., 10., 1., -3., -3., -12., -3., -8., 7.,
            6., -8., 10., 1., -3., -3., -12., -3., -8., 7., 6., -8., 10., 1., -5., 2., -3., -9.,
            1., -9., 10., -4., 2., 8.,
        ],
        &[
            18., -9., 22., -11., 18., -20., 18., -20., 3., -9., -1., -9., 3., 15., 18., -9., 18.,
            -9., 18., -20., 18., -20., 3., -9.,
        ],
    )?;
    #[rustfmt::skip]
    check(
        "VALID",
        [3, 2],
        &[
            8., -2., 0., 0., -5., -1., 0., 0., -4., 7., 7., -4., 0., 0., -1., -5., 0., 0., -2., 8.,
            -4., 4., 0., 0., -2., 6., 0., 0., 0., -6., -3., 8., 0., 0., -2., -5., 0., 0., -1., -4.,
            -3., 7., 0., 0., -4., -1., 0., 0., -5., -2., 2., -4., 0., 0., 4., -2., 0., 0., 6., 0.,
        ],
        &[
            11., -13., 1., -6., -7., 15., 5., -11., 8., -12., -2., -5., 8., -12., -2., -5., 1.,
            -6., 2., 12., 5., -11., -5., -4.,
        ],
    )?;
    Ok(())
}
