//! Errors are made of the tracer's.
use ferroflow_tracer::{Tensor, function};

#[derive(Debug)]
struct Mine;

impl std::fmt::Display for Mine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mine")
    }
}

impl std::error::Error for Mine {}

#[function]
fn square(_x: &Tensor) -> Result<Tensor, Mine> {
    Err(Mine)
}

fn main() {}
