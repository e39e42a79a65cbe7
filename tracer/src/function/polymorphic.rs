//! The traces of some Rust code: found, made, kept.

use super::{
    arguments::{collect_leaves, inferred_spec, outputs, placeholders, types},
    options::{FunctionOptions, RetracePolicy},
};
use crate::{
    args::Args,
    capture::Capture,
    concrete_function::{ConcreteFunction, VariableInitializer},
    context,
    error::{Error, Result},
    func_graph::{Creation, FuncGraph, InitialValue, Semantics, unique_id},
    function_cache::{CachedTrace, FunctionCache},
    function_spec::{Bound, FunctionSpec, ParameterSpec},
    lift,
    nest::Nest,
    retracing::{self, Detector},
    sync::{Mutex, ReentrantMutex, RwLock},
    value::{NestedValue, TensorLeaves},
};
use ferroflow_ir::{FunctionType, TraceType};
use ferroflow_runtime::{RunMetadata, RunOptions};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The traces of some Rust code, whatever its types: the part of a [`Function`](super::Function)
/// that methods of objects keep for each object.
pub struct PolymorphicFunction {
    id: u64,
    spec: RwLock<FunctionSpec>,
    options: FunctionOptions,
    cache: RwLock<FunctionCache>,
    calls: AtomicU64,
    traces: AtomicU64,
    detector: Mutex<Detector>,
    first: Mutex<First>,
    /// The types of the traces that are made, by the thread that has `TRACING`.
    open: Mutex<Vec<Vec<TraceType>>>,
}

/// The most traces of one function that are made inside each other.
const MAX_RECURSION: usize = 64;

/// A trace that is made.
struct OpenTrace<'a>(&'a PolymorphicFunction);

impl Drop for OpenTrace<'_> {
    fn drop(&mut self) {
        self.0.open.lock().pop();
    }
}

/// State that the first call left behind.
#[derive(Default)]
struct First {
    is_over: bool,
    initializers: Vec<VariableInitializer>,
}

/// The code of a function, as the tracer runs it.
pub(crate) type FunctionCode<'a> = &'a dyn Fn(Vec<NestedValue>) -> Result<NestedValue>;

/// Tracing happens one function at a time, so that threads that call first at once share a trace
/// and no two of them wait for each other.
#[cfg(not(shuttle))]
static TRACING: ReentrantMutex<()> = ReentrantMutex::new(());
#[cfg(shuttle)]
shuttle::lazy_static! {
    static ref TRACING: ReentrantMutex<()> = ReentrantMutex::new(());
}

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
            open: Mutex::default(),
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
        let mut leaves = TensorLeaves::new();
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
        let mut leaves = TensorLeaves::new();
        let trace = self.trace_of(&args, body, &mut leaves)?;
        let (results, metadata) = trace.concrete.call_flat_with_options(options, &leaves)?;
        Ok((trace.pack(results)?, metadata))
    }

    /// The trace for these arguments; appends their tensors.
    fn trace_of<A: Args, R: Nest>(
        &self,
        args: &A,
        body: &dyn Fn(A) -> Result<R>,
        leaves: &mut TensorLeaves,
    ) -> Result<Arc<CachedTrace>> {
        let found = self.cache.read().last(|types| args.have_types(types)).cloned();
        if let Some(trace) = found {
            args.leaves(leaves);
            return Ok(trace);
        }
        let code = |values: Vec<NestedValue>| Ok(body(A::from_values(values)?)?.to_value());
        self.look_up(args.to_values(), &code, leaves)
    }

    /// The trace for these arguments; appends their tensors.
    fn look_up(
        &self,
        values: Vec<NestedValue>,
        code: FunctionCode<'_>,
        leaves: &mut TensorLeaves,
    ) -> Result<Arc<CachedTrace>> {
        let passed: Vec<TraceType> = types(&values);
        let bound = self.spec.read().canonical(values)?;
        collect_leaves(&bound.values, leaves);
        let is_cast = types(&bound.values) != passed;
        let trace = self.trace_for(bound, code)?;
        if !is_cast {
            self.cache.write().remember(passed, &trace);
        }
        Ok(trace)
    }

    fn trace_for(&self, bound: Bound, code: FunctionCode<'_>) -> Result<Arc<CachedTrace>> {
        let ty = self.spec.read().function_type(&bound.types);
        if let Some(trace) = self.cache.write().find(&ty) {
            return Ok(trace);
        }
        let _tracing = TRACING.lock();
        if let Some(trace) = self.cache.write().find(&ty) {
            return Ok(trace);
        }
        self.check_policy(&bound.types)?;
        let types = self.widened(&ty, bound.types);
        let _open = self.open(&types)?;
        let concrete = self.trace(&types, Some(&bound.values), code)?;
        self.infer_signature(&types);
        Ok(self.keep(types, concrete))
    }

    /// Notes that a trace for these types is made. The code may call the function again, for other
    /// types: host values that decrease come to an end.
    fn open(&self, types: &[TraceType]) -> Result<OpenTrace<'_>> {
        let mut open = self.open.lock();
        let function = || self.options.name.clone();
        if open.iter().any(|traced| traced == types) {
            return Err(Error::Recursive { function: function() });
        }
        if open.len() >= MAX_RECURSION {
            return Err(Error::TooDeep { function: function(), limit: MAX_RECURSION });
        }
        open.push(types.to_vec());
        Ok(OpenTrace(self))
    }

    fn keep(&self, types: Vec<TraceType>, concrete: ConcreteFunction) -> Arc<CachedTrace> {
        let ty = self.spec.read().function_type(&types);
        let trace = Arc::new(CachedTrace { types, concrete });
        self.cache.write().insert(ty, trace.clone(), self.options.max_traces);
        trace
    }

    /// The types a new trace is made for: with `reduce_retracing`, such that they take the
    /// arguments of earlier traces as well.
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
                retracing::warn(&spec.name, warning);
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
        values: Option<&[NestedValue]>,
        code: FunctionCode<'_>,
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
            let mut leaves = TensorLeaves::new();
            collect_leaves(values, &mut leaves);
            leaves
        });
        let name = &self.options.name;
        let initializers = lift::initialize(name, first_values, &concrete, arguments.as_deref())?;
        let (steady, _) = self.trace_once(types, Creation::Forbidden, code, &initializers)?;
        *self.first.lock() = First { is_over: true, initializers };
        Ok(steady)
    }

    /// A trace, and the first values of the variables it creates if it creates any.
    fn trace_once(
        &self,
        types: &[TraceType],
        creation: Creation,
        code: FunctionCode<'_>,
        initializers: &[VariableInitializer],
    ) -> Result<(ConcreteFunction, Option<Vec<InitialValue>>)> {
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

    /// Initial values of the variables that the first call made.
    pub(crate) fn initializers(&self) -> Vec<VariableInitializer> {
        self.first.lock().initializers.clone()
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
        let code = |values: Vec<NestedValue>| Ok(body(A::from_values(values)?)?.to_value());
        let ty = self.spec.read().function_type(&types);
        let exact = |cache: &FunctionCache| {
            let found = cache.traces_here().find(|trace| trace.types == types);
            found.map(|trace| trace.concrete.clone())
        };
        let find = || {
            let exact = exact(&self.cache.read());
            exact.or_else(|| self.cache.write().find(&ty).map(|trace| trace.concrete.clone()))
        };
        if let Some(concrete) = find() {
            return Ok(concrete);
        }
        let _tracing = TRACING.lock();
        // Another thread may have traced it meanwhile.
        if let Some(concrete) = find() {
            return Ok(concrete);
        }
        let _open = self.open(&types)?;
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
    pub fn bind<A: Args>(&self, args: &[NestedValue], kwargs: &[(&str, NestedValue)]) -> Result<A> {
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

    /// Options of tracing.
    pub fn options(&self) -> &FunctionOptions {
        &self.options
    }

    /// Number of times that the code has run to be traced.
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

    /// Descriptions of the inputs and outputs of the traces.
    pub fn signatures(&self) -> String {
        let blocks: Vec<String> = self
            .concrete_functions()
            .iter()
            .map(|concrete| concrete.function_type().describe())
            .collect();
        blocks.join("\n\n")
    }
}

impl fmt::Debug for PolymorphicFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<PolymorphicFunction {}>", self.options.name)
    }
}
