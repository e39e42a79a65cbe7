//! Representation of TensorFlow programs: dtypes, shapes, tensors, op records, graphs and
//! functions. This crate runs nothing.
//!
//! ```
//! use ferroflow_ir::{DType, Graph, NodeDef, Outlet, PartialShape, build::GraphBuilder, verify};
//! # fn main() -> ferroflow_ir::Result<()> {
//! let mut builder = GraphBuilder::new();
//! let x = builder.placeholder("x", DType::F32, PartialShape::ranked([None, Some(3)]))?;
//! let y = builder.call("Tanh", "y", &[x])?[0];
//! let graph = builder.finish();
//! verify::verify_graph(&graph)?;
//! assert_eq!(graph.ty(y).unwrap().to_string(), "float32[?,3]");
//! assert!(graph.to_string().contains("%y = Tanh(%x) {T: float32} : float32[?,3]"));
//! # Ok(())
//! # }
//! ```
//!
//! # The meaning of a graph
//!
//! A [`Graph`] is a set of nodes. A node is a call of an op: a name, the op, attributes, ordered
//! inputs, control inputs, and a device it asks for. An input is an [`Outlet`]: one result of a
//! node of the same graph. [`verify`] checks the rules below.
//!
//! - **Names.** Every node has a name, unique in its graph.
//! - **Ops.** An op with a record ([`OpDef`]) is called with as many inputs as the record says, of
//!   the dtypes the record says, and with every attribute set to an allowed value. An op without a
//!   record may appear; it cannot run.
//! - **Order.** A node runs after its inputs and its control inputs, and in no other order that
//!   could be observed. The edges form no cycle; the loops of 1.x graphs are made into functional
//!   loops before anything here sees them.
//! - **Demand.** Only nodes that are asked for run: those that a result or a control result of the
//!   function needs, and those whose [`Effect`] is to write or to be stateful.
//! - **Types.** A result has a dtype and a shape that may be partly unknown. What is stated of a
//!   type never contradicts what its shape function infers.
//! - **Functions.** A [`FunctionDef`] is a graph whose arguments are nodes of the op `_Arg` and
//!   whose results are outlets. Ops call functions through attributes that name them. No function
//!   calls itself, not even through others.
//!
//! # The meaning of an op
//!
//! Everything known of an op is in its record, in `ops/<family>.rs`: arguments, attributes, shape
//! function, effect, and who implements it ([`Lowering`]). Elementwise ops carry their meaning as
//! a scalar formula ([`expr`]), data movements as strided windows ([`view`]), composite ops as
//! formulas over other ops ([`emit`]). How gradients go through it is a formula too ([`gradient`]).
//!
//! # What is absent on purpose
//!
//! There are no kernels, devices or variables, no bytes of any file format, and no user-facing
//! tensors here: those are the crates above. Op names that begin with an underscore are internal
//! and never leave the process.

#![forbid(unsafe_code)]

pub mod attr;
pub mod budget;
pub mod build;
pub mod clock;
pub mod device_name;
pub mod diagonal;
pub mod dtype;
pub mod emit;
pub mod entropy;
pub mod error;
pub mod expr;
mod facts;
pub mod files;
mod format;
pub mod free_name;
pub mod function;
pub mod function_type;
pub mod gradient;
pub mod graph;
pub mod hash;
pub mod host_tensor;
pub mod infer;
pub mod layout;
pub mod limits;
pub mod memory;
pub mod modules;
pub mod op;
pub mod ops;
pub mod pass;
mod passthrough;

pub mod patches;
mod print;
pub mod registry;
pub mod shape;
pub mod spec;
pub mod strided_slice;
mod string_elements;
#[cfg(not(shuttle))]
mod sync;
#[cfg(shuttle)]
#[doc(hidden)]
pub mod sync;
mod tensor_identity;
pub mod tensor_name;
pub mod trace_type;
pub mod type_dispatch;
pub mod verify;
pub mod view;
pub mod window;
pub mod wire;
mod work;
pub mod workspace;
pub mod xla;

pub use attr::{AttrValue, Attrs, NameAttrList};
pub use dtype::DType;
pub use error::{Code, Error, Result};
pub use expr::{Expr, Prim};
pub use function::{FunctionDef, FunctionLibrary};
pub use function_type::FunctionType;
pub use gradient::Gradient;
pub use graph::{Graph, NodeDef, NodeId, OpRef, Outlet};
pub use host_tensor::{Element, Handle, HostTensor};
pub use layout::{Layout, Mesh};
pub use limits::Limits;
pub use op::{Effect, HostReason, Lowering, OpDef, OutsideAccess, ReduceKind, ShardingRule};
pub use registry::OpRegistry;
pub use shape::{Dim, PartialShape, Shape};
pub use spec::{ListItems, TensorSpec, ValueType};
pub use string_elements::string_room;
pub use tensor_identity::TensorIdentity;
pub use trace_type::TraceType;
pub use type_dispatch::TypeDispatchTable;
pub use view::StridedView;
