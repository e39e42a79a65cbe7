//! From programs to messages.
//!
//! Attributes are written in full, those with their default value too, as TensorFlow's
//! `as_graph_def` does. Ops that are internal here have no meaning in files and are refused; those
//! that came from a file without a record go back as they are.
//!
//! What a program does not have is not written: names of dimensions, debug information and full
//! types, which TensorFlow infers anew.

mod attr;
mod function;
mod graph;
mod node;
mod structured;
mod tensor;

pub use attr::attr_message;
pub use attr::attr_messages;
pub use function::tensor_name;
pub use function::{function_message, library_message};
pub use graph::{FunctionGraph, clean_name, function_graph, graph_message};
pub use structured::{structured_message, structured_type};
pub use tensor::tensor_message;
