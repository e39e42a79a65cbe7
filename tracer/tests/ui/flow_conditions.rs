//! Conditions are truth values.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn results(x: &Tensor) -> Result<Tensor> {
    if x.less(0.0) {
        return x.neg();
    }
    Ok(x.clone())
}

#[function]
fn numbers(x: &Tensor) -> Result<Tensor> {
    let n = 3;
    while n {}
    Ok(x.clone())
}

#[function]
fn operands(x: &Tensor) -> Result<Tensor> {
    if x.less(0.0)? && x.less(-1.0) {
        return x.neg();
    }
    Ok(x.clone())
}

#[function]
fn assertions(x: &Tensor) -> Result<Tensor> {
    assert!(x.less(0.0), "too large");
    Ok(x.clone())
}

fn main() {}
