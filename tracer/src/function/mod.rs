//! Polymorphic functions: Rust code that is traced once for each type of arguments.
//!
//! The data path of a call:
//!
//! 1. If the arguments have the types of the last call, its trace is taken.
//! 2. Otherwise `FunctionSpec` gives the arguments the form that the input signature asks for and
//!    tells their types; `FunctionCache` gives the most specific trace that takes them.
//! 3. If there is none, the Rust code runs once with symbolic tensors (`FuncGraph`); all of its
//!    calls of ops become nodes of a graph. If it creates variables, they get their first values and
//!    the code runs once more: it must not create any then, and that second trace is the one kept.
//! 4. The tensors of the arguments go to the trace's [`ConcreteFunction`], which runs, or, inside
//!    another trace, becomes a call in that.
//!
//! # What a trace sees
//!
//! Rust code that is not a call of an op runs while the function is traced and not when it runs
//! later: a `println!` prints once for each trace, a counter counts traces, and numbers that Rust
//! computes become constants. How often that is, is not promised: the code must be fit to run any
//! number of times. A debugger that steps through it sees the code itself, with symbolic tensors;
//! debug eagerly first, or with [`run_functions_eagerly`](crate::run_functions_eagerly), where
//! tensors have values. Arguments come by value, so that changing a `Vec` of tensors inside changes
//! nothing outside, and a function that would change what its caller owns is not compiled:
//!
//! ```compile_fail
//! use ferroflow_tracer::{Result, Tensor, function};
//! let f = function(|list: &mut Vec<Tensor>| -> Result<()> { Ok(list.push(1.0f32.into())) });
//! ```
//!
//! What a closure captures is no argument: a change of it makes no new trace. The
//! same goes for an object behind an `Arc`, which goes by its identity: with interior mutability it
//! may change, and the trace stays what it was; prefer values that do not change.
//!
//! # State
//!
//! A variable of eager code ends with its last owner. One that a function creates has to serve all
//! its calls, hence the rule: variables are created on the first call only, in the first of its two
//! traces, and somebody outside owns them: a cell that the code fills once, or an object whose
//! method it is. The function knows of them without keeping them alive. State that belongs to the
//! function itself is what [`v1::wrap_function`](crate::v1::wrap_function) gives. State that begins
//! and ends with each call does not exist: what becomes of such a variable when it is returned is
//! an open question. Code that is run eagerly may create variables at will.
//!
//! # When it pays off
//!
//! Eager code runs op by op: nothing is folded, fused or planned ahead, as it was in the graphs of
//! TensorFlow 1 and is in functions.
//!
//! A trace costs far more than a call of it: a function that is traced on every call is slower than
//! the same code without it. Functions of many small ops gain most, for those are fused and planned
//! together; a few expensive ops, such as convolutions, take the same time either way. No gain is
//! promised: measure, and leave code eager where there is none.

mod arguments;
#[cfg(all(test, shuttle))]
mod interleavings;
mod options;
mod polymorphic;

use crate::{
    args::{Args, Body, IntoArgs},
    concrete_function::ConcreteFunction,
    error::{Error, Result},
    function_spec::{ArgSpec, ParameterSpec},
    nest::Nest,
    value::NestedValue,
};
use ferroflow_ir::TraceType;
use ferroflow_runtime::{
    self as runtime, RunMetadata, RunOptions,
    trackable::{ExportedFunction, ExportedInitializer, ExportedParameter, ExportedTrace},
};
use std::{fmt, ops::Deref, sync::Arc};

pub(crate) use arguments::{outputs, placeholders};
pub use options::{FunctionOptions, RetracePolicy};
pub use polymorphic::PolymorphicFunction;

/// A function that is traced once for each type of arguments.
///
/// It is called like a closure; [`call`](Function::call) also takes references and Rust values for
/// tensors. Two functions never share traces, even of the same code.
///
/// ```
/// use ferroflow_tracer::{Tensor, function};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let double = function(|a: Tensor| &a + &a);
/// assert_eq!(double(Tensor::from(1i32))?.to_scalar::<i32>()?, 2);
/// assert_eq!(double.call((1.5f32,))?.to_scalar::<f32>()?, 3.0);
/// assert_eq!(double.call((&Tensor::from(4i32),))?.to_scalar::<i32>()?, 8);
/// assert_eq!(double.tracing_count(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Function<A: Args, R: 'static> {
    inner: Arc<Inner<A, R>>,
    callable: Box<A::Callable<R>>,
}

struct Inner<A, R> {
    polymorphic: PolymorphicFunction,
    body: Arc<dyn Fn(A) -> Result<R> + Send + Sync>,
}

/// A function with this code.
pub fn function<F: Body<A>, A: Args + 'static>(code: F) -> Function<A, F::Value> {
    function_with(FunctionOptions::default(), code)
}

/// A function with this code, traced in this way.
pub fn function_with<F: Body<A>, A: Args + 'static>(
    options: FunctionOptions,
    code: F,
) -> Function<A, F::Value> {
    Function::new(options, Arc::new(move |args| code.run(args)))
}

impl<A: Args + 'static, R: Nest + 'static> Function<A, R> {
    fn new(
        options: FunctionOptions,
        body: Arc<dyn Fn(A) -> Result<R> + Send + Sync>,
    ) -> Function<A, R> {
        let polymorphic = PolymorphicFunction::new(options, A::COUNT);
        let inner = Arc::new(Inner { polymorphic, body });
        let called = inner.clone();
        let callable = A::callable(move |args| called.polymorphic.call(args, &*called.body));
        Function { inner, callable }
    }

    fn with(&self, change: impl FnOnce(&mut FunctionOptions)) -> Function<A, R> {
        let mut options = self.options().clone();
        change(&mut options);
        Function::new(options, self.inner.body.clone())
    }

    /// The same code as a new function of this name.
    #[must_use]
    pub fn with_name(&self, name: &str) -> Function<A, R> {
        self.with(|options| options.name = name.into())
    }

    /// The same code as a new function with these names of parameters.
    #[must_use]
    pub fn with_parameters<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Function<A, R> {
        let parameters = names.into_iter().map(ParameterSpec::new).collect();
        self.with(|options| options.parameters = parameters)
    }

    /// The same code as a new function that takes arguments of these specs only.
    #[must_use]
    pub fn with_input_signature<S: Into<ArgSpec>>(
        &self,
        specs: impl IntoIterator<Item = S>,
    ) -> Function<A, R> {
        let specs = specs.into_iter().map(Into::into).collect();
        self.with(|options| options.input_signature = Some(specs))
    }

    /// The same code as a new function that widens types in place of making many traces. An input
    /// signature does better where the types are known: it needs one trace.
    #[must_use]
    pub fn reduce_retracing(&self) -> Function<A, R> {
        self.with(|options| options.reduce_retracing = true)
    }

    /// The same code as a new function that keeps the state it uses alive.
    #[must_use]
    pub fn owning_state(&self) -> Function<A, R> {
        self.with(|options| options.owns_state = true)
    }

    /// The same code as a new function, without any traces.
    #[must_use]
    pub fn clone_untraced(&self) -> Function<A, R> {
        self.with(|_| {})
    }

    /// Calls the function. Arguments may be passed by value or reference; Rust numbers and texts
    /// become tensors where those are asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Binding`] when the arguments do not fit the input signature; whatever fails while
    /// the code is traced or the trace runs.
    #[track_caller]
    pub fn call(&self, args: impl IntoArgs<A>) -> Result<R> {
        self.inner.polymorphic.call(args.into_args(), &*self.inner.body)
    }

    /// Calls the function in this way; also tells what the run did.
    ///
    /// # Errors
    ///
    /// As [`call`](Function::call); [`Error::Symbolic`] in a trace, where nothing runs.
    pub fn call_with_options(
        &self,
        options: &RunOptions,
        args: impl IntoArgs<A>,
    ) -> Result<(R, RunMetadata)> {
        let inner = &*self.inner;
        inner.polymorphic.call_with_options(options, args.into_args(), &*inner.body)
    }

    /// Calls the function with arguments by position and by name.
    ///
    /// # Errors
    ///
    /// As [`call`](Function::call); [`Error::Binding`] when they do not fit the parameters.
    pub fn call_named(&self, args: &[NestedValue], kwargs: &[(&str, NestedValue)]) -> Result<R> {
        let args: A = self.inner.polymorphic.bind(args, kwargs)?;
        self.inner.polymorphic.call(args, &*self.inner.body)
    }

    /// The trace for arguments like these, made if there is none; nothing runs.
    ///
    /// # Errors
    ///
    /// As [`call`](Function::call).
    pub fn concrete(&self, args: impl IntoArgs<A>) -> Result<ConcreteFunction> {
        let types = self.types_of(&args.into_args())?;
        self.concrete_for(types)
    }

    /// The trace for arguments of these types, made if there is none; nothing runs.
    ///
    /// # Errors
    ///
    /// As [`call`](Function::call); [`Error::Initializer`] when the function creates variables
    /// whose first values depend on arguments.
    pub fn concrete_for<T: Into<TraceType>>(
        &self,
        types: impl IntoIterator<Item = T>,
    ) -> Result<ConcreteFunction> {
        let types = types.into_iter().map(Into::into).collect();
        self.inner.polymorphic.concrete(types, &*self.inner.body)
    }

    /// The Rust code.
    pub fn host_fn(&self) -> &(dyn Fn(A) -> Result<R> + Send + Sync) {
        &*self.inner.body
    }

    /// The function beneath, whatever its types.
    pub fn polymorphic(&self) -> &PolymorphicFunction {
        &self.inner.polymorphic
    }

    /// The function as what saving sees of it.
    pub(crate) fn exported(&self) -> Arc<dyn ExportedFunction> {
        self.inner.clone()
    }

    /// The types of arguments, as the input signature sees them.
    ///
    /// # Errors
    ///
    /// [`Error::Binding`] when they do not fit it.
    pub fn types_of(&self, args: &A) -> Result<Vec<TraceType>> {
        self.inner.polymorphic.types_of(args)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.inner.polymorphic.name()
    }

    /// Options of tracing.
    pub fn options(&self) -> &FunctionOptions {
        self.inner.polymorphic.options()
    }

    /// Number of times that the code has run to be traced.
    pub fn tracing_count(&self) -> u64 {
        self.inner.polymorphic.tracing_count()
    }

    /// The warnings about too frequent tracing, so far.
    pub fn retrace_warnings(&self) -> Vec<String> {
        self.inner.polymorphic.retrace_warnings()
    }

    /// The traces, oldest first.
    pub fn concrete_functions(&self) -> Vec<ConcreteFunction> {
        self.inner.polymorphic.concrete_functions()
    }

    /// Descriptions of the inputs and outputs of the traces.
    pub fn signatures(&self) -> String {
        self.inner.polymorphic.signatures()
    }
}

impl<A: Args + 'static, R: Nest + 'static> ExportedFunction for Inner<A, R> {
    fn name(&self) -> &str {
        self.polymorphic.name()
    }

    fn parameters(&self) -> Vec<ExportedParameter> {
        ExportedFunction::parameters(&self.polymorphic)
    }

    fn input_signature(&self) -> Option<Vec<TraceType>> {
        self.polymorphic.input_signature()
    }

    fn traces(&self) -> runtime::Result<Vec<ExportedTrace>> {
        if self.polymorphic.concrete_functions().is_empty()
            && let Some(types) = self.input_signature()
            && types.len() == A::COUNT
        {
            let traced = self.polymorphic.concrete(types, &*self.body);
            traced.map_err(Error::into_runtime)?;
        }
        self.polymorphic.traces()
    }

    fn initializers(&self) -> runtime::Result<Vec<ExportedInitializer>> {
        ExportedFunction::initializers(&self.polymorphic)
    }
}

/// A function is called like a closure: `f(x, y)?`.
impl<A: Args, R: 'static> Deref for Function<A, R> {
    type Target = A::Callable<R>;

    fn deref(&self) -> &A::Callable<R> {
        &self.callable
    }
}

impl<A: Args + 'static, R: Nest + 'static> Clone for Function<A, R> {
    /// The same function: clones share the traces.
    fn clone(&self) -> Function<A, R> {
        let inner = self.inner.clone();
        let called = inner.clone();
        let callable = A::callable(move |args| called.polymorphic.call(args, &*called.body));
        Function { inner, callable }
    }
}

impl<A: Args, R: 'static> fmt::Debug for Function<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let polymorphic = &self.inner.polymorphic;
        let traces = polymorphic.concrete_functions().len();
        write!(f, "<Function {} with {traces} traces>", polymorphic.name())
    }
}

/// The type of a literal, for [`Function::concrete_for`].
pub fn literal(value: impl Into<NestedValue>) -> TraceType {
    match value.into() {
        NestedValue::Literal(literal) => TraceType::Literal(literal),
        other => other.trace_type(&mut Default::default()),
    }
}
