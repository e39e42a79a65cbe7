//! Loops and branches: what they carry on devices.

use super::{
    PlacedArgument, Reason,
    body::{DeviceOrHost, Placer, place_body},
};
use crate::{
    error::Result,
    graph::{NodeDef, NodeId, Outlet},
    op::CallKind,
    spec::ValueType,
};
use smallvec::SmallVec;

impl Placer<'_> {
    pub(super) fn call(&mut self, id: NodeId, node: &NodeDef) -> Result<()> {
        let source = self.source;
        let bodies = source.nested.get(&id).map_or(&[][..], Vec::as_slice);
        let is_loop = node.op.def().is_some_and(|op| op.call == CallKind::While);
        let locations: Vec<DeviceOrHost> =
            node.outputs().iter().map(|ty| self.carrier(ty)).collect();
        let n_choosers = usize::from(!is_loop);
        let mut inputs: SmallVec<[Outlet; 4]> = SmallVec::new();
        let mut args: Vec<PlacedArgument> = Vec::new();
        for (index, &input) in node.inputs().iter().enumerate() {
            if index < n_choosers {
                inputs.push(self.copied(input, None)?);
                continue;
            }
            let ty = if is_loop { node.outputs().get(index) } else { source.graph.ty(input) };
            let device = ty.and_then(|ty| self.carrier(ty));
            inputs.push(self.copied(input, device)?);
            args.push(PlacedArgument { device, variable: self.variable(input).cloned() });
        }
        let loops = self.loops + usize::from(is_loop);
        let mut placed = Vec::with_capacity(bodies.len());
        for (index, body) in bodies.iter().enumerate() {
            // A variable that a loop assigns may become another one in the next round.
            let mut args = args.clone();
            if let (true, Some(repeated)) = (is_loop, bodies.get(1)) {
                let fixed = |index: usize| repeated.results.get(index) == repeated.args.get(index);
                let changed = args.iter_mut().enumerate().filter(|(index, _)| !fixed(*index));
                changed.for_each(|(_, arg)| arg.variable = None);
            }
            let is_condition = is_loop && index == 0;
            let results = if is_condition { &[][..] } else { &locations };
            placed.push(place_body(body, &args, Some(results), self.targets, loops)?);
        }
        let new = self.add_with(id, node.clone(), inputs, None, &locations)?;
        self.reasons.insert(new, Reason::Control);
        if !placed.is_empty() {
            self.nested.insert(new, placed);
        }
        Ok(())
    }

    /// The device that carries a variable of a loop or a result of a branch, if not the host: that of
    /// the function, but for single whole numbers, which loops are steered by.
    fn carrier(&self, ty: &ValueType) -> DeviceOrHost {
        let device = self.targets.default_device()?;
        let n = ty.shape.known()?.num_elements();
        let is_worth_it = ty.dtype.is_float() || n > 1;
        (is_worth_it && self.targets.holds(device, ty.dtype)).then_some(device)
    }
}
