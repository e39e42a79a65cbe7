//! Steps of optimizers on variables that live on a device: formulas that its elementwise kernels
//! compute.
//!
//! The formulas are those of the CPU (`kernels/src/optimizer/rules.rs`), in the order in which the
//! state changes. Optimizers that are not here change their variables on the host. In functions
//! placement makes nodes of these formulas (`ir/src/pass/place/optimizer.rs`); here they are
//! computed at once.

use super::RuntimeCall;
use crate::{
    eager_tensor::{device_buffer, on_device},
    error::Result,
    variable::VariableState,
};
use ferroflow_ir::{
    Attrs, DType, Expr, OpDef,
    expr::{Scalar, Scalars},
    pass::placement::Assignment,
    registry,
};
use ferroflow_kernels::{Device, DeviceBuffer, Io, Kernel, OpCall, Operand, OperandSpec, Target};
use std::sync::Arc;

/// Inputs of a formula: the inputs of the op, by their names.
struct Inputs<'s, 'n> {
    scalars: &'s Scalars<'s>,
    names: &'n [&'static str],
}

impl<'s> Inputs<'s, '_> {
    fn x(&self, name: &str) -> Scalar<'s> {
        let position = self.names.iter().position(|known| *known == name);
        self.scalars.x(position.expect("formulas read inputs of their ops"))
    }

    fn rest(&self, name: &str) -> Scalar<'s> {
        1.0 - self.x(name)
    }
}

/// A formula over the inputs of an op.
type Rule = for<'s, 'n, 'i> fn(&'i Inputs<'s, 'n>) -> Scalar<'s>;

/// The new value of one input that is a variable.
type Formula = (&'static str, Rule);

const FORMULAS: &[(&str, &[Formula])] = &[
    ("ResourceApplyAdagradV2", &[("accum", adagrad_sum), ("var", adagrad)]),
    ("ResourceApplyAdam", &[("m", adam_mean), ("v", adam_square), ("var", adam)]),
    ("ResourceApplyGradientDescent", &[("var", gradient_descent)]),
    ("ResourceApplyKerasMomentum", &[("accum", keras_sum), ("var", keras_momentum)]),
    ("ResourceApplyMomentum", &[("accum", momentum_sum), ("var", momentum)]),
    ("ResourceApplyRMSProp", &[("ms", rms_square), ("mom", rms_momentum), ("var", rms)]),
];

fn gradient_descent<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    i.x("var") - i.x("delta") * i.x("alpha")
}

fn adagrad_sum<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    let (accum, grad) = (i.x("accum"), i.x("grad"));
    if i.scalars.flag("update_slots") { accum + grad * grad } else { accum }
}

fn adagrad<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    i.x("var") - i.x("grad") * i.x("lr") / (i.x("accum").sqrt() + i.x("epsilon"))
}

fn adam_mean<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    i.x("m") + (i.x("grad") - i.x("m")) * i.rest("beta1")
}

fn adam_square<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    i.x("v") + (i.x("grad") * i.x("grad") - i.x("v")) * i.rest("beta2")
}

fn adam<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    let rate = i.x("lr") * i.rest("beta2_power").sqrt() / i.rest("beta1_power");
    let mean = match i.scalars.flag("use_nesterov") {
        true => i.x("m") * i.x("beta1") + i.x("grad") * i.rest("beta1"),
        false => i.x("m"),
    };
    i.x("var") - mean * rate / (i.x("v").sqrt() + i.x("epsilon"))
}

fn keras_sum<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    i.x("accum") * i.x("momentum") - i.x("grad") * i.x("lr")
}

fn keras_momentum<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    match i.scalars.flag("use_nesterov") {
        true => i.x("var") + (i.x("accum") * i.x("momentum") - i.x("grad") * i.x("lr")),
        false => i.x("var") + i.x("accum"),
    }
}

fn momentum_sum<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    i.x("accum") * i.x("momentum") + i.x("grad")
}

fn momentum<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    match i.scalars.flag("use_nesterov") {
        true => i.x("var") - (i.x("grad") * i.x("lr") + i.x("accum") * i.x("momentum") * i.x("lr")),
        false => i.x("var") - i.x("accum") * i.x("lr"),
    }
}

fn rms_square<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    i.x("ms") + (i.x("grad") * i.x("grad") - i.x("ms")) * i.rest("rho")
}

fn rms_momentum<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    let root = (i.x("ms") + i.x("epsilon")).sqrt();
    i.x("mom") * i.x("momentum") + i.x("grad") * i.x("lr") / root
}

fn rms<'s>(i: &Inputs<'s, '_>) -> Scalar<'s> {
    i.x("var") - i.x("mom")
}

/// Whether an optimizer has formulas.
pub(super) fn has_formulas(op: &str) -> bool {
    FORMULAS.iter().any(|(name, _)| *name == op)
}

/// Makes a step where the variables live; `false` if that is not one device that can.
///
/// # Errors
///
/// Those of the device, and when a variable has no value or another type.
pub(super) fn step(call: &RuntimeCall<'_>) -> Result<bool> {
    let handles = (0..call.inputs.len())
        .filter(|&index| call.inputs[index].dtype() == DType::Resource)
        .map(|index| call.resource::<VariableState>(index, "a variable"));
    let Ok(variables) = handles.collect::<Result<Vec<Arc<VariableState>>>>() else {
        return Ok(false);
    };
    let Some(home) = variables.first().and_then(|variable| variable.resident_device()) else {
        return Ok(false);
    };
    let is_resident = |other: &Arc<dyn Device>| other.name() == home.name();
    if !variables.iter().all(|variable| variable.resident_device().is_some_and(is_resident)) {
        return Ok(false);
    }
    let mut of_variables = variables.iter();
    let mut values: Vec<DeviceBuffer> = Vec::new();
    let mut owners: Vec<Option<&Arc<VariableState>>> = Vec::new();
    for input in &call.inputs {
        let owner = if input.dtype() == DType::Resource { of_variables.next() } else { None };
        values.push(match owner {
            Some(variable) => on_device(&variable.tensor()?, home)?,
            None => on_device(input, home)?,
        });
        owners.push(owner);
    }
    let dtypes: Vec<DType> = values.iter().map(|value| value.dtype).collect();
    for formula in assignments(call.op, call.attrs, &dtypes)?.unwrap_or_default() {
        let Some(value) = computed(call, home, &values, &formula)? else { return Ok(false) };
        values[formula.position] = value;
    }
    for (value, owner) in values.into_iter().zip(owners) {
        if let Some(variable) = owner {
            variable.assign_tensor(value.into())?;
        }
    }
    Ok(true)
}

/// Assignments of an optimizer step, in this order: each formula reads what those before it have
/// changed. `dtypes` are those of its inputs, where variables stand for their values. `None` for
/// ops without formulas.
///
/// # Errors
///
/// When an attribute is missing.
pub(crate) fn assignments(
    op: &OpDef,
    attrs: &Attrs,
    dtypes: &[DType],
) -> ferroflow_ir::Result<Option<Vec<Assignment>>> {
    let Some((_, formulas)) = FORMULAS.iter().find(|(name, _)| *name == op.name) else {
        return Ok(None);
    };
    let names: Vec<&'static str> = op.inputs.iter().map(|arg| arg.name).collect();
    let mut changes = Vec::with_capacity(formulas.len());
    for (name, formula) in *formulas {
        let position = names.iter().position(|known| known == name);
        let position = position.expect("formulas change inputs of their ops");
        let expr = Expr::build(attrs, dtypes, dtypes[position], |scalars| {
            formula(&Inputs { scalars, names: &names })
        })?;
        changes.push(Assignment { position, expr });
    }
    Ok(Some(changes))
}

/// The kernel of a change; `None` if the device has none.
///
/// # Errors
///
/// When the inputs do not fit the formula.
fn kernel(
    device: &Arc<dyn Device>,
    specs: &[OperandSpec],
    change: &Assignment,
) -> Result<Option<Arc<dyn Kernel>>> {
    let fused = registry::find("_FusedElementwise").expect("a built-in record");
    let dtypes: Vec<DType> = specs.iter().map(|spec| spec.dtype).collect();
    let attrs = Attrs::new().with("T", dtypes[change.position]).with("Tin", dtypes);
    let call = OpCall::new(fused, &attrs, specs, Some(&change.expr))?;
    Ok(device.kernel(&call)?)
}

/// The new value that a change makes of these.
fn computed(
    call: &RuntimeCall<'_>,
    device: &Arc<dyn Device>,
    values: &[DeviceBuffer],
    change: &Assignment,
) -> Result<Option<DeviceBuffer>> {
    let specs: Vec<OperandSpec> =
        values.iter().map(|value| OperandSpec::new(value.dtype, value.shape.clone())).collect();
    let Some(kernel) = kernel(device, &specs, change)? else { return Ok(None) };
    let old = &values[change.position];
    let output = device_buffer(device.allocate(old.dtype, &old.shape)?)?;
    let context = call.context();
    let inputs = values.iter().map(Operand::Device);
    let targets = [Target::Device(&output)];
    let limit = context.limits().tensor_bytes;
    kernel.run(&mut Io::new(inputs, targets, context.threads(), limit))?;
    Ok(Some(output))
}
