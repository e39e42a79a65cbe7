//! What has values of one structure can be a nest.
use ferroflow_tracer::Nest;

#[derive(Nest)]
union Bits {
    _float: f32,
    _int: u32,
}

#[derive(Nest)]
enum Never {}

fn main() {}
