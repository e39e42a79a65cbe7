//! Tapes: what was computed, so that it can be differentiated.

use crate::{
    backprop::{self, TensorEmit},
    context,
    error::{Error, Result},
    func_graph::{Call as StagedCall, FuncGraph, Outputs},
    gradients::{Gradient, GradientOptions, Sources},
    nest::Nest,
    tensor::{Repr, Tensor},
    value::{Aliases, Leaves},
    variable::Variable,
};
use ferroflow_ir::{
    Attrs, DType, OpDef, Outlet,
    build::infer_attrs,
    emit::ValueId,
    gradient::{self, Call, CustomGradient, is_differentiable},
    op::Call as Calls,
};
use ferroflow_runtime::{ResourceHandle, VariableState};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
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
/// read, other tensors when asked for by [`watch`](GradientTape::watch). What a gradient computes is
/// recorded by the tapes around it, which gives derivatives of any order; inside a trace it is part
/// of the graph.
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
pub struct GradientTape(Arc<Tape>);

/// How a tape records.
#[derive(Debug, Clone, Copy)]
pub struct TapeOptions {
    /// Whether gradients may be asked for more than once.
    pub persistent: bool,
    /// Whether trainable variables are watched when they are read.
    pub watch_accessed_variables: bool,
}

impl Default for TapeOptions {
    fn default() -> TapeOptions {
        TapeOptions { persistent: false, watch_accessed_variables: true }
    }
}

pub(crate) struct Tape {
    options: TapeOptions,
    /// The trace whose calls it records; 0 for eager calls.
    home: usize,
    paused: AtomicU32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether a gradient has been asked for.
    used: bool,
    values: Vec<Tensor>,
    ids: HashMap<Key, ValueId>,
    /// The values that gradients go back to.
    tracked: HashSet<ValueId>,
    calls: Vec<Call>,
    variables: Vec<Variable>,
}

/// What makes two tensors the same to a tape.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Eager(u64),
    Resource(usize),
    Outlet(usize, Outlet),
}

impl Key {
    /// What a tensor goes by; what a trace captured goes by what it was outside.
    fn of(tensor: &Tensor) -> Key {
        match &tensor.0 {
            Repr::Eager(eager) if eager.dtype() == DType::Resource => {
                let handle = eager.host().ok().and_then(|host| ResourceHandle::of(host).ok());
                handle.map_or(Key::Eager(tensor.id()), |handle| Key::Resource(handle.id()))
            }
            Repr::Eager(_) => Key::Eager(tensor.id()),
            Repr::Symbolic(symbolic) => match symbolic.graph.captured_as(symbolic.outlet) {
                Some(outside) => Key::of(&outside),
                None => Key::Outlet(Arc::as_ptr(&symbolic.graph) as usize, symbolic.outlet),
            },
        }
    }
}

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
        let home = context::trace_id();
        let (paused, state) = (AtomicU32::new(0), Mutex::default());
        let tape = Arc::new(Tape { options, home, paused, state });
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
        *state = State { used, ..State::default() };
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
        let dense = |gradient: Option<Gradient>| gradient.map(|gradient| gradient.dense());
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
    ) -> Result<Vec<Option<Gradient>>> {
        let handles: Vec<Tensor> = variables.iter().map(Variable::handle).collect();
        self.snapshot()?.gradients(&leaves(target), &handles, &GradientOptions::default())
    }

    /// What was recorded, for gradients; of a tape that is not persistent only once.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
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
            return Ok(Snapshot { values, ids, calls });
        }
        let State { values, ids, calls, .. } = &mut *state;
        let (values, ids, calls) =
            (std::mem::take(values), std::mem::take(ids), std::mem::take(calls));
        Ok(Snapshot { values, ids, calls })
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

pub(crate) fn leaves(value: &impl Nest) -> Leaves {
    let mut leaves = Leaves::new();
    value.leaves(&mut Aliases::default(), &mut leaves);
    leaves
}

pub(crate) fn not_differentiable(what: &'static str, tensor: &Tensor) -> Error {
    Error::NotDifferentiable { what, tensor: tensor.spec().to_string() }
}

/// What a tape recorded.
pub(crate) struct Snapshot {
    values: Vec<Tensor>,
    ids: HashMap<Key, ValueId>,
    calls: Vec<Call>,
}

impl Snapshot {
    fn id(&mut self, tensor: &Tensor) -> ValueId {
        let values = &mut self.values;
        *self.ids.entry(Key::of(tensor)).or_insert_with(|| {
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
    ) -> Result<Vec<Option<Gradient>>> {
        if let Some(weights) = &options.output_gradients
            && weights.len() != targets.len()
        {
            let expected = format!("{} output gradients, one for each target", targets.len());
            return Err(Error::Conversion { expected, found: weights.len().to_string() });
        }
        let mut seeds = Vec::with_capacity(targets.len());
        let mut given = Vec::with_capacity(targets.len());
        for (index, target) in targets.iter().enumerate() {
            if !is_differentiable(target.dtype()) || target.dtype() == DType::Resource {
                return Err(not_differentiable("the target of a gradient", target));
            }
            let weight = options.output_gradients.as_ref().and_then(|list| list[index].clone());
            given.push(match weight {
                Some(weight) => weight,
                None => target.ones_like()?,
            });
        }
        let ids: Vec<ValueId> = sources.iter().map(|source| self.id(source)).collect();
        for (target, weight) in targets.iter().zip(given) {
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
                None if options.zero_unconnected => Some(Gradient::Dense(zeros(source)?)),
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
    static READ: crate::ops::Op = crate::ops::Op::new("ReadVariableOp");
    let attrs = Attrs::new().with("dtype", pointee.dtype);
    crate::ops::one(&READ, attrs, &[source])?.zeros_like()
}

impl Tape {
    /// Whether calls in this trace go to the tape.
    pub(crate) fn is_for(&self, trace: usize) -> bool {
        self.home == trace
    }

    fn is_recording(&self) -> bool {
        self.paused.load(Ordering::Relaxed) == 0
    }

    /// The nesting of derivatives that are to be had from this tape alone.
    fn order(&self) -> usize {
        if self.options.persistent { 2 } else { 1 }
    }

    /// Watches the variable behind a handle, if it is one that is trained.
    fn watch_read(&self, handle: &Tensor) {
        if self.options.watch_accessed_variables
            && let Some(variable) = trainable(handle)
        {
            self.watch_variable(&variable, handle);
        }
    }

    fn watch_variable(&self, variable: &Variable, handle: &Tensor) {
        let mut state = self.state.lock();
        if state.track(handle) {
            state.variables.push(variable.clone());
        }
    }

    /// For each input, whether gradients go back to it.
    fn tracks(&self, inputs: &[&Tensor]) -> SmallVec<[bool; 8]> {
        for input in inputs.iter().filter(|input| input.dtype() == DType::Resource) {
            self.watch_read(input);
        }
        let state = self.state.lock();
        inputs.iter().map(|input| state.is_tracked(input)).collect()
    }

    fn record(&self, record: &Record<'_>, outputs: &[Tensor]) {
        if !self.tracks(record.inputs).contains(&true) {
            return;
        }
        let mut state = self.state.lock();
        let call = Call {
            op: record.op,
            attrs: record.attrs.clone(),
            inputs: record.inputs.iter().map(|input| state.id(input)).collect(),
            outputs: outputs.iter().map(|output| state.id(output)).collect(),
            name: record.name.clone(),
            custom: record.custom.clone(),
        };
        let differentiable = call.outputs.iter().zip(outputs);
        let tracked: Vec<ValueId> = differentiable
            .filter(|(_, output)| is_differentiable(output.dtype()))
            .map(|(&id, _)| id)
            .collect();
        state.tracked.extend(tracked);
        state.calls.push(call);
    }
}

impl State {
    fn id(&mut self, tensor: &Tensor) -> ValueId {
        let values = &mut self.values;
        *self.ids.entry(Key::of(tensor)).or_insert_with(|| {
            values.push(tensor.clone());
            ValueId(values.len() as u32 - 1)
        })
    }

    /// Notes that gradients go back to a tensor; tells whether that is new.
    fn track(&mut self, tensor: &Tensor) -> bool {
        let id = self.id(tensor);
        self.tracked.insert(id)
    }

    fn is_tracked(&self, tensor: &Tensor) -> bool {
        is_differentiable(tensor.dtype())
            && self.ids.get(&Key::of(tensor)).is_some_and(|id| self.tracked.contains(id))
    }
}

/// The trainable variable a handle refers to.
fn trainable(handle: &Tensor) -> Option<Variable> {
    let outside;
    let handle = match &handle.0 {
        Repr::Eager(_) => handle,
        Repr::Symbolic(symbolic) => {
            outside = symbolic.graph.captured_as(symbolic.outlet)?;
            return trainable(&outside);
        }
    };
    let handle = ResourceHandle::of(handle.host().ok()?).ok()?;
    let state = handle.downcast::<VariableState>("a variable").ok()?;
    let variable = ferroflow_runtime::Variable::from(state);
    variable.is_trainable().then(|| variable.into())
}

/// A call on its way to the tapes.
struct Record<'a> {
    op: &'static OpDef,
    attrs: Arc<Attrs>,
    inputs: &'a [&'a Tensor],
    name: Arc<str>,
    custom: Option<Arc<dyn CustomGradient>>,
}

fn recording() -> SmallVec<[Arc<Tape>; 2]> {
    context::tapes().into_iter().filter(|tape| tape.is_recording()).collect()
}

/// Shows a call to the tapes that record.
pub(crate) fn record(op: &'static OpDef, attrs: &Attrs, inputs: &[&Tensor], outputs: &[Tensor]) {
    if matches!(op.gradient, gradient::Gradient::Zero) || outputs.is_empty() {
        return;
    }
    let tapes = recording();
    let tracks = |tape: &&Arc<Tape>| tape.tracks(inputs).contains(&true);
    let tapes: SmallVec<[&Arc<Tape>; 2]> = tapes.iter().filter(tracks).collect();
    if tapes.is_empty() {
        return;
    }
    let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|input| input.dtype()).collect();
    let attrs = infer_attrs(op, attrs.clone(), &dtypes);
    // A call that was made has attributes that fit.
    let Ok(attrs) = op.complete_attrs(attrs) else { return };
    let (attrs, name) = (Arc::new(attrs), node_name(outputs));
    let record = Record { op, attrs, inputs, name, custom: None };
    tapes.iter().for_each(|tape| tape.record(&record, outputs));
}

fn node_name(outputs: &[Tensor]) -> Arc<str> {
    match outputs.first().map(|output| &output.0) {
        Some(Repr::Symbolic(symbolic)) => symbolic.graph.outlet_name(symbolic.outlet).into(),
        _ => "".into(),
    }
}

/// Shows a call with a gradient of its own to the tapes that record.
pub(crate) fn record_custom(
    op: &'static OpDef,
    inputs: &[&Tensor],
    outputs: &[Tensor],
    custom: Arc<dyn CustomGradient>,
) {
    let (attrs, name) = (Arc::default(), node_name(outputs));
    let record = Record { op, attrs, inputs, name, custom: Some(custom) };
    recording().iter().for_each(|tape| tape.record(&record, outputs));
}

/// Which inputs of a call gradients go back to.
pub(crate) struct Tracking {
    /// For each input, whether any tape tracks it.
    pub(crate) inputs: Vec<bool>,
    /// The highest order of derivatives that may be asked for.
    pub(crate) order: usize,
}

/// What the tapes that record track of these inputs; `None` if it is nothing.
pub(crate) fn tracking(inputs: &[&Tensor]) -> Option<Tracking> {
    let mut any = vec![false; inputs.len()];
    let mut order = 0;
    for tape in recording() {
        let tracked = tape.tracks(inputs);
        if tracked.contains(&true) {
            order += tape.order();
            any.iter_mut().zip(tracked).for_each(|(any, tracked)| *any |= tracked);
        }
    }
    (order > 0).then_some(Tracking { inputs: any, order })
}

/// Whether a tape tracks a tensor, which then must not become a constant of a graph.
pub(crate) fn is_watched(tensor: &Tensor) -> bool {
    context::has_tapes()
        && context::all_tapes().iter().any(|tape| tape.state.lock().is_tracked(tensor))
}

/// Tells the tapes that a variable is read.
pub(crate) fn variable_read(variable: &Variable) {
    if variable.is_trainable() {
        for tape in recording().iter().filter(|tape| tape.options.watch_accessed_variables) {
            tape.watch_variable(variable, &variable.handle());
        }
    }
}

/// Stages a call and shows it to the tapes; branches and loops in a form that keeps what their
/// gradients need.
pub(crate) fn staged(
    trace: &Arc<FuncGraph>,
    call: StagedCall<'_>,
    results: Option<&[ferroflow_ir::ValueType]>,
) -> Result<Outputs> {
    let (op, inputs) = (call.op, call.inputs);
    if matches!(op.call, Calls::If | Calls::Case | Calls::While)
        && let Some(tracking) = tracking(inputs)
    {
        return backprop::staged_with_gradient(trace, call, results, tracking.order);
    }
    let attrs = call.attrs.clone();
    let outputs = trace.add_call(call, results)?;
    record(op, &attrs, inputs, &outputs);
    Ok(outputs)
}
