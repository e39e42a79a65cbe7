//! One op, now.

use crate::{
    budget::CallBudget,
    context::Context,
    eager_tensor::EagerTensor,
    error::{Error, Result},
    kernel_call::{KernelCall, compile, operand_spec},
    ops::RuntimeCall,
    panics::caught,
    placed_calls::execute_placed,
    plan::action::Origin,
    profile::Profile,
    resource::{ResourceHandle, ResourceManager},
    single_op::{SingleOp, call_op},
};
use ferroflow_ir::{
    Attrs, DType, Effect, Error as IrError, FunctionLibrary, HostTensor, Lowering, OpDef, Shape,
    ValueType,
    build::infer_attrs,
    emit::{self, Emit, ValueId},
    infer::{Input, infer},
    op::{AliasKind, Call},
    pass::specialize::Evaluate,
};
use ferroflow_kernels::{Device, Io, OpCall, Operand, OperandSpec, Target};
use smallvec::SmallVec;
use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// The results of an op call.
pub type Results = SmallVec<[EagerTensor; 1]>;

/// Where a call finds functions and named resources.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The context.
    pub context: &'a Context,
    /// The functions that may be called.
    pub library: &'a Arc<FunctionLibrary>,
    /// The resources that ops find by name.
    pub resources: &'a Arc<ResourceManager>,
    /// The node of a function that makes the call; none in eager code.
    pub(crate) origin: Option<&'a Origin>,
    /// Where the ops of a run are noted, if they are.
    pub(crate) profile: Option<&'a Profile>,
    /// What the call has left, if it is bounded.
    pub(crate) budget: Option<&'a CallBudget<'a>>,
    /// The device that a call is made for, if not the CPU.
    pub(crate) device: Option<&'a Arc<dyn Device>>,
    /// The nesting depth of runs over data sets and of the functions they call.
    pub(crate) depth: usize,
}

impl<'a> Scope<'a> {
    /// Where code outside functions makes calls: in the state of the context.
    pub(crate) fn eager(context: &'a Context, library: &'a Arc<FunctionLibrary>) -> Scope<'a> {
        let resources = context.resources();
        let (origin, profile, budget, device) = (None, None, None, None);
        Scope { context, library, resources, origin, profile, budget, device, depth: 0 }
    }

    /// The scope of a run over a data set, or of a call of one of its functions, inside of this one.
    ///
    /// # Errors
    ///
    /// [`IrError::Limit`] when they nest too deep.
    pub(crate) fn deeper(self, levels: usize) -> Result<Scope<'a>> {
        let (depth, limit) = (self.depth + levels, self.context.limits().call_depth);
        if depth > limit {
            let (what, needed) = ("data sets and their functions".into(), depth.to_string());
            return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
        }
        Ok(Scope { depth, ..self })
    }

    /// Checks that an op may read a file: one in the folder of its model, or any where the context
    /// grants that.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`] when it may not.
    pub fn check_file(&self, path: &Path) -> Result<()> {
        let folder = self.resources.folder().and_then(|folder| folder.canonicalize().ok());
        let inside =
            folder.zip(resolved(path)).is_some_and(|(folder, path)| path.starts_with(folder));
        if inside { Ok(()) } else { self.context.check_file(path) }
    }
}

/// The path with links resolved; of one that does not exist, that of the nearest folder that does and
/// the names below it.
fn resolved(path: &Path) -> Option<PathBuf> {
    let (at, real) = path.ancestors().find_map(|at| Some((at, at.canonicalize().ok()?)))?;
    let rest = path.strip_prefix(at).ok()?;
    let is_below = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| real.join(rest))
}

/// Runs an op. Attributes that follow from the inputs or have defaults may be left out.
///
/// # Errors
///
/// When the op does not exist, the call does not fit it, or the data makes it impossible.
pub fn execute(
    context: &Context,
    op: &str,
    attrs: Attrs,
    inputs: &[EagerTensor],
) -> Result<Results> {
    caught(|| execute_uncaught(context, op, attrs, inputs)).map_err(of_op(op))
}

/// Names the op in the error of a panic, which says nothing of it.
pub(crate) fn of_op(op: &str) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Panic { message } => Error::Panic { message: format!("{op}: {message}") },
        error => error,
    }
}

fn execute_uncaught(
    context: &Context,
    op: &str,
    attrs: Attrs,
    inputs: &[EagerTensor],
) -> Result<Results> {
    let (op, attrs) = find(context, op, attrs, inputs.iter().map(EagerTensor::dtype))?;
    let library = Arc::new(FunctionLibrary::new());
    let scope = Scope::eager(context, &library);
    if context.default_device().is_some() || inputs.iter().any(|input| input.device().is_some()) {
        let inputs: SmallVec<[&EagerTensor; 4]> = inputs.iter().collect();
        return execute_placed(scope, context.default_device(), op, &attrs, &inputs);
    }
    execute_op(scope, op, &attrs, inputs.iter().cloned().collect())
}

/// The op of this name, and its attributes completed for inputs of these dtypes.
fn find(
    context: &Context,
    op: &str,
    attrs: Attrs,
    dtypes: impl Iterator<Item = DType>,
) -> Result<(&'static OpDef, Attrs)> {
    let unknown = || ferroflow_ir::Error::NotFound { kind: "op", name: op.into() };
    let op = context.registry().find(op).ok_or_else(unknown)?;
    let attrs = complete(op, attrs, dtypes)?;
    Ok((op, attrs))
}

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

/// Replaces `value` by the result of an op of which it is input 0: in its own memory, where the
/// kernel can do that.
///
/// # Errors
///
/// When the op does not exist or has no kernel, the call does not fit it, or the data makes it
/// impossible.
pub(crate) fn execute_in_place(
    context: &Context,
    op: &str,
    attrs: Attrs,
    value: &mut HostTensor,
    others: &[EagerTensor],
) -> Result<()> {
    let dtypes = [value.dtype()].into_iter().chain(others.iter().map(EagerTensor::dtype));
    let (op, attrs) = find(context, op, attrs, dtypes)?;
    let host = op.host_inputs(&attrs)?;
    let mut specs: SmallVec<[OperandSpec; 4]> = SmallVec::new();
    specs.push(OperandSpec::new(value.dtype(), value.shape().clone()));
    for (index, other) in others.iter().enumerate() {
        specs.push(operand_spec(other, host.get(index + 1) == Some(&true))?);
    }
    let call = OpCall::new(op, &attrs, &specs, None)?;
    let kernel = compile(context, &call)?;
    let same = ValueType::new(value.dtype(), value.shape());
    if !value.is_plain() || !kernel.in_place(0) || call.outputs.first() != Some(&same) {
        let inputs: SmallVec<[EagerTensor; 4]> =
            [value.clone().into()].into_iter().chain(others.iter().cloned()).collect();
        let inputs = refs(&inputs);
        let call = KernelCall::new(context, op, &attrs, &inputs)?;
        *value = call.run(context, &inputs)?.remove(0).into_host()?;
        return Ok(());
    }
    let mut operands: SmallVec<[Operand<'_>; 4]> = SmallVec::from_slice(&[Operand::InPlace]);
    for other in others {
        operands.push(Operand::Tensor(other.host()?));
    }
    let limit = context.limits().tensor_bytes;
    let target = Target::Plain(value.bytes_mut());
    Ok(kernel.run(&mut Io::new(operands, [target], context.threads(), limit))?)
}

/// Runs an op with complete attributes.
///
/// # Errors
///
/// When the call does not fit the op, or the data makes it impossible.
pub fn execute_op(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: SmallVec<[EagerTensor; 4]>,
) -> Result<Results> {
    let op = op.for_dtype(inputs.first().map(EagerTensor::dtype));
    match op.lowering {
        Lowering::Elementwise(_)
        | Lowering::Fused
        | Lowering::Reduce(_)
        | Lowering::View(_)
        | Lowering::Kernel => {
            let inputs = refs(&inputs);
            KernelCall::new(scope.context, op, attrs, &inputs)?.run(scope.context, &inputs)
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

/// The types of the results of a call whose inputs are all known.
///
/// # Errors
///
/// When the call does not fit the op.
pub(crate) fn infer_outputs(
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
) -> Result<SmallVec<[ValueType; 2]>> {
    let types: SmallVec<[ValueType; 4]> = inputs.iter().map(value_type).collect();
    let mut facts: SmallVec<[Input<'_>; 4]> = SmallVec::new();
    for (ty, input) in types.iter().zip(inputs) {
        facts.push(Input { ty, value: Some(input.host()?) });
    }
    Ok(infer(op, attrs, &facts)?)
}

/// The type of a tensor, with what a handle in it refers to.
pub fn value_type(tensor: &EagerTensor) -> ValueType {
    if tensor.dtype() == DType::Resource
        && let Ok(host) = tensor.host()
        && let Ok(handle) = ResourceHandle::of(host)
    {
        return handle.value_type();
    }
    ValueType::new(tensor.dtype(), tensor.shape())
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
    if op.call != Call::None {
        return call_op(scope, op, attrs, &inputs);
    }
    let body = scope.context.body(op).ok_or_else(|| unsupported(op, "nothing here runs it"))?;
    body(&mut RuntimeCall { scope, op, attrs, inputs })
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
        inputs: &[Input<'_>],
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
