//! A traced function is one function.
use ferroflow_tracer::{Nest, Result, Tensor, function};

#[function]
fn by_type<T: Nest + Clone>(x: &Tensor, _options: &T) -> Result<Tensor> {
    x.square()
}

#[function]
fn by_number<const N: usize>(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function]
fn by_impl(x: &Tensor, _options: &impl Clone) -> Result<Tensor> {
    x.square()
}

fn main() {}
