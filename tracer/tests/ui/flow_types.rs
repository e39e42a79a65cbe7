//! Branches give values of one type.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn differs(x: &Tensor) -> Result<Tensor> {
    let y = if x.less(0.0)? { x.clone() } else { (x.clone(), x.clone()) };
    Ok(y)
}

#[function]
fn nothing(x: &Tensor) -> Result<Tensor> {
    let y: Tensor = if x.less(0.0)? { x.clone() };
    Ok(y)
}

fn main() {}
