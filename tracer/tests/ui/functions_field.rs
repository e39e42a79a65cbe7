//! There is one field for the traces of methods.
use ferroflow_tracer::{Functions, HasFunctions};

#[derive(HasFunctions)]
struct None {
    _w: f32,
}

#[derive(HasFunctions)]
struct Several(Functions, Functions);

#[derive(HasFunctions)]
enum Choice {
    _A(Functions),
}

fn main() {}
