//! Defaults are values of their parameters.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn wrong(x: &Tensor, #[default("one")] _scale: f64) -> Result<Tensor> {
    x.square()
}

#[function]
fn several(x: &Tensor, #[default(1.0)] #[default(2.0)] _scale: f64) -> Result<Tensor> {
    x.square()
}

fn main() {}
