//! Copies between the host and devices, and the slots of what lies there.

use super::{
    draft::{Body, Draft, DraftAction},
    placing::DevicePlace,
    planner::Planner,
};
use crate::{error::Result, placement::Placement};
use ferroflow_ir::{NodeDef, Outlet, Shape};
use ferroflow_kernels::Buffer;

impl Planner<'_> {
    pub(super) fn device_slot(&mut self, device: usize) -> usize {
        let placing = self.placing.as_mut().expect("only what is placed has such slots");
        placing.slot_devices.push(device);
        placing.slot_devices.len() - 1
    }

    /// The slot of a value in a device's memory, to which it is copied if it is not there yet.
    pub(super) fn send(
        &mut self,
        body: &mut Body<'_>,
        outlet: Outlet,
        device: usize,
    ) -> Result<usize> {
        let (mut operand, mut from) = (None, self.host_name());
        if let Some(&place) = body.device_places.get(&outlet) {
            if place.device == device {
                return Ok(place.slot);
            }
            // From device to device, unless the host has it already.
            if !body.places.contains_key(&outlet) {
                operand = Some(body.device_operand(outlet, place.slot));
                from = self.device_name(place.device);
            }
        }
        let operand = operand.unwrap_or_else(|| body.operand(outlet));
        let slot = self.device_slot(device);
        let name = body.function.graph[outlet.node].name.to_string();
        let constant = body.constant(outlet).cloned();
        let placing = self.placing.as_mut().expect("only what is placed is sent");
        let target = placing.devices[device].clone();
        let shape = operand.ty.shape.known().unwrap_or_else(Shape::scalar);
        let (way, ty) = ((&*from, target.name()), (operand.ty.dtype, &shape));
        placing.notes.copy(&name, way, ty, constant.is_some());
        body.device_places.insert(outlet, DevicePlace { device, slot });
        match constant {
            Some(value) => {
                if let Buffer::Device(buffer) = target.upload(&value)? {
                    placing.constants.push((slot, buffer));
                    placing.constant_values.push((slot, value));
                }
            }
            None => {
                let to = Draft::Device(slot);
                self.push(body, DraftAction::Transfer { from: operand, to, device });
            }
        }
        Ok(slot)
    }

    /// Copies the inputs of a call to host memory where they are not there yet.
    pub(super) fn fetch(&mut self, body: &mut Body<'_>, node: &NodeDef) -> Result<()> {
        node.inputs().iter().try_for_each(|&input| self.fetch_outlet(body, input))
    }

    /// Copies a value to host memory, if it is not there yet.
    pub(super) fn fetch_outlet(&mut self, body: &mut Body<'_>, outlet: Outlet) -> Result<()> {
        if body.places.contains_key(&outlet) {
            return Ok(());
        }
        let Some(&place) = body.device_places.get(&outlet) else { return Ok(()) };
        let from = body.device_operand(outlet, place.slot);
        let to = Draft::Slot(self.host_slot(), None);
        body.places.insert(outlet, to.clone());
        let (name, host) = (body.function.graph[outlet.node].name.to_string(), self.host_name());
        if let Some(placing) = &mut self.placing {
            let shape = from.ty.shape.known().unwrap_or_else(Shape::scalar);
            let way = (placing.devices[place.device].name().to_string(), host);
            placing.notes.copy(&name, (&way.0, &way.1), (from.ty.dtype, &shape), false);
        }
        self.push(body, DraftAction::Transfer { from, to, device: place.device });
        Ok(())
    }

    /// What follows is run again and again.
    pub(super) fn enter_loop(&mut self) {
        if let Some(placing) = &mut self.placing {
            placing.loops += 1;
        }
    }

    pub(super) fn leave_loop(&mut self) {
        if let Some(placing) = &mut self.placing {
            placing.loops -= 1;
        }
    }

    /// What runs where, which the context is told.
    pub(super) fn placement(&mut self) -> Option<Placement> {
        let placing = self.placing.as_mut()?;
        let placement = std::mem::take(&mut placing.notes).into_placement();
        self.context.note_placement(&placement);
        Some(placement)
    }

    fn device_name(&self, device: usize) -> String {
        let placing = self.placing.as_ref();
        placing.map_or_else(String::new, |placing| placing.devices[device].name().to_string())
    }

    pub(super) fn host_name(&self) -> String {
        self.context.cpu().name().to_string()
    }
}
