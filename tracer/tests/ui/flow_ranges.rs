//! Ranges end at whole numbers or tensors; what is looped over can be.

use ferroflow_tracer::{Result, Tensor, function, range};

#[function]
fn fractions(x: &Tensor) -> Result<Tensor> {
    for _ in range(1.5) {}
    Ok(x.clone())
}

#[function]
fn booleans(x: &Tensor) -> Result<Tensor> {
    for _ in true {}
    Ok(x.clone())
}

fn main() {}
