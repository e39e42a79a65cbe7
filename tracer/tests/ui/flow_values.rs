//! A variable without a value gets one in all branches of a graph, or in none.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn one_branch(x: &Tensor) -> Result<Tensor> {
    let y;
    if x.less(0.0)? {
        y = x.neg()?;
        return y + 1.0;
    }
    Ok(x.clone())
}

fn main() {}
