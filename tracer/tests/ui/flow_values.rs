//! A variable without a value cannot get one in a branch of a graph.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn later(x: &Tensor) -> Result<Tensor> {
    let y;
    if x.less(0.0)? {
        y = x.neg()?;
    } else {
        y = x.clone();
    }
    Ok(y)
}

fn main() {}
