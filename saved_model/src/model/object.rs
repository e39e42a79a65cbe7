//! An object of a loaded model: what it is, its children, its function or tensor.

use super::{Live, Model, SavedSignature, resources::no_creator};
use crate::{
    error::{Error, Result},
    function::RestoredFunction,
    proto::{SavedObject, saved_object::Kind},
    session::path_tensor,
};
use ferroflow_ir::HostTensor;
use ferroflow_runtime::{
    CallableFunction, CapturedInput, EagerTensor, ResourceHandle, ResourceVariable,
};

/// An object of a loaded model. The model lives as long as any of its objects.
#[derive(Clone, Debug)]
pub struct Object {
    pub(super) model: Model,
    pub(super) id: usize,
}

impl Object {
    fn saved(&self) -> &SavedObject {
        &self.model.0.objects[self.id]
    }

    /// The model it belongs to.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Its number in the file.
    pub(crate) fn number(&self) -> usize {
        self.id
    }

    /// Message of the file about it.
    pub(crate) fn message(&self) -> &SavedObject {
        self.saved()
    }

    /// Object at the end of an edge, whatever its kind.
    pub(crate) fn edge(&self, name: &str) -> Option<Object> {
        let child = self.saved().children.iter().find(|child| child.local_name == name)?;
        self.model.object(child.node_id).ok().filter(|_| self.is_kept(child.node_id))
    }

    fn is_kept(&self, id: i32) -> bool {
        usize::try_from(id).is_ok_and(|id| self.model.0.kept.get(id) == Some(&true))
    }

    /// The handle of a resource that could be made.
    pub(crate) fn handle(&self) -> Option<&EagerTensor> {
        match &self.model.0.live[self.id] {
            Live::Resource(handle) => handle.get()?.as_ref().ok(),
            Live::Variable(_) | Live::Plain => None,
        }
    }

    /// Kind of the object in the file.
    pub fn kind(&self) -> Option<&Kind> {
        self.saved().kind.as_ref()
    }

    /// The names of its children, in the order of the file.
    pub fn children(&self) -> Vec<String> {
        let children = self.saved().children.iter().filter(|child| self.is_kept(child.node_id));
        children.map(|child| child.local_name.clone()).collect()
    }

    /// A child by name. The elements of a list or tuple go by their numbers alone: TensorFlow
    /// forgets the field names of a named tuple when it loads one.
    pub fn child(&self, name: &str) -> Option<Object> {
        if self.is_sequence() && name.parse::<usize>().is_err() {
            return None;
        }
        self.edge(name)
    }

    fn is_sequence(&self) -> bool {
        matches!(self.kind(), Some(Kind::UserObject(object))
            if ["trackable_list_wrapper", "trackable_tuple_wrapper"]
                .contains(&object.identifier.as_str()))
    }

    /// The object that a path leads to: names of children with dots between them. The empty path
    /// is the object itself.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`] when the path leads nowhere.
    pub fn get(&self, path: &str) -> Result<Object> {
        let mut object = self.clone();
        let mut rest = path;
        while !rest.is_empty() {
            // A name may hold dots itself, so the longest name that fits is taken.
            let ends = rest.match_indices('.').map(|(at, _)| at).chain([rest.len()]);
            let found = ends.rev_by_length().find_map(|end| {
                object.child(&rest[..end]).map(|child| (child, rest.get(end + 1..).unwrap_or("")))
            });
            let (child, remaining) = found.ok_or_else(|| Error::NoObject {
                path: path.into(),
                name: rest.split('.').next().unwrap_or("").into(),
                available: object.children(),
            })?;
            (object, rest) = (child, remaining);
        }
        Ok(object)
    }

    /// The variable, if the object is one.
    pub fn variable(&self) -> Option<&ResourceVariable> {
        match &self.model.0.live[self.id] {
            Live::Variable(variable) => Some(variable),
            Live::Resource(_) | Live::Plain => None,
        }
    }

    /// The function, if the object is one or can be called.
    ///
    /// # Errors
    ///
    /// [`Error::NotAFunction`] when it is neither, or whatever is wrong with the function.
    pub fn function(&self) -> Result<RestoredFunction> {
        let limits = self.model.0.parts.definitions.limits();
        match self.kind() {
            Some(Kind::Function(function)) => {
                let mut traces = Vec::with_capacity(function.concrete_functions.len());
                for name in &function.concrete_functions {
                    let concrete = self.model.concrete_function(name)?;
                    traces.push((concrete, self.model.saved_function(name)?));
                }
                let restored =
                    RestoredFunction::new(function.function_spec.as_ref(), traces, limits)?;
                let first_values = self.first_values()?;
                Ok(restored.with_first_values(first_values, &self.model.0.first_values))
            }
            Some(Kind::BareConcreteFunction(function)) => {
                let traces = vec![self.described()?];
                let restored =
                    RestoredFunction::new(function.function_spec.as_ref(), traces, limits)?;
                let n_positional = function.allowed_positional_arguments;
                Ok(restored.with_positional(&function.argument_keywords, n_positional))
            }
            _ => match self.child("__call__") {
                Some(call) => call.function(),
                None => Err(Error::NotAFunction { found: self.describe() }),
            },
        }
    }

    fn describe(&self) -> &'static str {
        match self.kind() {
            Some(Kind::UserObject(_)) => "an object",
            Some(Kind::Asset(_)) => "an asset",
            Some(Kind::Function(_) | Kind::BareConcreteFunction(_)) => "a function",
            Some(Kind::Variable(_)) => "a variable",
            Some(Kind::Constant(_)) => "a constant",
            Some(Kind::Resource(_)) => "a resource",
            Some(Kind::CapturedTensor(_)) => "a tensor of a function",
            None => "nothing",
        }
    }

    /// The concrete function, of an object that is one, with what it takes and gives.
    pub(crate) fn described(&self) -> Result<(CallableFunction, SavedSignature)> {
        let (name, function) = self.concrete()?;
        Ok((function, self.model.saved_function(&name)?))
    }

    /// The concrete function, of an object that is one, with its name.
    pub(super) fn concrete(&self) -> Result<(String, CallableFunction)> {
        let Some(Kind::BareConcreteFunction(function)) = self.kind() else {
            return Err(Error::NotAFunction { found: self.describe() });
        };
        let name = function.concrete_function_name.clone();
        let concrete = self.model.concrete_function(&name)?;
        Ok((name, concrete))
    }

    /// The only concrete function of an object that takes no choice.
    pub(crate) fn only_function(&self) -> Result<CallableFunction> {
        match self.kind() {
            Some(Kind::Function(function)) => match &function.concrete_functions[..] {
                [only] => self.model.concrete_function(only),
                _ => Err(Error::NotAFunction { found: "a function with several traces" }),
            },
            _ => self.concrete().map(|(_, function)| function),
        }
    }

    /// The tensor that the object is, where it is one.
    ///
    /// # Errors
    ///
    /// When it is none, or its value cannot be had.
    pub fn tensor(&self) -> Result<HostTensor> {
        let parts = &self.model.0.parts;
        match self.kind() {
            Some(Kind::Constant(constant)) => parts.constant(&constant.operation),
            Some(Kind::Asset(asset)) => {
                let path = parts.asset(asset.asset_file_def_index)?;
                Ok(path_tensor(&path).into_host()?)
            }
            Some(Kind::Variable(_)) => match self.variable() {
                Some(variable) => Ok(variable.read()?),
                None => Err(Error::NotATensor { found: self.describe() }),
            },
            _ => Err(Error::NotATensor { found: self.describe() }),
        }
    }

    pub(super) fn capture(&self) -> Result<CapturedInput> {
        match &self.model.0.live[self.id] {
            Live::Variable(variable) => Ok(CapturedInput::Resource(variable.handle())),
            Live::Resource(handle) => match handle.get() {
                Some(Ok(handle)) => match ResourceHandle::of(handle.host()?) {
                    Ok(found) => Ok(CapturedInput::Resource(found.clone())),
                    Err(_) => Ok(CapturedInput::Tensor(handle.clone())),
                },
                Some(Err(error)) => Err(error.clone().into()),
                None => Err(no_creator(self.id).into()),
            },
            Live::Plain => Ok(CapturedInput::Tensor(self.tensor()?.into())),
        }
    }
}

/// Ends of names, the longest first.
trait ByLength: Iterator<Item = usize> + Sized {
    fn rev_by_length(self) -> std::vec::IntoIter<usize> {
        let mut ends: Vec<usize> = self.collect();
        ends.sort_by(|a, b| b.cmp(a));
        ends.into_iter()
    }
}

impl<I: Iterator<Item = usize>> ByLength for I {}
