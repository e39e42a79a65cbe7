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
//! traces, and somebody outside owns them: a cell that the code fills once, or an object whose method
//! it is. The function knows of them without keeping them alive. State that belongs to the function
//! itself is what [`v1::wrap_function`](crate::v1::wrap_function) gives. State that begins and ends
//! with each call does not exist: what becomes of such a variable when it is returned is an open
//! question. Code that is run eagerly may create variables at will.
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

use crate::{
    args::{Args, Body, IntoArgs},
    capture::Capture,
    concrete_function::{ConcreteFunction, Initializer},
    context,
    error::{Error, Result},
    func_graph::{Creation, FuncGraph, Semantics, unique_id},
    function_cache::{FunctionCache, Trace},
    function_spec::{ArgSpec, Bound, FunctionSpec, ParameterSpec},
    lift::{self, FirstValue},
    nest::Nest,
    ops,
    retracing::{self, Detector},
    tensor::Tensor,
    value::{Leaves, Value},
    variable::Variable,
};
use ferroflow_ir::{DType, FunctionType, TraceType, ValueType, trace_type::VariableSpec};
use ferroflow_runtime::{
    self as runtime, RunMetadata, RunOptions,
    trackable::{ExportedFunction, ExportedParameter, ExportedTrace},
};
use parking_lot::{Mutex, ReentrantMutex, RwLock};
use std::{
    fmt,
    ops::Deref,
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// How a function is traced.
#[derive(Clone, Debug)]
pub struct FunctionOptions {
    /// The name, for graphs and messages.
    pub name: String,
    /// Names and defaults of the parameters; `args_0`, `args_1`, … if empty.
    pub parameters: Vec<ParameterSpec>,
    /// What the arguments must be; anything if `None`.
    pub input_signature: Option<Vec<ArgSpec>>,
    /// Takes the shapes of the first call for the input signature, with unknown sizes.
    pub infer_signature_from_first_call: bool,
    /// Widens the types of arguments that keep changing, at the second trace already.
    pub reduce_retracing: bool,
    /// Keeps the variables and other state that traces use alive. Otherwise their owners must, and a
    /// call after state is gone fails with [`Error::Dropped`].
    pub owns_state: bool,
    /// How many traces are kept; the oldest of a context goes first.
    pub max_traces: usize,
    /// What happens when a function is traced too often.
    pub retrace_policy: RetracePolicy,
}

impl Default for FunctionOptions {
    fn default() -> FunctionOptions {
        FunctionOptions {
            name: "function".into(),
            parameters: Vec::new(),
            input_signature: None,
            infer_signature_from_first_call: false,
            reduce_retracing: false,
            owns_state: false,
            max_traces: 1024,
            retrace_policy: RetracePolicy::Warn,
        }
    }
}

/// What happens when a function is traced too often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetracePolicy {
    /// A warning through `tracing`, with the argument that changed.
    Warn,
    /// The call fails with [`Error::TooManyTraces`].
    Error,
}

/// The traced forms of some Rust code, whatever its types: the part of a [`Function`] that methods
/// of objects keep for each object.
pub struct PolymorphicFunction {
    id: u64,
    spec: RwLock<FunctionSpec>,
    options: FunctionOptions,
    cache: RwLock<FunctionCache>,
    calls: AtomicU64,
    traces: AtomicU64,
    detector: Mutex<Detector>,
    first: Mutex<First>,
}

/// What the first call left behind.
#[derive(Default)]
struct First {
    is_over: bool,
    initializers: Vec<Initializer>,
}

/// The code of a function, as the tracer runs it.
pub(crate) type Code<'a> = &'a dyn Fn(Vec<Value>) -> Result<Value>;

/// Tracing happens one function at a time, so that threads that call first at once share a trace
/// and no two of them wait for each other.
static TRACING: ReentrantMutex<()> = ReentrantMutex::new(());

impl PolymorphicFunction {
    /// A function of `n_parameters` that has not been called yet.
    pub fn new(options: FunctionOptions, n_parameters: usize) -> PolymorphicFunction {
        let mut parameters = options.parameters.clone();
        for index in parameters.len()..n_parameters {
            parameters.push(ParameterSpec::new(&format!("args_{index}")));
        }
        let signature = options.input_signature.clone();
        let spec = FunctionSpec { name: options.name.as_str().into(), parameters, signature };
        PolymorphicFunction {
            id: unique_id(),
            spec: RwLock::new(spec),
            options,
            cache: RwLock::default(),
            calls: AtomicU64::new(0),
            traces: AtomicU64::new(0),
            detector: Mutex::default(),
            first: Mutex::default(),
        }
    }

    /// Calls the function, whose code is `body`.
    ///
    /// # Errors
    ///
    /// [`Error::Binding`] when the arguments do not fit the input signature; whatever fails while
    /// the code is traced or the trace runs.
    #[track_caller]
    pub fn call<A: Args, R: Nest>(&self, args: A, body: &dyn Fn(A) -> Result<R>) -> Result<R> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if context::functions_run_eagerly() {
            return body(args);
        }
        let mut leaves = Leaves::new();
        let trace = self.trace_of(&args, body, &mut leaves)?;
        trace.pack(trace.concrete.call_flat(&leaves)?)
    }

    /// Calls the function in this way; also tells what the run did.
    ///
    /// # Errors
    ///
    /// As [`call`](PolymorphicFunction::call); [`Error::Symbolic`] in a trace, where nothing runs.
    pub fn call_with_options<A: Args, R: Nest>(
        &self,
        options: &RunOptions,
        args: A,
        body: &dyn Fn(A) -> Result<R>,
    ) -> Result<(R, RunMetadata)> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut leaves = Leaves::new();
        let trace = self.trace_of(&args, body, &mut leaves)?;
        let (results, metadata) = trace.concrete.call_flat_with_options(options, &leaves)?;
        Ok((trace.pack(results)?, metadata))
    }

    /// The trace for these arguments; appends their tensors.
    fn trace_of<A: Args, R: Nest>(
        &self,
        args: &A,
        body: &dyn Fn(A) -> Result<R>,
        leaves: &mut Leaves,
    ) -> Result<Arc<Trace>> {
        let found = self.cache.read().last(|types| args.have_types(types)).cloned();
        if let Some(trace) = found {
            args.leaves(leaves);
            return Ok(trace);
        }
        let code = |values: Vec<Value>| Ok(body(A::from_values(values)?)?.to_value());
        self.look_up(args.to_values(), &code, leaves)
    }

    /// The trace for these arguments; appends their tensors.
    fn look_up(
        &self,
        values: Vec<Value>,
        code: Code<'_>,
        leaves: &mut Leaves,
    ) -> Result<Arc<Trace>> {
        let given: Vec<TraceType> = types(&values);
        let bound = self.spec.read().canonical(values)?;
        collect_leaves(&bound.values, leaves);
        let is_cast = types(&bound.values) != given;
        let trace = self.trace_for(bound, code)?;
        if !is_cast {
            self.cache.write().remember(given, &trace);
        }
        Ok(trace)
    }

    fn trace_for(&self, bound: Bound, code: Code<'_>) -> Result<Arc<Trace>> {
        let ty = self.spec.read().function_type(&bound.types);
        if let Some(trace) = self.cache.write().find(&ty) {
            return Ok(trace);
        }
        let _tracing = TRACING.lock();
        if let Some(trace) = self.cache.write().find(&ty) {
            return Ok(trace);
        }
        if context::is_traced(self.id) {
            return Err(Error::Recursive { function: self.options.name.clone() });
        }
        self.check_policy(&bound.types)?;
        let types = self.widened(&ty, bound.types);
        let concrete = self.trace(&types, Some(&bound.values), code)?;
        self.infer_signature(&types);
        Ok(self.keep(types, concrete))
    }

    fn keep(&self, types: Vec<TraceType>, concrete: ConcreteFunction) -> Arc<Trace> {
        let ty = self.spec.read().function_type(&types);
        let trace = Arc::new(Trace { types, concrete });
        self.cache.write().insert(ty, trace.clone(), self.options.max_traces);
        trace
    }

    /// The types a new trace is made for: with `reduce_retracing`, such that they take the arguments
    /// of earlier traces as well.
    fn widened(&self, ty: &FunctionType, types: Vec<TraceType>) -> Vec<TraceType> {
        if !self.options.reduce_retracing {
            return types;
        }
        let wide = self.cache.read().generalize(ty);
        let wide = wide.parameters.into_iter().map(|parameter| parameter.ty);
        let wide: Option<Vec<TraceType>> = wide.collect();
        wide.filter(|wide| wide.len() == types.len()).unwrap_or(types)
    }

    fn infer_signature(&self, types: &[TraceType]) {
        let mut spec = self.spec.write();
        if self.options.infer_signature_from_first_call && spec.signature.is_none() {
            spec.signature = Some(types.iter().map(inferred_spec).collect());
        }
    }

    fn check_policy(&self, types: &[TraceType]) -> Result<()> {
        let spec = self.spec.read();
        let names: Vec<String> = spec.parameters.iter().map(|p| p.name.to_string()).collect();
        let cause = {
            let cache = self.cache.read();
            let before = cache.traces_here().last().map(|trace| trace.types.as_slice());
            retracing::cause(&names, before, types)
        };
        let call = self.calls.load(Ordering::Relaxed);
        let mut detector = self.detector.lock();
        let Some(warning) = detector.traced(&spec.name, call, &cause) else { return Ok(()) };
        match self.options.retrace_policy {
            RetracePolicy::Warn => {
                tracing::warn!(function = %spec.name, "{warning}");
                Ok(())
            }
            RetracePolicy::Error => {
                let (function, traces) = (spec.name.to_string(), self.cache.read().len());
                Err(Error::TooManyTraces { function, traces, cause })
            }
        }
    }

    /// Makes a trace for arguments of these types. With `values`, variables that the code creates
    /// may take their first values from them.
    fn trace(
        &self,
        types: &[TraceType],
        values: Option<&[Value]>,
        code: Code<'_>,
    ) -> Result<ConcreteFunction> {
        let later = {
            let first = self.first.lock();
            first.is_over.then(|| first.initializers.clone())
        };
        if let Some(initializers) = later {
            let (concrete, _) = self.trace_once(types, Creation::Forbidden, code, &initializers)?;
            return Ok(concrete);
        }
        let (concrete, first_values) = self.trace_once(types, Creation::Allowed, code, &[])?;
        let Some(first_values) = first_values else {
            self.first.lock().is_over = true;
            return Ok(concrete);
        };
        let arguments = values.map(|values| {
            let mut leaves = Leaves::new();
            collect_leaves(values, &mut leaves);
            leaves
        });
        let name = &self.options.name;
        let initializers =
            lift::initialize(name, first_values, concrete.library(), arguments.as_deref())?;
        let (steady, _) = self.trace_once(types, Creation::Forbidden, code, &initializers)?;
        *self.first.lock() = First { is_over: true, initializers };
        Ok(steady)
    }

    /// A trace, and the first values of the variables it creates if it creates any.
    fn trace_once(
        &self,
        types: &[TraceType],
        creation: Creation,
        code: Code<'_>,
        initializers: &[Initializer],
    ) -> Result<(ConcreteFunction, Option<Vec<FirstValue>>)> {
        self.traces.fetch_add(1, Ordering::Relaxed);
        let graph = FuncGraph::new(&self.options.name, self.id, Semantics::Program, creation);
        let spec = self.spec.read().clone();
        let (output_type, outputs) = {
            let _guard = context::enter_trace(Some(graph.clone()));
            let names = spec.parameters.iter().map(|parameter| &*parameter.name);
            let args = placeholders(&graph, names, types)?;
            outputs(&self.options.name, code(args)?)?
        };
        let mut finished = graph.finish(&outputs)?;
        let first_values = std::mem::take(&mut finished.first_values);
        let creates = !finished.created.is_empty();
        if self.options.owns_state {
            finished.captures.iter_mut().try_for_each(Capture::own)?;
        }
        let mut function_type = spec.function_type(types);
        function_type.output = Some(output_type);
        let concrete = ConcreteFunction::new(
            spec.name.clone(),
            function_type,
            spec.parameters,
            finished,
            initializers.to_vec(),
            Vec::new(),
        );
        Ok((concrete, creates.then_some(first_values)))
    }

    /// The trace for arguments of these types, made if there is none.
    ///
    /// # Errors
    ///
    /// As [`call`](PolymorphicFunction::call), but nothing runs.
    pub fn concrete<A: Args, R: Nest>(
        &self,
        types: Vec<TraceType>,
        body: &dyn Fn(A) -> Result<R>,
    ) -> Result<ConcreteFunction> {
        let code = |values: Vec<Value>| Ok(body(A::from_values(values)?)?.to_value());
        let ty = self.spec.read().function_type(&types);
        let exact = |cache: &FunctionCache| {
            let found = cache.traces_here().find(|trace| trace.types == types);
            found.map(|trace| trace.concrete.clone())
        };
        if let Some(concrete) = exact(&self.cache.read()) {
            return Ok(concrete);
        }
        if let Some(trace) = self.cache.write().find(&ty) {
            return Ok(trace.concrete.clone());
        }
        let _tracing = TRACING.lock();
        if context::is_traced(self.id) {
            return Err(Error::Recursive { function: self.options.name.clone() });
        }
        let concrete = self.trace(&types, None, &code)?;
        Ok(self.keep(types, concrete).concrete.clone())
    }

    /// The types of arguments, as the input signature sees them.
    ///
    /// # Errors
    ///
    /// [`Error::Binding`] when they do not fit it.
    pub fn types_of<A: Args>(&self, args: &A) -> Result<Vec<TraceType>> {
        Ok(self.spec.read().canonical(args.to_values())?.types)
    }

    /// The arguments in the order of the parameters.
    ///
    /// # Errors
    ///
    /// [`Error::Binding`] when they do not fit them.
    pub fn bind<A: Args>(&self, args: &[Value], kwargs: &[(&str, Value)]) -> Result<A> {
        let spec = self.spec.read();
        let values = spec.bind(args.to_vec(), kwargs.to_vec())?;
        A::from_values(spec.canonical(values)?.values)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// The parameters.
    pub fn parameters(&self) -> Vec<ParameterSpec> {
        self.spec.read().parameters.clone()
    }

    /// How it is traced.
    pub fn options(&self) -> &FunctionOptions {
        &self.options
    }

    /// How often the code has run to be traced.
    pub fn tracing_count(&self) -> u64 {
        self.traces.load(Ordering::Relaxed)
    }

    /// The warnings about too frequent tracing, so far.
    pub fn retrace_warnings(&self) -> Vec<String> {
        self.detector.lock().warnings().to_vec()
    }

    /// The traces, oldest first.
    pub fn concrete_functions(&self) -> Vec<ConcreteFunction> {
        self.cache.read().traces().map(|trace| trace.concrete.clone()).collect()
    }

    /// What the traces take and give, in words.
    pub fn signatures(&self) -> String {
        let blocks: Vec<String> = self
            .concrete_functions()
            .iter()
            .map(|concrete| concrete.function_type().describe())
            .collect();
        blocks.join("\n\n")
    }
}

fn types(values: &[Value]) -> Vec<TraceType> {
    let mut aliases = Default::default();
    values.iter().map(|value| value.trace_type(&mut aliases)).collect()
}

fn collect_leaves(values: &[Value], leaves: &mut Leaves) {
    let mut aliases = Default::default();
    values.iter().for_each(|value| value.leaves(&mut aliases, leaves));
}

/// What a signature that is inferred asks of further arguments.
fn inferred_spec(ty: &TraceType) -> ArgSpec {
    match ty {
        TraceType::Tensor(spec) => {
            let shape = match spec.shape.rank() {
                Some(rank) => ferroflow_ir::PartialShape::of_rank(rank),
                None => ferroflow_ir::PartialShape::Unknown,
            };
            ArgSpec::Type(TraceType::tensor(spec.dtype, shape))
        }
        _ => ArgSpec::HostValue,
    }
}

/// Values of these types that stand for the arguments of a trace.
pub(crate) fn placeholders<'a>(
    graph: &Arc<FuncGraph>,
    names: impl Iterator<Item = &'a str>,
    types: &[TraceType],
) -> Result<Vec<Value>> {
    let mut variables: Vec<Variable> = Vec::new();
    let mut args = Vec::with_capacity(types.len());
    for (name, ty) in names.zip(types) {
        args.push(Value::build(ty, &mut |leaf| match leaf {
            TraceType::Variable(spec) => match variables.get(spec.alias_id) {
                Some(variable) => Ok(Value::Variable(variable.clone())),
                None => {
                    let ty = ValueType::handle(DType::Resource, spec.value.clone());
                    let handle = graph.argument(name, ty)?;
                    let variable = Variable::argument(handle, VariableSpec::clone(spec), name);
                    variables.push(variable.clone());
                    Ok(Value::Variable(variable))
                }
            },
            TraceType::Tensor(spec) => {
                let name = if spec.name.is_empty() { name } else { &spec.name };
                let ty = ValueType::new(spec.dtype, spec.shape.clone());
                Ok(Value::Tensor(graph.argument(name, ty)?))
            }
            other => unreachable!("{other} is no leaf"),
        })?);
    }
    Ok(args)
}

/// The type of what traced code returned, and its tensors.
pub(crate) fn outputs(function: &str, value: Value) -> Result<(TraceType, Vec<Tensor>)> {
    let value = returned(function, value)?;
    let mut aliases = Default::default();
    let ty = value.trace_type(&mut aliases);
    let (mut aliases, mut tensors) = Default::default();
    value.leaves(&mut aliases, &mut tensors);
    Ok((ty, tensors.into_vec()))
}

/// What is returned, made of tensors: variables are read.
fn returned(function: &str, value: Value) -> Result<Value> {
    let all = |items: Vec<Value>| -> Result<Vec<Value>> {
        items.into_iter().map(|item| returned(function, item)).collect()
    };
    Ok(match value {
        Value::None => Value::None,
        Value::Tensor(tensor) => Value::Tensor(tensor),
        Value::Variable(variable) => {
            Value::Tensor(ops::variable::read_at_end(&variable, Location::caller())?)
        }
        Value::List(items) => Value::List(all(items)?),
        Value::Tuple(items) => Value::Tuple(all(items)?),
        Value::Struct(name, fields) => {
            let field = |(key, value)| Ok((key, returned(function, value)?));
            Value::Struct(name, fields.into_iter().map(field).collect::<Result<_>>()?)
        }
        Value::Dict(entries) => {
            let entry = |(key, value)| Ok((key, returned(function, value)?));
            Value::Dict(entries.into_iter().map(entry).collect::<Result<_>>()?)
        }
        Value::Literal(_) | Value::Custom(_) => {
            return Err(Error::Output { function: function.into(), found: format!("{value:?}") });
        }
    })
}

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

    /// Calls the function. Arguments may be given by value or reference; Rust numbers and texts
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
    pub fn call_named(&self, args: &[Value], kwargs: &[(&str, Value)]) -> Result<R> {
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
    /// As [`call`](Function::call); [`Error::Initializer`] when the function creates variables whose
    /// first values depend on arguments.
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

    /// How it is traced.
    pub fn options(&self) -> &FunctionOptions {
        self.inner.polymorphic.options()
    }

    /// How often the code has run to be traced.
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

    /// What the traces take and give, in words.
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
        write!(
            f,
            "<Function {} with {} traces>",
            polymorphic.name(),
            polymorphic.cache.read().len()
        )
    }
}

impl fmt::Debug for PolymorphicFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<PolymorphicFunction {}>", self.options.name)
    }
}

/// The type of a literal, for [`Function::concrete_for`].
pub fn literal(value: impl Into<Value>) -> TraceType {
    match value.into() {
        Value::Literal(literal) => TraceType::Literal(literal),
        other => other.trace_type(&mut Default::default()),
    }
}
