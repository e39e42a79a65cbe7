//! A name that hides a variable of a loop stands between a jump and that variable.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn hides(x: &Tensor) -> Result<Tensor> {
    let mut sum = x.clone();
    while sum.less(9.0)? {
        sum = (sum + 1.0)?;
        let sum = sum.square()?;
        if sum.greater(30.0)? {
            break;
        }
    }
    Ok(sum)
}

fn main() {}
