//! From Rust values to the arguments of functions, and from their results to Rust values.
//!
//! ```
//! use ferroflow_ir::{HostTensor, PartialShape, DType, ValueType, build::GraphBuilder};
//! use ferroflow_runtime::{ConcreteFunction, Context, EagerTensor};
//! # fn main() -> ferroflow_tracer::Result<()> {
//! let ty = || ValueType::new(DType::F32, PartialShape::Unknown);
//! let mut builder = GraphBuilder::new();
//! let (x, y) = (builder.arg("x", ty())?, builder.arg("y", ty())?);
//! let sum = builder.call("AddV2", "sum", &[x, y])?[0];
//! let product = builder.call("Mul", "product", &[x, y])?[0];
//! let def = builder.finish_function("f", &[("sum", sum), ("product", product)]);
//! let f = ConcreteFunction::new(&Context::new(), def)?;
//!
//! let args = (EagerTensor::scalar(2.0f32), EagerTensor::scalar(3.0f32));
//! let [sum, product]: [EagerTensor; 2] = ferroflow_tracer::call(&f, &args)?;
//! assert_eq!(sum.host()?.as_scalar::<f32>()?, 5.0);
//! assert_eq!(product.host()?.as_scalar::<f32>()?, 6.0);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Nest`] is a value made of tensors: a tensor, or a container of nests. [`call`] flattens the
//! arguments of a function in a fixed order and packs its results into whatever the caller names.

#![forbid(unsafe_code)]

pub mod error;
pub mod nest;

pub use error::{Error, Result};
pub use nest::{Nest, Structure};

use ferroflow_runtime::ConcreteFunction;

/// Calls a function with the tensors in `args`, in their order; its results become an `R`.
///
/// # Errors
///
/// [`Error::Leaves`] when the results are too few or too many for an `R`, otherwise whatever fails
/// in the function.
pub fn call<A: Nest, R: Nest>(function: &ConcreteFunction, args: &A) -> Result<R> {
    let mut leaves = Vec::new();
    args.flatten(&mut leaves);
    nest::pack(function.call(&leaves)?)
}
