//! Arguments and results are made of tensors, variables and literals.
use ferroflow_tracer::{Result, Tensor, function};

#[derive(Clone)]
struct Config {
    _scale: f32,
}

#[function]
fn scaled(x: &Tensor, _config: &Config) -> Result<Tensor> {
    x.square()
}

fn main() {}
