//! Parts of a trace that run before the function does: first values of variables.

use crate::{capture::Capture, error::Result, func_graph::FuncGraph, tensor::Tensor};
use ferroflow_ir::{FunctionDef, HostTensor};
use ferroflow_runtime::{self as runtime, EagerTensor};
use std::sync::Arc;

/// The only result of a function carved out of a trace, for these arguments. Arguments it does not
/// depend on may be left out.
pub(crate) fn evaluate(
    graph: &FuncGraph,
    def: &Arc<FunctionDef>,
    captures: &[Capture],
    leaves: &[Tensor],
) -> Result<HostTensor> {
    let n_args = def.args.len() - captures.len();
    let mut def = FunctionDef::clone(def);
    if leaves.len() < n_args {
        let kept = def.args.split_off(n_args);
        def.args = kept;
    }
    let captures: Result<Vec<runtime::Capture>> = captures
        .iter()
        .map(|capture| {
            Ok(match capture {
                Capture::Resource(handle) => runtime::Capture::Resource(handle.clone()),
                Capture::Tensor(tensor) => runtime::Capture::Tensor(tensor.eager()?.clone()),
            })
        })
        .collect();
    let context = graph.context();
    let library = graph.library().clone();
    let resources = context.resources().clone();
    let function = runtime::ConcreteFunction::with_captures(
        context,
        Arc::new(def),
        library,
        resources,
        captures?,
    );
    let args: Result<Vec<EagerTensor>> =
        leaves.iter().take(n_args).map(|leaf| Ok(leaf.eager()?.clone())).collect();
    let mut results = function.call(&args?)?;
    Ok(results.remove(0).into_host()?)
}
