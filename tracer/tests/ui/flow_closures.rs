//! Closures that branch on tensors may fail, and assign to nothing outside where they return early.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn fails(x: &Tensor) -> Result<Tensor> {
    let f = |y: &Tensor| if y.is_finite().unwrap() { y.clone() } else { x.clone() };
    Ok(f(x))
}

#[function]
fn assigns(x: &Tensor) -> Result<Tensor> {
    let mut last = x.clone();
    let mut f = |y: &Tensor| -> Result<Tensor> {
        if y.less(0.0)? {
            return y.neg();
        }
        last = y.clone();
        Ok(y.clone())
    };
    f(x)?;
    Ok(last)
}

fn main() {}
