//! Tensors are compared by methods.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn bounded(x: &Tensor) -> Result<Tensor> {
    if x < 10.0 { x * 2.0 } else { x - 1.0 }
}

struct Level {
    height: Tensor,
}

#[function]
fn field(x: &Tensor) -> Result<Tensor> {
    let level = Level { height: x.clone() };
    while 3 == level.height {}
    x.square()
}

fn main() {}
