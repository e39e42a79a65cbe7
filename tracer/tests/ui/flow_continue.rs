//! A tensor cannot skip the rest of an iteration of a loop of Rust.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn skips(x: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    let mut step = 0;
    while step < 3 {
        step += 1;
        if x.less(step)? {
            continue;
        }
        x = (x + step)?;
    }
    Ok(x)
}

fn main() {}
