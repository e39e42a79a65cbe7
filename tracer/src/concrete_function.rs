//! Traced functions: one graph, for arguments of one type.

use crate::{
    backprop::{self, Level},
    capture::Capture,
    context,
    error::{Error, Result},
    func_graph::{Call, Finished},
    function_spec::{ParameterSpec, bind, cast, shown, shown_named},
    recording,
    sync::Mutex,
    tensor::{Repr, Tensor},
    value::{Aliases, NestedValue, TensorLeaves},
    variable::Variable,
};
use ferroflow_ir::{
    AttrValue, Attrs, Effect, FunctionDef, FunctionLibrary, FunctionType, Graph, NameAttrList,
    TraceType, ValueType, error::SourceLocation, ops::names, registry,
};
use ferroflow_runtime::{
    self as runtime, Context, EagerTensor, RunMetadata, RunOptions, VariableState,
};
use smallvec::SmallVec;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

/// A function traced for arguments of one type: a graph, and what it captures. Cheap to clone.
///
/// ```
/// use ferroflow_tracer::{Tensor, function};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let double = function(|a: Tensor| &a + &a).with_parameters(["a"]);
/// let strings = double.concrete(("a",))?;
/// assert_eq!(strings.call(&[Tensor::from("b").into()])?.tensor()?.to_text()?, "bb");
/// assert_eq!(
///     strings.function_type().to_string(),
///     "(a: TensorSpec(shape=(), dtype=tf.string, name=None)) -> \
///      TensorSpec(shape=(), dtype=tf.string, name=None)"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ConcreteFunction(Arc<Inner>);

struct Inner {
    /// The name of the Rust function.
    name: Arc<str>,
    context: Context,
    def: Arc<FunctionDef>,
    library: Arc<FunctionLibrary>,
    captures: Vec<Capture>,
    function_type: FunctionType,
    parameters: Vec<ParameterSpec>,
    results: Vec<ValueType>,
    effect: Effect,
    compiled: OnceLock<runtime::CallableFunction>,
    /// The variants that tapes need, by the inputs that are tracked.
    differentiated: Mutex<HashMap<Vec<bool>, Vec<Level>>>,
    initializers: Vec<VariableInitializer>,
    owned: Vec<Variable>,
}

/// Initial value of a variable that a function creates: a function of the arguments of the trace it
/// comes from, with captures of its own.
#[derive(Clone, Debug)]
pub struct VariableInitializer {
    /// The variable; it belongs to the code that created it.
    pub variable: runtime::ResourceHandle,
    /// The function that returns its initial value.
    pub def: Arc<FunctionDef>,
    /// The functions that calls.
    pub library: Arc<FunctionLibrary>,
    /// Captured values.
    pub captures: Vec<Capture>,
    /// Its parameters, which are those of the function that creates the variable, and its result.
    pub function_type: FunctionType,
}

/// Parts that a function is made of.
pub(crate) struct FunctionParts {
    pub(crate) def: Arc<FunctionDef>,
    pub(crate) library: Arc<FunctionLibrary>,
    pub(crate) captures: Vec<Capture>,
}

impl ConcreteFunction {
    pub(crate) fn new(
        name: Arc<str>,
        function_type: FunctionType,
        parameters: Vec<ParameterSpec>,
        finished: Finished,
        initializers: Vec<VariableInitializer>,
        owned: Vec<Variable>,
    ) -> ConcreteFunction {
        let Finished { def, library, captures, .. } = finished;
        let def = Arc::new(def);
        let parts = FunctionParts { def, library, captures };
        ConcreteFunction::of_parts(name, function_type, parameters, parts, initializers, owned)
    }

    pub(crate) fn of_parts(
        name: Arc<str>,
        mut function_type: FunctionType,
        parameters: Vec<ParameterSpec>,
        parts: FunctionParts,
        initializers: Vec<VariableInitializer>,
        owned: Vec<Variable>,
    ) -> ConcreteFunction {
        let FunctionParts { def, library, captures } = parts;
        let n_args = def.args.len() - captures.len();
        let captured = (n_args..def.args.len()).map(|index| {
            let ty = def.arg_type(index);
            (index as u64, TraceType::tensor(ty.dtype, ty.shape.clone()))
        });
        function_type.captures = captured.collect();
        let results = def.results.iter().map(|(_, outlet)| {
            def.graph.ty(*outlet).expect("every node of a trace has types").clone()
        });
        let results = results.collect();
        let effect = effect_of(&def, &library);
        let inner = Inner {
            name,
            context: context::context(),
            def,
            library,
            captures,
            function_type,
            parameters,
            results,
            effect,
            compiled: OnceLock::new(),
            differentiated: Mutex::default(),
            initializers,
            owned,
        };
        ConcreteFunction(Arc::new(inner))
    }

    /// The name of the function in graphs, such as `__inference_f_12`.
    pub fn name(&self) -> &str {
        &self.0.def.name
    }

    /// Parameters, captures and result.
    pub fn function_type(&self) -> &FunctionType {
        &self.0.function_type
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.0.def.graph
    }

    /// The definition: graph, arguments (captures last) and results.
    pub fn def(&self) -> &Arc<FunctionDef> {
        &self.0.def
    }

    /// The functions it calls.
    pub fn library(&self) -> &Arc<FunctionLibrary> {
        &self.0.library
    }

    /// Captured values, in the order of the last arguments.
    pub fn captures(&self) -> &[Capture] {
        &self.0.captures
    }

    /// The variables it uses without being passed them, as far as they still exist.
    pub fn variables(&self) -> Vec<Variable> {
        let of_capture = |capture: &Capture| match capture {
            Capture::Resource(handle) => variable_of(handle),
            Capture::Tensor(_) | Capture::Ambient(_) => None,
        };
        self.0.captures.iter().filter_map(of_capture).collect()
    }

    /// Initial values of the variables that the function creates.
    pub fn initializers(&self) -> &[VariableInitializer] {
        &self.0.initializers
    }

    /// The variables that belong to the function itself, in the order they were made: those of
    /// [`wrap_function`](crate::v1::wrap_function).
    pub fn owned_variables(&self) -> &[Variable] {
        &self.0.owned
    }

    /// Calls the function with positional arguments.
    ///
    /// # Errors
    ///
    /// [`Error::Binding`] or [`Error::FlatArgument`] when they do not fit, otherwise whatever fails
    /// in the function.
    #[track_caller]
    pub fn call(&self, args: &[NestedValue]) -> Result<NestedValue> {
        self.call_named(args, &[])
    }

    /// Calls the function with positional and named arguments.
    ///
    /// # Errors
    ///
    /// As [`call`](ConcreteFunction::call).
    #[track_caller]
    pub fn call_named(
        &self,
        args: &[NestedValue],
        kwargs: &[(&str, NestedValue)],
    ) -> Result<NestedValue> {
        let structured = self.bind(args, kwargs);
        let leaves = match structured {
            Ok(leaves) => leaves,
            Err(problem) => self.bind_flat(args, kwargs).map_err(|flat| match flat {
                Flat::Names(flat) => self.problem(problem, args, kwargs, Some(flat)),
                Flat::Type(error) => error,
            })?,
        };
        let mut results = self.call_flat(&leaves)?.into_iter();
        let output = self.0.function_type.output.as_ref().unwrap_or(&TraceType::None);
        NestedValue::build(output, &mut |_| {
            let missing =
                || Error::Conversion { expected: "one more result".into(), found: "none".into() };
            results.next().map(NestedValue::Tensor).ok_or_else(missing)
        })
    }

    /// The tensors of arguments that fit the structured signature.
    fn bind(
        &self,
        args: &[NestedValue],
        kwargs: &[(&str, NestedValue)],
    ) -> Result<TensorLeaves, String> {
        let values = bind(&self.0.parameters, args.to_vec(), kwargs.to_vec())?;
        let mut leaves = TensorLeaves::new();
        let (mut seen, mut aliases) = (Aliases::default(), Aliases::default());
        for (value, parameter) in values.iter().zip(&self.0.function_type.parameters) {
            let value = match &parameter.ty {
                Some(ty) => cast(value, ty, &mut seen)?,
                None => value.clone(),
            };
            value.leaves(&mut aliases, &mut leaves);
        }
        Ok(leaves)
    }

    /// The tensors of arguments that fit the tensors of the signature, by position and name.
    fn bind_flat(
        &self,
        args: &[NestedValue],
        kwargs: &[(&str, NestedValue)],
    ) -> Result<TensorLeaves, Flat> {
        let names: Vec<&str> = (0..self.n_args()).map(|index| self.0.def.arg_name(index)).collect();
        let summary = format!("{}({})", self.0.name, names.join(", "));
        let specs: Vec<ParameterSpec> = names.iter().map(|name| ParameterSpec::new(name)).collect();
        if let Some((name, _)) = kwargs.iter().find(|(name, _)| !names.contains(name)) {
            return Err(Flat::Names(format!(
                "{summary} got unexpected keyword arguments: {name}."
            )));
        }
        let values = bind(&specs, args.to_vec(), kwargs.to_vec())
            .map_err(|problem| Flat::Names(format!("{summary} {problem}.")))?;
        let mut leaves = TensorLeaves::new();
        for (index, value) in values.iter().enumerate() {
            let NestedValue::Tensor(tensor) = value else {
                return Err(Flat::Names(format!("{summary}: expected tensors, found {value:?}.")));
            };
            self.check(index, tensor).map_err(Flat::Type)?;
            leaves.push(tensor.clone());
        }
        Ok(leaves)
    }

    fn problem(
        &self,
        problem: String,
        args: &[NestedValue],
        kwargs: &[(&str, NestedValue)],
        flat: Option<String>,
    ) -> Error {
        Error::Binding {
            function: (*self.0.name).into(),
            problem: problem.into(),
            args: shown(args).into(),
            kwargs: shown_named(kwargs).into(),
            signature: self.0.function_type.to_string().into(),
            flat: flat.map(Into::into),
        }
    }

    fn check(&self, index: usize, tensor: &Tensor) -> Result<()> {
        let declared = self.0.def.arg_type(index);
        let (found, function) = (tensor.spec(), self.name().to_string());
        if declared.dtype != found.dtype {
            let (expected, found) = (declared.dtype.to_string(), found.dtype.to_string());
            return Err(Error::FlatArgument { function, index, expected, found });
        }
        if !found.shape.is_subtype_of(&declared.shape) && found.shape.is_known() {
            let (expected, found) = (declared.to_string(), found.to_string());
            return Err(Error::FlatArgument { function, index, expected, found });
        }
        Ok(())
    }

    /// The number of tensors a caller passes: all arguments but the captures.
    pub fn n_args(&self) -> usize {
        self.0.def.args.len() - self.0.captures.len()
    }

    /// Calls the function with the tensors of its arguments, in order.
    ///
    /// # Errors
    ///
    /// [`Error::FlatArgument`] when they do not fit, [`Error::Dropped`] when state it uses is gone,
    /// otherwise whatever fails in the function.
    #[track_caller]
    pub fn call_flat(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        if context::is_taped()
            && let Some(results) = self.call_taped(args)?
        {
            return Ok(results);
        }
        match context::current_trace() {
            Some(_) => {
                let location = std::panic::Location::caller();
                self.stage(args, location)
            }
            None => self.run(args),
        }
    }

    /// Calls the function with the tensors of its arguments, in order; also tells what the run did.
    ///
    /// # Errors
    ///
    /// As [`call_flat`](ConcreteFunction::call_flat); [`Error::Symbolic`] in a trace, where nothing
    /// runs.
    pub fn call_flat_with_options(
        &self,
        options: &RunOptions,
        args: &[Tensor],
    ) -> Result<(Vec<Tensor>, RunMetadata)> {
        let inputs = self.with_environment(args)?;
        let run = self.compiled()?.call_with_options(options, &self.eager(&inputs)?);
        let (results, metadata) = run.map_err(|error| self.explain(error, args))?;
        Ok((results.into_iter().map(Tensor::from).collect(), metadata))
    }

    /// Calls the function in the variant that tapes need, if any of them tracks what it uses.
    #[track_caller]
    fn call_taped(&self, args: &[Tensor]) -> Result<Option<Vec<Tensor>>> {
        let captured: Vec<Tensor> =
            self.0.captures.iter().map(Capture::tensor).collect::<Result<_>>()?;
        let inputs: Vec<&Tensor> = args.iter().chain(&captured).collect();
        let Some(tracking) = recording::tracking(&inputs) else { return Ok(None) };
        args.iter().enumerate().try_for_each(|(index, arg)| self.check(index, arg))?;
        match self.levels(tracking) {
            Ok(levels) => backprop::call_function(levels, args, &inputs).map(Some),
            Err(error) => {
                let outputs = context::apart_from_tapes(|| self.call_flat(args))?;
                backprop::record_refused(&inputs, &outputs, error);
                Ok(Some(outputs))
            }
        }
    }

    /// The variants that tapes need, made once.
    fn levels(&self, tracking: recording::Tracking) -> Result<Vec<Level>> {
        let recording::Tracking { inputs, order } = tracking;
        if let Some(levels) = self.0.differentiated.lock().get(&inputs)
            && levels.len() >= order
        {
            return Ok(levels[..order].to_vec());
        }
        let levels = backprop::levels(self, &inputs, order)?;
        self.0.differentiated.lock().insert(inputs, levels.clone());
        Ok(levels)
    }

    fn run(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        if self.0.captures.first().is_some_and(|capture| matches!(capture, Capture::Ambient(_))) {
            return self.run_inputs(&self.with_environment(args)?);
        }
        self.run_inputs(args)
    }

    /// The arguments, and what surrounds the call.
    fn with_environment(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        let ambient = |capture: &Capture| match capture {
            Capture::Ambient(ambient) => Some(ambient.tensor()),
            Capture::Tensor(_) | Capture::Resource(_) => None,
        };
        let environment = self.0.captures.iter().filter_map(ambient);
        args.iter().cloned().map(Ok).chain(environment).collect()
    }

    fn run_inputs(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        let (compiled, args_here) = (self.compiled()?, self.eager(args)?);
        let run = match context::current_accelerator() {
            None => compiled.call_refs(&args_here),
            Some(device) => compiled.call_on(&device, &args_here),
        };
        match run {
            Ok(results) => Ok(results.into_iter().map(Tensor::from).collect()),
            Err(error) => Err(self.explain(error, args)),
        }
    }

    /// The arguments, which must have values.
    fn eager<'a>(&self, args: &'a [Tensor]) -> Result<SmallVec<[&'a EagerTensor; 8]>> {
        let mut values = SmallVec::with_capacity(args.len());
        for arg in args {
            match &arg.0 {
                Repr::Eager(tensor) => values.push(tensor),
                Repr::Failed(_) => arg.check()?,
                Repr::Symbolic(symbolic) => {
                    let used_in = format!("in an eager call of function `{}`", self.0.name);
                    return Err(crate::func_graph::out_of_scope(arg, symbolic, used_in));
                }
            }
        }
        Ok(values)
    }

    fn compiled(&self) -> Result<&runtime::CallableFunction> {
        match self.0.compiled.get() {
            Some(compiled) => Ok(compiled),
            None => self.compile(),
        }
    }

    /// The error of a call, in the terms of its caller.
    fn explain(&self, error: runtime::Error, args: &[Tensor]) -> Error {
        if args.len() == self.n_args() {
            let checks = args.iter().enumerate().map(|(index, arg)| self.check(index, arg));
            if let Err(error) = checks.collect::<Result<()>>() {
                return error;
            }
        }
        let function = || self.0.name.to_string();
        match &error {
            runtime::Error::Dropped { kind, name } => {
                Error::Dropped { function: function(), kind, name: name.clone() }
            }
            runtime::Error::AtNode { source, .. } => match &**source {
                runtime::Error::Dropped { kind, name } => {
                    Error::Dropped { function: function(), kind, name: name.clone() }
                }
                _ => error.into(),
            },
            _ => error.into(),
        }
    }

    fn compile(&self) -> Result<&runtime::CallableFunction> {
        let inner = &*self.0;
        let mut captures = Vec::with_capacity(inner.captures.len());
        for capture in &inner.captures {
            if let Capture::Tensor(tensor) = capture
                && let Repr::Symbolic(symbolic) = &tensor.0
            {
                let used_in = format!("by function `{}`, called eagerly", inner.name);
                return Err(crate::func_graph::out_of_scope(tensor, symbolic, used_in));
            }
            captures.extend(capture.fixed()?);
        }
        let resources = inner.context.resources().clone();
        let (def, library) = (inner.def.clone(), inner.library.clone());
        let compiled = runtime::CallableFunction::with_captures(
            &inner.context,
            def,
            library,
            resources,
            captures,
        );
        Ok(inner.compiled.get_or_init(|| compiled))
    }

    /// Adds a call to the trace at hand.
    fn stage(&self, args: &[Tensor], location: SourceLocation) -> Result<Vec<Tensor>> {
        let inner = &*self.0;
        let trace = context::current_trace().expect("calls are staged in traces only");
        if args.len() != self.n_args() {
            let found = format!("{} tensors", args.len());
            return Err(Error::Conversion {
                expected: format!("{} tensors", self.n_args()),
                found,
            });
        }
        args.iter().enumerate().try_for_each(|(index, arg)| self.check(index, arg))?;
        self.check_captures()?;
        trace.library().share(&inner.library)?;
        trace.library().share_function(&inner.def)?;
        let op = match inner.effect {
            Effect::Pure => names::PARTITIONED_CALL,
            _ => names::STATEFUL_PARTITIONED_CALL,
        };
        let op = registry::find(op).expect("a built-in record");
        let captured: Vec<Tensor> =
            inner.captures.iter().map(Capture::tensor).collect::<Result<_>>()?;
        let inputs: Vec<&Tensor> = args.iter().chain(&captured).collect();
        let types = inner.results.iter().map(|ty| ty.dtype).collect::<Vec<_>>();
        let attrs = Attrs::new()
            .with("f", AttrValue::Func(NameAttrList::new(inner.def.name.clone())))
            .with("Tout", types);
        let call = Call { op, attrs, inputs: &inputs, name: "", location: Some(location) };
        Ok(trace.call_typed(call, Some(&inner.results))?.into_vec())
    }

    /// State that is gone is told at once.
    fn check_captures(&self) -> Result<()> {
        for capture in &self.0.captures {
            if let Capture::Resource(handle) = capture
                && let Err(error) = handle.resource()
            {
                return Err(self.explain(error, &[]));
            }
        }
        Ok(())
    }

    /// The function beneath: it takes the captures as arguments and has no gradient.
    pub fn inference_fn(&self) -> AtomicFunction {
        let inner = &*self.0;
        let resources = inner.context.resources().clone();
        let (def, library) = (inner.def.clone(), inner.library.clone());
        AtomicFunction(runtime::CallableFunction::with_captures(
            &inner.context,
            def,
            library,
            resources,
            Vec::new(),
        ))
    }

    /// The parameters of the Rust function.
    pub(crate) fn parameter_specs(&self) -> &[ParameterSpec] {
        &self.0.parameters
    }

    /// Where it is, of all its clones.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The name of the Rust function.
    pub(crate) fn rust_name(&self) -> &Arc<str> {
        &self.0.name
    }
}

enum Flat {
    Names(String),
    Type(Error),
}

fn effect_of(def: &FunctionDef, library: &FunctionLibrary) -> Effect {
    let effects = def.graph.iter().map(|(_, node)| library.effect_of(&node.op, &node.attrs));
    effects.fold(
        Effect::Pure,
        |strongest, effect| if effect == Effect::Pure { strongest } else { effect },
    )
}

/// The variable a handle refers to, if it still exists and is one.
pub(crate) fn variable_of(handle: &runtime::ResourceHandle) -> Option<Variable> {
    let state = handle.downcast::<VariableState>("a variable").ok()?;
    Some(runtime::ResourceVariable::from(state).into())
}

impl fmt::Display for ConcreteFunction {
    /// Parameters, result and captures, one a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConcreteFunction {}", self.0.function_type.describe())
    }
}

impl fmt::Debug for ConcreteFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<ConcreteFunction {}{}>", self.0.name, self.0.function_type)
    }
}

/// The function that the runtime runs for a [`ConcreteFunction`]: no structure, no gradient, and
/// captures given by the caller.
#[derive(Clone, Debug)]
pub struct AtomicFunction(runtime::CallableFunction);

impl AtomicFunction {
    /// Calls the function with its tensors, captures last.
    ///
    /// # Errors
    ///
    /// When they do not fit, otherwise whatever fails in the function.
    pub fn call(&self, args: &[EagerTensor]) -> Result<Vec<EagerTensor>> {
        Ok(self.0.call(args)?)
    }
}
