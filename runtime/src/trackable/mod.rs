//! Objects that can be saved: what they are, and which others they lead to.
//!
//! Checkpoints and SavedModels hold graphs of objects. Edges have names, as fields of structures do;
//! nodes are variables, functions, resources, files, or objects that only lead to others. An object
//! that is reached in several ways is one node.
//!
//! Rust has no list of the fields of a value, so that every type tells itself what it leads to:
//! [`Trackable::describe`]. Containers of the standard library do, and so do the derived
//! implementations of structures. Plain values of Rust (numbers, texts) are part of no graph. Nothing
//! here knows of layers or models: they are objects like others.
//!
//! ```
//! use ferroflow_ir::HostTensor;
//! use ferroflow_runtime::{ResourceVariable, trackable::{Description, ObjectGraph, Trackable}};
//!
//! struct Dense {
//!     w: ResourceVariable,
//!     b: Option<ResourceVariable>,
//! }
//!
//! impl Trackable for Dense {
//!     fn describe(&self, object: &mut Description<'_>) {
//!         object.child("w", &self.w);
//!         object.child("b", &self.b);
//!     }
//! }
//!
//! # fn main() -> ferroflow_runtime::Result<()> {
//! let layers = vec![Dense { w: ResourceVariable::new("w", HostTensor::scalar(1.0f32)), b: None }];
//! let graph = ObjectGraph::of(&layers)?;
//! let edges: Vec<&str> = graph.nodes.iter().flat_map(|node| node.edges()).collect();
//! assert_eq!(edges, ["0", "w"]);
//! # Ok(())
//! # }
//! ```

mod asset;
mod containers;
mod deferral;
mod function;
mod graph;

pub use asset::Asset;
pub use deferral::{Deferral, DeferredRestore};
pub use function::{
    ExportedDefault, ExportedFunction, ExportedInitializer, ExportedParameter, ExportedTrace,
};
pub use graph::{Description, ObjectGraph, ObjectNode, SlotVariable};

use crate::{resource::ResourceHandle, variable::ResourceVariable};
use ferroflow_ir::HostTensor;
use std::{any::Any, fmt, sync::Arc};

/// An object of an object graph.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a saved object",
    label = "this is to be saved",
    note = "derive it with `#[derive(Trackable)]`, or leave the field out with \
            `#[trackable(skip)]`"
)]
pub trait Trackable {
    /// Tells what the object is and which objects it leads to.
    fn describe(&self, object: &mut Description<'_>);

    /// By what the object is known where it is reached in several ways. A value that only its owner
    /// reaches has none.
    fn identity(&self) -> Option<Identity> {
        None
    }

    /// Hands on what it merely holds, as an option or a lock does: nothing, if it is empty or a plain
    /// value. An object of its own gives `false`.
    fn hand_on(&self, _to: &mut dyn FnMut(&dyn Trackable)) -> bool {
        false
    }
}

/// By what an object is known, as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Identity(usize, usize);

impl Identity {
    /// That of something at this address that nothing else is at.
    pub fn of_address(address: usize) -> Identity {
        Identity(address, usize::MAX)
    }

    /// That of a part, told apart from others by its number, of something at this address.
    pub fn of_part(address: usize, number: usize) -> Identity {
        Identity(address, number)
    }

    /// That of a resource.
    pub fn of_resource(handle: &ResourceHandle) -> Identity {
        Identity::of_address(handle.id())
    }
}

/// Kind of an object.
#[derive(Clone, Default)]
pub enum ObjectKind {
    /// Something that leads to others and has no value itself.
    #[default]
    Plain,
    /// An object of a type that loaders may know.
    Typed(ObjectType),
    /// A variable.
    Variable(ResourceVariable),
    /// A function with any number of traces.
    Function(Arc<dyn ExportedFunction>),
    /// A single trace.
    ConcreteFunction(Arc<dyn ExportedFunction>),
    /// A file.
    Asset(Asset),
    /// State that functions make and fill: the children `_create_resource` and `_initialize`.
    Resource(ResourceHandle),
    /// A tensor that does not change.
    Constant(HostTensor),
    /// Something that only the crate it comes from knows.
    Foreign,
}

impl fmt::Debug for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectKind::Plain => f.write_str("an object"),
            ObjectKind::Typed(ty) => write!(f, "a `{}`", ty.identifier),
            ObjectKind::Variable(variable) => write!(f, "{variable:?}"),
            ObjectKind::Function(function) => write!(f, "the function `{}`", function.name()),
            ObjectKind::ConcreteFunction(function) => write!(f, "a trace of `{}`", function.name()),
            ObjectKind::Asset(asset) => write!(f, "the file {}", asset.path().display()),
            ObjectKind::Resource(handle) => write!(f, "{handle:?}"),
            ObjectKind::Constant(tensor) => write!(f, "{tensor:?}"),
            ObjectKind::Foreign => f.write_str("a part of a loaded model"),
        }
    }
}

/// A type that is known by name wherever a model is loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectType {
    /// The name under which loaders look for the type.
    pub identifier: String,
    /// Metadata of the object that they are passed.
    pub metadata: String,
}

impl ObjectType {
    /// A type without further data.
    pub fn new(identifier: impl Into<String>) -> ObjectType {
        ObjectType { identifier: identifier.into(), metadata: String::new() }
    }
}

/// State of an object that is no variable, by the name of the attribute it is saved as.
pub trait Saveable: Send + Sync {
    /// The name of the attribute, such as `table`.
    fn name(&self) -> &str;

    /// The tensors to save: what follows the key of the attribute, and the value.
    ///
    /// # Errors
    ///
    /// When the state cannot be read.
    fn tensors(&self) -> crate::Result<Vec<(String, HostTensor)>>;

    /// Takes over what was saved, in the order of [`tensors`](Saveable::tensors).
    ///
    /// # Errors
    ///
    /// When the values do not fit.
    fn restore(&self, values: Vec<HostTensor>) -> crate::Result<()>;

    /// Suffixes of the attribute's key, for each tensor.
    fn suffixes(&self) -> Vec<String>;

    /// The functions by which loaded models save and restore it, where they are part of the model:
    /// one gives, of a key, the name, the slice and the value of each tensor; the other takes the
    /// values.
    fn functions(&self) -> Option<[Arc<dyn ExportedFunction>; 2]> {
        None
    }
}

/// Knowledge of another crate about an object it has described.
pub type ObjectOrigin = Arc<dyn Any + Send + Sync>;
