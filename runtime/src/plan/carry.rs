//! What loops and branches carry on devices.

use super::{
    draft::{Body, Draft},
    placing::{DevicePlace, OnDevices, device_at},
    planner::Planner,
};
use crate::error::Result;
use ferroflow_ir::{Outlet, ValueType};

impl Planner<'_> {
    /// The device that carries a variable of a loop or a result of a branch, if not the host: that of
    /// the function, but for single whole numbers, which loops are steered by.
    pub(super) fn carrier(&self, ty: &ValueType) -> Option<usize> {
        let placing = self.placing.as_ref()?;
        let device = placing.default?;
        let n = ty.shape.known()?.num_elements();
        let worth_it = ty.dtype.is_float() || n > 1;
        (worth_it && placing.devices[device].holds(ty.dtype)).then_some(device)
    }

    /// The places of values that a loop or branch is given: what its device may carry is there
    /// before it begins.
    pub(super) fn hand_over(
        &mut self,
        body: &mut Body<'_>,
        inputs: &[Outlet],
    ) -> Result<(Vec<Draft>, OnDevices)> {
        let (mut places, mut on_devices) = (Vec::new(), Vec::new());
        for (index, &input) in inputs.iter().enumerate() {
            let carrier = body.function.graph.ty(input).and_then(|ty| self.carrier(ty));
            match carrier {
                Some(device) => {
                    self.send(body, input, device)?;
                }
                None => self.fetch_outlet(body, input)?,
            }
            if let Some(&place) = body.device_places.get(&input) {
                on_devices.push((index, place));
            }
            places.push(match (body.places.get(&input), body.device_places.get(&input)) {
                (Some(place), _) => place.clone(),
                (None, Some(place)) => Draft::Device(place.slot),
                (None, None) => body.operand(input).place,
            });
        }
        Ok((places, on_devices))
    }

    /// Notes where a result of a loop or branch is.
    pub(super) fn settle(&mut self, body: &mut Body<'_>, outlet: Outlet, place: Draft) {
        match (self.device_of_slot(&place), &place) {
            (Some(device), Draft::Device(slot)) => {
                body.device_places.insert(outlet, DevicePlace { device, slot: *slot });
            }
            _ => {
                body.places.insert(outlet, place);
            }
        }
    }

    /// The device of a place, if that is a slot of one.
    pub(super) fn device_of_slot(&self, place: &Draft) -> Option<usize> {
        let placing = self.placing.as_ref()?;
        device_at(place, &placing.slot_devices)
    }

    /// The devices of the slots there are so far.
    pub(super) fn slot_devices(&self) -> Vec<usize> {
        self.placing.as_ref().map(|placing| placing.slot_devices.clone()).unwrap_or_default()
    }
}
