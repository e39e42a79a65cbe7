//! What there is besides the host: devices, what lies there, and variables that live there.

use super::{
    draft::{Body, Draft},
    planner::Planner,
};
use crate::{
    context::Context,
    placement::{Notes, Request},
    resource::ResourceHandle,
    variable::VariableState,
};
use ferroflow_ir::{DType, HostTensor, Outlet, pass::specialize::Specialized};
use ferroflow_kernels::{Device, DeviceBuffer};
use std::{collections::HashMap, sync::Arc};

/// What is planned besides the host's part.
pub(super) struct Placing {
    /// The device of calls that ask for nothing.
    pub(super) default: Option<usize>,
    pub(super) devices: Vec<Arc<dyn Device>>,
    /// The device of each slot.
    pub(super) slot_devices: Vec<usize>,
    /// Slots that hold constants in every frame.
    pub(super) constants: Vec<(usize, DeviceBuffer)>,
    /// The values they were copied from.
    pub(super) constant_values: Vec<(usize, HostTensor)>,
    pub(super) notes: Notes,
    /// Variables that live on devices, and which, by the slots of their handles: loops and branches
    /// have the same ones.
    pub(super) homes: HashMap<usize, (usize, Arc<VariableState>)>,
    /// How many loops are around the call at hand.
    pub(super) loops: usize,
}

/// Where a value is in the memory of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DevicePlace {
    pub(super) device: usize,
    pub(super) slot: usize,
}

/// Which of some values are in the memory of devices, and where.
pub(super) type OnDevices = Vec<(usize, DevicePlace)>;

impl Placing {
    /// What there is to place, if there is anything but the host. `captured` are the values of the
    /// last arguments, with their slots.
    pub(super) fn of(
        context: &Context,
        function: &Specialized,
        captured: &[(usize, HostTensor)],
        request: &Request,
    ) -> Option<Placing> {
        let mut placing = Placing {
            default: None,
            devices: Vec::new(),
            slot_devices: Vec::new(),
            constants: Vec::new(),
            constant_values: Vec::new(),
            notes: Notes::default(),
            homes: HashMap::new(),
            loops: 0,
        };
        placing.default = request.device.as_ref().map(|device| placing.number(device));
        for device in request.args.iter().flatten() {
            placing.number(device);
        }
        placing.named(context, function);
        for (slot, value) in captured {
            if let Some((home, variable)) = home(value) {
                let device = placing.number(&home);
                placing.homes.insert(*slot, (device, variable));
            }
        }
        (!placing.devices.is_empty()).then_some(placing)
    }

    /// Adds the devices that nodes name.
    fn named(&mut self, context: &Context, function: &Specialized) {
        let mut last = "";
        for id in function.graph.ids() {
            let name = &*function.graph[id].device;
            if !name.is_empty() && name != last {
                last = name;
                if let Some(device) = context.device_of(name) {
                    self.number(&device);
                }
            }
        }
        function.nested.values().flatten().for_each(|body| self.named(context, body));
    }

    /// The number of a device, which it has from now on.
    pub(super) fn number(&mut self, device: &Arc<dyn Device>) -> usize {
        let known = self.devices.iter().position(|known| known.name() == device.name());
        known.unwrap_or_else(|| {
            self.devices.push(device.clone());
            self.devices.len() - 1
        })
    }
}

impl Planner<'_> {
    /// The variable on a device that a handle belongs to, and which device that is.
    pub(super) fn home(
        &self,
        body: &Body<'_>,
        handle: Outlet,
    ) -> Option<&(usize, Arc<VariableState>)> {
        match body.places.get(&handle)? {
            Draft::Slot(slot, _) => self.placing.as_ref()?.homes.get(slot),
            Draft::Buffer(..) | Draft::Device(_) => None,
        }
    }
}

/// The device of a place, by the devices of all slots.
pub(super) fn device_at(place: &Draft, devices: &[usize]) -> Option<usize> {
    match place {
        Draft::Device(slot) => devices.get(*slot).copied(),
        Draft::Buffer(..) | Draft::Slot(..) => None,
    }
}

/// The variable behind a handle, with the device that it lives on.
fn home(handle: &HostTensor) -> Option<(Arc<dyn Device>, Arc<VariableState>)> {
    if handle.dtype() != DType::Resource {
        return None;
    }
    let variable: Arc<VariableState> =
        ResourceHandle::of(handle).ok()?.downcast("a variable").ok()?;
    Some((variable.home()?.clone(), variable))
}
