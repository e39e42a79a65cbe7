//! A `loop` whose value a jump gives is Rust's.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn values(x: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    let y = loop {
        x = (x + 1.0)?;
        if x.greater(9.0)? {
            break x.clone();
        }
    };
    Ok(y)
}

fn main() {}
