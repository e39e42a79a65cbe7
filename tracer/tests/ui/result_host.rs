//! Results are tensors: neither values of Rust nor variables.

use ferroflow_tracer::{Functions, HasFunctions, Result, Tensor, Variable, function};
use std::collections::HashMap;

#[function]
fn number(x: &Tensor) -> Result<f32> {
    x.to_scalar()
}

#[function]
fn pair(x: &Tensor) -> Result<(Tensor, i64)> {
    Ok((x.clone(), 3))
}

#[function]
fn texts(x: &Tensor) -> Result<Vec<Option<String>>> {
    Ok(vec![Some(x.to_string())])
}

#[function]
fn by_name(x: &Tensor) -> Result<HashMap<String, Tensor>> {
    Ok(HashMap::from([("x".to_string(), x.clone())]))
}

#[derive(HasFunctions)]
struct Owner {
    v: Variable,
    functions: Functions,
}

impl Owner {
    #[function]
    fn variable(&self) -> Result<ferroflow_tracer::Variable> {
        Ok(self.v.clone())
    }
}

fn main() {}
