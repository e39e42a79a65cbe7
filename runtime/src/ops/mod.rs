//! Ops that need the context: state, calls, input and output.
//!
//! Each family's file ends with its table of bodies; an op's record says that it runs here.

use crate::{
    context::Context,
    eager_tensor::EagerTensor,
    error::Result,
    execute::{Results, Scope},
    resource::{Resource, ResourceHandle},
};
use bytes::Bytes;
use ferroflow_ir::{Attrs, Error, HostTensor, OpDef};
use smallvec::SmallVec;
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

mod candidates;
mod dataset;
mod file;
mod list;
mod optional;
mod print;
mod queue;
mod ragged;
mod random;
mod random_state;
mod source;
mod sparse_map;
mod state;
mod table;
mod tensor_array;
mod tensor_map;
mod text;
pub(crate) mod training;
pub(crate) mod training_on_device;
mod variable_part;
mod variant;

/// A call of an op that runs here.
#[derive(Debug)]
pub struct RuntimeCall<'a> {
    /// Where it runs.
    pub scope: Scope<'a>,
    /// The record.
    pub op: &'static OpDef,
    /// The attributes, complete.
    pub attrs: &'a Attrs,
    /// The inputs. Whoever calls for the last time gives them up, so that they may be changed in
    /// place.
    pub inputs: SmallVec<[EagerTensor; 4]>,
}

/// What such an op does.
pub type Body = fn(&mut RuntimeCall<'_>) -> Result<Results>;

const BODIES: &[&[(&str, Body)]] = &[
    candidates::BODIES,
    dataset::BODIES,
    file::BODIES,
    list::BODIES,
    optional::BODIES,
    print::BODIES,
    queue::BODIES,
    ragged::BODIES,
    random::BODIES,
    random_state::BODIES,
    source::BODIES,
    sparse_map::BODIES,
    state::BODIES,
    table::BODIES,
    tensor_array::BODIES,
    tensor_map::BODIES,
    text::BODIES,
    variable_part::BODIES,
    variant::BODIES,
];

/// The body of an op, by name.
pub(crate) fn find(op: &str) -> Option<Body> {
    static BY_NAME: OnceLock<HashMap<&'static str, Body>> = OnceLock::new();
    let steps = training::OPTIMIZERS.iter().map(|(name, _)| (*name, training::body as Body));
    let rows = || BODIES.iter().flat_map(|rows| rows.iter().copied()).chain(steps).collect();
    BY_NAME.get_or_init(rows).get(op).copied()
}

/// Whether an op takes and gives tensors in the memory of any device.
pub(crate) fn takes_any_device(op: &str) -> bool {
    state::ANYWHERE.contains(&op) || training_on_device::has_formulas(op)
}

/// Whether an op has to do with the variable of its first input, and with nothing else that could
/// change.
pub(crate) fn touches_one_variable(op: &str) -> bool {
    matches!(op, "ReadVariableOp" | "AssignVariableOp")
}

impl<'a> RuntimeCall<'a> {
    /// The context.
    pub fn context(&self) -> &'a Context {
        self.scope.context
    }

    /// Input `index` in host memory.
    ///
    /// # Errors
    ///
    /// When it is elsewhere.
    pub fn host(&self, index: usize) -> Result<&HostTensor> {
        self.inputs[index].host()
    }

    /// Input `index` in host memory, given up by the call.
    ///
    /// # Errors
    ///
    /// When it is elsewhere.
    pub fn taken(&mut self, index: usize) -> Result<HostTensor> {
        let nothing = HostTensor::scalar(0u8).into();
        std::mem::replace(&mut self.inputs[index], nothing).into_host()
    }

    /// The path in scalar string input `index`.
    ///
    /// # Errors
    ///
    /// When it is no scalar string, or not UTF-8.
    pub fn path(&self, index: usize) -> Result<PathBuf> {
        let tensor = self.host(index)?;
        match tensor.strings()? {
            [name] => file::path_of(name),
            _ => {
                let name = format!("input {index}");
                Err(Error::argument(self.op.name, name, "a scalar", tensor.shape()).into())
            }
        }
    }

    /// The path in a string: a name, or a URL of the scheme `file`.
    ///
    /// # Errors
    ///
    /// When it is not UTF-8.
    pub fn path_of(name: &Bytes) -> Result<PathBuf> {
        file::path_of(name)
    }

    /// The handle in input `index`.
    ///
    /// # Errors
    ///
    /// When it is no handle.
    pub fn handle(&self, index: usize) -> Result<&ResourceHandle> {
        ResourceHandle::of(self.host(index)?)
    }

    /// The resource that input `index` refers to.
    ///
    /// # Errors
    ///
    /// When it is no handle, or of another kind of resource.
    pub fn resource<T: Resource>(&self, index: usize, expected: &'static str) -> Result<Arc<T>> {
        self.handle(index)?.downcast(expected)
    }
}

/// One result.
///
/// # Errors
///
/// None: bodies end with it.
pub fn one(result: impl Into<EagerTensor>) -> Result<Results> {
    Ok(SmallVec::from_iter([result.into()]))
}

/// No result.
///
/// # Errors
///
/// None: bodies end with it.
pub fn none() -> Result<Results> {
    Ok(SmallVec::new())
}
