//! Arguments are not changed.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn push(list: &mut Vec<Tensor>, x: &Tensor) -> Result<()> {
    list.push(x.clone());
    Ok(())
}

#[function]
fn replace(_x: Option<&mut Tensor>) -> Result<()> {
    Ok(())
}

fn main() {}
