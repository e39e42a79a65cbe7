//! Parameters have names.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn pair((a, b): (Tensor, Tensor)) -> Result<Tensor> {
    &a + &b
}

#[function]
fn unused(x: &Tensor, _: i64) -> Result<Tensor> {
    x.square()
}

#[function]
fn by_ref(ref x: Tensor) -> Result<Tensor> {
    x.square()
}

fn main() {}
