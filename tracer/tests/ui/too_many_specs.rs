//! A spec belongs to a parameter.
use ferroflow_tracer::{Functions, HasFunctions, Result, Tensor, function};

#[function(input_signature = [spec(f32, [None]), host])]
fn one(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[derive(HasFunctions)]
struct Net(Functions);

impl Net {
    #[function(input_signature = [spec(f32, [None]), spec(f32, []), host])]
    fn run(&self, x: &Tensor, _y: &Tensor) -> Result<Tensor> {
        x.square()
    }
}

#[function(input_signature = [host], infer_signature_from_first_call)]
fn both(x: &Tensor) -> Result<Tensor> {
    x.square()
}

fn main() {}
