//! Definitions that the nodes of a graph refer to: ops and functions.

use super::{
    budget::Budget,
    implementations::{Implementations, implementations, implemented},
    ref_variables::resource_function,
};
use crate::proto::{self, attr_value::Value};
use ferroflow_ir::{
    Error, FunctionLibrary, Limits, OpRegistry, Result,
    pass::functionalize::{self, functionalize},
};
use std::{collections::HashMap, fmt, sync::Arc};

/// The ops and functions that the nodes of one program may name, and the limits they must keep.
///
/// Functions stay messages here; [`add_functions`] makes them functions when they are called.
pub struct Definitions {
    /// The ops.
    pub registry: Arc<OpRegistry>,
    pub(super) budget: Budget,
    limits: Limits,
    library: proto::FunctionDefLibrary,
    by_name: HashMap<Box<str>, usize>,
    implementations: Implementations,
}

impl Definitions {
    /// The functions of a library.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] for a name given twice, [`Error::Malformed`] for a function without a
    /// name or one that calls itself, even through others, [`Error::Limit`] for calls that nest
    /// too deep.
    pub fn new(
        library: proto::FunctionDefLibrary,
        registry: Arc<OpRegistry>,
        limits: Limits,
    ) -> Result<Definitions> {
        let mut by_name = HashMap::new();
        for (index, function) in library.function.iter().enumerate() {
            let name = signature_name(function);
            if name.is_empty() {
                return Err(malformed(name, "every function has a name"));
            }
            if by_name.insert(name.into(), index).is_some() {
                return Err(Error::Duplicate { kind: "function", name: name.into() });
            }
        }
        crate::stablehlo::register();
        let budget = Budget::new(&limits);
        let implementations = implementations(&library);
        let mut definitions =
            Definitions { registry, budget, limits, library, by_name, implementations };
        if definitions.check_calls().is_err() {
            // An implementation that calls another of its interface is not exchanged for itself.
            definitions.implementations.clear();
            definitions.check_calls()?;
        }
        Ok(definitions)
    }

    /// Limits on the cost of the program.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The messages of the functions.
    pub fn library(&self) -> &proto::FunctionDefLibrary {
        &self.library
    }

    /// The message of a function.
    pub fn function(&self, name: &str) -> Option<&proto::FunctionDef> {
        self.by_name.get(name).map(|&index| &self.library.function[index])
    }

    /// The name of the function that a call of this name runs.
    pub(super) fn implementation<'a>(&'a self, name: &'a str) -> &'a str {
        self.implementations.get(name).map_or(name, |chosen| chosen)
    }

    /// The interface that a function implements (`api_implements`), if it does.
    pub fn interface(&self, name: &str) -> Option<&[u8]> {
        implemented(self.function(name)?)
    }

    /// The functions that implement an interface.
    pub fn implementations(&self, interface: &[u8]) -> impl Iterator<Item = &str> {
        let functions = self.library.function.iter();
        functions.filter(move |of| implemented(of) == Some(interface)).map(signature_name)
    }

    /// Walks the calls between functions: none comes back to where it started, and none is nested
    /// deeper than allowed.
    fn check_calls(&self) -> Result<()> {
        let callees: Vec<Vec<usize>> =
            self.library.function.iter().map(|function| self.callees(function)).collect();
        let mut depths = vec![Depth::Unknown; callees.len()];
        for root in 0..callees.len() {
            let mut path = vec![(root, 0)];
            while let Some((function, next)) = path.last_mut() {
                let function = *function;
                depths[function] = Depth::OnPath;
                let callee = callees[function].get(*next).copied();
                *next += 1;
                match callee.map(|callee| (callee, depths[callee])) {
                    Some((callee, Depth::Unknown)) => path.push((callee, 0)),
                    Some((_, Depth::Known(_))) => {}
                    Some((callee, Depth::OnPath)) => {
                        let name = signature_name(&self.library.function[callee]);
                        return Err(malformed(name, "no function calls itself"));
                    }
                    None => {
                        depths[function] = Depth::Known(self.depth(&callees[function], &depths)?);
                        path.pop();
                    }
                }
            }
        }
        Ok(())
    }

    fn depth(&self, callees: &[usize], depths: &[Depth]) -> Result<usize> {
        let known = callees.iter().map(|&callee| match depths[callee] {
            Depth::Known(depth) => depth + 1,
            Depth::Unknown | Depth::OnPath => 0,
        });
        let (depth, limit) = (known.max().unwrap_or(0), self.limits.call_depth);
        if depth <= limit {
            return Ok(depth);
        }
        let what = "calls of functions".into();
        Err(Error::Limit { what, needed: format!("{depth} levels"), limit: limit as u64 })
    }

    fn callees(&self, function: &proto::FunctionDef) -> Vec<usize> {
        let mut names: Vec<&str> = Vec::new();
        for node in &function.node_def {
            names.push(&node.op);
            for value in node.attr.values().filter_map(|attr| attr.value.as_ref()) {
                match value {
                    Value::Func(function) => names.push(&function.name),
                    Value::List(list) => names.extend(list.func.iter().map(|func| &*func.name)),
                    _ => {}
                }
            }
        }
        // Calls run the implementation, branches and bodies of loops what they name: either may come back.
        let either = names.into_iter().flat_map(|name| [name, self.implementation(name)]);
        let mut callees: Vec<usize> =
            either.filter_map(|name| self.by_name.get(name).copied()).collect();
        callees.sort_unstable();
        callees.dedup();
        callees
    }
}

/// Depth of the calls below a function.
#[derive(Clone, Copy)]
enum Depth {
    Unknown,
    /// The walk is below this function.
    OnPath,
    Known(usize),
}

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

/// Adds the functions to a library. Each is converted when it is first asked for, but for those
/// with the control flow of TensorFlow 1: they bring functions of their own with them.
///
/// # Errors
///
/// [`Error::Duplicate`] when the library has a function of one of the names already.
pub fn add_functions(library: &FunctionLibrary, definitions: &Arc<Definitions>) -> Result<()> {
    let mut with_flow = Vec::new();
    for (index, function) in definitions.library.function.iter().enumerate() {
        if functionalize::is_needed(function.node_def.iter().map(|node| &*node.op)) {
            with_flow.push(function);
            continue;
        }
        let definitions = definitions.clone();
        library.insert_lazy(signature_name(function), move || {
            super::function(&definitions.library.function[index], &definitions)
                .and_then(resource_function)
        })?;
    }
    for function in with_flow {
        // References are those of the graph as it was written: branches would take their values.
        let converted = super::function(function, definitions)
            .and_then(resource_function)
            .and_then(|converted| functionalize(converted, library, &definitions.limits));
        match converted {
            Ok(converted) => library.insert(converted).map(drop)?,
            // Whoever calls it shall know; others have no need to.
            Err(error) => {
                library.insert_lazy(signature_name(function), move || Err(error.clone()))?
            }
        }
    }
    Ok(())
}

/// The name of a function.
pub(super) fn signature_name(function: &proto::FunctionDef) -> &str {
    function.signature.as_ref().map_or("", |signature| &signature.name)
}

fn malformed(function: &str, rule: &'static str) -> Error {
    Error::Malformed { node: function.into(), rule: rule.into() }
}
