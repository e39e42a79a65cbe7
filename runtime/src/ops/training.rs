//! Steps of optimizers on variables.

use super::{RuntimeCall, none, training_on_device};
use crate::{
    context::Context,
    eager_tensor::Results,
    error::Result,
    resource::ResourceHandle,
    runtime_call::infer_outputs,
    variable::{VariableState, update_all},
};
use ferroflow_ir::{AttrValue, Attrs, DType, HostTensor, OpDef};
use ferroflow_kernels::optimizer::{OptimizerKind, TensorView, Update};
use smallvec::SmallVec;
use std::sync::Arc;

/// An input of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StepInput<'a> {
    /// A tensor, which may be a handle.
    Tensor(&'a HostTensor),
    /// Numbers that lie in the memory of a program.
    View(TensorView<'a>),
}

/// Makes a step of an op: the handles among the inputs are the variable and its slots, the others
/// say by their names what they are.
pub(crate) fn step(
    context: &Context,
    op: &'static OpDef,
    attrs: &Attrs,
    optimizer: OptimizerKind,
    inputs: &[StepInput<'_>],
) -> Result<()> {
    let mut variables: SmallVec<[Arc<VariableState>; 4]> = SmallVec::new();
    let mut scalars: SmallVec<[(&'static str, TensorView<'_>); 8]> = SmallVec::new();
    let (mut gradient, mut indices) = (None, None);
    for (arg, input) in op.inputs.iter().zip(inputs) {
        let view = match *input {
            StepInput::Tensor(tensor) if tensor.dtype() == DType::Resource => {
                variables.push(ResourceHandle::of(tensor)?.downcast("a variable")?);
                continue;
            }
            StepInput::Tensor(tensor) => tensor.into(),
            StepInput::View(view) => view,
        };
        match arg.name {
            "grad" | "delta" => gradient = Some(view),
            "indices" => indices = Some(view),
            name => scalars.push((name, view)),
        }
    }
    let is_set = |name: &&str| matches!(attrs.get(name), Some(AttrValue::Bool(true)));
    let flags: SmallVec<[&str; 4]> = op.attrs.iter().map(|attr| attr.name).filter(is_set).collect();
    let gradient = gradient.expect("every record of an optimizer has a gradient");
    update_all(&variables, |state| {
        let (op, scalars, flags) = (op.name, &scalars[..], &flags[..]);
        let update = Update { op, state, gradient, indices, scalars, flags };
        Ok(optimizer.step(update, context.threads())?)
    })
}

/// A step that is called with tensors.
pub(super) fn body(call: &mut RuntimeCall<'_>) -> Result<Results> {
    if training_on_device::step(call)? {
        return none();
    }
    let optimizer = optimizer(call.op.name).expect("the table names the op");
    // Dtypes, and the ranks of scalars.
    infer_outputs(call.op, call.attrs, &call.inputs)?;
    let inputs = (0..call.inputs.len()).map(|index| Ok(StepInput::Tensor(call.host(index)?)));
    let inputs: SmallVec<[StepInput<'_>; 12]> = inputs.collect::<Result<_>>()?;
    step(call.context(), call.op, call.attrs, optimizer, &inputs)?;
    none()
}

/// The optimizer of an op, if it is a step of one.
pub(crate) fn optimizer(op: &str) -> Option<OptimizerKind> {
    OPTIMIZERS.iter().find(|(name, _)| *name == op).map(|(_, optimizer)| *optimizer)
}

/// The optimizer of each op.
pub(super) const OPTIMIZERS: &[(&str, OptimizerKind)] = &[
    ("ResourceApplyAdaMax", OptimizerKind::AdaMax),
    ("ResourceApplyAdadelta", OptimizerKind::Adadelta),
    ("ResourceApplyAdagrad", OptimizerKind::Adagrad),
    ("ResourceApplyAdagradDA", OptimizerKind::AdagradDa),
    ("ResourceApplyAdagradV2", OptimizerKind::AdagradV2),
    ("ResourceApplyAdam", OptimizerKind::Adam),
    ("ResourceApplyAdamWithAmsgrad", OptimizerKind::AdamWithAmsgrad),
    ("ResourceApplyAddSign", OptimizerKind::AddSign),
    ("ResourceApplyCenteredRMSProp", OptimizerKind::CenteredRmsProp),
    ("ResourceApplyFtrl", OptimizerKind::Ftrl),
    ("ResourceApplyFtrlV2", OptimizerKind::Ftrl),
    ("ResourceApplyGradientDescent", OptimizerKind::GradientDescent),
    ("ResourceApplyKerasMomentum", OptimizerKind::KerasMomentum),
    ("ResourceApplyMomentum", OptimizerKind::Momentum),
    ("ResourceApplyPowerSign", OptimizerKind::PowerSign),
    ("ResourceApplyProximalAdagrad", OptimizerKind::ProximalAdagrad),
    ("ResourceApplyProximalGradientDescent", OptimizerKind::ProximalGradientDescent),
    ("ResourceApplyRMSProp", OptimizerKind::RmsProp),
    ("ResourceSparseApplyAdadelta", OptimizerKind::Adadelta),
    ("ResourceSparseApplyAdagrad", OptimizerKind::Adagrad),
    ("ResourceSparseApplyAdagradDA", OptimizerKind::AdagradDa),
    ("ResourceSparseApplyAdagradV2", OptimizerKind::AdagradV2),
    ("ResourceSparseApplyCenteredRMSProp", OptimizerKind::CenteredRmsProp),
    ("ResourceSparseApplyFtrl", OptimizerKind::Ftrl),
    ("ResourceSparseApplyFtrlV2", OptimizerKind::Ftrl),
    ("ResourceSparseApplyKerasMomentum", OptimizerKind::KerasMomentum),
    ("ResourceSparseApplyMomentum", OptimizerKind::Momentum),
    ("ResourceSparseApplyProximalAdagrad", OptimizerKind::ProximalAdagrad),
    ("ResourceSparseApplyProximalGradientDescent", OptimizerKind::ProximalGradientDescent),
    ("ResourceSparseApplyRMSProp", OptimizerKind::RmsProp),
];
