//! Fields are nests.
use ferroflow_tracer::{Nest, Tensor};

struct Config;

#[derive(Nest)]
struct Layer {
    _w: Tensor,
    _config: Config,
}

#[derive(Nest)]
enum Act {
    _Relu,
    _Other(Config),
}

fn main() {}
