//! The functions of a model being saved, and the names they get.
//!
//! Functions of a loaded model stay as they are in its file, under their names as far as those are
//! free. Functions traced here are numbered as they come, so that a model always gives the same
//! names.

use super::{gradients::TracedGradient, nodes::strip_defaults};
use crate::{
    convert::{Names, called_names, function_message, rename_in_function},
    error::Result,
    model::Model,
    proto::{self, attr_value::Value},
};
use ferroflow_ir::{FunctionDef, FunctionLibrary, OpRegistry, free_name::free_number};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

#[derive(Default)]
pub(super) struct SavedLibrary {
    functions: BTreeMap<String, proto::FunctionDef>,
    gradients: BTreeMap<String, proto::GradientDef>,
    registered: BTreeMap<String, proto::RegisteredGradient>,
    /// Functions of gradients that models bring along, whose captures are yet to be told: the model
    /// and the name there.
    carried: Vec<(usize, String)>,
    /// Custom gradients of functions traced here, whose captures are yet to be told.
    traced_gradients: Vec<TracedGradient>,
    /// The names of functions traced here, by where they are. They are kept, so that no other comes
    /// to be there.
    traced: HashMap<usize, (Arc<FunctionDef>, String)>,
    traced_names: HashSet<String>,
    /// The names of functions of loaded models.
    loaded: HashMap<(usize, String), String>,
    /// The interfaces of loaded models whose implementations are added.
    interfaces: HashSet<(usize, Vec<u8>)>,
    /// The op types that gradients of loaded models are registered for, by model and op type there.
    loaded_gradients: HashMap<(usize, String), String>,
    registry: OpRegistry,
}

impl SavedLibrary {
    pub(super) fn get(&self, name: &str) -> Option<&proto::FunctionDef> {
        self.functions.get(name)
    }

    /// Adds a function that is written by hand.
    pub(super) fn add(&mut self, mut function: proto::FunctionDef) {
        strip_defaults(&mut function.node_def, &self.registry);
        let name = function.signature.as_ref().map(|signature| signature.name.clone());
        self.functions.insert(name.unwrap_or_default(), function);
    }

    /// A name made of this one and a number, that no function has.
    pub(super) fn numbered(&self, base: &str) -> String {
        let name = |number: usize| format!("{base}_{number}");
        name(free_number(0, |number| self.is_taken(&name(number))))
    }

    fn is_taken(&self, name: &str) -> bool {
        self.functions.contains_key(name) || self.traced_names.contains(name)
    }

    /// Adds a traced function with all it calls, and returns its name.
    pub(super) fn add_traced(
        &mut self,
        def: &Arc<FunctionDef>,
        library: &FunctionLibrary,
    ) -> Result<String> {
        let mut waiting = Vec::new();
        let name = self.name_traced(def, &mut waiting);
        while let Some(def) = waiting.pop() {
            let mut message = function_message(&def, library)?;
            let mut names = Names::new();
            for called in called_names(&message) {
                if library.contains(called) && !names.contains_key(called) {
                    let callee = library.get(called)?;
                    names.insert(called.into(), self.name_traced(&callee, &mut waiting));
                }
            }
            let own = self.name_traced(&def, &mut waiting);
            self.add_custom_gradients(&def, library, &mut message, &mut waiting, &own)?;
            names.insert(def.name.to_string(), own);
            rename_in_function(&mut message, &names);
            self.add(message);
        }
        Ok(name)
    }

    /// Registers the function of a gradient under a name that no other has, which nodes have for
    /// it.
    pub(super) fn register_gradient(&mut self, function: &str) -> String {
        let op_type = self.free_op_type("CustomGradient");
        let message = proto::RegisteredGradient {
            gradient_func: function.into(),
            registered_op_type: op_type.clone(),
        };
        self.registered.insert(op_type.clone(), message);
        op_type
    }

    /// An op type made of this one and a number, that no gradient is registered for.
    fn free_op_type(&self, base: &str) -> String {
        let name = |number: usize| format!("{base}-{number}");
        name(free_number(0, |number| self.registered.contains_key(&name(number))))
    }

    pub(super) fn add_traced_gradient(&mut self, gradient: TracedGradient) {
        self.traced_gradients.push(gradient);
    }

    /// The gradients that came with the traced functions added of late.
    pub(super) fn take_traced_gradients(&mut self) -> Vec<TracedGradient> {
        std::mem::take(&mut self.traced_gradients)
    }

    pub(super) fn name_traced(
        &mut self,
        def: &Arc<FunctionDef>,
        waiting: &mut Vec<Arc<FunctionDef>>,
    ) -> String {
        let address = Arc::as_ptr(def) as usize;
        if let Some((_, name)) = self.traced.get(&address) {
            return name.clone();
        }
        let base = def.name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
        let name = self.numbered(base);
        self.traced_names.insert(name.clone());
        self.traced.insert(address, (def.clone(), name.clone()));
        waiting.push(def.clone());
        name
    }

    /// Adds a function of a loaded model with all it calls and all that implement its interface, and returns
    /// its name.
    pub(super) fn add_loaded(&mut self, model: &Model, name: &str) -> Result<String> {
        let definitions = model.definitions();
        let mut waiting = Vec::new();
        let new_name = self.name_loaded(model, name, &mut waiting)?;
        while let Some(old) = waiting.pop() {
            let absent = || ferroflow_ir::Error::NotFound { kind: "function", name: old.clone() };
            let mut message = definitions.function(&old).ok_or_else(absent)?.clone();
            let mut names = Names::new();
            let called = called_names(&message).into_iter().map(str::to_string);
            for called in called.chain([old.clone()]).collect::<Vec<_>>() {
                if definitions.function(&called).is_some() {
                    let renamed = self.name_loaded(model, &called, &mut waiting)?;
                    names.insert(called, renamed);
                }
            }
            if let Some(interface) = definitions.interface(&old)
                && self.interfaces.insert((model.address(), interface.to_vec()))
            {
                for implementation in definitions.implementations(interface) {
                    self.name_loaded(model, implementation, &mut waiting)?;
                }
            }
            self.add_gradients(model, &old, &mut message, &mut waiting)?;
            rename_in_function(&mut message, &names);
            let own = names.remove(&old).unwrap_or(old);
            self.functions.insert(own, message);
        }
        Ok(new_name)
    }

    fn name_loaded(
        &mut self,
        model: &Model,
        name: &str,
        waiting: &mut Vec<String>,
    ) -> Result<String> {
        let key = (model.address(), name.to_string());
        if let Some(name) = self.loaded.get(&key) {
            return Ok(name.clone());
        }
        let is_taken = |name: &str| {
            self.functions.contains_key(name) || self.loaded.values().any(|taken| taken == name)
        };
        let mut new = name.to_string();
        for number in 1.. {
            if !is_taken(&new) {
                break;
            }
            new = format!("{name}_{number}");
        }
        self.loaded.insert(key, new.clone());
        waiting.push(name.into());
        Ok(new)
    }

    /// Adds the gradients that the model has for a function and for nodes in it. Nodes of several
    /// models that name different gradients alike get different names for them.
    fn add_gradients(
        &mut self,
        model: &Model,
        name: &str,
        function: &mut proto::FunctionDef,
        waiting: &mut Vec<String>,
    ) -> Result<()> {
        let library = model.definitions().library();
        for gradient in library.gradient.iter().filter(|gradient| gradient.function_name == name) {
            let message = proto::GradientDef {
                function_name: self.name_loaded(model, name, waiting)?,
                gradient_func: self.name_loaded(model, &gradient.gradient_func, waiting)?,
            };
            self.gradients.insert(message.function_name.clone(), message);
        }
        for node in &mut function.node_def {
            let noted = node.attr.get_mut("_gradient_op_type").and_then(|attr| attr.value.as_mut());
            let Some(Value::S(op_type)) = noted else { continue };
            let registered = library.registered_gradients.iter();
            let Some(gradient) = registered.clone().find(|g| g.registered_op_type == *op_type)
            else {
                continue;
            };
            *op_type = self.name_gradient(model, gradient, waiting)?.into_bytes().into();
        }
        Ok(())
    }

    /// The op type that a gradient of a loaded model is registered for.
    fn name_gradient(
        &mut self,
        model: &Model,
        gradient: &proto::RegisteredGradient,
        waiting: &mut Vec<String>,
    ) -> Result<String> {
        let key = (model.address(), gradient.registered_op_type.clone());
        if let Some(known) = self.loaded_gradients.get(&key) {
            return Ok(known.clone());
        }
        let gradient_func = self.name_loaded(model, &gradient.gradient_func, waiting)?;
        self.carried.push((model.address(), gradient.gradient_func.clone()));
        let op_type = match self.registered.contains_key(&key.1) {
            true => self.free_op_type(&key.1),
            false => key.1.clone(),
        };
        let message =
            proto::RegisteredGradient { gradient_func, registered_op_type: op_type.clone() };
        self.registered.insert(op_type.clone(), message);
        self.loaded_gradients.insert(key, op_type.clone());
        Ok(op_type)
    }

    /// The gradients that came with the functions added of late, by their names in the model.
    pub(super) fn take_loaded(&mut self, model: &Model) -> Vec<String> {
        let own = self.carried.extract_if(.., |(address, _)| *address == model.address());
        own.map(|(_, name)| name).collect()
    }

    pub(super) fn into_message(self) -> proto::FunctionDefLibrary {
        proto::FunctionDefLibrary {
            function: self.functions.into_values().collect(),
            gradient: self.gradients.into_values().collect(),
            registered_gradients: self.registered.into_values().collect(),
        }
    }
}
