//! Custom gradients in traces: a node that names its gradient, and the gradient as a function.
//!
//! As in TensorFlow's graphs the results of the function pass through an `IdentityN`, together with
//! its arguments, and the node names the gradient in `_gradient_op_type`. The function of the
//! gradient is traced at once, since what it uses of the trace is there only now. An error of that
//! is told to who asks for the gradient.

use super::{Backward, OfCode};
use crate::{
    context,
    control_flow::stage::RegionTrace,
    error::{Error, Result},
    func_graph::{Call, FuncGraph},
    recording,
    tensor::Tensor,
};
use ferroflow_ir::{
    Attrs,
    gradient::{LoadedCapture, LoadedGradient, with_captures},
    ops::names,
    registry,
};
use std::{
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The results as part of the trace, with their gradient; shown to the tapes of the trace.
#[track_caller]
pub(super) fn staged(
    trace: &Arc<FuncGraph>,
    outputs: &[Tensor],
    inputs: &[&Tensor],
    backward: Arc<Backward>,
) -> Result<Vec<Tensor>> {
    if outputs.is_empty() {
        return Ok(Vec::new());
    }
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("CustomGradient-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let location = Some(Location::caller());
    let mut noted = Attrs::new().with(LoadedGradient::ATTRIBUTE, &*name);
    match traced(trace, outputs, inputs, &*backward) {
        Ok((gradient, captures)) => {
            noted = with_captures(noted, captures);
            trace.library().carry_gradient(name, gradient);
        }
        Err(error) => trace.library().refuse_gradient(name, crate::backprop::into_ir(error)),
    }
    let op = registry::find(names::IDENTITY_N).expect("a built-in record");
    let passed: Vec<&Tensor> = outputs.iter().chain(inputs.iter().copied()).collect();
    let call = Call { op, attrs: Attrs::new(), inputs: &passed, name: "", location };
    let mut own = context::apart_from_tapes(|| trace.call(call))?.into_vec();
    trace.note(&own[0], &noted);
    let gradient = OfCode { backward, n_results: outputs.len(), passed: outputs.len() };
    recording::record_custom(op, &passed, &own, Arc::new(gradient));
    own.truncate(outputs.len());
    Ok(own)
}

/// The gradient, whose function is put into the library of the trace, and the names of the values
/// of the trace that it takes.
fn traced(
    trace: &Arc<FuncGraph>,
    outputs: &[Tensor],
    inputs: &[&Tensor],
    backward: &Backward,
) -> Result<(LoadedGradient, Vec<String>)> {
    let part = RegionTrace::open("__inference_internal_grad_fn")?;
    // The node passes the arguments on as well, whose gradients there are not.
    let passed = outputs.iter().chain(inputs.iter().copied()).enumerate();
    let dys = passed
        .map(|(index, y)| part.argument(&format!("result_grads_{index}"), y.value_type()))
        .collect::<Result<Vec<_>>>()?;
    let found = backward(&dys[..outputs.len()])?;
    let mut gradients: Vec<Option<usize>> = vec![None; outputs.len()];
    let mut results = Vec::new();
    for gradient in found.into_iter().take(inputs.len()) {
        gradients.push(gradient.is_some().then_some(results.len()));
        results.extend(gradient.map(|gradient| gradient.dense()).transpose()?);
    }
    let (def, captures) = context::apart_from_tapes(|| part.close(results)?.into_function())?;
    let names: Vec<(String, usize)> =
        captures.iter().map(|capture| of(trace, capture)).collect::<Result<_>>()?;
    let function = def.name.clone();
    let around: Arc<str> = trace.name().into();
    let captures = names.iter().map(|(node, index)| LoadedCapture {
        function: around.clone(),
        node: node.clone(),
        index: *index,
    });
    let gradient = LoadedGradient { function, gradients, captures: captures.collect() };
    trace.library().insert(def)?;
    Ok((gradient, names.into_iter().map(|(node, index)| format!("{node}:{index}")).collect()))
}

/// The node of a value of the trace, and which of its results it is.
fn of(trace: &Arc<FuncGraph>, tensor: &Tensor) -> Result<(String, usize)> {
    let outlet = tensor.symbolic_in(trace).ok_or_else(|| Error::Conversion {
        expected: format!("a tensor of the trace of `{}`", trace.name()),
        found: tensor.to_string(),
    })?;
    Ok((trace.node_name(outlet.node), outlet.index as usize))
}
