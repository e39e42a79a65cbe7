//! The reverse walk: calls that were made, backwards.

use super::{Backprop, Grad, Gradient, GradientRule, Grads, control, deferred, shapes};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{self, Emit, Emitter, Value, ValueId},
    error::{Error, Result},
    function::FunctionLibrary,
    hash::FastMap,
    host_tensor::HostTensor,
    op::{Formula, Lowering, OpDef},
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{
    cell::Cell,
    fmt,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// A call that was made.
#[derive(Clone)]
pub struct RecordedCall {
    /// The op.
    pub op: &'static OpDef,
    /// The attributes, complete.
    pub attrs: Arc<Attrs>,
    /// The inputs.
    pub inputs: SmallVec<[ValueId; 4]>,
    /// The results.
    pub outputs: SmallVec<[ValueId; 2]>,
    /// The name of its node; empty for an eager call.
    pub name: Arc<str>,
    /// Gradient rule of this call, in place of the record's.
    pub custom: Option<Arc<dyn CustomGradient>>,
}

impl RecordedCall {
    /// A call through which gradients go as its record says.
    pub fn new(
        op: &'static OpDef,
        attrs: impl Into<Arc<Attrs>>,
        inputs: &[ValueId],
        outputs: &[ValueId],
    ) -> RecordedCall {
        let (attrs, inputs, outputs) = (attrs.into(), inputs.into(), outputs.into());
        RecordedCall { op, attrs, inputs, outputs, name: RecordedCall::unnamed(), custom: None }
    }
}

impl RecordedCall {
    /// The name of calls without one.
    pub fn unnamed() -> Arc<str> {
        static EMPTY: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
        EMPTY.clone()
    }
}

impl fmt::Debug for RecordedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} = {}({:?})", self.outputs, self.op.name, self.inputs)
    }
}

/// The gradient of one call, passed as code.
pub trait CustomGradient: Send + Sync {
    /// The gradients of the inputs from those of the results.
    ///
    /// # Errors
    ///
    /// Whatever is wrong.
    fn backward(
        &self,
        emit: &mut dyn Emit,
        call: &RecordedCall,
        dys: &[Option<ValueId>],
    ) -> Result<Vec<Option<Cotangent>>>;

    /// Whether all inputs have gradients of zero where all results do. A program's own gradients
    /// may be any functions, and are called with zeros.
    fn keeps_zeros(&self) -> bool {
        false
    }

    /// Whether an input has a gradient of zero, where these results have gradients: none of them
    /// depends on it. It is not asked for then.
    fn is_zero(&self, _input: usize, _given: &[bool]) -> bool {
        false
    }
}

/// The gradient of a call through which there is none: asking for it is this error.
pub struct Refused(pub Error);

impl CustomGradient for Refused {
    fn backward(
        &self,
        _: &mut dyn Emit,
        _: &RecordedCall,
        _: &[Option<ValueId>],
    ) -> Result<Vec<Option<Cotangent>>> {
        Err(self.0.clone())
    }
}

/// The gradient of a value, as it leaves the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cotangent {
    /// A tensor of the shape of the value.
    Dense(ValueId),
    /// Rows for some indices of the first dimension.
    Slices(Slices),
}

/// Rows, and their indices in the first dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// The rows.
    pub values: ValueId,
    /// Their indices.
    pub indices: ValueId,
}

/// Whether values of this dtype have gradients.
pub fn is_differentiable(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex() || matches!(dtype, DType::Resource | DType::Variant)
}

/// A call of a function whose own calls are part of a walk.
///
/// As in TensorFlow, where it is one op, all its results depend on all its arguments, and they have
/// a gradient together: where one of them has a gradient, each of the others has one of zero at least.
pub(super) struct InlinedCall<V> {
    /// Number of calls of the walk before the function returned.
    pub(super) n_calls: usize,
    pub(super) arguments: Vec<V>,
    /// The results that can have gradients.
    pub(super) results: Vec<V>,
}

impl<V> InlinedCall<V> {
    pub(super) fn map<T>(self, mut to: impl FnMut(V) -> T) -> InlinedCall<T> {
        InlinedCall {
            n_calls: self.n_calls,
            arguments: self.arguments.into_iter().map(&mut to).collect(),
            results: self.results.into_iter().map(to).collect(),
        }
    }
}

/// The gradients of `sources`, passed those of some results (`seeds`), through `calls`, which are
/// in the order in which they were made. `None` where no seed depends on a source.
///
/// # Errors
///
/// [`Error::Unsupported`], with the op and the node, when a gradient has to go through an op
/// without a rule; whatever else is wrong with the calls that the rules make.
pub fn backward(
    emit: &mut dyn Emit,
    calls: &[RecordedCall],
    seeds: &[(ValueId, ValueId)],
    sources: &[ValueId],
) -> Result<Vec<Option<Cotangent>>> {
    backward_through(emit, (calls, &[]), seeds, sources)
}

/// As [`backward`], through calls some of which are those of inlined functions.
pub(super) fn backward_through(
    emit: &mut dyn Emit,
    (calls, inlined): (&[RecordedCall], &[InlinedCall<ValueId>]),
    seeds: &[(ValueId, ValueId)],
    sources: &[ValueId],
) -> Result<Vec<Option<Cotangent>>> {
    static WALKS: AtomicU64 = AtomicU64::new(0);
    let walk = WALKS.fetch_add(1, Ordering::Relaxed);
    let needed = depending_on(emit, calls, inlined, sources);
    let mut found = Found::default();
    for &(value, gradient) in seeds {
        found.add(value, Cotangent::Dense(gradient));
    }
    let mut inlined = inlined.iter().rev().peekable();
    for (index, call) in calls.iter().enumerate().rev() {
        while let Some(call) = inlined.next_if(|call| call.n_calls > index) {
            found.complete(&call.results, &needed);
        }
        let is_wanted = |input: &ValueId| {
            needed.contains_key(input) && is_differentiable(emit.ty(*input).dtype)
        };
        let mut has_gradient = call.outputs.iter().any(|output| found.parts.contains_key(output));
        let has_zeros = || call.outputs.iter().any(|output| found.zeros.contains_key(output));
        if is_flat(call) || !has_gradient && !has_zeros() {
            continue;
        }
        let mut wanted: SmallVec<[bool; 8]> = call.inputs.iter().map(is_wanted).collect();
        let takes_zeros = call.custom.as_ref().is_some_and(|custom| !custom.keeps_zeros());
        if !has_gradient && takes_zeros && wanted.contains(&true) {
            found.make_zeros(emit, call)?;
            has_gradient = true;
        }
        if !has_gradient {
            found.note_zeros(call, &mut wanted, |_| true);
        } else if let Some(custom) = &call.custom {
            let seeded: SmallVec<[bool; 8]> =
                call.outputs.iter().map(|output| found.parts.contains_key(output)).collect();
            found.note_zeros(call, &mut wanted, |index| custom.is_zero(index, &seeded));
        }
        if !wanted.contains(&true) {
            continue;
        }
        let located = |error: Error| match &*call.name {
            "" => error,
            name => error.at_node(name, call.op.name, ""),
        };
        one_call(emit, call, &wanted, walk, &mut found).map_err(located)?;
    }
    inlined.for_each(|call| found.complete(&call.results, &needed));
    let mut gradient = |&source: &ValueId| match found.total(emit, source)? {
        None if found.zeros.contains_key(&source) => {
            Ok(Some(Cotangent::Dense(control::zeros(emit, source)?)))
        }
        total => Ok(total),
    };
    sources.iter().map(&mut gradient).collect()
}

/// The gradient of `like`, which may be the handle of a variable, as a tensor.
///
/// # Errors
///
/// Whatever is wrong with the calls that this takes.
pub fn dense(emit: &mut dyn Emit, gradient: Cotangent, like: ValueId) -> Result<ValueId> {
    let slices = match gradient {
        Cotangent::Dense(id) => return Ok(id),
        Cotangent::Slices(_) => gradient,
    };
    let emitter = Emitter::new(emit);
    let dense = filled(grad(&emitter, slices), emitter.at(like));
    emitter.finish()?;
    Ok(dense.id().expect("no error was noted"))
}

/// Whether a call is one of a list of elements without gradients, such as bools or strings.
/// Handles of variables have gradients: those of what the variables hold.
fn has_opaque_elements(call: &RecordedCall) -> bool {
    call.attrs.dtype("element_dtype").is_ok_and(|dtype| !is_differentiable(dtype))
}

/// Whether no input of a call has a gradient, whatever its results have.
fn is_flat(call: &RecordedCall) -> bool {
    let by_rule = call.custom.is_none() && matches!(call.op.gradient, Gradient::Zero);
    by_rule || has_opaque_elements(call)
}

/// The values that depend on sources in a way that gradients can follow.
fn depending_on(
    emit: &dyn Emit,
    calls: &[RecordedCall],
    inlined: &[InlinedCall<ValueId>],
    sources: &[ValueId],
) -> FastMap<ValueId, ()> {
    let mut needed: FastMap<ValueId, ()> = sources.iter().map(|&source| (source, ())).collect();
    let returned = |call: &InlinedCall<ValueId>, needed: &mut FastMap<ValueId, ()>| {
        if call.arguments.iter().any(|argument| needed.contains_key(argument)) {
            needed.extend(call.results.iter().map(|&result| (result, ())));
        }
    };
    let mut inlined = inlined.iter().peekable();
    for (index, call) in calls.iter().enumerate() {
        while let Some(call) = inlined.next_if(|call| call.n_calls <= index) {
            returned(call, &mut needed);
        }
        if is_flat(call) || !call.inputs.iter().any(|input| needed.contains_key(input)) {
            continue;
        }
        let results = call.outputs.iter().map(|&output| (output, ()));
        needed.extend(results.filter(|&(output, ())| is_differentiable(emit.ty(output).dtype)));
    }
    inlined.for_each(|call| returned(call, &mut needed));
    needed
}

/// The gradients found so far, in parts that are still to be added up.
#[derive(Default)]
struct Found {
    parts: FastMap<ValueId, SmallVec<[Cotangent; 2]>>,
    /// Values whose gradient is zero, but for its parts.
    zeros: FastMap<ValueId, ()>,
}

impl Found {
    fn add(&mut self, value: ValueId, part: Cotangent) {
        self.parts.entry(value).or_default().push(part);
    }

    /// Notes gradients of zero for all results of a function that are needed, where one of its
    /// results has a gradient.
    fn complete(&mut self, results: &[ValueId], needed: &FastMap<ValueId, ()>) {
        let has_any =
            |value: &ValueId| self.parts.contains_key(value) || self.zeros.contains_key(value);
        if results.iter().any(has_any) {
            let needed = results.iter().filter(|value| needed.contains_key(value));
            self.zeros.extend(needed.map(|&value| (value, ())));
        }
    }

    /// Makes zeros of the noted gradients of results.
    fn make_zeros(&mut self, emit: &mut dyn Emit, call: &RecordedCall) -> Result<()> {
        for &output in &call.outputs {
            if self.zeros.contains_key(&output) {
                self.add(output, Cotangent::Dense(control::zeros(emit, output)?));
            }
        }
        Ok(())
    }

    /// Notes inputs with a gradient of zero; they are not wanted any more.
    fn note_zeros(
        &mut self,
        call: &RecordedCall,
        wanted: &mut [bool],
        is_zero: impl Fn(usize) -> bool,
    ) {
        for (index, wanted) in wanted.iter_mut().enumerate() {
            if *wanted && is_zero(index) {
                self.zeros.insert(call.inputs[index], ());
                *wanted = false;
            }
        }
    }

    /// The sum of the parts; slices stay slices if all parts are.
    fn total(&mut self, emit: &mut dyn Emit, value: ValueId) -> Result<Option<Cotangent>> {
        let Some(parts) = self.parts.get(&value) else { return Ok(None) };
        if let [part] = parts[..] {
            return Ok(Some(part));
        }
        let parts = parts.clone();
        let emitter = Emitter::new(emit);
        let total = sum(&emitter, value, &parts);
        emitter.finish()?;
        let total = cotangent(total);
        self.parts.insert(value, SmallVec::from_slice(&[total]));
        Ok(Some(total))
    }

    fn dense(&mut self, emit: &mut dyn Emit, value: ValueId) -> Result<Option<ValueId>> {
        match self.total(emit, value)? {
            None => Ok(None),
            Some(Cotangent::Dense(id)) => Ok(Some(id)),
            Some(slices @ Cotangent::Slices(_)) => {
                let id = dense(emit, slices, value)?;
                self.parts.insert(value, SmallVec::from_slice(&[Cotangent::Dense(id)]));
                Ok(Some(id))
            }
        }
    }
}

fn grad<'e>(emitter: &'e Emitter<'e>, part: Cotangent) -> Grad<'e> {
    match part {
        Cotangent::Dense(id) => Grad::Dense(emitter.at(id)),
        Cotangent::Slices(Slices { values, indices }) => {
            Grad::Slices { values: emitter.at(values), indices: emitter.at(indices) }
        }
    }
}

fn cotangent(grad: Grad<'_>) -> Cotangent {
    let id = |value: Value<'_>| value.id().expect("no error was noted");
    match grad {
        Grad::Dense(value) => Cotangent::Dense(id(value)),
        Grad::Slices { values, indices } => {
            Cotangent::Slices(Slices { values: id(values), indices: id(indices) })
        }
    }
}

fn sum<'e>(emitter: &'e Emitter<'e>, value: ValueId, parts: &[Cotangent]) -> Grad<'e> {
    let parts: Vec<Grad<'e>> = parts.iter().map(|&part| grad(emitter, part)).collect();
    let slices: Vec<(Value<'e>, Value<'e>)> = parts
        .iter()
        .filter_map(|part| match part {
            Grad::Slices { values, indices } => Some((*values, *indices)),
            Grad::Dense(_) => None,
        })
        .collect();
    if slices.len() == parts.len() {
        let (values, indices): (Vec<_>, Vec<_>) = slices.into_iter().unzip();
        let indices: Vec<_> = indices.into_iter().map(|index| index.cast(DType::I64)).collect();
        let (values, indices) = (Value::concat(&values, 0), Value::concat(&indices, 0));
        return Grad::Slices { values, indices };
    }
    let parts: Vec<Value<'e>> =
        parts.into_iter().map(|part| filled(part, emitter.at(value))).collect();
    Grad::Dense(match parts[..] {
        _ if parts[0].dtype() == DType::Variant => {
            emit::calls_with("_AddVariantGradients", Attrs::new(), &parts).at(0)
        }
        [a, b] => a + b,
        _ => emit::calls_with("AddN", Attrs::new(), &parts).at(0),
    })
}

/// A gradient as a tensor of the shape of `like`, which may be the handle of a variable.
fn filled<'e>(grad: Grad<'e>, like: Value<'e>) -> Value<'e> {
    match grad {
        Grad::Dense(value) => value,
        Grad::Slices { values, indices } => {
            let rows = shapes::variable_dim(like, 0);
            emit::call("UnsortedSegmentSum", [values, indices, rows])
        }
    }
}

fn one_call(
    emit: &mut dyn Emit,
    call: &RecordedCall,
    wanted: &[bool],
    walk: u64,
    found: &mut Found,
) -> Result<()> {
    if let (Gradient::Same, None) = (call.op.gradient, &call.custom) {
        let total = found.total(emit, call.outputs[0])?;
        found.take(call, wanted, [total]);
        return Ok(());
    }
    let dys: SmallVec<[Option<ValueId>; 2]> =
        call.outputs.iter().map(|&output| found.dense(emit, output)).collect::<Result<_>>()?;
    if let Some(custom) = &call.custom {
        let grads = custom.backward(emit, call, &dys)?;
        found.take(call, wanted, grads);
        return Ok(());
    }
    let (rule, broadcasts) = match call.op.gradient {
        Gradient::Rule(rule) => (rule, false),
        Gradient::Broadcast(rule) => (rule, true),
        Gradient::Zero | Gradient::Same => return Ok(()),
        Gradient::Missing => {
            let Lowering::Composite(formula) = call.op.lowering else {
                let what = "it has no gradient".into();
                return Err(Error::Unsupported { op: call.op.name.into(), what });
            };
            found.take(call, wanted, through(formula, emit, call, &dys, wanted)?);
            return Ok(());
        }
        Gradient::Through(formula) => {
            found.take(call, wanted, through(formula, emit, call, &dys, wanted)?);
            return Ok(());
        }
    };
    let grads = match by_rule((rule, broadcasts), emit, call, &dys, wanted, walk)? {
        Ruled::Found(grads) => grads,
        Ruled::Postponed(error) if deferred::is_known(emit, call)? => return Err(error),
        Ruled::Postponed(_) => deferred::deferred(emit, call, &dys, wanted)?,
    };
    found.take(call, wanted, grads);
    Ok(())
}

/// Answer of a gradient rule.
pub(super) enum Ruled {
    Found(Vec<Option<Cotangent>>),
    /// It needs to know more of shapes.
    Postponed(Error),
}

/// The gradients of a call by a rule, which may be one for inputs that broadcast.
pub(super) fn by_rule(
    (rule, broadcasts): (GradientRule, bool),
    emit: &mut dyn Emit,
    call: &RecordedCall,
    dys: &[Option<ValueId>],
    wanted: &[bool],
    walk: u64,
) -> Result<Ruled> {
    let emitter = Emitter::new(emit);
    let at = |&id: &ValueId| emitter.at(id);
    let backprop = Backprop {
        op: call.op,
        attrs: &call.attrs,
        x: call.inputs.iter().map(at).collect(),
        y: call.outputs.iter().map(at).collect(),
        dy: dys.iter().map(|dy| dy.map(|id| emitter.at(id))).collect(),
        needed: wanted,
        emitter: &emitter,
        walk,
        is_postponed: Cell::new(false),
    };
    let mut grads = rule(&backprop);
    if broadcasts {
        sum_back(&backprop, &mut grads);
    }
    let invalid = grads.iter().flatten().any(|grad| match grad {
        Grad::Dense(value) => value.id().is_none(),
        Grad::Slices { values, indices } => values.id().is_none() || indices.id().is_none(),
    });
    match emitter.finish() {
        Err(error) if backprop.is_postponed.get() => return Ok(Ruled::Postponed(error)),
        finished => finished?,
    }
    if invalid {
        let rule = "its gradient rule gives a value that no op computes".into();
        return Err(Error::Malformed { node: call.op.name.into(), rule });
    }
    Ok(Ruled::Found(grads.into_iter().map(|grad| grad.map(cotangent)).collect()))
}

/// Sums gradients to the shapes of inputs that were broadcast.
fn sum_back<'e>(b: &Backprop<'e>, grads: &mut Grads<'e>) {
    for (index, grad) in grads.iter_mut().enumerate() {
        if let Some(Grad::Dense(value)) = grad
            && b.needs(index)
        {
            *value = shapes::sum_to_shape_of(*value, b.x(index));
        }
    }
}

impl Found {
    /// Notes the gradients of the inputs that are wanted.
    fn take(
        &mut self,
        call: &RecordedCall,
        wanted: &[bool],
        grads: impl IntoIterator<Item = Option<Cotangent>>,
    ) {
        let inputs = call.inputs.iter().zip(wanted);
        for ((&input, &wanted), grad) in inputs.zip(grads) {
            if let Some(grad) = grad
                && wanted
            {
                self.add(input, grad);
            }
        }
    }
}

/// The gradients of a formula, at once where it can be expanded.
fn through(
    formula: Formula,
    emit: &mut dyn Emit,
    call: &RecordedCall,
    dys: &[Option<ValueId>],
    wanted: &[bool],
) -> Result<Vec<Option<Cotangent>>> {
    match deferred::is_expandable(emit, call)? {
        true => expanded(formula, emit, call, dys),
        false => deferred::deferred(emit, call, dys, wanted),
    }
}

/// The gradients of a formula: those of the calls it consists of.
pub(super) fn expanded(
    formula: Formula,
    emit: &mut dyn Emit,
    call: &RecordedCall,
    dys: &[Option<ValueId>],
) -> Result<Vec<Option<Cotangent>>> {
    let mut recorder = Recorder { emit, calls: Vec::new() };
    let results = emit::expand_by(formula, &mut recorder, call.op, &call.attrs, &call.inputs)?;
    let calls = recorder.calls;
    let seeds: Vec<(ValueId, ValueId)> =
        results.iter().zip(dys).filter_map(|(&y, &dy)| Some((y, dy?))).collect();
    let mut grads = backward(emit, &calls, &seeds, &call.inputs)?;
    for (index, grad) in grads.iter_mut().enumerate() {
        // A value that is given twice has its whole gradient already.
        if call.inputs[..index].contains(&call.inputs[index]) {
            *grad = None;
        }
    }
    Ok(grads)
}

/// Passes calls on and keeps them in mind.
struct Recorder<'a> {
    emit: &'a mut dyn Emit,
    calls: Vec<RecordedCall>,
}

impl Emit for Recorder<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> Result<SmallVec<[ValueId; 2]>> {
        let attrs = op.complete_attrs(attrs)?;
        let outputs = self.emit.emit(op, attrs.clone(), inputs)?;
        self.calls.push(RecordedCall::new(op, attrs, inputs, &outputs));
        Ok(outputs)
    }

    fn constant(&mut self, tensor: HostTensor) -> Result<ValueId> {
        self.emit.constant(tensor)
    }

    fn ty(&self, id: ValueId) -> ValueType {
        self.emit.ty(id)
    }

    fn value(&self, id: ValueId) -> Option<HostTensor> {
        self.emit.value(id)
    }

    fn library(&self) -> Option<&FunctionLibrary> {
        self.emit.library()
    }
}
