//! It is switched by a truth value.

use ferroflow_tracer::{Result, Tensor, function};

#[function(autograph = "no")]
fn identity(x: &Tensor) -> Result<Tensor> {
    Ok(x.clone())
}

fn main() {}
