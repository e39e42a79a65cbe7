//! Traces of methods are kept in the object.
use ferroflow_tracer::{Result, Tensor, function};

struct Net;

impl Net {
    #[function]
    fn infer(&self, x: &Tensor) -> Result<Tensor> {
        x.square()
    }
}

fn main() {}
