//! Both branches of a graph run: what one gives away, the other lacks.

use ferroflow_tracer::{Result, Tensor, function};

fn eat(_: Tensor) {}

#[function]
fn gives(x: Tensor) -> Result<Tensor> {
    if x.less(0.0)? {
        eat(x);
    }
    Ok(Tensor::from(1))
}

fn main() {}
