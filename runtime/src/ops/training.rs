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
use ferroflow_kernels::optimizer::{Optimizer, Update, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// An input of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// A tensor, which may be a handle.
    Tensor(&'a HostTensor),
    /// Numbers that lie in the memory of a program.
    View(View<'a>),
}

/// Makes a step of an op: the handles among the inputs are the variable and its slots, the others
/// say by their names what they are.
pub(crate) fn step(
    context: &Context,
    op: &'static OpDef,
    attrs: &Attrs,
    optimizer: Optimizer,
    inputs: &[Input<'_>],
) -> Result<()> {
    let mut variables: SmallVec<[Arc<VariableState>; 4]> = SmallVec::new();
    let mut scalars: SmallVec<[(&'static str, View<'_>); 8]> = SmallVec::new();
    let (mut gradient, mut indices) = (None, None);
    for (arg, input) in op.inputs.iter().zip(inputs) {
        let view = match *input {
            Input::Tensor(tensor) if tensor.dtype() == DType::Resource => {
                variables.push(ResourceHandle::of(tensor)?.downcast("a variable")?);
                continue;
            }
            Input::Tensor(tensor) => tensor.into(),
            Input::View(view) => view,
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
    let inputs = (0..call.inputs.len()).map(|index| Ok(Input::Tensor(call.host(index)?)));
    let inputs: SmallVec<[Input<'_>; 12]> = inputs.collect::<Result<_>>()?;
    step(call.context(), call.op, call.attrs, optimizer, &inputs)?;
    none()
}

/// The optimizer of an op, if it is a step of one.
pub(crate) fn optimizer(op: &str) -> Option<Optimizer> {
    OPTIMIZERS.iter().find(|(name, _)| *name == op).map(|(_, optimizer)| *optimizer)
}

/// The optimizer of each op.
pub(super) const OPTIMIZERS: &[(&str, Optimizer)] = &[
    ("ResourceApplyAdaMax", Optimizer::AdaMax),
    ("ResourceApplyAdadelta", Optimizer::Adadelta),
    ("ResourceApplyAdagrad", Optimizer::Adagrad),
    ("ResourceApplyAdagradDA", Optimizer::AdagradDa),
    ("ResourceApplyAdagradV2", Optimizer::AdagradV2),
    ("ResourceApplyAdam", Optimizer::Adam),
    ("ResourceApplyAdamWithAmsgrad", Optimizer::AdamWithAmsgrad),
    ("ResourceApplyAddSign", Optimizer::AddSign),
    ("ResourceApplyCenteredRMSProp", Optimizer::CenteredRmsProp),
    ("ResourceApplyFtrl", Optimizer::Ftrl),
    ("ResourceApplyFtrlV2", Optimizer::Ftrl),
    ("ResourceApplyGradientDescent", Optimizer::GradientDescent),
    ("ResourceApplyKerasMomentum", Optimizer::KerasMomentum),
    ("ResourceApplyMomentum", Optimizer::Momentum),
    ("ResourceApplyPowerSign", Optimizer::PowerSign),
    ("ResourceApplyProximalAdagrad", Optimizer::ProximalAdagrad),
    ("ResourceApplyProximalGradientDescent", Optimizer::ProximalGradientDescent),
    ("ResourceApplyRMSProp", Optimizer::RmsProp),
    ("ResourceSparseApplyAdadelta", Optimizer::Adadelta),
    ("ResourceSparseApplyAdagrad", Optimizer::Adagrad),
    ("ResourceSparseApplyAdagradDA", Optimizer::AdagradDa),
    ("ResourceSparseApplyAdagradV2", Optimizer::AdagradV2),
    ("ResourceSparseApplyCenteredRMSProp", Optimizer::CenteredRmsProp),
    ("ResourceSparseApplyFtrl", Optimizer::Ftrl),
    ("ResourceSparseApplyFtrlV2", Optimizer::Ftrl),
    ("ResourceSparseApplyKerasMomentum", Optimizer::KerasMomentum),
    ("ResourceSparseApplyMomentum", Optimizer::Momentum),
    ("ResourceSparseApplyProximalAdagrad", Optimizer::ProximalAdagrad),
    ("ResourceSparseApplyProximalGradientDescent", Optimizer::ProximalGradientDescent),
    ("ResourceSparseApplyRMSProp", Optimizer::RmsProp),
];
