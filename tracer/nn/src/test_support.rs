//! Comparisons of the tests.

use ferroflow_tracer::{Result, Tensor};

/// The elements are these, to five digits.
#[track_caller]
pub(crate) fn near(found: Result<Tensor>, expected: &[f32]) {
    let found = found.unwrap().to_vec::<f32>().unwrap();
    let same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(same, "{found:?} instead of {expected:?}");
}
