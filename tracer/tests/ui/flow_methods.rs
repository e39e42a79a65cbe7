//! Methods that change objects of Rust would do so once, while tracing.

use ferroflow_tracer::{Result, Tensor, function};

struct Log(usize);

impl Log {
    fn note(&mut self) {
        self.0 += 1;
    }
}

#[function]
fn logs(x: &Tensor) -> Result<Tensor> {
    let mut log = Log(0);
    let mut x = x.clone();
    while x.less(1.0)? {
        log.note();
        x = (x + 1.0)?;
    }
    Ok(x)
}

fn main() {}
