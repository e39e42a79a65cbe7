//! Arguments are tuples of sixteen at most.
use ferroflow_tracer::{Result, Tensor, function};

#[function]
#[rustfmt::skip]
#[expect(clippy::too_many_arguments, reason = "that is what is tested")]
fn f(
    x: &Tensor, a: i8, b: i8, c: i8, d: i8, e: i8, f: i8, g: i8, h: i8,
    i: i8, j: i8, k: i8, l: i8, m: i8, n: i8, o: i8, p: i8,
) -> Result<Tensor> {
    x + (a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p) as i64
}

fn main() {}
