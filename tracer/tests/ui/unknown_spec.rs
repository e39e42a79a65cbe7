//! Specs are of known forms.
use ferroflow_tracer::{Result, Tensor, function};

#[function(input_signature = [spec(flaot32, [None])])]
fn dtype(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function(input_signature = [tensor(f32, [None])])]
fn form(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function(input_signature = [spec(f32, [n])])]
fn dimension(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function(input_signature = [spec(f32, [-1])])]
fn negative(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function(input_signature = [spec])]
fn bare(x: &Tensor) -> Result<Tensor> {
    x.square()
}

fn main() {}
