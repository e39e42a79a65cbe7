//! Methods as functions: traces that belong to an object and live exactly as long as it.
//!
//! The object has a field of type [`Functions`], found through [`HasFunctions`], which can be
//! derived. There `#[function]` keeps a [`PolymorphicFunction`] for each of its methods, made when
//! the method is first called. `self` is no argument: the traces of an object are its own, so that
//! each may create its variables on its first call, and all of them go when it goes. Nothing outside
//! the object refers to its traces, and traces refer to variables without keeping them alive: there
//! are no cycles.
//!
//! `#[function]` on `fn infer(&self, x: &Tensor) -> Result<Tensor>` makes of it
//!
//! - `infer`, as it was written, which calls the traces;
//! - `infer_function(&self)`, the [`PolymorphicFunction`] of this object;
//! - `infer_concrete(&self, types)`, the trace for arguments of these types.
//!
//! ```
//! use ferroflow_tracer::{Functions, HasFunctions, Result, Tensor, Variable, function};
//! use std::sync::OnceLock;
//!
//! #[derive(Default, HasFunctions)]
//! struct Counter {
//!     total: OnceLock<Variable>,
//!     functions: Functions,
//! }
//!
//! impl Counter {
//!     #[function]
//!     fn add(&self, amount: &Tensor) -> Result<Tensor> {
//!         let total = match self.total.get() {
//!             Some(total) => total,
//!             None => {
//!                 let total = Variable::new(0.0f32)?;
//!                 self.total.get_or_init(|| total)
//!             }
//!         };
//!         total.assign_add(amount)?;
//!         total.read()
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let (a, b) = (Counter::default(), Counter::default());
//! a.add(&Tensor::from(3.0f32))?;
//! assert_eq!(a.add(&Tensor::from(4.0f32))?.to_scalar::<f32>()?, 7.0);
//! assert_eq!(b.add(&Tensor::from(5.0f32))?.to_scalar::<f32>()?, 5.0);
//! assert_eq!(a.add_function().concrete_functions().len(), 1);
//! # Ok(())
//! # }
//! ```

use crate::{
    concrete_function::ConcreteFunction,
    error::{Error, Result},
    function::PolymorphicFunction,
    sync::RwLock,
};
use ferroflow_ir::TraceType;
use ferroflow_runtime::{self as runtime, trackable::ExportedFunction};
use std::{fmt, ptr, sync::Arc};

/// An object with methods that are traced.
///
/// Derived for structures with one field of type [`Functions`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no place for the traces of its methods",
    label = "a method of `{Self}` is traced",
    note = "add a field `functions: Functions` to `{Self}`, and `#[derive(HasFunctions)]`"
)]
pub trait HasFunctions {
    /// The functions of this object.
    fn functions(&self) -> &Functions;
}

/// Method that a function is made of: a `static` of its own for each.
///
/// ```
/// use ferroflow_tracer::{FunctionOptions, Functions, PolymorphicFunction, methods::Method};
/// static INFER: Method = Method::new("infer");
/// let functions = Functions::default();
/// let infer = || functions.of(&INFER, || PolymorphicFunction::new(FunctionOptions::default(), 0));
/// assert!(std::sync::Arc::ptr_eq(&infer(), &infer()));
/// ```
#[derive(Debug)]
pub struct Method {
    name: &'static str,
}

impl Method {
    /// The method of this name.
    pub const fn new(name: &'static str) -> Method {
        Method { name }
    }
}

/// The functions that the methods of an object are traced into.
///
/// A clone is empty: a cloned object is another instance, with traces of its own.
#[derive(Default)]
pub struct Functions(RwLock<Vec<(&'static Method, Arc<PolymorphicFunction>)>>);

impl Functions {
    /// The function of a method, made if there is none yet.
    pub fn of(
        &self,
        method: &'static Method,
        make: impl FnOnce() -> PolymorphicFunction,
    ) -> Arc<PolymorphicFunction> {
        if let Some(function) = find(&self.0.read(), method) {
            return function;
        }
        let mut functions = self.0.write();
        find(&functions, method).unwrap_or_else(|| {
            let function = Arc::new(make());
            functions.push((method, function.clone()));
            function
        })
    }

    /// The functions there are, by the names of their methods, in the order of these.
    pub(crate) fn by_name(&self) -> Vec<(&'static str, Arc<PolymorphicFunction>)> {
        let functions = self.0.read();
        let mut named: Vec<_> =
            functions.iter().map(|(method, function)| (method.name, function.clone())).collect();
        named.sort_by_key(|(name, _)| *name);
        named
    }
}

/// Traces a method for its input signature, if it has one and no trace yet: so that it is saved with
/// its object even if it was never called. One without an input signature is saved without a trace,
/// which the report of the saving tells. `#[derive(Trackable)]` does so for all methods.
///
/// # Errors
///
/// Whatever fails while the method is traced.
pub fn trace_method(
    function: impl Into<Option<Arc<PolymorphicFunction>>>,
    trace: impl FnOnce(Vec<TraceType>) -> Result<ConcreteFunction>,
) -> runtime::Result<()> {
    let Some(function) = function.into() else { return Ok(()) };
    match function.input_signature() {
        Some(types) if function.concrete_functions().is_empty() => {
            trace(types).map(drop).map_err(Error::into_runtime)
        }
        _ => Ok(()),
    }
}

/// The error of a trace of a method that a type does not have.
pub fn no_such_method() -> Error {
    Error::Conversion { expected: "a traced method".into(), found: "none of that name".into() }
}

/// Methods are told apart by where they are: two traits may each have one of a name.
fn find(
    functions: &[(&'static Method, Arc<PolymorphicFunction>)],
    method: &'static Method,
) -> Option<Arc<PolymorphicFunction>> {
    let mut functions = functions.iter();
    functions.find(|(of, _)| ptr::eq(*of, method)).map(|(_, function)| function.clone())
}

impl Clone for Functions {
    fn clone(&self) -> Functions {
        Functions::default()
    }
}

impl fmt::Debug for Functions {
    /// The names of the methods that have been called.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().iter().map(|(method, _)| method.name)).finish()
    }
}
