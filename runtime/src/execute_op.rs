//! Calls of ops with complete attributes: kernels, formulas, bodies of the runtime.

use crate::{
    context::Context,
    eager_tensor::{EagerTensor, Results},
    error::{Error, Result},
    kernel_call::{KernelCall, UnreadOutputs},
    last_call::LastCall,
    resource::value_type,
    runtime_call::{RuntimeCall, infer_outputs},
    scope::Scope,
    single_op::{SingleOp, call_op},
};
use ferroflow_ir::{
    Attrs, DType, Effect, Error as IrError, FunctionLibrary, HostTensor, Lowering, OpDef, Shape,
    ValueType, budget,
    build::infer_attrs,
    emit::{self, Emit, ValueId},
    infer::InputFacts,
    op::{AliasKind, CallKind},
    pass::specialize::Evaluate,
};
use ferroflow_kernels::{OpCall, Operand, OperandSpec};
use smallvec::SmallVec;
use std::sync::Arc;

/// The attributes with those that follow from inputs of these dtypes or have defaults.
///
/// # Errors
///
/// When one is missing or does not fit, or the inputs do not fit them.
pub(crate) fn complete(
    op: &OpDef,
    attrs: Attrs,
    dtypes: impl Iterator<Item = DType>,
) -> Result<Attrs> {
    let dtypes: SmallVec<[DType; 4]> = dtypes.collect();
    let attrs = op.complete_attrs(infer_attrs(op, attrs, &dtypes))?;
    op.check_dtypes(&attrs, &dtypes)?;
    Ok(attrs)
}

/// Runs an op with complete attributes.
///
/// # Errors
///
/// When the call does not fit the op, or the data makes it impossible.
pub(crate) fn execute_op(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: SmallVec<[EagerTensor; 4]>,
) -> Result<Results> {
    execute(scope, op, attrs, inputs, None)
}

/// Runs an op of a plan as [`execute_op`] does, with the kernel of its last call where that fits; results that
/// nothing reads may be empty tensors.
///
/// # Errors
///
/// As [`execute_op`].
pub(crate) fn execute_op_for(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: SmallVec<[EagerTensor; 4]>,
    last: (&LastCall, UnreadOutputs),
) -> Result<Results> {
    execute(scope, op, attrs, inputs, Some(last))
}

fn execute(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: SmallVec<[EagerTensor; 4]>,
    last: Option<(&LastCall, UnreadOutputs)>,
) -> Result<Results> {
    let op = op.for_dtype(inputs.first().map(EagerTensor::dtype));
    match op.lowering {
        Lowering::Elementwise(_)
        | Lowering::Fused
        | Lowering::Reduce(_)
        | Lowering::View(_)
        | Lowering::Kernel
        | Lowering::HostKernel(_) => {
            let context = scope.context;
            let Some((last, unread)) = last else {
                let call = KernelCall::new(context, op, attrs, &refs(&inputs))?;
                return call.run_owned(context, inputs);
            };
            let compiled = last.kernel(context, (op, attrs), &inputs, unread)?;
            compiled.call.run_owned(context, inputs)
        }
        Lowering::Alias(kind) => alias(op, attrs, &inputs, kind),
        Lowering::Composite(_) => formula(scope, op, attrs, &inputs),
        Lowering::Runtime => run_body(scope, op, attrs, inputs),
        Lowering::Interface => Err(unsupported(op, "nothing here implements it")),
    }
}

fn unsupported(op: &OpDef, what: &'static str) -> Error {
    ferroflow_ir::Error::Unsupported { op: op.name.into(), what: what.into() }.into()
}

/// The references that kernel calls take.
fn refs(inputs: &[EagerTensor]) -> SmallVec<[&EagerTensor; 4]> {
    inputs.iter().collect()
}

fn alias(
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
    kind: AliasKind,
) -> Result<Results> {
    let outputs = infer_outputs(op, attrs, inputs)?;
    let (input, output) = (inputs[0].host()?, &outputs[0]);
    let shape = match (output.shape.known(), kind) {
        (Some(shape), _) => shape,
        (None, AliasKind::Identity) => input.shape().clone(),
        (None, AliasKind::Reinterpret) => {
            let (expected, found) = ("a shape that its inputs tell", output);
            return Err(IrError::argument(op.name, "output", expected, found).into());
        }
    };
    alias_as(input, output.dtype, shape)
}

/// A tensor under another dtype and shape.
///
/// # Errors
///
/// When it does not have as many bytes.
pub(crate) fn alias_as(input: &HostTensor, dtype: DType, shape: Shape) -> Result<Results> {
    if input.dtype().size() != dtype.size() {
        let copy = HostTensor::from_bytes(dtype, shape, input.bytes())?;
        return Ok(SmallVec::from_iter([copy.into()]));
    }
    let reshaped = if *input.shape() == shape { input.clone() } else { input.reshaped(shape)? };
    let result =
        if reshaped.dtype() == dtype { reshaped } else { reshaped.reinterpreted(dtype)? };
    Ok(SmallVec::from_iter([result.into()]))
}

fn run_body(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: SmallVec<[EagerTensor; 4]>,
) -> Result<Results> {
    if op.inputs.is_empty()
        && op.effect == Effect::Pure
        && let Ok(value) = attrs.tensor("value")
    {
        return Ok(SmallVec::from_iter([value.clone().into()]));
    }
    if op.call != CallKind::None {
        return call_op(scope, op, attrs, &inputs);
    }
    let absent = || match ferroflow_kernels::missing_feature(op) {
        Some(feature) => ferroflow_kernels::Error::FeatureOff { op: op.name, feature }.into(),
        None => unsupported(op, "nothing here runs it"),
    };
    let body = scope.context.body(op).ok_or_else(absent)?;
    body.run(&mut RuntimeCall { scope, op, attrs, inputs })
}

/// Elements of the inputs from which on compiling a formula costs less than running it op by op.
const COMPILED_ELEMENTS: usize = 1 << 18;

/// Computes a formula: op by op, or compiled where the inputs are large.
fn formula(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
) -> Result<Results> {
    let elements = inputs.iter().map(|input| input.shape().num_elements()).sum::<usize>();
    let is_on_host = inputs.iter().all(|input| input.device().is_none());
    if op.effect == Effect::Pure && is_on_host && elements >= COMPILED_ELEMENTS {
        let (host, refs) = (op.host_inputs(attrs)?, refs(inputs));
        let compiled = SingleOp::new(scope, op, attrs, &refs, &host);
        // If it fails, then with the error it would have without being compiled.
        if let Ok(results) =
            compiled.and_then(|program| program.run(Scope { profile: None, ..scope }, &refs))
        {
            return Ok(results);
        }
    }
    expand(scope, op, attrs, inputs)
}

fn expand(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
) -> Result<Results> {
    infer_outputs(op, attrs, inputs)?;
    let mut emitter = EagerEmit { scope, values: inputs.to_vec(), error: None };
    let ids: Vec<ValueId> = (0..inputs.len() as u32).map(ValueId).collect();
    let expanded = emit::expand(&mut emitter, op, attrs, &ids);
    match (emitter.error, expanded) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(error.into()),
        (None, Ok(ids)) => Ok(ids.iter().map(|id| emitter.values[id.0 as usize].clone()).collect()),
    }
}

/// Formulas run their calls at once.
struct EagerEmit<'a> {
    scope: Scope<'a>,
    values: Vec<EagerTensor>,
    /// The first failure, as formulas can only pass on errors of programs.
    error: Option<Error>,
}

impl EagerEmit<'_> {
    fn add(&mut self, value: EagerTensor) -> ValueId {
        self.values.push(value);
        ValueId(self.values.len() as u32 - 1)
    }
}

impl Emit for EagerEmit<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> ferroflow_ir::Result<SmallVec<[ValueId; 2]>> {
        // A formula may have many calls, each of them on large tensors.
        budget::tick();
        let inputs: SmallVec<[EagerTensor; 4]> =
            inputs.iter().map(|id| self.values[id.0 as usize].clone()).collect();
        let attrs = op.complete_attrs(attrs)?;
        match execute_op(self.scope, op, &attrs, inputs) {
            Ok(results) => Ok(results.into_iter().map(|result| self.add(result)).collect()),
            Err(error) => {
                let (code, detail) = (error.code(), error.to_string());
                self.error.get_or_insert(error);
                Err(ferroflow_ir::Error::Status { code, op: op.name.into(), detail })
            }
        }
    }

    fn constant(&mut self, tensor: HostTensor) -> ferroflow_ir::Result<ValueId> {
        Ok(self.add(tensor.into()))
    }

    fn ty(&self, id: ValueId) -> ValueType {
        value_type(&self.values[id.0 as usize])
    }

    fn value(&self, id: ValueId) -> Option<HostTensor> {
        self.values[id.0 as usize].host().ok().cloned()
    }

    fn library(&self) -> Option<&FunctionLibrary> {
        Some(self.scope.library)
    }
}

/// Constants are computed with the CPU's kernels.
impl Evaluate for Context {
    fn evaluate(
        &self,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[InputFacts<'_>],
    ) -> Option<Vec<HostTensor>> {
        let values: Option<SmallVec<[EagerTensor; 4]>> =
            inputs.iter().map(|input| input.value.cloned().map(EagerTensor::from)).collect();
        if let Some(values) = values {
            let library = Arc::new(FunctionLibrary::new());
            let scope = Scope::eager(self, &library);
            let results = execute_op(scope, op, attrs, values).ok()?;
            return results.into_iter().map(|result| result.into_host().ok()).collect();
        }
        let specs: Option<SmallVec<[OperandSpec; 4]>> = inputs
            .iter()
            .map(|input| {
                let shape: Shape = input.ty.shape.known()?;
                Some(OperandSpec::new(input.ty.dtype, shape))
            })
            .collect();
        let specs = specs?;
        let call = KernelCall::of(self, &OpCall::new(op, attrs, &specs, None).ok()?).ok()?;
        let results = call.run_on(self, specs.iter().map(|_| Ok(Operand::Plain(&[])))).ok()?;
        results.into_iter().map(|result| result.into_host().ok()).collect()
    }
}
