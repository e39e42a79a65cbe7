//! Values of Rust cannot depend on tensors.

use ferroflow_tracer::{Nest, Result, Tensor, function};

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

#[derive(Nest)]
struct Count(usize);

#[function]
fn returns(x: &Tensor) -> Result<Count> {
    let count = |n| Count(n);
    let closure = |x: &Tensor| -> Result<f32> {
        if x.less(1.0)? {
            return Ok(1.0);
        }
        Ok(2.0)
    };
    let _ = closure(x)?;
    Ok(count(3))
}

fn main() {}
