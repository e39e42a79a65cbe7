//! Without rewriting, conditions are Rust's.

use ferroflow_tracer::{Result, Tensor, function};

#[function(autograph = false)]
fn branches(x: &Tensor) -> Result<Tensor> {
    if x.less(0.0)? {
        return x.neg();
    }
    Ok(x.clone())
}

fn main() {}
