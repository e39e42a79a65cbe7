//! Graphs choose between values, not between references.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn chooses(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let larger = if x.less(y)? { y } else { x };
    Ok(larger.clone())
}

#[function]
fn assigns(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let mut larger = x;
    if x.less(y)? {
        larger = y;
    }
    Ok(larger.clone())
}

fn main() {}
