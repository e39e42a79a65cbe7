//! New objects of loaded ones: the same functions, with state of their own.
//!
//! What is loaded has the values of its checkpoint, and is at the same time a pattern: an object
//! that is constructed of it has new variables without values, and so have the objects it leads to.
//! A function that made a variable when it was first called, before it was saved, gives the new one
//! its first value when it is called: once, and of the arguments of that call.
//!
//! The file has these first values as functions: children `initializer_0`, `initializer_1` and so
//! on of the function that made the variables, which lead to their variable by the name
//! `initialized`. Files of TensorFlow have none; there, variables wait for an assignment.

use crate::{
    error::{Error, Result},
    function::{LoadedInitializer, Trace},
    model::Object,
    proto::{SavedObject, saved_object::Kind},
    value::PythonValue,
};
use std::collections::BTreeMap;

/// Prefix of the names of functions that return initial values.
pub(crate) const INITIALIZER: &str = "initializer_";

/// The name under which such a function leads to its variable.
pub(crate) const INITIALIZED: &str = "initialized";

/// The function that runs when an object is constructed, if there is one.
const CONSTRUCTOR: &str = "__init__";

impl Object {
    /// A new object like this one, which has variables without values, and leads to new objects. If
    /// it has a function `__init__`, that is called with the arguments; otherwise there must be none.
    ///
    /// Tables and other resources are made and filled again. Several objects that lead to one
    /// another are constructed together: as children of one.
    ///
    /// ```
    /// # use ferroflow_saved_model::{Object, Result};
    /// # use std::collections::BTreeMap;
    /// # fn example(net: &Object) -> Result<()> {
    /// let another = net.construct(&[], &BTreeMap::new())?;
    /// assert!(another.get("kernel")?.tensor().is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotConstructible`] when a function uses state that the object does not lead to,
    /// [`Error::Arguments`] or [`Error::NoTrace`] for arguments that `__init__` does not take, and
    /// those of the functions that run.
    pub fn construct(
        &self,
        args: &[PythonValue],
        kwargs: &BTreeMap<String, PythonValue>,
    ) -> Result<Object> {
        let kept = self.pattern()?;
        let object = self.model().anew(kept)?.at(self.number());
        match object.edge(CONSTRUCTOR) {
            Some(constructor) => {
                constructor.function()?.call(args, kwargs)?;
            }
            None if args.is_empty() && kwargs.is_empty() => {}
            None => {
                let rule = format!("none, as the object has no function `{CONSTRUCTOR}`");
                return Err(Error::Arguments { rule });
            }
        }
        Ok(object)
    }

    /// The objects that a new one consists of: those that this one leads to, and what is no state
    /// of functions among them.
    fn pattern(&self) -> Result<Vec<bool>> {
        let objects = self.model().messages();
        let (mut kept, mut functions) = (vec![false; objects.len()], Vec::new());
        let mut waiting = vec![self.number()];
        while let Some(id) = waiting.pop() {
            if std::mem::replace(&mut kept[id], true) {
                continue;
            }
            let (initializers, children) = edges(&objects[id]);
            waiting.extend(children);
            functions.extend(initializers.into_iter().chain([id]));
        }
        let mut needed = Vec::new();
        for id in functions {
            for (function, used) in self.used(&objects[id]) {
                let is_state =
                    matches!(objects[used].kind, Some(Kind::Variable(_) | Kind::Resource(_)));
                if is_state && !kept[used] {
                    return Err(Error::NotConstructible { function: function.into() });
                }
                needed.push(used);
            }
            needed.push(id);
        }
        needed.into_iter().for_each(|id| kept[id] = true);
        Ok(kept)
    }

    /// Functions that an object uses, with their names.
    fn used<'a>(&self, object: &'a SavedObject) -> Vec<(&'a str, usize)> {
        let names: &[String] = match &object.kind {
            Some(Kind::Function(function)) => &function.concrete_functions,
            Some(Kind::BareConcreteFunction(function)) => {
                std::slice::from_ref(&function.concrete_function_name)
            }
            _ => &[],
        };
        let bound = names.iter().filter_map(|name| {
            let inputs = &self.model().concrete_message(name)?.bound_inputs;
            Some(inputs.iter().filter_map(|&id| Some((name.as_str(), usize::try_from(id).ok()?))))
        });
        bound.flatten().collect()
    }

    /// Functions that return the initial values of variables that a function makes.
    pub(crate) fn first_values(&self) -> Result<Vec<LoadedInitializer>> {
        let mut found = Vec::new();
        for name in self.children().iter().filter(|name| name.starts_with(INITIALIZER)) {
            let Some(initializer) = self.edge(name) else { continue };
            let variable = initializer.edge(INITIALIZED);
            if let Some(variable) = variable.as_ref().and_then(Object::variable).cloned() {
                let (function, signature) = initializer.described()?;
                found.push(LoadedInitializer { variable, value: Trace::new(function, signature)? });
            }
        }
        Ok(found)
    }
}

/// Objects that an object leads to: functions that give first values, and all others.
fn edges(object: &SavedObject) -> (Vec<usize>, Vec<usize>) {
    let is_function = matches!(object.kind, Some(Kind::Function(_)));
    let (mut initializers, mut others) = (Vec::new(), Vec::new());
    for child in &object.children {
        let Ok(id) = usize::try_from(child.node_id) else { continue };
        match is_function && child.local_name.starts_with(INITIALIZER) {
            true => initializers.push(id),
            false => others.push(id),
        }
    }
    let saveables = object.saveable_objects.values();
    let functions = saveables.flat_map(|s| [s.save_function, s.restore_function]);
    others.extend(functions.filter_map(|id| usize::try_from(id).ok()));
    (initializers, others)
}
