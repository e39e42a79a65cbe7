//! A traced function names its types.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn by_impl(x: &Tensor, _options: &impl Clone) -> Result<Tensor> {
    x.square()
}

fn main() {}
