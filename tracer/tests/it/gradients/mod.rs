//! Tapes and what they give.

mod control;
mod custom;
mod dilated;
mod functions;
mod shapes;
mod tapes;

use ferroflow_tracer::{Result, Tensor};

/// The elements of a gradient that is there.
fn values(gradient: Option<Tensor>) -> Result<Vec<f64>> {
    gradient.expect("the target depends on the source").cast(ferroflow_ir::DType::F64)?.to_vec()
}

fn near(found: &[f64], expected: &[f64]) {
    let same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()));
    assert!(same, "{found:?} instead of {expected:?}");
}
