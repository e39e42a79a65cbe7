//! Variables, as user code sees them: eager, captured by functions, or passed to them.

use crate::{
    context,
    error::{Error, Result},
    func_graph::Created,
    ops::{self, IntoOperand},
    recording,
    tensor::Tensor,
};
use ferroflow_ir::{DType, PartialShape, TensorSpec, ops::names, trace_type::VariableSpec};
use ferroflow_runtime::{
    self as runtime,
    collective::{Replica, agreed_value},
    mirrored::{VariableAggregation, VariableSynchronization},
};
use std::{fmt, panic::Location, sync::Arc};

/// A tensor that changes. Clones are the same variable; it lives as long as one of them does.
///
/// A function that uses a variable refers to it without keeping it alive.
///
/// ```
/// use ferroflow_tracer::{Variable, function};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let counter = Variable::new(0i32)?;
/// let count = {
///     let counter = counter.clone();
///     function(move || counter.assign_add(1))
/// };
/// count.call(())?;
/// count.call(())?;
/// assert_eq!(counter.read()?.to_scalar::<i32>()?, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Variable(Repr);

#[derive(Clone)]
enum Repr {
    Owned(runtime::ResourceVariable),
    /// A variable that was passed to a function that is being traced.
    Argument(Arc<Argument>),
}

struct Argument {
    handle: Tensor,
    spec: VariableSpec,
    name: String,
}

/// Options of a variable.
#[derive(Clone, Debug)]
pub struct VariableOptions {
    /// The name; `Variable` if empty.
    pub name: String,
    /// Whether gradients are taken by it unless asked otherwise.
    pub trainable: bool,
    /// Shapes that its values may have; that of the first value if `None`.
    pub shape: Option<PartialShape>,
    /// When replicas of a strategy bring their values into line.
    pub synchronization: VariableSynchronization,
    /// Aggregation of the values of replicas.
    pub aggregation: VariableAggregation,
}

impl Default for VariableOptions {
    fn default() -> VariableOptions {
        VariableOptions {
            name: String::new(),
            trainable: true,
            shape: None,
            synchronization: VariableSynchronization::default(),
            aggregation: VariableAggregation::default(),
        }
    }
}

impl Variable {
    /// A variable with this first value.
    ///
    /// # Errors
    ///
    /// [`Error::VariableCreation`] in a trace that may not create variables.
    #[track_caller]
    pub fn new(initial: impl Into<Tensor>) -> Result<Variable> {
        Variable::with_options(initial, VariableOptions::default())
    }

    /// A variable with this first value and a name.
    ///
    /// # Errors
    ///
    /// As [`new`](Variable::new).
    #[track_caller]
    pub fn named(name: &str, initial: impl Into<Tensor>) -> Result<Variable> {
        let options = VariableOptions { name: name.into(), ..VariableOptions::default() };
        Variable::with_options(initial, options)
    }

    /// A variable with this first value.
    ///
    /// While a function is traced, the variable is lifted out of it: it is made at once, and its
    /// first value, if that is part of the trace, is computed before the function first runs.
    ///
    /// # Errors
    ///
    /// As [`new`](Variable::new); when the first value does not have the shape that is asked for.
    #[track_caller]
    pub fn with_options(initial: impl Into<Tensor>, options: VariableOptions) -> Result<Variable> {
        let (initial, location) = (initial.into(), Location::caller());
        let VariableOptions { name, trainable, shape, synchronization, aggregation } = options;
        if let Some(true) = Replica::with_current(|replica| replica.engine.size() > 1) {
            let what = format!("making variable `{name}`");
            let reason = "a replica would have it for itself; make it in the scope of the strategy";
            return Err(Error::Replica { what, reason });
        }
        let name = if name.is_empty() { "Variable".to_string() } else { name };
        let trace = context::current_trace();
        let name = match &trace {
            Some(trace) => trace.variable_name(name),
            None => name,
        };
        let shape = shape.unwrap_or_else(|| initial.shape());
        let inner =
            runtime::ResourceVariable::uninitialized(name, initial.dtype(), shape, trainable);
        inner.annotate(synchronization, aggregation);
        if let Some(device) = context::current_accelerator()
            && device.storage(initial.dtype()).is_some()
        {
            inner.live_on(&device)?;
        }
        let variable = Variable(Repr::Owned(inner.clone()));
        let lifted = initial.is_symbolic();
        if !lifted {
            inner.assign_tensor(agreed_value(initial.eager()?.clone())?)?;
        }
        if let Some(trace) = trace {
            trace.created(Created { variable: variable.clone(), initial, location })?;
        } else if lifted {
            initial.host()?;
        }
        Ok(variable)
    }

    /// The variable that stands for an argument in a trace.
    pub(crate) fn argument(handle: Tensor, spec: VariableSpec, name: &str) -> Variable {
        Variable(Repr::Argument(Arc::new(Argument { handle, spec, name: name.into() })))
    }

    /// The name.
    pub fn name(&self) -> &str {
        match &self.0 {
            Repr::Owned(variable) => variable.name(),
            Repr::Argument(argument) => &argument.name,
        }
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        match &self.0 {
            Repr::Owned(variable) => variable.dtype(),
            Repr::Argument(argument) => argument.spec.value.dtype,
        }
    }

    /// The shape every value has.
    pub fn shape(&self) -> PartialShape {
        match &self.0 {
            Repr::Owned(variable) => variable.shape().clone(),
            Repr::Argument(argument) => argument.spec.value.shape.clone(),
        }
    }

    /// Dtype and shape.
    pub fn spec(&self) -> TensorSpec {
        TensorSpec::new(self.dtype(), self.shape())
    }

    /// Whether gradients are taken by it unless asked otherwise.
    pub fn is_trainable(&self) -> bool {
        match &self.0 {
            Repr::Owned(variable) => variable.is_trainable(),
            Repr::Argument(argument) => argument.spec.trainable,
        }
    }

    /// Whether the two are the same variable.
    pub fn is(&self, other: &Variable) -> bool {
        self.id() == other.id()
    }

    /// A number that only this variable has while it lives.
    pub(crate) fn id(&self) -> usize {
        match &self.0 {
            Repr::Owned(variable) => variable.handle().id(),
            Repr::Argument(argument) => Arc::as_ptr(argument) as usize,
        }
    }

    /// The variable of the runtime.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] for an argument of a function that is being traced.
    pub fn owned(&self) -> Result<&runtime::ResourceVariable> {
        match &self.0 {
            Repr::Owned(variable) => Ok(variable),
            Repr::Argument(argument) => {
                let found = format!("variable `{}` of a trace", argument.name);
                Err(Error::Conversion { expected: "a variable with a value".into(), found })
            }
        }
    }

    /// A tensor that refers to it, for ops that work on variables.
    pub fn handle(&self) -> Tensor {
        match &self.0 {
            Repr::Owned(variable) => variable.handle().to_tensor().into(),
            Repr::Argument(argument) => argument.handle.clone(),
        }
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// When there is none yet.
    #[track_caller]
    pub fn read(&self) -> Result<Tensor> {
        if let (Repr::Owned(variable), true) = (&self.0, context::is_plain()) {
            return Ok(variable.tensor()?.into());
        }
        if context::is_taped() {
            recording::variable_read(self);
        }
        ops::variable::read(self)
    }

    /// When replicas of a strategy bring their values into line, and what they become together.
    pub fn annotations(&self) -> runtime::mirrored::Annotations {
        self.owned().map(runtime::ResourceVariable::annotations).unwrap_or_default()
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// When dtype or shape do not fit.
    #[track_caller]
    pub fn assign(&self, value: impl IntoOperand) -> Result<()> {
        let value = self.synchronized(value)?;
        ops::variable::update(self, names::ASSIGN_VARIABLE_OP, &value)
    }

    /// Adds to the value.
    ///
    /// # Errors
    ///
    /// When there is no value yet, or dtype or shape do not fit.
    #[track_caller]
    pub fn assign_add(&self, value: impl IntoOperand) -> Result<()> {
        let value = self.synchronized(value)?;
        ops::variable::update(self, names::ASSIGN_ADD_VARIABLE_OP, &value)
    }

    /// Subtracts from the value.
    ///
    /// # Errors
    ///
    /// When there is no value yet, or dtype or shape do not fit.
    #[track_caller]
    pub fn assign_sub(&self, value: impl IntoOperand) -> Result<()> {
        let value = self.synchronized(value)?;
        ops::variable::update(self, names::ASSIGN_SUB_VARIABLE_OP, &value)
    }
}

impl From<runtime::ResourceVariable> for Variable {
    fn from(variable: runtime::ResourceVariable) -> Variable {
        Variable(Repr::Owned(variable))
    }
}

impl From<&Variable> for Variable {
    fn from(variable: &Variable) -> Variable {
        variable.clone()
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, spec) = (self.name(), self.spec());
        match self.owned().and_then(|variable| Ok(variable.read()?)) {
            Ok(value) => write!(f, "<Variable `{name}` {spec} = {value}>"),
            Err(_) => write!(f, "<Variable `{name}` {spec}>"),
        }
    }
}
