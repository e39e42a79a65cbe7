//! Methods take `&self`, or `&mut self` of an object made of tensors.
use ferroflow_tracer::{Functions, HasFunctions, Result, Tensor, function};

#[derive(HasFunctions)]
struct Net {
    functions: Functions,
}

impl Net {
    #[function]
    fn change(&mut self, x: &Tensor) -> Result<Tensor> {
        x.square()
    }

    #[function(input_signature = [host])]
    fn change_by_signature(&mut self, x: &Tensor) -> Result<Tensor> {
        x.square()
    }

    #[function]
    fn consume(self, x: &Tensor) -> Result<Tensor> {
        x.square()
    }

    #[function]
    fn shared(self: std::sync::Arc<Self>, x: &Tensor) -> Result<Tensor> {
        x.square()
    }

    #[function]
    fn generic<T>(&self, x: &Tensor) -> Result<Tensor> {
        x.square()
    }
}

fn main() {}
