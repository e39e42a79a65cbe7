//! Objects are told apart in one way, which their Rust type can.
use ferroflow_tracer::TraceType;

#[derive(TraceType, Clone)]
struct Unsaid;

#[derive(TraceType, Clone)]
#[trace(by_name)]
struct Unknown;

#[derive(TraceType)]
#[trace(by_type)]
struct NotClone;

#[derive(TraceType, Clone)]
#[trace(by_value)]
struct NotEqual;

#[derive(TraceType, Clone)]
#[trace(by_type)]
#[trace(by_type)]
struct Twice;

fn main() {}
