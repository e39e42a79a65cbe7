//! Arguments are tuples of eight at most.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
#[expect(clippy::too_many_arguments, reason = "that is what is tested")]
fn f(x: &Tensor, a: i8, b: i8, c: i8, d: i8, e: i8, f: i8, g: i8, h: i8) -> Result<Tensor> {
    x + (a + b + c + d + e + f + g + h) as i64
}

fn main() {}
