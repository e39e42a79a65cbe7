//! What can be traced is functions and methods.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
struct Net;

struct Other;

#[function]
impl Other {}

trait Model {
    #[function]
    fn infer(&self, x: &Tensor) -> Result<Tensor>;
}

fn main() {}
