//! The value of a `loop` that a tensor ends is made of tensors.

use ferroflow_tracer::{Result, Tensor, function};

#[function]
fn numbers(x: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    let n = loop {
        x = (x + 1.0)?;
        if x.greater(9.0)? {
            break 3;
        }
    };
    x * n
}

#[function]
fn results(x: &Tensor) -> Result<Tensor> {
    let mut x = x.clone();
    loop {
        x = (x + 1.0)?;
        if x.greater(9.0)? {
            break &x * 2.0;
        }
    }
}

fn main() {}
