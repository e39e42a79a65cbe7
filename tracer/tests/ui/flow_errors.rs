//! Errors that depend on tensors are assertions.

use ferroflow_tracer::{Error, Result, Tensor, function};

#[function]
fn fails(x: &Tensor) -> Result<Tensor> {
    if x.less(0.0)? {
        return Err(Error::host("negative"));
    }
    x.sqrt()
}

fn main() {}
