//! What is passed by value, and what is returned, owns its data.
use ferroflow_tracer::{Result, Tensor, function};
use std::borrow::Cow;

#[function]
fn list(x: Vec<&Tensor>) -> Result<Tensor> {
    x[0].square()
}

#[function]
fn text<'a>(x: &Tensor, _name: Cow<'a, str>) -> Result<Tensor> {
    x.square()
}

#[function]
fn object(_x: &dyn std::fmt::Debug) -> Result<()> {
    Ok(())
}

#[function]
fn first<'a>(x: &'a [Tensor]) -> Result<&'a Tensor> {
    Ok(&x[0])
}

fn main() {}
