//! Steps of optimizers on variables.

use super::{Body, RuntimeCall, none};
use crate::{
    error::Result,
    execute::{Results, infer_outputs},
    variable::{VariableState, update_all},
};
use ferroflow_ir::{AttrValue, DType, HostTensor};
use ferroflow_kernels::optimizer::{Optimizer, Update};
use smallvec::SmallVec;
use std::sync::Arc;

/// Makes a step: the handles among the inputs are the variable and its slots, the others say by
/// their names what they are.
fn step(call: &RuntimeCall<'_>, optimizer: Optimizer) -> Result<Results> {
    // Dtypes, and the ranks of scalars.
    infer_outputs(call.op, call.attrs, &call.inputs)?;
    let mut variables: SmallVec<[Arc<VariableState>; 4]> = SmallVec::new();
    let (mut gradient, mut indices, mut scalars) = (None, None, Vec::new());
    for (index, arg) in call.op.inputs.iter().enumerate() {
        let input: &HostTensor = call.host(index)?;
        match arg.name {
            _ if input.dtype() == DType::Resource => {
                variables.push(call.resource(index, "a variable")?);
            }
            "grad" | "delta" => gradient = Some(input),
            "indices" => indices = Some(input),
            name => scalars.push((name, input)),
        }
    }
    let is_set = |name: &&str| matches!(call.attrs.get(name), Some(AttrValue::Bool(true)));
    let flags: SmallVec<[&str; 4]> =
        call.op.attrs.iter().map(|attr| attr.name).filter(is_set).collect();
    let gradient = gradient.expect("every record of an optimizer has a gradient");
    update_all(&variables, |state| {
        let (op, scalars, flags) = (call.op.name, &scalars[..], &flags[..]);
        let update = Update { op, state, gradient, indices, scalars, flags };
        Ok(optimizer.step(update, call.context().threads())?)
    })?;
    none()
}

pub(super) const BODIES: &[(&str, Body)] = &[
    ("ResourceApplyAdaMax", |call| step(call, Optimizer::AdaMax)),
    ("ResourceApplyAdadelta", |call| step(call, Optimizer::Adadelta)),
    ("ResourceApplyAdagrad", |call| step(call, Optimizer::Adagrad)),
    ("ResourceApplyAdagradDA", |call| step(call, Optimizer::AdagradDa)),
    ("ResourceApplyAdagradV2", |call| step(call, Optimizer::AdagradV2)),
    ("ResourceApplyAdam", |call| step(call, Optimizer::Adam)),
    ("ResourceApplyAdamWithAmsgrad", |call| step(call, Optimizer::AdamWithAmsgrad)),
    ("ResourceApplyAddSign", |call| step(call, Optimizer::AddSign)),
    ("ResourceApplyCenteredRMSProp", |call| step(call, Optimizer::CenteredRmsProp)),
    ("ResourceApplyFtrl", |call| step(call, Optimizer::Ftrl)),
    ("ResourceApplyFtrlV2", |call| step(call, Optimizer::Ftrl)),
    ("ResourceApplyGradientDescent", |call| step(call, Optimizer::GradientDescent)),
    ("ResourceApplyKerasMomentum", |call| step(call, Optimizer::KerasMomentum)),
    ("ResourceApplyMomentum", |call| step(call, Optimizer::Momentum)),
    ("ResourceApplyPowerSign", |call| step(call, Optimizer::PowerSign)),
    ("ResourceApplyProximalAdagrad", |call| step(call, Optimizer::ProximalAdagrad)),
    ("ResourceApplyProximalGradientDescent", |call| step(call, Optimizer::ProximalGradientDescent)),
    ("ResourceApplyRMSProp", |call| step(call, Optimizer::RmsProp)),
    ("ResourceSparseApplyAdadelta", |call| step(call, Optimizer::Adadelta)),
    ("ResourceSparseApplyAdagrad", |call| step(call, Optimizer::Adagrad)),
    ("ResourceSparseApplyAdagradDA", |call| step(call, Optimizer::AdagradDa)),
    ("ResourceSparseApplyAdagradV2", |call| step(call, Optimizer::AdagradV2)),
    ("ResourceSparseApplyCenteredRMSProp", |call| step(call, Optimizer::CenteredRmsProp)),
    ("ResourceSparseApplyFtrl", |call| step(call, Optimizer::Ftrl)),
    ("ResourceSparseApplyFtrlV2", |call| step(call, Optimizer::Ftrl)),
    ("ResourceSparseApplyKerasMomentum", |call| step(call, Optimizer::KerasMomentum)),
    ("ResourceSparseApplyMomentum", |call| step(call, Optimizer::Momentum)),
    ("ResourceSparseApplyProximalAdagrad", |call| step(call, Optimizer::ProximalAdagrad)),
    ("ResourceSparseApplyProximalGradientDescent", |call| {
        step(call, Optimizer::ProximalGradientDescent)
    }),
    ("ResourceSparseApplyRMSProp", |call| step(call, Optimizer::RmsProp)),
];
