//! The trace owns what it is lent.
use ferroflow_tracer::{Functions, HasFunctions, Nest, Result, Tensor, function};

#[derive(Nest)]
struct Layer {
    w: Tensor,
}

#[function]
fn lent(layer: &Layer) -> Result<Tensor> {
    layer.w.square()
}

#[derive(HasFunctions)]
struct Net(Functions);

impl Net {
    #[function]
    fn run(&self, layer: Option<&Layer>) -> Result<()> {
        layer.map(|layer| layer.w.square()).transpose().map(drop)
    }
}

fn main() {}
