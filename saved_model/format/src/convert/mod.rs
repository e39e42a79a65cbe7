//! From messages to programs, and back.
//!
//! Nothing here trusts the file: what comes out satisfies the rules of
//! [`ferroflow_ir`], or there is an error that names the node. The way back is
//! [`graph_message`], [`function_message`] and what they are made of.

mod attr;
mod budget;
mod definitions;
mod dilated;
mod dtype;
mod function;
mod graph;
mod handles;
mod implementations;
mod node;
mod onednn;
mod ref_variables;
mod rename;
mod sends;
mod shape;
mod structured;
mod tensor;
#[cfg(test)]
mod testing;
mod write;

pub use attr::attr_value;
pub use definitions::{Definitions, add_functions};
pub use dtype::{dtype, value_dtype};
pub use function::{OUTPUT_NAMES, function};
pub use graph::graph;
pub use node::op_of_file;
pub use ref_variables::{FetchedValue, reference_twin, resource_variables};
pub use rename::rename_functions;
pub use sends::{is_linked, linked_sends};
pub use shape::{known_shape, partial_shape_message, shape, shape_message};
pub use structured::structured_value;
pub use tensor::{StoredHandle, tensor};
pub use write::{
    FunctionGraph, attr_message, clean_name, function_graph, function_message, graph_message,
    library_message, structured_message, structured_type, tensor_message,
};

pub use write::tensor_name;

pub use rename::{Names, called_names, rename_in_function, rename_in_node};
pub use shape::optional_shape;
pub use tensor::tensor_elements;
pub use write::attr_messages;
