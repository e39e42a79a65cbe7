//! Collections of Rust have the same length in every run.

use ferroflow_tracer::{Result, Tensor, function, range};

#[function]
fn collects(n: &Tensor) -> Result<Vec<Tensor>> {
    let mut all = Vec::new();
    for i in range(n) {
        all.push(i);
    }
    Ok(all)
}

fn main() {}
