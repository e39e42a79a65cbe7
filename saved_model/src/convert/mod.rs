//! From messages to programs.
//!
//! Nothing here trusts the file: what comes out satisfies the rules of
//! [`ferroflow_ir`](ferroflow_ir), or there is an error that names the node.

mod dtype;
mod shape;
mod tensor;

pub use dtype::{dtype, value_dtype};
pub use shape::{known_shape, shape};
pub use tensor::{StoredHandle, tensor};

pub(crate) use shape::optional_shape;
pub(crate) use tensor::tensor_elements;
