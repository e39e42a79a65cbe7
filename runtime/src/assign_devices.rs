//! The devices of a context as targets of placement.

use crate::{
    context::Context, ops, placement::PlacementRequest, resource::ResourceHandle,
    variable::VariableState,
};
use ferroflow_ir::{
    Attrs, DType, Graph, HostTensor, NodeDef, OpDef, Outlet, ValueType,
    pass::{
        execution::constant,
        placement::{Assignment, DeviceId, PlacedArgument, Targets, assign_devices, assign_host},
        specialize::Specialized,
    },
};
use ferroflow_kernels::{Device, OpCall, OperandSpec, Support};
use smallvec::SmallVec;
use std::sync::Arc;

/// A function whose nodes have devices.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) function: Specialized,
    /// The devices besides the host that the function was placed on; none where it runs on the host
    /// alone.
    pub(crate) devices: Vec<Arc<dyn Device>>,
}

impl Placed {
    /// Assigns devices to a function whose last arguments are always `captured`.
    ///
    /// # Errors
    ///
    /// When a node does not fit its op.
    pub(crate) fn new(
        context: &Context,
        mut function: Specialized,
        captured: &[HostTensor],
        request: &PlacementRequest,
    ) -> ferroflow_ir::Result<Placed> {
        let mut targets = ContextTargets { context, devices: Vec::new(), default: None };
        targets.default = request.device.as_ref().map(|device| targets.add(device));
        targets.add_named(&function);
        let n_passed = function.args.len().saturating_sub(captured.len());
        let mut args: Vec<PlacedArgument> = (0..n_passed)
            .map(|index| {
                let device = request.args.get(index).and_then(Option::as_ref);
                let device = device.map(|device| targets.add(device));
                PlacedArgument { device, variable: None }
            })
            .collect();
        args.extend(captured.iter().map(|value| {
            let variable = resident_device(value).map(|(device, ty)| (targets.add(&device), ty));
            PlacedArgument { device: None, variable }
        }));
        match targets.devices.is_empty() {
            true => function.for_each_body(&mut |body| {
                assign_host(body);
                Ok(())
            })?,
            false => assign_devices(&mut function, &args, &targets)?,
        }
        Ok(Placed { function, devices: targets.devices })
    }
}

/// The device that the variable behind a handle is on, and the type of its value.
fn resident_device(handle: &HostTensor) -> Option<(Arc<dyn Device>, ValueType)> {
    let variable = variable(handle)?;
    let (dtype, shape) = variable.spec();
    Some((variable.resident_device()?.clone(), ValueType::new(dtype, shape.clone())))
}

/// The variable behind a handle.
pub(crate) fn variable(handle: &HostTensor) -> Option<Arc<VariableState>> {
    if handle.dtype() != DType::Resource {
        return None;
    }
    ResourceHandle::of(handle).ok()?.downcast("a variable").ok()
}

/// The operands of a node; `None` where a shape is not known.
pub(crate) fn operand_specs(graph: &Graph, node: &NodeDef) -> Option<SmallVec<[OperandSpec; 4]>> {
    let spec = |&input: &Outlet| {
        if let Some(value) = constant(graph, input) {
            return Some(OperandSpec::known(value.clone()));
        }
        let ty = graph.ty(input)?;
        Some(OperandSpec::new(ty.dtype, ty.shape.known()?))
    };
    node.inputs().iter().map(spec).collect()
}

/// Answer of `look` about the call that a node makes; `None` where that is not known ahead, or does
/// not fit its op.
pub(crate) fn with_call<R>(
    context: &Context,
    graph: &Graph,
    node: &NodeDef,
    look: impl FnOnce(&OpCall<'_>) -> ferroflow_kernels::Result<R>,
) -> Option<R> {
    let specs = operand_specs(graph, node)?;
    let call = OpCall::new(node.op.def()?, &node.attrs, &specs, node.expr.as_deref()).ok()?;
    look(&call.with_precision(context.precision())).ok()
}

/// The devices of a context that a function names or is passed.
struct ContextTargets<'a> {
    context: &'a Context,
    devices: Vec<Arc<dyn Device>>,
    default: Option<DeviceId>,
}

impl ContextTargets<'_> {
    fn add(&mut self, device: &Arc<dyn Device>) -> DeviceId {
        let known = self.devices.iter().position(|known| known.name() == device.name());
        DeviceId(known.unwrap_or_else(|| {
            self.devices.push(device.clone());
            self.devices.len() - 1
        }))
    }

    /// Adds the devices that nodes name.
    fn add_named(&mut self, function: &Specialized) {
        let mut last = "";
        for (_, node) in function.graph.iter() {
            if !node.device.is_empty() && *node.device != *last {
                last = &node.device;
                if let Some(device) = self.context.device_of(last) {
                    self.add(&device);
                }
            }
        }
        function.nested.values().flatten().for_each(|body| self.add_named(body));
    }
}

impl Targets for ContextTargets<'_> {
    fn default_device(&self) -> Option<DeviceId> {
        self.default
    }

    fn find(&self, name: &str) -> Option<DeviceId> {
        let asked = self.context.device_of(name)?;
        self.devices.iter().position(|device| device.name() == asked.name()).map(DeviceId)
    }

    fn name(&self, device: DeviceId) -> &str {
        self.devices[device.0].name()
    }

    fn supports_dtype(&self, device: DeviceId, dtype: DType) -> bool {
        self.devices[device.0].storage(dtype).is_some()
    }

    fn same_layout(&self, device: DeviceId, from: DType, to: DType) -> bool {
        let storage = |dtype| self.devices[device.0].storage(dtype);
        from == to || storage(from).is_some_and(|own| storage(to) == Some(own))
    }

    fn supports(&self, device: DeviceId, graph: &Graph, node: &NodeDef) -> bool {
        let device = &self.devices[device.0];
        let support = with_call(self.context, graph, node, |call| device.support(call));
        support.is_some_and(|support| support != Support::Missing)
    }

    fn takes_any_device(&self, op: &'static OpDef) -> bool {
        ops::takes_any_device(op.name)
    }

    fn optimizer(
        &self,
        op: &'static OpDef,
        attrs: &Attrs,
        dtypes: &[DType],
    ) -> ferroflow_ir::Result<Option<Vec<Assignment>>> {
        ops::training_on_device::assignments(op, attrs, dtypes)
    }
}
