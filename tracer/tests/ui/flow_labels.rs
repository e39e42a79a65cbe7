//! Nor can it leave a block.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn leaves(x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    'block: {
        if x.less(1.0)? {
            break 'block;
        }
        y = (y + 1.0)?;
    }
    Ok(y)
}

fn main() {}
