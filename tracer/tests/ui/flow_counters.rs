//! A number of Rust that a loop of the graph changes.

use ferroflow_tracer::{Result, Tensor, function, range};

#[function]
fn counts(n: &Tensor) -> Result<Tensor> {
    let mut count = 0i64;
    for _ in range(n) {
        count += 1;
    }
    n + count
}

#[function]
fn means(x: &Tensor) -> Result<Tensor> {
    let mut sum = 0.0f32;
    for row in x {
        sum = row.to_scalar::<f32>()?;
    }
    x + sum
}

fn main() {}
