//! Values of Rust cannot depend on tensors.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn counts(x: &Tensor) -> Result<Tensor> {
    let mut n = 0;
    if x.less(1.0)? {
        n += 1;
    }
    x * n
}

#[function]
fn texts(x: &Tensor) -> Result<Tensor> {
    let text = if x.less(1.0)? { String::new() } else { "large".to_string() };
    x * text.len() as i64
}

#[function]
fn returns(x: &Tensor) -> Result<f32> {
    if x.less(1.0)? {
        return Ok(1.0);
    }
    Ok(2.0)
}

fn main() {}
