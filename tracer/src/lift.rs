//! Parts of a trace that run before the function does: first values of variables.

use crate::{
    concrete_function::{ConcreteFunction, VariableInitializer},
    context,
    error::{Error, Result},
    func_graph::InitialValue,
    tensor::Tensor,
};
use ferroflow_ir::{FunctionLibrary, FunctionType, HostTensor, TraceType};
use ferroflow_runtime::{self as runtime, EagerTensor, collective::agreed_value};
use std::sync::Arc;

/// Initializes variables that a trace creates, in the order they were made.
/// `arguments` are those of the call, if there is one.
pub(crate) fn initialize(
    function: &str,
    first_values: Vec<InitialValue>,
    trace: &ConcreteFunction,
    arguments: Option<&[Tensor]>,
) -> Result<Vec<VariableInitializer>> {
    let initialize = |first: InitialValue| {
        let owned = first.variable.owned()?;
        if !first.is_known {
            let value = evaluate(function, &first, trace.library(), arguments)?;
            owned.assign_tensor(agreed_value(value.into())?)?;
        }
        let value = TraceType::tensor(owned.dtype(), owned.shape().clone());
        let function_type = FunctionType { output: Some(value), ..trace.function_type().clone() };
        let InitialValue { def, captures, .. } = first;
        let (variable, library) = (owned.handle(), trace.library().clone());
        Ok(VariableInitializer { variable, def, library, captures, function_type })
    };
    first_values.into_iter().map(initialize).collect()
}

fn evaluate(
    function: &str,
    first: &InitialValue,
    library: &Arc<FunctionLibrary>,
    arguments: Option<&[Tensor]>,
) -> Result<HostTensor> {
    let wrong = |reason| Error::Initializer {
        function: function.into(),
        variable: first.variable.name().into(),
        reason,
    };
    let mut def = first.def.clone();
    let mut args: Vec<EagerTensor> = Vec::new();
    if first.needs_arguments {
        let arguments =
            arguments.ok_or_else(|| wrong("depends on arguments, which are not given yet"))?;
        if arguments.iter().any(Tensor::is_symbolic) {
            return Err(wrong(
                "depends on arguments that are symbolic themselves: call the function outside \
                 other functions first",
            ));
        }
        args = arguments.iter().map(|arg| Ok(arg.eager()?.clone())).collect::<Result<_>>()?;
    } else {
        let n_args = def.args.len() - first.captures.len();
        Arc::make_mut(&mut def).args.drain(..n_args);
    }
    let captures: Result<Vec<runtime::CapturedInput>> = first
        .captures
        .iter()
        .map(|capture| capture.fixed()?.ok_or_else(|| wrong("depends on what surrounds the call")))
        .collect();
    let context = context::context();
    let resources = context.resources().clone();
    let (library, captures) = (library.clone(), captures?);
    let value =
        runtime::CallableFunction::with_captures(&context, def, library, resources, captures);
    Ok(value.call(&args)?.remove(0).into_host()?)
}
