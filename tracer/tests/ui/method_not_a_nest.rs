//! Arguments and results of methods are nests too.
use ferroflow_tracer::{Functions, HasFunctions, Result, Tensor, function};

struct Config;

#[derive(HasFunctions)]
struct Net(Functions);

impl Net {
    #[function]
    fn run(&self, x: &Tensor, _configs: Vec<Config>) -> Result<Option<Config>> {
        x.square().map(|_| None)
    }
}

fn main() {}
