//! Functions, tracing and the trace cache.

mod cache;
mod calls;
mod stages;

use ferroflow::ir::trace_type::Literal;
use ferroflow::tracer::{NestedValue, Result, Tensor};

/// The tensor of an argument that may be a tensor or a number of Rust.
fn operand(value: &NestedValue) -> Result<Tensor> {
    match value {
        NestedValue::Literal(Literal::Float(value)) => Ok((*value as f32).into()),
        NestedValue::Literal(Literal::Int(value)) => Ok((*value as i32).into()),
        other => Ok(other.tensor()?.clone()),
    }
}
