//! From tapes to gradients: the formulas of [`ferroflow_ir::gradient`] on tensors, and calls of
//! functions.
//!
//! The reverse walk is that of `ir`; here its formulas make calls of ops like any other code, so
//! they run at once outside traces, are staged inside, and are recorded by the tapes around.
//!
//! A call of a function under a tape runs another form of it, which also gives what the gradient
//! needs ([`differentiate`]); both functions are kept with the function. The result of the one is
//! an argument of the other, and derivatives of higher order differentiate the first form once
//! more: as often as there are tapes around the call.

use crate::{
    concrete_function::ConcreteFunction,
    context,
    error::{Error, Result},
    func_graph::{Call as StagedCall, FuncGraph, Outputs},
    gradients::{IndexedSlices, TensorGradient},
    ops::call::call,
    recording,
    tensor::Tensor,
};
use ferroflow_ir::{
    Attrs, HostTensor, OpDef, ValueType,
    emit::{Emit, ValueId},
    gradient::{
        Cotangent, CustomGradient, Differentiated, GradientIndex, Kept, RecordedCall, Refused,
        Slices, control, differentiate,
    },
    op,
    ops::names,
    registry,
};
use ferroflow_runtime as runtime;
use smallvec::SmallVec;
use std::{any::Any, panic::Location, sync::Arc};

/// Formulas make calls of tensors.
pub(crate) struct TensorEmit {
    pub(crate) values: Vec<Tensor>,
    /// The first failure, as formulas can only pass on errors of programs.
    error: Option<Error>,
    location: &'static Location<'static>,
}

impl TensorEmit {
    #[track_caller]
    pub(crate) fn new(values: Vec<Tensor>) -> TensorEmit {
        TensorEmit { values, error: None, location: Location::caller() }
    }

    pub(crate) fn add(&mut self, value: Tensor) -> ValueId {
        self.values.push(value);
        ValueId(self.values.len() as u32 - 1)
    }

    pub(crate) fn tensor(&self, id: ValueId) -> &Tensor {
        &self.values[id.0 as usize]
    }

    /// The result of a walk, or the error that came from here.
    pub(crate) fn checked<T>(&mut self, result: ferroflow_ir::Result<T>) -> Result<T> {
        result.map_err(|error| self.error.take().unwrap_or_else(|| error.into()))
    }

    /// Keeps an error, and returns it to the walk.
    pub(crate) fn fail(&mut self, op: &'static str, error: Error) -> ferroflow_ir::Error {
        let (code, detail) = (error.code(), error.to_string());
        self.error.get_or_insert(error);
        ferroflow_ir::Error::Status { code, op: op.into(), detail }
    }

    /// Gradient that the walk found for a source.
    pub(crate) fn gradient(&self, tangent: Cotangent, source: &Tensor) -> TensorGradient {
        match tangent {
            Cotangent::Dense(id) => TensorGradient::Dense(self.tensor(id).clone()),
            Cotangent::Slices(Slices { values, indices }) => {
                TensorGradient::Slices(Box::new(IndexedSlices {
                    values: self.tensor(values).clone(),
                    indices: self.tensor(indices).clone(),
                    like: source.clone(),
                }))
            }
        }
    }
}

impl Emit for TensorEmit {
    fn emit(
        &mut self,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> ferroflow_ir::Result<SmallVec<[ValueId; 2]>> {
        let inputs: SmallVec<[&Tensor; 4]> = inputs.iter().map(|&id| self.tensor(id)).collect();
        let outputs = if op.call == ferroflow_ir::op::CallKind::None {
            call(op, attrs, &inputs, "", self.location)
        } else {
            call_functions(op, attrs, &inputs, self.location)
        };
        drop(inputs);
        match outputs {
            Ok(outputs) => Ok(outputs.into_iter().map(|output| self.add(output)).collect()),
            Err(error) => Err(self.fail(op.name, error)),
        }
    }

    fn constant(&mut self, tensor: HostTensor) -> ferroflow_ir::Result<ValueId> {
        Ok(self.add(tensor.into()))
    }

    fn ty(&self, id: ValueId) -> ValueType {
        self.tensor(id).value_type()
    }

    fn value(&self, id: ValueId) -> Option<HostTensor> {
        self.tensor(id).known_value()
    }

    fn as_any_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }
}

/// A branch or a loop that is the gradient of one; its functions are in the library of the trace.
fn call_functions(
    op: &'static OpDef,
    attrs: Attrs,
    inputs: &[&Tensor],
    location: &'static Location<'static>,
) -> Result<Outputs> {
    let what = || ferroflow_ir::Error::Unsupported {
        op: op.name.into(),
        what: "its gradient outside the trace it is in".into(),
    };
    let trace = context::current_trace().ok_or_else(what)?;
    trace.call(StagedCall { op, attrs, inputs, name: "gradients", location: Some(location) })
}

/// A function in the variant that tapes need, once for each order of derivatives.
#[derive(Clone)]
pub(crate) struct Level {
    forward: ConcreteFunction,
    backward: ConcreteFunction,
    parts: Arc<Differentiated>,
    /// The number of results of the variant that is differentiated here.
    n_results: usize,
}

/// The variants of a function for derivatives of up to this order.
pub(crate) fn levels(
    function: &ConcreteFunction,
    wanted: &[bool],
    order: usize,
) -> Result<Vec<Level>> {
    let mut levels: Vec<Level> = Vec::with_capacity(order);
    let mut def = function.def().clone();
    for _ in 0..order {
        let library = function.library();
        let n_results = def.results.len();
        let parts = Arc::new(differentiate(library, &def, wanted)?);
        let make = |def: &Arc<ferroflow_ir::FunctionDef>, captures| {
            let name = function.rust_name();
            ConcreteFunction::from_shared(name, def.clone(), library.clone(), captures)
        };
        let forward = make(&parts.forward, function.captures().to_vec())?;
        let backward = make(&parts.backward, Vec::new())?;
        def = parts.forward.clone();
        levels.push(Level { forward, backward, parts, n_results });
    }
    Ok(levels)
}

/// Calls a function in the variant that tapes need; `inputs` are its arguments and captures.
#[track_caller]
pub(crate) fn call_function(
    levels: Vec<Level>,
    args: &[Tensor],
    inputs: &[&Tensor],
) -> Result<Vec<Tensor>> {
    let last = levels.last().expect("at least one order");
    let outputs = context::apart_from_tapes(|| last.forward.call_flat(args))?;
    let n_results = levels[0].n_results;
    let op = registry::find(names::PARTITIONED_CALL).expect("a built-in record");
    recording::record_custom(op, inputs, &outputs, Arc::new(OfFunction { levels }));
    Ok(outputs.into_iter().take(n_results).collect())
}

/// Shows a call to the tapes through which there are no gradients: who asks for them gets `error`.
pub(crate) fn record_refused(inputs: &[&Tensor], outputs: &[Tensor], error: Error) {
    let op = registry::find(names::PARTITIONED_CALL).expect("a built-in record");
    recording::record_custom(op, inputs, outputs, Arc::new(Refused(into_ir(error))));
}

/// The error as one of programs.
pub(crate) fn into_ir(error: Error) -> ferroflow_ir::Error {
    match error {
        Error::Runtime(runtime::Error::Ir(error)) => error,
        Error::Runtime(runtime::Error::AtCall { source, .. }) => into_ir(Error::Runtime(*source)),
        error => {
            let (code, detail) = (error.code(), error.to_string());
            ferroflow_ir::Error::Status { code, op: "gradient".into(), detail }
        }
    }
}

/// The gradient of a call of a function: a call of the function that is its gradient.
struct OfFunction {
    levels: Vec<Level>,
}

impl CustomGradient for OfFunction {
    fn backward(
        &self,
        emit: &mut dyn Emit,
        call: &RecordedCall,
        dys: &[Option<ValueId>],
    ) -> ferroflow_ir::Result<Vec<Option<Cotangent>>> {
        let highest = dys.iter().rposition(Option::is_some).unwrap_or(0);
        let Some(level) = self.levels.iter().find(|level| highest < level.n_results) else {
            let what = "a derivative of higher order than there were tapes around it".into();
            let op = self.levels[0].forward.name().to_string().into();
            return Err(ferroflow_ir::Error::Unsupported { op, what });
        };
        let zeros = registry::find(names::ZEROS_LIKE).expect("a built-in record");
        let mut inputs: Vec<ValueId> = Vec::new();
        for &seed in &level.parts.seeds {
            inputs.push(match dys[seed] {
                Some(dy) => dy,
                None => emit.emit(zeros, Attrs::new(), &[call.outputs[seed]])?[0],
            });
        }
        inputs.extend(level.parts.kept.iter().map(|kept| match *kept {
            Kept::Argument(index) => call.inputs[index],
            Kept::Result(index) => call.outputs[index],
        }));
        let emit = tensors(emit, call.op.name)?;
        let args: Vec<Tensor> = inputs.iter().map(|&id| emit.tensor(id).clone()).collect();
        let found = match level.backward.call_flat(&args) {
            Ok(found) => found,
            Err(error) => return Err(emit.fail(call.op.name, error)),
        };
        let ids: Vec<ValueId> = found.into_iter().map(|tensor| emit.add(tensor)).collect();
        let cotangent = |place: &Option<GradientIndex>| {
            place.map(|place| match place {
                GradientIndex::Dense(index) => Cotangent::Dense(ids[index]),
                GradientIndex::Slices(index) => {
                    Cotangent::Slices(Slices { values: ids[index], indices: ids[index + 1] })
                }
            })
        };
        Ok(level.parts.gradients.iter().map(cotangent).collect())
    }
}

/// The walk of a tape, which is the only one that meets gradients of its own.
pub(crate) fn tensors<'a>(
    emit: &'a mut dyn Emit,
    op: &'static str,
) -> ferroflow_ir::Result<&'a mut TensorEmit> {
    let found = emit.as_any_mut().and_then(|any| any.downcast_mut::<TensorEmit>());
    found.ok_or_else(|| ferroflow_ir::Error::Unsupported {
        op: op.into(),
        what: "its gradient outside a tape".into(),
    })
}

/// Stages a branch or a loop in the variant that keeps what its gradients need, once for each
/// order.
pub(crate) fn staged_with_gradient(
    trace: &Arc<FuncGraph>,
    call: StagedCall<'_>,
    results: Option<&[ValueType]>,
    order: usize,
) -> Result<Outputs> {
    let StagedCall { op, attrs, inputs, name, location } = call;
    let visible = match results {
        Some(results) => results.len(),
        None => op.output_dtypes(&attrs)?.len(),
    };
    let types = results.map(<[ValueType]>::to_vec).unwrap_or_default();
    let mut inputs_and_state: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
    let recorded =
        RecordedCallParts { attrs: attrs.clone(), types: types.clone(), n_results: visible };
    let recorded = recorded_call(trace, op, recorded, order, &mut inputs_and_state);
    let (attrs, types, gradient): (_, _, Arc<dyn CustomGradient>) = match recorded {
        Ok((form, gradients)) => (form.attrs, form.types, Arc::new(OfStaged { gradients })),
        Err(error) => {
            inputs_and_state.truncate(inputs.len());
            (attrs, types, Arc::new(Refused(into_ir(error))))
        }
    };
    let inputs: Vec<&Tensor> = inputs_and_state.iter().collect();
    let call = StagedCall { op, attrs, inputs: &inputs, name, location };
    let types = results.is_some().then_some(&types[..]);
    let outputs = trace.add_call(call, types)?;
    recording::record_custom(op, &inputs, &outputs, gradient);
    Ok(outputs.into_iter().take(visible).collect())
}

/// A branch or a loop on its way to the variant that keeps what gradients need.
struct RecordedCallParts {
    attrs: Attrs,
    types: Vec<ValueType>,
    n_results: usize,
}

/// The variant that keeps what gradients need, whose further inputs are added to the arguments, and
/// its gradients.
fn recorded_call(
    trace: &Arc<FuncGraph>,
    op: &'static OpDef,
    mut form: RecordedCallParts,
    order: usize,
    given: &mut Vec<Tensor>,
) -> Result<(RecordedCallParts, StagedGradients)> {
    let mut gradients = Vec::with_capacity(order);
    for _ in 0..order {
        let input_types: Vec<ValueType> = given.iter().map(Tensor::value_type).collect();
        let recorded = control::with_gradient(trace.library(), op, &form.attrs, &input_types)?;
        let mut emit = TensorEmit::new(Vec::new());
        for extra in &recorded.inputs {
            let id = extra.emit(&mut emit);
            let id = emit.checked(id)?;
            given.push(emit.tensor(id).clone());
        }
        let before = form.n_results;
        form.n_results += recorded.added.len();
        form.types.extend(recorded.added);
        form.attrs = recorded.attrs;
        gradients.push((before, form.n_results, recorded.gradient));
    }
    Ok((form, gradients))
}

/// Gradients for each order of derivatives, with the numbers of results that the variant it is the
/// gradient of has, and that the form for this order has.
type StagedGradients = Vec<(usize, usize, Arc<dyn CustomGradient>)>;

/// The gradient of a branch or a loop.
struct OfStaged {
    gradients: StagedGradients,
}

impl OfStaged {
    /// The gradient for the lowest order that has all results up to this one, and how many results
    /// its form has.
    fn for_results(&self, highest: usize) -> (usize, &dyn CustomGradient) {
        let found = self.gradients.iter().find(|(before, ..)| highest < *before);
        let (_, n_results, gradient) = found.or(self.gradients.last()).expect("at least one");
        (*n_results, &**gradient)
    }
}

impl CustomGradient for OfStaged {
    fn keeps_zeros(&self) -> bool {
        self.gradients.iter().all(|(_, _, gradient)| gradient.keeps_zeros())
    }

    fn is_zero(&self, input: usize, given: &[bool]) -> bool {
        let highest = given.iter().rposition(|&given| given).unwrap_or(0);
        self.for_results(highest).1.is_zero(input, given)
    }

    fn backward(
        &self,
        emit: &mut dyn Emit,
        call: &RecordedCall,
        dys: &[Option<ValueId>],
    ) -> ferroflow_ir::Result<Vec<Option<Cotangent>>> {
        let highest = dys.iter().rposition(Option::is_some).unwrap_or(0);
        let (n_results, gradient) = self.for_results(highest);
        let mut cut = call.clone();
        cut.outputs.truncate(n_results);
        gradient.backward(emit, &cut, &dys[..n_results])
    }
}

/// Stages a call and shows it to the tapes; branches and loops in a variant that keeps what their
/// gradients need.
pub(crate) fn staged(
    trace: &Arc<FuncGraph>,
    call: StagedCall<'_>,
    results: Option<&[ValueType]>,
) -> Result<Outputs> {
    let (op, inputs) = (call.op, call.inputs);
    if matches!(op.call, op::CallKind::If | op::CallKind::Case | op::CallKind::While)
        && let Some(tracking) = recording::tracking(inputs)
    {
        return staged_with_gradient(trace, call, results, tracking.order);
    }
    let attrs = call.attrs.clone();
    let outputs = trace.add_call(call, results)?;
    recording::record(op, &attrs, inputs, &outputs);
    Ok(outputs)
}
