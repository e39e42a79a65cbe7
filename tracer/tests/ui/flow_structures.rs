//! Structures that are carried are nests.

use ferroflow_tracer::{Result, Tensor, function};

struct Pair(Tensor, Tensor);

#[function]
fn swaps(x: &Tensor) -> Result<Tensor> {
    let mut pair = Pair(x.clone(), x.neg()?);
    if x.less(0.0)? {
        pair = Pair(pair.1.clone(), pair.0.clone());
    }
    Ok(pair.0)
}

fn main() {}
