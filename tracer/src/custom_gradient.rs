//! Functions with gradients of their own, and functions that are run once more for theirs.

mod staged;

use crate::{
    backprop::{TensorEmit, tensors},
    context,
    error::{Error, Result},
    gradients::{GradientOptions, IndexedSlices, TensorGradient},
    recording,
    tape::GradientTape,
    tensor::Tensor,
    variable::Variable,
};
use ferroflow_ir::{
    emit::{Emit, ValueId},
    gradient::{Cotangent, CustomGradient, RecordedCall, Slices},
    ops::names,
    registry,
};
use std::sync::Arc;

/// The gradients of arguments from those of results.
type Backward = dyn Fn(&[Tensor]) -> Result<Vec<Option<TensorGradient>>> + Send + Sync;

/// Calls `function`, whose gradient is code: it returns its results, and what takes the gradients
/// of its results to those of `args`. Tapes around the call do not see what it does, tapes that it
/// makes do; variables that it reads get no gradient.
///
/// ```
/// use ferroflow_tracer::{GradientTape, Tensor, custom_gradient};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// // log(1 + exp(x)), whose gradient does not overflow.
/// let softplus = |args: &[Tensor]| {
///     let e = args[0].exp()?;
///     let y = (&e + 1.0)?.log()?;
///     let backward = move |dys: &[Tensor]| Ok(vec![Some((&dys[0] * (1.0 - (1.0 / (&e + 1.0)?)?)?)?)]);
///     Ok((vec![y], backward))
/// };
/// let x = Tensor::from(100.0f32);
/// let tape = GradientTape::new();
/// tape.watch(&x)?;
/// let y = custom_gradient(softplus, &[x.clone()])?.remove(0);
/// assert_eq!(tape.gradient(&y, &x)?.unwrap().to_scalar::<f32>()?, 1.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of `function`; those of its gradient come from the tape that asks for it.
#[track_caller]
pub fn custom_gradient<B>(
    function: impl FnOnce(&[Tensor]) -> Result<(Vec<Tensor>, B)>,
    args: &[Tensor],
) -> Result<Vec<Tensor>>
where
    B: Fn(&[Tensor]) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
{
    let (outputs, backward) = context::apart_from_tapes(|| function(args))?;
    let n = args.len();
    let checked = move |dys: &[Tensor]| {
        let found = backward(dys)?;
        if found.len() != n {
            let expected = format!("{n} gradients, one for each argument");
            return Err(Error::Conversion { expected, found: found.len().to_string() });
        }
        Ok(found.into_iter().map(|gradient| gradient.map(TensorGradient::Dense)).collect())
    };
    let inputs: Vec<&Tensor> = args.iter().collect();
    recorded(outputs, &inputs, Arc::new(checked))
}

/// The results as tensors of their own, so that an argument that is returned unchanged is told
/// apart from itself; shown to the tapes. In a trace they are part of the graph, with the gradient:
/// who differentiates it later, in whatever way, finds it there.
#[track_caller]
fn recorded(
    outputs: Vec<Tensor>,
    inputs: &[&Tensor],
    backward: Arc<Backward>,
) -> Result<Vec<Tensor>> {
    if let Some(trace) = context::current_trace() {
        return staged::staged(&trace, &outputs, inputs, backward);
    }
    if !context::is_taped() {
        return Ok(outputs);
    }
    let own = || outputs.iter().map(Tensor::identity).collect::<Result<Vec<_>>>();
    let outputs = context::apart_from_tapes(own)?;
    let op = registry::find(names::IDENTITY_N).expect("a built-in record");
    let gradient = OfCode { backward, n_results: outputs.len(), passed: 0 };
    recording::record_custom(op, inputs, &outputs, Arc::new(gradient));
    Ok(outputs)
}

/// Calls `function` such that tapes keep its arguments only: for its gradient it is run once more.
/// This takes less memory, and more time. Variables that it reads get their gradients.
///
/// ```
/// use ferroflow_tracer::{GradientTape, Tensor, Variable, recompute_grad};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let w = Variable::new(3.0f32)?;
/// let cube = {
///     let w = w.clone();
///     move |x: &[Tensor]| Ok(vec![((x[0].square()? * &x[0])? * &w)?])
/// };
/// let x = Tensor::from(2.0f32);
/// let tape = GradientTape::new();
/// tape.watch(&x)?;
/// let y = recompute_grad(cube, &[x.clone()])?.remove(0);
/// let (dx, dw) = tape.gradient(&y, &(&x, &w))?;
/// assert_eq!(dx.unwrap().to_scalar::<f32>()?, 36.0);
/// assert_eq!(dw.unwrap().to_scalar::<f32>()?, 8.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of `function`.
#[track_caller]
pub fn recompute_grad(
    function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    args: &[Tensor],
) -> Result<Vec<Tensor>> {
    if context::is_plain() {
        return function(args);
    }
    let (outputs, variables) = context::apart_from_tapes(|| {
        let probe = GradientTape::new();
        let outputs = function(args)?;
        Ok::<_, Error>((outputs, probe.watched_variables()))
    })?;
    let (own_args, own_variables) = (args.to_vec(), variables.clone());
    let backward = move |dys: &[Tensor]| again(&function, &own_args, &own_variables, dys);
    // What a trace holds are values.
    let used = |variable: &Variable| match context::is_tracing() {
        true => variable.read(),
        false => Ok(variable.handle()),
    };
    let used: Vec<Tensor> = variables.iter().map(used).collect::<Result<_>>()?;
    let inputs: Vec<&Tensor> = args.iter().chain(&used).collect();
    recorded(outputs, &inputs, Arc::new(backward))
}

fn again(
    function: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    args: &[Tensor],
    variables: &[Variable],
    dys: &[Tensor],
) -> Result<Vec<Option<TensorGradient>>> {
    let tape = GradientTape::new();
    tape.watch(&args.to_vec())?;
    let outputs = function(args)?;
    let weights = dys.iter().cloned().map(Some).collect();
    let options = GradientOptions { output_gradients: Some(weights), ..Default::default() };
    let handles = variables.iter().map(Variable::handle);
    let sources: Vec<Tensor> = args.iter().cloned().chain(handles).collect();
    tape.snapshot()?.gradients(&outputs, &sources, &options)
}

/// The gradient of a call, as code.
struct OfCode {
    backward: Arc<Backward>,
    /// The number of results that the code knows.
    n_results: usize,
    /// The number of inputs before those that the code returns gradients of; they have none.
    passed: usize,
}

impl CustomGradient for OfCode {
    fn backward(
        &self,
        emit: &mut dyn Emit,
        call: &RecordedCall,
        dys: &[Option<ValueId>],
    ) -> ferroflow_ir::Result<Vec<Option<Cotangent>>> {
        let emit = tensors(emit, call.op.name)?;
        self.run(emit, call, dys).map_err(|error| emit.fail(call.op.name, error))
    }
}

impl OfCode {
    fn run(
        &self,
        emit: &mut TensorEmit,
        call: &RecordedCall,
        dys: &[Option<ValueId>],
    ) -> Result<Vec<Option<Cotangent>>> {
        let results = dys.iter().zip(&call.outputs).take(self.n_results);
        let gradients = results.map(|(dy, &output)| match dy {
            Some(dy) => Ok(emit.tensor(*dy).clone()),
            None => emit.tensor(output).zeros_like(),
        });
        let gradients = gradients.collect::<Result<Vec<_>>>()?;
        let found = (self.backward)(&gradients)?;
        let mut cotangent = |gradient: TensorGradient| match gradient {
            TensorGradient::Dense(tensor) => Cotangent::Dense(emit.add(tensor)),
            TensorGradient::Slices(slices) => {
                let IndexedSlices { values, indices, .. } = *slices;
                let (values, indices) = (emit.add(values), emit.add(indices));
                Cotangent::Slices(Slices { values, indices })
            }
        };
        let found = found.into_iter().map(|gradient| gradient.map(&mut cotangent));
        Ok(std::iter::repeat_n(None, self.passed).chain(found).collect())
    }
}
