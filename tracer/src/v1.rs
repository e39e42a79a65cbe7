//! Code with the semantics of TensorFlow 1, traced once.
//!
//! [`wrap_function`] traces code that builds a graph the old way: one trace for one signature;
//! variables belong to the function and keep their values from call to call; effects happen where
//! results or [control dependencies](crate::control_dependencies) ask for them, in no other order;
//! and there are named variables and collections, local to the trace. The name is that of
//! `tf.compat.v1.wrap_function`. The model function of an Estimator is such code, and stays as it
//! is.

use crate::{
    args::{Args, Body},
    concrete_function::ConcreteFunction,
    context,
    error::{Error, Result},
    func_graph::{Creation, Finished, FuncGraph, Semantics, unique_id},
    function::{outputs, placeholders},
    function_spec::{FunctionSpec, ParameterSpec},
    nest::Nest,
    ops::{self, IntoOperand},
    tensor::Tensor,
    value::NestedValue,
    variable::{Variable, VariableOptions},
};
use ferroflow_ir::{FunctionDef, Graph, TraceType, ops::names};
use std::{ops::Deref, panic::Location, sync::Arc};

pub use crate::func_graph::GLOBAL_VARIABLES;

/// A function traced with the semantics of TensorFlow 1. It owns its variables: they live as long
/// as it does.
#[derive(Clone, Debug)]
#[must_use = "the variables of the function live as long as it does"]
pub struct WrappedFunction {
    /// Function that a call runs.
    function: ConcreteFunction,
    /// All that was traced.
    whole: ConcreteFunction,
}

impl WrappedFunction {
    /// The variables made while it was traced, in that order.
    pub fn variables(&self) -> &[Variable] {
        self.function.owned_variables()
    }

    /// The graph of all that was traced. A call runs what its results need of it.
    pub fn graph(&self) -> &Graph {
        self.whole.graph()
    }

    /// The part of [`graph`](WrappedFunction::graph) between these tensors, as
    /// [`ConcreteFunction::prune`] gives it; it owns the same variables.
    ///
    /// # Errors
    ///
    /// As [`ConcreteFunction::prune`].
    pub fn prune(&self, inputs: &[&str], outputs: &[&str]) -> Result<WrappedFunction> {
        let function = self.whole.prune(inputs, outputs)?;
        Ok(WrappedFunction { whole: function.clone(), function })
    }
}

impl Deref for WrappedFunction {
    type Target = ConcreteFunction;

    fn deref(&self) -> &ConcreteFunction {
        &self.function
    }
}

/// Traces `code` once, for arguments of these types: specs of tensors, and the values of the
/// arguments that are not tensors ([`literal`](crate::literal)).
///
/// Unlike a call of the code itself, calls of the function change variables that were made once. A
/// variable that the code returns gives its value after all changes that the code makes to it.
///
/// ```
/// use ferroflow_ir::{DType, TraceType};
/// use ferroflow_tracer::{Tensor, Variable, literal, spec, v1};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let step = |x: Tensor, adds: bool| {
///     let v = Variable::new(5.0f32)?;
///     if adds { v1::assign_add(&v, &x) } else { v1::assign_sub(&v, &x) }
/// };
/// let types = [TraceType::from(spec(DType::F32, [])), literal(true)];
/// let add = v1::wrap_function(step, types)?;
/// let one = || [Tensor::from(1.0f32)];
/// assert_eq!(add.call_flat(&one())?[0].to_scalar::<f32>()?, 6.0);
/// assert_eq!(add.call_flat(&one())?[0].to_scalar::<f32>()?, 7.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// That of the code; [`Error::Initializer`] when it makes a variable whose first value is part of
/// the trace.
pub fn wrap_function<F: Body<A>, A: Args>(
    code: F,
    types: impl IntoIterator<Item = impl Into<TraceType>>,
) -> Result<WrappedFunction> {
    let types: Vec<TraceType> = types.into_iter().map(Into::into).collect();
    if types.len() != A::COUNT {
        let expected = format!("{} types, one for each argument", A::COUNT);
        return Err(Error::Conversion { expected, found: types.len().to_string() });
    }
    let parameters: Vec<ParameterSpec> =
        (0..types.len()).map(|index| ParameterSpec::new(&format!("args_{index}"))).collect();
    let name: Arc<str> = "wrapped_function".into();
    let spec = FunctionSpec { name: name.clone(), parameters, signature: None };
    let graph = FuncGraph::new(&name, unique_id(), Semantics::Graph, Creation::Allowed);
    let (output_type, outputs) = {
        let _guard = context::enter_trace(Some(graph.clone()));
        let names = spec.parameters.iter().map(|parameter| &*parameter.name);
        let args = placeholders(&graph, names, &types)?;
        outputs(&name, code.run(A::from_values(args)?)?.to_value())?
    };
    let mut finished = graph.finish(&outputs)?;
    if let Some(first) = finished.first_values.first() {
        return Err(Error::Initializer {
            function: name.to_string(),
            variable: first.variable.name().into(),
            reason: "is a tensor of its trace: here first values are functions or constants",
        });
    }
    let owned = std::mem::take(&mut finished.created);
    let mut function_type = spec.function_type(&types);
    function_type.output = Some(output_type);
    let function = |finished: Finished| {
        let (name, ty, parameters) = (name.clone(), function_type.clone(), spec.parameters.clone());
        ConcreteFunction::new(name, ty, parameters, finished, Vec::new(), owned.clone())
    };
    let needed = Finished { def: without_unneeded(&finished.def)?, ..finished.clone() };
    Ok(WrappedFunction { function: function(needed), whole: function(finished) })
}

/// The function without the nodes that its results do not need, whatever effects they have.
fn without_unneeded(def: &FunctionDef) -> Result<FunctionDef> {
    let mut needed = def.clone();
    let results = def.results.iter().map(|(_, outlet)| outlet.node);
    let kept = def.graph.reachable_from(results.chain(def.args.iter().copied()));
    needed.graph.retain(&kept)?;
    needed.control_results.clear();
    Ok(needed)
}

/// Makes a variable of this name, whose initial value `initial` returns for its shape, outside the
/// trace.
///
/// # Errors
///
/// [`Error::NoGraph`] outside [`wrap_function`]; [`Error::Conversion`] when there is a variable of
/// the name already; that of `initial`.
#[track_caller]
pub fn get_variable(
    name: &str,
    shape: &[usize],
    initial: impl FnOnce(&[usize]) -> Result<Tensor>,
) -> Result<Variable> {
    let is_named =
        |value: &NestedValue| matches!(value, NestedValue::Variable(v) if v.name() == name);
    if get_collection(GLOBAL_VARIABLES)?.iter().any(is_named) {
        let found = format!("`{name}`, which there is already");
        return Err(Error::Conversion { expected: "the name of a new variable".into(), found });
    }
    let initial = context::init_scope(|| initial(shape))?;
    let options = VariableOptions { name: name.into(), ..VariableOptions::default() };
    Variable::with_options(initial, options)
}

/// Adds a value to a collection of the trace.
///
/// # Errors
///
/// [`Error::NoGraph`] outside [`wrap_function`].
pub fn add_to_collection(name: &str, value: impl Into<NestedValue>) -> Result<()> {
    with_graph(|graph| graph.collect(name, value.into()))
}

/// The values of a collection of the trace, in the order they were added.
///
/// # Errors
///
/// [`Error::NoGraph`] outside [`wrap_function`].
pub fn get_collection(name: &str) -> Result<Vec<NestedValue>> {
    with_graph(|graph| graph.collection(name))
}

fn with_graph<R>(use_graph: impl FnOnce(&FuncGraph) -> R) -> Result<R> {
    let trace = context::current_trace().filter(|trace| trace.semantics() == Semantics::Graph);
    let trace = trace.ok_or(Error::NoGraph { what: "collections and named variables" })?;
    Ok(use_graph(&trace))
}

/// Sets a variable; returns its value afterwards, such that its users see the variable set.
///
/// # Errors
///
/// When dtype or shape do not fit.
#[track_caller]
pub fn assign(variable: &Variable, value: impl IntoOperand) -> Result<Tensor> {
    ops::variable::update_and_read(variable, names::ASSIGN_VARIABLE_OP, value, Location::caller())
}

/// Adds to a variable; returns its value afterwards, such that its users see that done.
///
/// # Errors
///
/// When there is no value yet, or dtype or shape do not fit.
#[track_caller]
pub fn assign_add(variable: &Variable, value: impl IntoOperand) -> Result<Tensor> {
    ops::variable::update_and_read(
        variable,
        names::ASSIGN_ADD_VARIABLE_OP,
        value,
        Location::caller(),
    )
}

/// Subtracts from a variable; returns its value afterwards, such that its users see that done.
///
/// # Errors
///
/// When there is no value yet, or dtype or shape do not fit.
#[track_caller]
pub fn assign_sub(variable: &Variable, value: impl IntoOperand) -> Result<Tensor> {
    ops::variable::update_and_read(
        variable,
        names::ASSIGN_SUB_VARIABLE_OP,
        value,
        Location::caller(),
    )
}
