//! Tracing and running may fail.
use ferroflow_tracer::{Tensor, function};

#[function]
fn infallible(x: &Tensor) -> Tensor {
    x.clone()
}

#[function]
fn silent(_x: &Tensor) {}

#[function]
fn optional(x: &Tensor) -> Option<Tensor> {
    Some(x.clone())
}

fn main() {}
