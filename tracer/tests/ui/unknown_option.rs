//! Options have names.
use ferroflow_tracer::{Result, Tensor, function};

#[function(jit_compile = true)]
fn compiled(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function("dense")]
fn named(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function(reduce_retracing, name = "a", reduce_retracing)]
fn twice(x: &Tensor) -> Result<Tensor> {
    x.square()
}

#[function(retrace_policy = panic)]
fn policy(x: &Tensor) -> Result<Tensor> {
    x.square()
}

fn main() {}
