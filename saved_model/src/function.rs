//! Functions and signatures of a loaded model.

use crate::{
    error::{Error, Result},
    model::SavedSignature,
    parameters::ArgSpecParameters,
    proto,
    structured_value::{StructuredValue, TypeSpecClass},
    value::{Conversion, PythonValue, TensorLeaf, matched, packed, tensor_specs},
};
use ferroflow_ir::{Code, Limits, TensorSpec, ValueType};
use ferroflow_runtime::{
    CallableFunction, EagerTensor, MemoryEstimate, ResourceVariable, RunMetadata, RunOptions,
    resource::value_type,
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// A function with several traces, of which a call takes the first that fits its arguments.
#[derive(Debug, Clone)]
pub struct RestoredFunction {
    parameters: ArgSpecParameters,
    traces: Vec<Trace>,
    first_values: Vec<LoadedInitializer>,
    initializing: Arc<Mutex<()>>,
    /// The names of the arguments that a single trace takes by position besides those of its
    /// parameters.
    positional: Vec<String>,
}

/// Function that returns the initial value of a variable when the function is called.
#[derive(Debug, Clone)]
pub(crate) struct LoadedInitializer {
    pub(crate) variable: ResourceVariable,
    /// Of the arguments of the call.
    pub(crate) value: Trace,
}

/// A concrete function and the arguments it was traced for.
#[derive(Debug, Clone)]
pub struct Trace {
    function: CallableFunction,
    signature: SavedSignature,
}

impl Trace {
    /// The function itself.
    pub fn concrete_function(&self) -> &CallableFunction {
        &self.function
    }

    /// The arguments it takes: a tuple of the positional ones and a dictionary of the others.
    pub fn inputs(&self) -> &StructuredValue {
        &self.signature.inputs
    }

    /// Structure of its outputs.
    pub fn outputs(&self) -> &StructuredValue {
        &self.signature.outputs
    }

    pub(crate) fn new(function: CallableFunction, signature: SavedSignature) -> Result<Trace> {
        check_count(&function, "arguments", &signature.inputs, function.n_args())?;
        check_count(&function, "results", &signature.outputs, function.def().results.len())?;
        Ok(Trace { function, signature })
    }

    /// The value that results of the function are, in the order in which it returns them.
    ///
    /// # Errors
    ///
    /// When there are fewer than the function returns.
    pub fn pack<T: TensorLeaf>(
        &self,
        results: impl IntoIterator<Item = T>,
    ) -> Result<PythonValue<T>> {
        packed(&self.signature.outputs, &mut results.into_iter()).ok_or_else(|| {
            let n_results = self.function.def().results.len();
            miscounted(&self.function, "results", &self.signature.outputs, n_results)
        })
    }
}

/// Checks that a signature has as many tensors as the function.
fn check_count(
    function: &CallableFunction,
    what: &'static str,
    signature: &StructuredValue,
    n_values: usize,
) -> Result<()> {
    if tensor_specs(signature).len() == n_values {
        return Ok(());
    }
    Err(miscounted(function, what, signature, n_values))
}

fn miscounted(
    function: &CallableFunction,
    what: &'static str,
    signature: &StructuredValue,
    n_values: usize,
) -> Error {
    let name = function.def().name.to_string();
    let expected = format!("{n_values} tensors, as the function has");
    let found = format!("{} in its signature", tensor_specs(signature).len());
    ferroflow_ir::Error::argument(name, what, expected, found).into()
}

impl RestoredFunction {
    pub(crate) fn new(
        spec: Option<&proto::FunctionSpec>,
        traces: Vec<(CallableFunction, SavedSignature)>,
        limits: &Limits,
    ) -> Result<RestoredFunction> {
        let traces =
            traces.into_iter().map(|(function, signature)| Trace::new(function, signature));
        let parameters = match spec {
            Some(spec) => ArgSpecParameters::new(spec, limits)?,
            None => ArgSpecParameters::any(),
        };
        Ok(RestoredFunction {
            parameters,
            traces: traces.collect::<Result<_>>()?,
            first_values: Vec::new(),
            initializing: Arc::default(),
            positional: Vec::new(),
        })
    }

    /// The function where the first so many of these arguments may be passed by position too: the
    /// one argument of a signature, which has parameters by name only.
    pub(crate) fn with_positional(self, names: &[String], n: i64) -> RestoredFunction {
        let n = usize::try_from(n).unwrap_or(0);
        RestoredFunction { positional: names.iter().take(n).cloned().collect(), ..self }
    }

    /// The names of the parameters that take arguments by position, in order.
    pub fn parameter_names(&self) -> impl Iterator<Item = &str> {
        self.parameters.names()
    }

    /// Input signature of the positional arguments, if the function has one.
    pub fn input_signature(&self) -> Option<&[StructuredValue]> {
        self.parameters.input_signature()
    }

    /// The function where a call returns variables their initial values. One call at a time does
    /// so, of all that share the lock.
    pub(crate) fn with_first_values(
        self,
        first_values: Vec<LoadedInitializer>,
        lock: &Arc<Mutex<()>>,
    ) -> RestoredFunction {
        RestoredFunction { first_values, initializing: lock.clone(), ..self }
    }

    /// Initializes variables that have no value yet, as far as these arguments tell.
    fn initialize<T: TensorLeaf>(&self, bound: &PythonValue<T>) -> Result<()> {
        let is_empty = |first: &LoadedInitializer| !first.variable.is_initialized();
        if !self.first_values.iter().any(is_empty) {
            return Ok(());
        }
        let Some(bound) = bound.try_map(&|tensor| tensor.eager().cloned()) else {
            return Ok(());
        };
        let _lock = self.initializing.lock().unwrap_or_else(PoisonError::into_inner);
        for LoadedInitializer { variable, value } in
            self.first_values.iter().filter(|f| is_empty(f))
        {
            let args = matched(&value.signature.inputs, &bound, Conversion::Allowed);
            if let Some(value) = args.map(|args| value.function.call(&args)).transpose()? {
                let value = value.into_iter().next().map(EagerTensor::into_host).transpose()?;
                value.map(|value| variable.assign(value)).transpose()?;
            }
        }
        Ok(())
    }

    /// The traces, in the order they are tried.
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// Calls the function: positional arguments and arguments by name.
    ///
    /// Host values are compared with those the function was traced with. Where no trace takes the
    /// arguments as they are, host values become tensors.
    ///
    /// # Errors
    ///
    /// [`Error::NoTrace`] when there is none for these arguments, otherwise whatever fails in the
    /// function.
    pub fn call(
        &self,
        args: &[PythonValue],
        kwargs: &BTreeMap<String, PythonValue>,
    ) -> Result<PythonValue> {
        let (trace, tensors) = self.select(args, kwargs)?;
        trace.pack(trace.function.call(&tensors)?)
    }

    /// The trace that a call with these arguments takes, and the tensors it takes of them.
    /// Variables that the function makes when it is called first get their values.
    ///
    /// # Errors
    ///
    /// As [`call`](RestoredFunction::call); the trace does not run.
    pub fn select<T: TensorLeaf>(
        &self,
        args: &[PythonValue<T>],
        kwargs: &BTreeMap<String, PythonValue<T>>,
    ) -> Result<(&Trace, Vec<T>)> {
        let bound = self.bind(args, kwargs)?;
        self.initialize(&bound)?;
        for conversion in [Conversion::Forbidden, Conversion::Allowed] {
            for trace in &self.traces {
                if let Some(tensors) = matched(&trace.signature.inputs, &bound, conversion) {
                    return Ok((trace, tensors));
                }
            }
        }
        let available = self.traces.iter().map(|trace| trace.inputs().to_string()).collect();
        Err(Error::NoTrace { arguments: bound.to_string(), available })
    }

    fn bind<T: TensorLeaf>(
        &self,
        args: &[PythonValue<T>],
        kwargs: &BTreeMap<String, PythonValue<T>>,
    ) -> Result<PythonValue<T>> {
        let error = match self.parameters.bind(args, kwargs) {
            Ok(bound) => return Ok(bound),
            Err(error) => error,
        };
        let by_position = self.positional.iter().zip(args);
        let is_named = by_position.clone().any(|(name, _)| kwargs.contains_key(name));
        if args.is_empty() || args.len() > self.positional.len() || is_named {
            return Err(error);
        }
        let named = by_position.map(|(name, value)| (name.clone(), value.clone()));
        let all = kwargs.clone().into_iter().chain(named).collect();
        self.parameters.bind(&[], &all).map_err(|_| error)
    }
}

/// A function that takes tensors by name and returns tensors by name.
#[derive(Debug, Clone)]
pub struct Signature {
    name: String,
    function: CallableFunction,
    inputs: Vec<(String, TensorSpec)>,
    /// Values of inputs that a call leaves out.
    defaults: BTreeMap<String, EagerTensor>,
    outputs: Vec<String>,
}

impl Signature {
    pub(crate) fn new(
        name: &str,
        function: CallableFunction,
        saved: &SavedSignature,
        defaults: BTreeMap<String, EagerTensor>,
    ) -> Result<Signature> {
        let malformed = |what: &'static str, found: &StructuredValue| {
            let function = format!("signature {name}");
            Error::from(ferroflow_ir::Error::argument(function, what, "tensors by name", found))
        };
        let inputs = match &saved.inputs {
            StructuredValue::Tuple(parts) => match &parts[..] {
                [StructuredValue::Tuple(positional), StructuredValue::Dict(named)]
                    if positional.is_empty() =>
                {
                    tensors(named)
                }
                _ => None,
            },
            _ => None,
        };
        let inputs = inputs.ok_or_else(|| malformed("inputs", &saved.inputs))?;
        let of_function = |index: usize| {
            let ty = function.def().arg_type(index);
            TensorSpec::new(ty.dtype, ty.shape.clone())
        };
        let outputs = match &saved.outputs {
            StructuredValue::Dict(outputs) => tensors(outputs),
            // A function that gives nothing.
            StructuredValue::None => Some(Vec::new()),
            _ => None,
        };
        let outputs = outputs.ok_or_else(|| malformed("outputs", &saved.outputs))?;
        check_count(&function, "arguments", &saved.inputs, function.n_args())?;
        check_count(&function, "results", &saved.outputs, function.def().results.len())?;
        let with_spec = |(index, (name, spec)): (usize, (String, Option<TensorSpec>))| {
            (name, spec.unwrap_or_else(|| of_function(index)))
        };
        let inputs = inputs.into_iter().enumerate().map(with_spec).collect();
        let outputs = outputs.into_iter().map(|(name, _)| name).collect();
        Ok(Signature { name: name.into(), function, inputs, defaults, outputs })
    }

    /// Names, dtypes and shapes of the inputs, sorted by name.
    pub fn inputs(&self) -> &[(String, TensorSpec)] {
        &self.inputs
    }

    /// Values of the inputs that a call may leave out, by name.
    pub fn defaults(&self) -> &BTreeMap<String, EagerTensor> {
        &self.defaults
    }

    /// Names of the outputs, sorted, with what is known of each before a call.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, Option<ValueType>)> {
        let def = self.function.def();
        self.outputs
            .iter()
            .zip(&def.results)
            .map(|(name, (_, outlet))| (name.as_str(), def.graph.ty(*outlet).cloned()))
    }

    /// The function that runs.
    pub fn concrete_function(&self) -> &CallableFunction {
        &self.function
    }

    /// Calls the signature. Inputs that have a default may be left out.
    ///
    /// # Errors
    ///
    /// [`Error::SignatureInput`] when an input is missing, unknown, of another dtype, or of another
    /// shape that the function cannot work with; otherwise whatever fails in the function.
    pub fn call(
        &self,
        inputs: &BTreeMap<String, EagerTensor>,
    ) -> Result<BTreeMap<String, EagerTensor>> {
        let args = self.arguments(inputs)?;
        let results = self.function.call_with_any_shapes(&args);
        let results = results.map_err(|error| self.explained(&args, error))?;
        Ok(self.outputs.iter().cloned().zip(results).collect())
    }

    /// Calls the signature in this way; also tells what the run did.
    ///
    /// # Errors
    ///
    /// As [`call`](Signature::call).
    pub fn call_with(
        &self,
        inputs: &BTreeMap<String, EagerTensor>,
        options: &RunOptions,
    ) -> Result<(BTreeMap<String, EagerTensor>, RunMetadata)> {
        let args = self.arguments(inputs)?;
        let borrowed: Vec<&EagerTensor> = args.iter().collect();
        let called = self.function.call_with_options_and_any_shapes(options, &borrowed);
        let (results, metadata) = called.map_err(|error| self.explained(&args, error))?;
        Ok((self.outputs.iter().cloned().zip(results).collect(), metadata))
    }

    /// The memory that a call with inputs like these takes, as far as it is known before the call.
    ///
    /// # Errors
    ///
    /// As [`call`](Signature::call), but for what depends on values.
    pub fn memory_estimate(
        &self,
        inputs: &BTreeMap<String, EagerTensor>,
    ) -> Result<MemoryEstimate> {
        let args = self.arguments(inputs)?;
        let types: Vec<ValueType> = args.iter().map(value_type).collect();
        Ok(self.function.memory_estimate(&types)?)
    }

    /// The arguments that inputs by name are, in the order in which the function takes them.
    ///
    /// # Errors
    ///
    /// [`Error::SignatureInput`] when an input is missing, unknown or of another dtype.
    pub fn arguments<T: TensorLeaf>(&self, inputs: &BTreeMap<String, T>) -> Result<Vec<T>> {
        if let Some(unknown) = inputs.keys().find(|name| !self.takes(name)) {
            let names: Vec<&str> = self.inputs.iter().map(|(name, _)| name.as_str()).collect();
            let expected = format!("one of [{}]", names.join(", "));
            return Err(self.wrong("an input", expected, format_args!("`{unknown}`")));
        }
        let mut args = Vec::with_capacity(self.inputs.len());
        for (name, spec) in &self.inputs {
            let value = inputs.get(name).cloned();
            let value = value.or_else(|| self.defaults.get(name).cloned().map(T::from));
            let value = value.ok_or_else(|| self.wrong(name, unnamed(spec), "nothing"))?;
            let found = value.spec();
            if spec.dtype != found.dtype {
                return Err(self.wrong(name, unnamed(spec), found));
            }
            args.push(value);
        }
        Ok(args)
    }

    /// A failure with inputs of other shapes than declared comes from that, most likely.
    fn explained(&self, args: &[EagerTensor], error: ferroflow_runtime::Error) -> Error {
        let other =
            self.inputs.iter().zip(args).find(|((_, spec), arg)| !spec.accepts(&arg.spec()));
        match other {
            Some(((name, spec), arg)) if error.code() == Code::InvalidArgument => {
                self.wrong(name, unnamed(spec), format_args!("{} ({error})", arg.spec()))
            }
            _ => error.into(),
        }
    }

    fn takes(&self, name: &str) -> bool {
        self.inputs.iter().any(|(input, _)| input == name)
    }

    fn wrong(&self, input: &str, expected: impl fmt::Display, found: impl fmt::Display) -> Error {
        Error::SignatureInput {
            signature: self.name.clone(),
            input: input.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// A spec without the name that the error tells before it.
fn unnamed(spec: &TensorSpec) -> TensorSpec {
    TensorSpec::new(spec.dtype, spec.shape.clone())
}

/// The names and specs of a dictionary of tensors; a composite value has several of each.
fn tensors(
    fields: &BTreeMap<String, StructuredValue>,
) -> Option<Vec<(String, Option<TensorSpec>)>> {
    let mut tensors = Vec::new();
    for (name, value) in fields {
        match value {
            StructuredValue::TensorSpec(spec) | StructuredValue::BoundedTensorSpec { spec, .. } => {
                tensors.push((name.clone(), Some(spec.clone())));
            }
            StructuredValue::TypeSpec(spec) => {
                let specs = spec.components();
                let names = component_names(name, spec.class, specs.len());
                tensors.extend(names.into_iter().zip(specs));
            }
            _ => return None,
        }
    }
    Some(tensors)
}

/// Names of the tensors of a composite input or output: the parts of a sparse tensor after what
/// they are, others by number.
pub(crate) fn component_names(
    name: &str,
    class: TypeSpecClass,
    n_components: usize,
) -> Vec<String> {
    let numbered = |index: usize| match (class, index) {
        (TypeSpecClass::SparseTensorSpec, 0) => format!("{name}_indices"),
        (TypeSpecClass::SparseTensorSpec, 1) => format!("{name}_values"),
        (TypeSpecClass::SparseTensorSpec, _) => format!("{name}_dense_shape"),
        (_, 0) => name.to_string(),
        (_, index) => format!("{name}_{index}"),
    };
    (0..n_components).map(numbered).collect()
}
