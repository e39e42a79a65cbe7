//! Functions that are more than functions.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
async fn later(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function]
unsafe fn dangerous(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function]
const fn early(x: &Tensor) -> Result<()> {
    Ok(())
}

#[function]
extern "C" fn foreign(x: &Tensor) -> Result<Tensor> {
    x.square()
}

fn main() {}
