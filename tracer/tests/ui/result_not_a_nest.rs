//! Arguments and results are made of tensors, variables and literals.
use ferroflow_tracer::{Result, Tensor, function};

struct Found(Tensor);

#[function]
fn found(x: &Tensor) -> Result<Found> {
    Ok(Found(x.clone()))
}

fn main() {}
