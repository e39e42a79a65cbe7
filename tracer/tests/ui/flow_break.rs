//! A tensor cannot end a loop of Rust.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn breaks(x: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    for step in [1.0, 2.0] {
        if x.less(step)? {
            break;
        }
        x = (x + step)?;
    }
    Ok(x)
}

fn main() {}
