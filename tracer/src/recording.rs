//! Records of tapes, and the calls that they are shown.

use crate::{
    context,
    sync::Mutex,
    tensor::{Repr, Tensor},
    variable::Variable,
};
use ferroflow_ir::{
    Attrs, DType, OpDef, Outlet,
    emit::ValueId,
    gradient::{self, CustomGradient, RecordedCall, is_differentiable},
    hash::FastMap,
};
use ferroflow_runtime::{ResourceHandle, VariableState};
use smallvec::SmallVec;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Options of a tape.
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

pub(crate) struct ActiveTape {
    pub(crate) options: TapeOptions,
    /// The trace whose calls it records; 0 for eager calls.
    pub(crate) home: usize,
    pub(crate) paused: AtomicU32,
    pub(crate) state: Mutex<TapeState>,
}

#[derive(Default)]
pub(crate) struct TapeState {
    /// Whether a gradient has been asked for.
    pub(crate) used: bool,
    pub(crate) values: Vec<Tensor>,
    pub(crate) ids: FastMap<TensorKey, ValueId>,
    /// For each value, whether gradients go back to it.
    pub(crate) tracked: Vec<bool>,
    pub(crate) calls: Vec<RecordedCall>,
    pub(crate) variables: Vec<Variable>,
}

/// Identity of a tensor for a tape.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TensorKey {
    Eager(u64),
    Resource(usize),
    Outlet(usize, Outlet),
}

impl TensorKey {
    /// Identity of a tensor; what a trace captured goes by what it was outside.
    pub(crate) fn of(tensor: &Tensor) -> TensorKey {
        match &tensor.0 {
            Repr::Eager(eager) if eager.dtype() == DType::Resource => {
                let handle = eager.host().ok().and_then(|host| ResourceHandle::of(host).ok());
                handle.map_or(TensorKey::Eager(tensor.id()), |handle| {
                    TensorKey::Resource(handle.id())
                })
            }
            Repr::Eager(_) | Repr::Failed(_) => TensorKey::Eager(tensor.id()),
            Repr::Symbolic(symbolic) => match symbolic.graph.captured_as(symbolic.outlet) {
                Some(outside) => TensorKey::of(&outside),
                None => TensorKey::Outlet(Arc::as_ptr(&symbolic.graph) as usize, symbolic.outlet),
            },
        }
    }
}

impl ActiveTape {
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

    /// Adds a call, of which an input is tracked.
    fn record(&self, record: &Record<'_>, outputs: &[Tensor]) {
        let mut state = self.state.lock();
        let call = RecordedCall {
            op: record.op,
            attrs: record.attrs.clone(),
            inputs: record.inputs.iter().map(|input| state.id(input)).collect(),
            outputs: outputs.iter().map(|output| state.id(output)).collect(),
            name: record.name.clone(),
            custom: record.custom.clone(),
        };
        for (id, output) in call.outputs.iter().zip(outputs) {
            if is_differentiable(output.dtype()) {
                state.tracked[id.0 as usize] = true;
            }
        }
        state.calls.push(call);
    }
}

impl TapeState {
    fn id(&mut self, tensor: &Tensor) -> ValueId {
        let TapeState { values, tracked, ids, .. } = self;
        *ids.entry(TensorKey::of(tensor)).or_insert_with(|| {
            values.push(tensor.clone());
            tracked.push(false);
            ValueId(values.len() as u32 - 1)
        })
    }

    /// Notes that gradients go back to a tensor; tells whether that is new.
    pub(crate) fn track(&mut self, tensor: &Tensor) -> bool {
        let id = self.id(tensor).0 as usize;
        !std::mem::replace(&mut self.tracked[id], true)
    }

    fn is_tracked(&self, tensor: &Tensor) -> bool {
        is_differentiable(tensor.dtype())
            && self.ids.get(&TensorKey::of(tensor)).is_some_and(|id| self.tracked[id.0 as usize])
    }
}

/// The trainable variable a handle refers to.
fn trainable(handle: &Tensor) -> Option<Variable> {
    let outside;
    let handle = match &handle.0 {
        Repr::Eager(_) | Repr::Failed(_) => handle,
        Repr::Symbolic(symbolic) => {
            outside = symbolic.graph.captured_as(symbolic.outlet)?;
            return trainable(&outside);
        }
    };
    let handle = ResourceHandle::of(handle.host().ok()?).ok()?;
    let state = handle.downcast::<VariableState>("a variable").ok()?;
    let variable = ferroflow_runtime::ResourceVariable::from(state);
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

fn recording() -> SmallVec<[Arc<ActiveTape>; 2]> {
    let mut tapes = context::tapes();
    tapes.retain(|tape| tape.is_recording());
    tapes
}

/// Shows a call to the tapes that record.
pub(crate) fn record(op: &'static OpDef, attrs: &Attrs, inputs: &[&Tensor], outputs: &[Tensor]) {
    if matches!(op.gradient, gradient::Gradient::Zero) || outputs.is_empty() {
        return;
    }
    let tapes = recording();
    let tracks = |tape: &&Arc<ActiveTape>| tape.tracks(inputs).contains(&true);
    let tapes: SmallVec<[&Arc<ActiveTape>; 2]> = tapes.iter().filter(tracks).collect();
    if tapes.is_empty() {
        return;
    }
    let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|input| input.dtype()).collect();
    // A call that was made has attributes that fit.
    let Some(attrs) = context::completed_attrs(op, attrs, &dtypes) else { return };
    let name = node_name(outputs);
    let record = Record { op, attrs, inputs, name, custom: None };
    tapes.iter().for_each(|tape| tape.record(&record, outputs));
}

fn node_name(outputs: &[Tensor]) -> Arc<str> {
    match outputs.first().map(|output| &output.0) {
        Some(Repr::Symbolic(symbolic)) => symbolic.graph.outlet_name(symbolic.outlet).into(),
        _ => RecordedCall::unnamed(),
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
    let tapes = recording();
    let tracking = tapes.iter().filter(|tape| tape.tracks(inputs).contains(&true));
    tracking.for_each(|tape| tape.record(&record, outputs));
}

/// Inputs of a call that gradients go back to.
pub(crate) struct Tracking {
    /// For each input, whether any tape tracks it.
    pub(crate) inputs: Vec<bool>,
    /// The highest order of derivatives that may be asked for.
    pub(crate) order: usize,
}

/// Inputs of these that recording tapes track; `None` if it is nothing.
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
