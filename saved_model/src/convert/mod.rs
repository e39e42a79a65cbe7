//! From messages to programs.
//!
//! Nothing here trusts the file: what comes out satisfies the rules of
//! [`ferroflow_ir`], or there is an error that names the node.

mod attr;
mod budget;
mod definitions;
mod dtype;
mod frames;
mod function;
mod graph;
mod node;
mod ref_variables;
mod shape;
mod structured;
mod tensor;
#[cfg(test)]
mod testing;

pub use attr::attr_value;
pub use definitions::{Definitions, add_functions};
pub use dtype::{dtype, value_dtype};
pub use function::{OUTPUT_NAMES, function};
pub use graph::graph;
pub use ref_variables::{reference_twin, resource_variables};
pub use shape::{known_shape, shape, shape_message};
pub use structured::structured_value;
pub use tensor::{StoredHandle, tensor};

pub(crate) use frames::check_frames;
pub(crate) use shape::optional_shape;
pub(crate) use tensor::tensor_elements;
