//! Tapes: what was computed, so that it can be differentiated.

use crate::{
    backprop::TensorEmit,
    context,
    error::{Error, Result},
    gradients::{GradientOptions, Sources, TensorGradient},
    nest::Nest,
    recording::{ActiveTape, TapeOptions, TapeState, TensorKey},
    sync::Mutex,
    tensor::Tensor,
    value::{Aliases, TensorLeaves},
    variable::Variable,
};
use ferroflow_ir::{
    Attrs, DType,
    emit::ValueId,
    gradient::{self, RecordedCall, is_differentiable},
    hash::FastMap,
    ops::names,
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// Remembers what is computed from tensors it watches, so that it can be differentiated.
///
/// It records from its creation until [`gradient`](GradientTape::gradient) is asked for, until
/// [`end`](GradientTape::end), or until it is dropped: the calls of ops and functions made on this
/// thread, eager or in the trace it was created in. Trainable variables are watched when they are
/// read, other tensors when asked for by [`watch`](GradientTape::watch). What a gradient computes
/// is recorded by the tapes around it, which gives derivatives of any order; inside a trace it is
/// part of the graph.
///
/// ```
/// use ferroflow_tracer::{GradientTape, Tensor, Variable};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let w = Variable::new(3.0f32)?;
/// let x = Tensor::from(2.0f32);
/// let tape = GradientTape::new();
/// tape.watch(&x)?;
/// let y = (&x.square()? * &w)?;
/// let (dx, dw) = tape.gradient(&y, &(&x, &w))?;
/// assert_eq!(dx.unwrap().to_scalar::<f32>()?, 12.0);
/// assert_eq!(dw.unwrap().to_scalar::<f32>()?, 4.0);
/// # Ok(())
/// # }
/// ```
pub struct GradientTape(Arc<ActiveTape>);

impl GradientTape {
    /// A tape that records from now on, for one gradient.
    #[expect(clippy::new_without_default, reason = "that it records from now on is worth a name")]
    pub fn new() -> GradientTape {
        GradientTape::with_options(TapeOptions::default())
    }

    /// A tape that records from now on, for any number of gradients. It keeps what it recorded
    /// until it is dropped.
    pub fn persistent() -> GradientTape {
        GradientTape::with_options(TapeOptions { persistent: true, ..TapeOptions::default() })
    }

    /// A tape that records from now on.
    pub fn with_options(options: TapeOptions) -> GradientTape {
        let trace_id = context::trace_id();
        let (paused, state) = (AtomicU32::new(0), Mutex::default());
        let tape = Arc::new(ActiveTape { options, home: trace_id, paused, state });
        context::push_tape(&tape);
        GradientTape(tape)
    }

    /// Watches tensors, and variables, so that gradients by them can be asked for.
    ///
    /// # Errors
    ///
    /// [`Error::NotDifferentiable`] for tensors of integers and others that have no gradient.
    pub fn watch(&self, value: &impl Nest) -> Result<()> {
        for tensor in leaves(value) {
            if !is_differentiable(tensor.dtype()) {
                return Err(not_differentiable("watched", &tensor));
            }
            self.0.state.lock().track(&tensor);
        }
        Ok(())
    }

    /// Runs `body` without recording what it does.
    pub fn stop_recording<R>(&self, body: impl FnOnce() -> R) -> R {
        struct Paused<'a>(&'a AtomicU32);
        impl Drop for Paused<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.0.paused.fetch_add(1, Ordering::Relaxed);
        let _paused = Paused(&self.0.paused);
        body()
    }

    /// Stops recording for good; gradients can be asked for as before.
    pub fn end(&self) {
        context::remove_tape(&self.0);
    }

    /// Forgets all it recorded, and what it watches.
    pub fn reset(&self) {
        let mut state = self.0.state.lock();
        let used = state.used;
        *state = TapeState { used, ..TapeState::default() };
    }

    /// The variables it watches, in the order of their first use.
    pub fn watched_variables(&self) -> Vec<Variable> {
        self.0.state.lock().variables.clone()
    }

    /// The gradients of the sum of `target` by each of `sources`; `None` for a source that `target`
    /// does not depend on.
    ///
    /// # Errors
    ///
    /// [`Error::TapeUsed`] when the tape is not persistent and has given gradients already;
    /// [`Error::NotDifferentiable`] for a target of integers;
    /// [`Unsupported`](ferroflow_ir::Error::Unsupported), with the op, when the way leads through
    /// an op that has no gradient.
    #[track_caller]
    pub fn gradient<S: Sources + ?Sized>(
        &self,
        target: &impl Nest,
        sources: &S,
    ) -> Result<S::Gradients> {
        self.gradient_with(target, sources, &GradientOptions::default())
    }

    /// As [`gradient`](GradientTape::gradient), with gradients of the targets themselves, or zeros
    /// for sources that are not connected.
    ///
    /// # Errors
    ///
    /// As [`gradient`](GradientTape::gradient).
    #[track_caller]
    pub fn gradient_with<S: Sources + ?Sized>(
        &self,
        target: &impl Nest,
        sources: &S,
        options: &GradientOptions,
    ) -> Result<S::Gradients> {
        let mut list = Vec::new();
        sources.flatten(&mut list);
        let found = self.snapshot()?.gradients(&leaves(target), &list, options)?;
        let dense = |gradient: Option<TensorGradient>| gradient.map(|gradient| gradient.dense());
        let dense = found.into_iter().map(|gradient| dense(gradient).transpose());
        let mut dense = dense.collect::<Result<Vec<_>>>()?.into_iter();
        sources.rebuild(&mut || dense.next().flatten())
    }

    /// As [`gradient`](GradientTape::gradient), by a list of variables: rows of variables that were
    /// gathered give rows, which optimizers apply without touching the others.
    ///
    /// # Errors
    ///
    /// As [`gradient`](GradientTape::gradient).
    #[track_caller]
    pub fn variable_gradients(
        &self,
        target: &impl Nest,
        variables: &[Variable],
    ) -> Result<Vec<Option<TensorGradient>>> {
        let handles: Vec<Tensor> = variables.iter().map(Variable::handle).collect();
        self.snapshot()?.gradients(&leaves(target), &handles, &GradientOptions::default())
    }

    /// Snapshot of the record, for gradients; of a tape that is not persistent only once.
    pub(crate) fn snapshot(&self) -> Result<TapeSnapshot> {
        if !self.0.options.persistent {
            self.end();
        }
        let mut state = self.0.state.lock();
        if state.used && !self.0.options.persistent {
            return Err(Error::TapeUsed);
        }
        state.used = true;
        if self.0.options.persistent {
            let (values, ids, calls) =
                (state.values.clone(), state.ids.clone(), state.calls.clone());
            return Ok(TapeSnapshot { values, ids, calls });
        }
        let TapeState { values, ids, calls, .. } = &mut *state;
        let (values, ids, calls) =
            (std::mem::take(values), std::mem::take(ids), std::mem::take(calls));
        Ok(TapeSnapshot { values, ids, calls })
    }
}

impl Drop for GradientTape {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for GradientTape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        write!(f, "<tape of {} calls, {} values>", state.calls.len(), state.values.len())
    }
}

pub(crate) fn leaves(value: &impl Nest) -> TensorLeaves {
    let mut leaves = TensorLeaves::new();
    value.leaves(&mut Aliases::default(), &mut leaves);
    leaves
}

pub(crate) fn not_differentiable(what: &'static str, tensor: &Tensor) -> Error {
    Error::NotDifferentiable { what, tensor: tensor.spec().to_string() }
}

/// Record of a tape.
pub(crate) struct TapeSnapshot {
    values: Vec<Tensor>,
    ids: FastMap<TensorKey, ValueId>,
    calls: Vec<RecordedCall>,
}

impl TapeSnapshot {
    fn id(&mut self, tensor: &Tensor) -> ValueId {
        let values = &mut self.values;
        *self.ids.entry(TensorKey::of(tensor)).or_insert_with(|| {
            values.push(tensor.clone());
            ValueId(values.len() as u32 - 1)
        })
    }

    /// The gradients of the sum of the targets, each weighted.
    #[track_caller]
    pub(crate) fn gradients(
        &mut self,
        targets: &[Tensor],
        sources: &[Tensor],
        options: &GradientOptions,
    ) -> Result<Vec<Option<TensorGradient>>> {
        if let Some(weights) = &options.output_gradients
            && weights.len() != targets.len()
        {
            let expected = format!("{} output gradients, one for each target", targets.len());
            return Err(Error::Conversion { expected, found: weights.len().to_string() });
        }
        let mut seeds = Vec::with_capacity(targets.len());
        let mut upstream = Vec::with_capacity(targets.len());
        for (index, target) in targets.iter().enumerate() {
            if !is_differentiable(target.dtype()) || target.dtype() == DType::Resource {
                return Err(not_differentiable("the target of a gradient", target));
            }
            let weight = options.output_gradients.as_ref().and_then(|list| list[index].clone());
            upstream.push(match weight {
                Some(weight) => weight,
                None => target.ones_like()?,
            });
        }
        let ids: Vec<ValueId> = sources.iter().map(|source| self.id(source)).collect();
        for (target, weight) in targets.iter().zip(upstream) {
            let target = self.id(target);
            self.values.push(weight);
            seeds.push((target, ValueId(self.values.len() as u32 - 1)));
        }
        let mut emit = TensorEmit::new(self.values.clone());
        let found = gradient::backward(&mut emit, &self.calls, &seeds, &ids);
        let found = emit.checked(found)?;
        let mut gradients = Vec::with_capacity(found.len());
        for (tangent, source) in found.into_iter().zip(sources) {
            gradients.push(match tangent {
                Some(tangent) => Some(emit.gradient(tangent, source)),
                None if options.zero_unconnected => Some(TensorGradient::Dense(zeros(source)?)),
                None => None,
            });
        }
        Ok(gradients)
    }
}

#[track_caller]
fn zeros(source: &Tensor) -> Result<Tensor> {
    if source.dtype() != DType::Resource {
        return source.zeros_like();
    }
    let pointee = source.value_type().pointee.ok_or_else(|| Error::Conversion {
        expected: "the handle of a variable".into(),
        found: source.to_string(),
    })?;
    static READ: crate::ops::NamedOp = crate::ops::NamedOp::new(names::READ_VARIABLE_OP);
    let attrs = Attrs::new().with("dtype", pointee.dtype);
    crate::ops::one(&READ, attrs, &[source])?.zeros_like()
}
