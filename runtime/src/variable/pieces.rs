//! Variables that are split over the devices of a mesh: a component is a piece of the value.
//!
//! A thread that runs a replica of the mesh sees the piece of its device, with the shape of a piece. Any
//! other thread sees the whole: what it reads is joined, what it assigns is split.

use super::{Component, ResourceVariable, Value, VariableState};
use crate::{
    collective::Replica,
    eager_tensor::EagerTensor,
    error::{Error, Result},
    sync::MutexGuard,
};
use ferroflow_ir::{Code, HostTensor, Layout, PartialShape, budget::masked};
use std::sync::Arc;

impl ResourceVariable {
    /// Distributes the value over a mesh: from now on each device of the mesh has a piece of it. Threads
    /// outside replicas of the mesh go on to see the whole. No other thread may use the variable meanwhile.
    ///
    /// # Errors
    ///
    /// [`Layout`](ferroflow_ir::Error::Layout) when its shape cannot be split so, [`Error::Status`] when it
    /// has another layout or values for the replicas of a strategy.
    pub fn distribute(&self, layout: &Layout) -> Result<()> {
        self.state().distribute(layout)
    }

    /// The layout on a mesh, if it has one.
    pub fn layout(&self) -> Option<&Layout> {
        self.state().layout()
    }
}

impl VariableState {
    /// The layout on a mesh.
    pub(crate) fn layout(&self) -> Option<&Layout> {
        self.layout.get().map(|(layout, _)| layout)
    }

    /// The shape of a piece.
    pub(crate) fn piece_shape(&self) -> Option<&PartialShape> {
        self.layout.get().map(|(_, piece)| piece)
    }

    /// The layout of a value that this thread sees as a whole, as it runs no replica of its mesh.
    pub(crate) fn seen_whole(&self) -> Option<&Layout> {
        let layout = self.layout()?;
        let is_here = |replica: &Replica| replica.mesh.as_ref() == Some(layout.mesh());
        if Replica::with_current(is_here) == Some(true) { None } else { Some(layout) }
    }

    /// Makes the components those of the devices of a mesh, without values.
    ///
    /// # Errors
    ///
    /// When there are components of the replicas of a strategy.
    pub(crate) fn become_pieces(&self, layout: &Layout, piece: PartialShape) -> Result<()> {
        let n_devices = layout.mesh().devices().len();
        if self.others.get().is_none() && n_devices > 1 {
            let others = (1..n_devices).map(|_| Component::default()).collect();
            self.others.get_or_init(|| others);
        }
        let found = self.others.get().map_or(1, |others| others.len() + 1);
        if found != n_devices {
            let name = &self.name;
            let message = format!(
                "variable `{name}` has values for {found} replicas, it cannot have pieces on {n_devices} devices"
            );
            return Err(Error::Status { code: Code::FailedPrecondition, message });
        }
        for component in self.components() {
            *component.value.lock() = Value::default();
        }
        self.layout.get_or_init(|| (layout.clone(), piece));
        Ok(())
    }

    /// The values of all components.
    pub(crate) fn pieces(&self) -> Result<Vec<EagerTensor>> {
        let pieces: Option<Vec<EagerTensor>> = self.components().map(Component::tensor).collect();
        pieces.ok_or_else(|| self.uninitialized())
    }

    /// Sets the values of all components.
    pub(crate) fn set_pieces(&self, pieces: Vec<EagerTensor>) -> Result<()> {
        self.components().zip(pieces).try_for_each(|(component, piece)| component.set(piece))
    }

    fn distribute(&self, layout: &Layout) -> Result<()> {
        if let Some(known) = self.layout() {
            return if known == layout { Ok(()) } else { Err(self.other_layout(known, layout)) };
        }
        let shape = self.spec().1.known().ok_or_else(|| ferroflow_ir::Error::Layout {
            what: format!("variable `{}`", self.name()).into(),
            layout: layout.to_string(),
            problem: format!("its shape {} is not known", self.spec().1),
        })?;
        let piece = layout.piece_shape(&shape).map_err(|error| self.named(error))?;
        let value = if self.is_initialized() { Some(self.read()?) } else { None };
        self.become_pieces(layout, piece.into())?;
        value.map_or(Ok(()), |value| self.assign_whole(layout, &value))
    }

    /// Makes devices that have the same piece agree on its value; the caller holds the lock.
    fn realign(&self) {
        let Some(layout) = self.layout() else { return };
        let realigned = self.joined(layout).and_then(|value| self.assign_whole(layout, &value));
        if let Err(error) = realigned {
            tracing::warn!(variable = self.name(), %error, "pieces do not agree");
        }
    }

    fn named(&self, error: ferroflow_ir::Error) -> Error {
        match error {
            ferroflow_ir::Error::Layout { layout, problem, .. } => {
                let what = format!("variable `{}`", self.name()).into();
                ferroflow_ir::Error::Layout { what, layout, problem }.into()
            }
            other => other.into(),
        }
    }

    fn other_layout(&self, known: &Layout, asked: &Layout) -> Error {
        let message = format!(
            "variable `{}` has layout {known} on {:?}, it cannot have {asked} on {:?}",
            self.name(),
            known.mesh(),
            asked.mesh()
        );
        Error::Status { code: Code::FailedPrecondition, message }
    }

    /// The value, joined of the pieces of all devices.
    pub(crate) fn joined(&self, layout: &Layout) -> Result<HostTensor> {
        let pieces: Result<Vec<HostTensor>> =
            self.pieces()?.iter().map(|piece| Ok(piece.host()?.clone())).collect();
        Ok(layout.join(&pieces?)?)
    }

    /// Sets the pieces of all devices to those of a value.
    pub(crate) fn assign_whole(&self, layout: &Layout, value: &HostTensor) -> Result<()> {
        let pieces = layout.split(value).map_err(|error| self.named(error))?;
        self.set_pieces(pieces.into_iter().map(EagerTensor::from).collect())
    }

    /// The whole of a value that is split.
    pub(super) fn read_whole(&self, layout: &Layout) -> Result<EagerTensor> {
        let _guard = self.whole.lock();
        Ok(self.joined(layout)?.into())
    }

    /// Replaces the whole of a value that is split by what `new` makes of it.
    pub(super) fn change_whole<R>(
        &self,
        layout: &Layout,
        new: impl FnOnce(&Whole<'_>) -> Result<(HostTensor, R)>,
    ) -> Result<R> {
        let _guard = self.whole.lock();
        let (value, result) = new(&Whole { state: self, layout })?;
        self.check_spec(value.dtype(), value.shape())?;
        self.assign_whole(layout, &value)?;
        Ok(result)
    }

    /// Changes the whole of a value that is split, as [`update`](VariableState::update) does.
    pub(super) fn update_whole<R>(
        &self,
        layout: &Layout,
        change: impl FnOnce(&mut HostTensor) -> Result<R>,
    ) -> Result<R> {
        let update = |old: &Whole<'_>| {
            let mut value = old.read()?;
            let result = masked(|| change(&mut value));
            Ok((value, result))
        };
        self.change_whole(layout, update)?
    }

    /// The shape that values have for this thread.
    pub(crate) fn seen_shape(&self) -> &PartialShape {
        match (self.piece_shape(), self.seen_whole()) {
            (Some(piece), None) => piece,
            _ => self.spec().1,
        }
    }
}

/// Runs a step in which the devices of a mesh change their pieces of variables. Threads outside wait with
/// these until it has ended, other steps too. After an error, devices that have the same piece agree on its
/// value again.
///
/// # Errors
///
/// Those of the step.
pub fn step_pieces<R, E>(
    variables: &[ResourceVariable],
    step: impl FnOnce() -> Result<R, E>,
) -> Result<R, E> {
    let mut order: Vec<&VariableState> = variables.iter().map(ResourceVariable::state).collect();
    // Everybody locks in the order of addresses, so that nobody waits in a circle.
    order.sort_unstable_by_key(|state| std::ptr::from_ref(*state));
    order.dedup_by_key(|state| std::ptr::from_ref(*state));
    let _guards: Vec<MutexGuard<'_, ()>> = order.iter().map(|state| state.whole.lock()).collect();
    let result = step();
    if result.is_err() {
        order.iter().for_each(|state| state.realign());
    }
    result
}

/// The whole of a value, which no other thread changes meanwhile.
pub(super) struct Whole<'a> {
    state: &'a VariableState,
    layout: &'a Layout,
}

impl Whole<'_> {
    pub(super) fn read(&self) -> Result<HostTensor> {
        self.state.joined(self.layout)
    }
}

/// A value to be changed: the joined whole of one in pieces, or a component that is locked.
enum HeldValue<'a> {
    Joined(&'a Layout, HostTensor),
    Locked(MutexGuard<'a, Value>),
}

/// Changes the values of variables of which this thread sees some as a whole that is split; the caller holds
/// their locks. Components are locked in this order, so that no two threads wait for each other.
pub(super) fn update_wholes<R>(
    variables: &[Arc<VariableState>],
    order: &[usize],
    change: impl FnOnce(Vec<&mut HostTensor>) -> Result<R>,
) -> Result<R> {
    let mut held = Vec::with_capacity(variables.len());
    for (index, state) in variables.iter().enumerate() {
        if let Some(layout) = state.seen_whole() {
            held.push((index, HeldValue::Joined(layout, state.joined(layout)?)));
        }
    }
    for &index in order {
        let state = &variables[index];
        if state.seen_whole().is_none() {
            held.push((index, HeldValue::Locked(state.here().value.lock())));
        }
    }
    held.sort_unstable_by_key(|(index, _)| *index);
    let values: Result<Vec<&mut HostTensor>> = held
        .iter_mut()
        .map(|(index, value)| match value {
            HeldValue::Joined(_, value) => Ok(value),
            HeldValue::Locked(value) => {
                value.host_mut()?.ok_or_else(|| variables[*index].uninitialized())
            }
        })
        .collect();
    let values = values?;
    let result = masked(|| change(values));
    // No thread that has a component waits for those of another variable, but in the order above.
    let mut wholes = Vec::new();
    for (index, value) in held {
        let state = &variables[index];
        match value {
            HeldValue::Joined(layout, value) => wholes.push((state, layout, value)),
            HeldValue::Locked(mut value) => state.here().settle(&mut value)?,
        }
    }
    for (state, layout, value) in wholes {
        state.check_spec(value.dtype(), value.shape())?;
        state.assign_whole(layout, &value)?;
    }
    variables
        .iter()
        .filter(|state| state.seen_whole().is_none())
        .try_for_each(|state| state.spread())?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::Mesh;

    #[test]
    fn threads_outside_see_the_whole() {
        let mesh = Mesh::new([("x", 2)], ["CPU:0", "CPU:1"]).unwrap();
        let rows = Layout::new(&mesh, ["x"]).unwrap();
        let variable = ResourceVariable::new("v", HostTensor::vector(&[1.0f32, 2.0]).unwrap());
        variable.distribute(&rows).unwrap();
        let floats = |variable: &ResourceVariable| {
            variable.read().unwrap().as_slice::<f32>().unwrap().to_vec()
        };
        assert_eq!(floats(&variable), [1.0, 2.0]);
        let piece = |n| variable.component(n).unwrap().host().unwrap().clone();
        assert_eq!(piece(1).as_slice::<f32>().unwrap(), [2.0]);
        variable.assign(HostTensor::vector(&[3.0f32, 4.0]).unwrap()).unwrap();
        assert_eq!(piece(0).as_slice::<f32>().unwrap(), [3.0]);
        assert!(variable.assign(HostTensor::vector(&[3.0f32]).unwrap()).is_err());
        variable.distribute(&rows).unwrap();
        assert!(variable.distribute(&Layout::replicated(&mesh, 1)).is_err());
        assert_eq!(floats(&variable), [3.0, 4.0]);
    }

    #[test]
    fn values_that_cannot_be_split_stay() {
        let mesh = Mesh::new([("x", 2)], ["CPU:0", "CPU:1"]).unwrap();
        let rows = Layout::new(&mesh, ["x"]).unwrap();
        let odd = ResourceVariable::new("odd", HostTensor::vector(&[1i32, 2, 3]).unwrap());
        let message = odd.distribute(&rows).unwrap_err().to_string();
        assert!(message.contains("variable `odd` cannot have layout (x)"), "{message}");
        assert_eq!(odd.read().unwrap().len(), 3);
    }
}
