//! Variables: tensors that change.

#[cfg(all(test, shuttle))]
mod interleavings;
mod pieces;

use crate::{
    eager_tensor::{EagerTensor, on_device},
    error::{Error, Result},
    mirrored::{Annotations, VariableAggregation, VariableSynchronization, component, replicas},
    resource::{Resource, ResourceHandle},
    sync::{Mutex, MutexGuard},
};
use ferroflow_ir::{
    Code, DType, HostTensor, Layout, PartialShape, Shape, TensorSpec, budget::masked,
};
use ferroflow_kernels::{Buffer, Device, DeviceBuffer};
use pieces::Whole;
pub use pieces::step_pieces;
use smallvec::SmallVec;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// A variable. Clones are the same variable; it lives as long as one of them does.
#[derive(Clone)]
pub struct ResourceVariable(Arc<VariableState>);

/// State that all clones of a [`ResourceVariable`] share.
pub struct VariableState {
    name: String,
    dtype: DType,
    shape: PartialShape,
    trainable: bool,
    first: Component,
    /// The components of the other replicas of this process, if it is mirrored.
    others: OnceLock<Vec<Component>>,
    /// The layout on a mesh whose devices have the components, and the shape of a piece.
    layout: OnceLock<(Layout, PartialShape)>,
    /// Held by threads that read or change all components: the whole of a value in pieces, or the value
    /// of a mirrored variable outside replicas. Who has it may lock components, and not the other way.
    whole: Mutex<()>,
    annotations: Mutex<Annotations>,
}

/// The value of a variable in one replica.
#[derive(Default)]
struct Component {
    /// The device that its values live on, if not the host.
    home: OnceLock<Arc<dyn Device>>,
    value: Mutex<Value>,
}

/// The value of a variable.
#[derive(Default)]
struct Value {
    /// Where it lives; `None` before the first assignment.
    tensor: Option<Buffer>,
    /// A copy of a value of the host, on the device that read it last.
    copy: Option<DeviceBuffer>,
}

impl Value {
    fn set(&mut self, tensor: Buffer) {
        *self = Value { tensor: Some(tensor), copy: None };
    }

    /// The value in host memory, to be changed.
    fn host_mut(&mut self) -> Result<Option<&mut HostTensor>> {
        self.copy = None;
        if let Some(Buffer::Device(buffer)) = &self.tensor {
            self.tensor = Some(Buffer::Host(buffer.host()?.clone()));
        }
        Ok(match &mut self.tensor {
            Some(Buffer::Host(tensor)) => Some(tensor),
            Some(Buffer::Device(_)) | None => None,
        })
    }
}

impl ResourceVariable {
    /// A variable with a value, whose dtype and shape it keeps.
    pub fn new(name: impl Into<String>, value: HostTensor) -> ResourceVariable {
        let spec = TensorSpec::like(&value);
        let variable = ResourceVariable::uninitialized(name, spec.dtype, spec.shape, true);
        for component in variable.0.components() {
            component.value.lock().set(value.clone().into());
        }
        variable
    }

    /// A variable without a value.
    pub fn uninitialized(
        name: impl Into<String>,
        dtype: DType,
        shape: PartialShape,
        trainable: bool,
    ) -> ResourceVariable {
        let (first, annotations) = Default::default();
        let others = match replicas() {
            1 => OnceLock::new(),
            n => OnceLock::from((1..n).map(|_| Component::default()).collect::<Vec<_>>()),
        };
        let name = name.into();
        let (layout, whole) = Default::default();
        let state = VariableState {
            name,
            dtype,
            shape,
            trainable,
            first,
            others,
            layout,
            whole,
            annotations,
        };
        ResourceVariable(Arc::new(state))
    }

    /// Makes a device the resident device of the variable: its values live there, and ops on it run
    /// there. Only the first call counts.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the value.
    pub fn live_on(&self, device: &Arc<dyn Device>) -> Result<()> {
        self.0.live_on(device)
    }

    /// Makes the variable have a value for each of `replicas` replicas of this process, all the one
    /// it has; only the first call counts. No other thread may assign to the variable meanwhile.
    ///
    /// # Errors
    ///
    /// When it is mirrored for another number of replicas.
    pub fn mirror(&self, replicas: usize) -> Result<()> {
        self.0.mirror(replicas)
    }

    /// The number of replicas that have a value of it.
    pub fn n_components(&self) -> usize {
        1 + self.0.others.get().map_or(0, Vec::len)
    }

    /// The value in one replica of this process.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet, or no such replica.
    pub fn component(&self, replica: usize) -> Result<EagerTensor> {
        let component = self.0.components().nth(replica);
        component.and_then(Component::tensor).ok_or_else(|| self.0.uninitialized())
    }

    /// Sets the value in one replica of this process.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is no such replica; when dtype or shape do not fit.
    pub fn assign_component(&self, replica: usize, value: HostTensor) -> Result<()> {
        self.0.check_component(&value)?;
        let component = self.0.components().nth(replica).ok_or_else(|| self.0.uninitialized())?;
        component.set(value.into())
    }

    /// Annotations for strategies.
    pub fn annotations(&self) -> Annotations {
        self.0.annotations()
    }

    /// Says when components are brought into line, and what they become together.
    pub fn annotate(
        &self,
        synchronization: VariableSynchronization,
        aggregation: VariableAggregation,
    ) {
        *self.0.annotations.lock() = Annotations { synchronization, aggregation };
    }

    /// The device that its values live on, if not the host.
    pub fn resident_device(&self) -> Option<&Arc<dyn Device>> {
        self.0.resident_device()
    }

    /// The value, where it lives.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet.
    pub fn tensor(&self) -> Result<EagerTensor> {
        self.0.tensor()
    }

    /// Sets the value to a tensor that may be anywhere; it goes where values live.
    ///
    /// # Errors
    ///
    /// [`Error::VariableMismatch`] when dtype or shape do not fit; when the copy fails.
    pub fn assign_tensor(&self, tensor: EagerTensor) -> Result<()> {
        self.0.assign_tensor(tensor)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The shape every value has.
    pub fn shape(&self) -> &PartialShape {
        &self.0.shape
    }

    /// Whether gradients are taken by it unless asked otherwise.
    pub fn is_trainable(&self) -> bool {
        self.0.trainable
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet.
    pub fn read(&self) -> Result<HostTensor> {
        self.0.read()
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// [`Error::VariableMismatch`] when dtype or shape do not fit.
    pub fn assign(&self, value: HostTensor) -> Result<()> {
        self.0.assign(value)
    }

    /// Whether there is a value.
    pub fn is_initialized(&self) -> bool {
        self.0.is_initialized()
    }

    /// A handle that does not keep the variable alive.
    pub fn handle(&self) -> ResourceHandle {
        let resource: Arc<dyn Resource> = self.0.clone();
        ResourceHandle::knowing(self.0.name.as_str(), &resource)
    }

    /// The variable as a resource; it stays alive as long as that does.
    pub fn resource(&self) -> Arc<dyn Resource> {
        self.0.clone()
    }

    pub(crate) fn state(&self) -> &VariableState {
        &self.0
    }

    /// Whether the two are the same variable.
    pub fn is(&self, other: &ResourceVariable) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for ResourceVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Arc<VariableState>> for ResourceVariable {
    fn from(state: Arc<VariableState>) -> ResourceVariable {
        ResourceVariable(state)
    }
}

impl fmt::Debug for VariableState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<variable `{}` {}{}>", self.name, self.dtype, self.shape)
    }
}

impl VariableState {
    /// The name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Annotations for strategies.
    pub(crate) fn annotations(&self) -> Annotations {
        *self.annotations.lock()
    }

    /// The component that this thread sees.
    fn here(&self) -> &Component {
        match self.others.get() {
            None => &self.first,
            Some(others) => match component() {
                Some(replica) if replica > 0 => others.get(replica - 1).unwrap_or(&self.first),
                Some(_) | None => &self.first,
            },
        }
    }

    fn components(&self) -> impl Iterator<Item = &Component> {
        std::iter::once(&self.first).chain(self.others.get().into_iter().flatten())
    }

    /// The components, where this thread is outside replicas and there are several.
    fn seen_from_outside(&self) -> Option<&[Component]> {
        let others = self.others.get()?;
        component().is_none().then_some(others)
    }

    /// The lock of all components, where this thread is outside replicas and there are several.
    fn lock_from_outside(&self) -> Option<MutexGuard<'_, ()>> {
        self.seen_from_outside().map(|_| self.whole.lock())
    }

    fn mirror(&self, replicas: usize) -> Result<()> {
        let _guard = self.whole.lock();
        let value = self.first.tensor();
        let others =
            self.others.get_or_init(|| (1..replicas).map(|_| Component::default()).collect());
        if others.len() + 1 != replicas.max(1) {
            let (name, found) = (&self.name, others.len() + 1);
            let message = format!(
                "variable `{name}` has values for {found} replicas, it cannot have some for {replicas}"
            );
            return Err(Error::Status { code: Code::FailedPrecondition, message });
        }
        for other in others.iter().filter(|other| other.tensor().is_none()) {
            value.clone().map_or(Ok(()), |value| other.set(value))?;
        }
        Ok(())
    }

    /// Sets all components to the value that was assigned outside replicas.
    fn spread(&self) -> Result<()> {
        let Some(others) = self.seen_from_outside() else { return Ok(()) };
        let value = self.first.tensor();
        for other in others {
            match &value {
                Some(value) => other.set(value.clone())?,
                None => *other.value.lock() = Value::default(),
            }
        }
        Ok(())
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet.
    pub fn read(&self) -> Result<HostTensor> {
        if self.seen_from_outside().is_some() || self.seen_whole().is_some() {
            return Ok(self.tensor()?.host()?.clone());
        }
        match &self.here().value.lock().tensor {
            Some(Buffer::Host(tensor)) => Ok(tensor.clone()),
            Some(Buffer::Device(buffer)) => Ok(buffer.host()?.clone()),
            None => Err(self.uninitialized()),
        }
    }

    /// The value, where it lives.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet.
    pub fn tensor(&self) -> Result<EagerTensor> {
        if let Some(layout) = self.seen_whole() {
            return self.read_whole(layout);
        }
        if let Some(guard) = self.lock_from_outside() {
            let values = self.pieces()?;
            drop(guard);
            return self.across_replicas(values);
        }
        self.here().tensor().ok_or_else(|| self.uninitialized())
    }

    /// The value in the memory of a device. One that lives elsewhere is copied there once, and
    /// again after it has changed.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet; when the device cannot hold it.
    pub fn tensor_on(&self, device: &Arc<dyn Device>) -> Result<EagerTensor> {
        if self.seen_whole().is_some() {
            return Ok(on_device(&self.tensor()?, device)?.into());
        }
        let mut value = self.here().value.lock();
        if let Some(copy) = &value.copy
            && *copy.device == *device.name()
        {
            return Ok(copy.clone().into());
        }
        let tensor = value.tensor.clone().ok_or_else(|| self.uninitialized())?;
        let copy = on_device(&tensor.into(), device)?;
        value.copy = Some(copy.clone());
        Ok(copy.into())
    }

    /// The element type, and what is known of the shape.
    pub(crate) fn spec(&self) -> (DType, &PartialShape) {
        (self.dtype, &self.shape)
    }

    /// The device that values live on, if not the host.
    pub fn resident_device(&self) -> Option<&Arc<dyn Device>> {
        self.here().home.get()
    }

    /// Makes a device the resident device of the variable, unless it has one.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the value.
    pub fn live_on(&self, device: &Arc<dyn Device>) -> Result<()> {
        if device.storage(self.dtype).is_none() {
            let device = device.name().to_string();
            let dtype = self.dtype;
            return Err(ferroflow_kernels::Error::UnsupportedDType { device, dtype }.into());
        }
        let here = self.here();
        let resident_device = here.home.get_or_init(|| device.clone());
        let mut value = here.value.lock();
        if let Some(tensor) = value.tensor.take() {
            value.set(Buffer::Device(on_device(&tensor.into(), resident_device)?));
        }
        Ok(())
    }

    /// Sets the value to a tensor that may be anywhere; it goes where values live.
    ///
    /// # Errors
    ///
    /// [`Error::VariableMismatch`] when dtype or shape do not fit; when the copy fails.
    pub fn assign_tensor(&self, tensor: EagerTensor) -> Result<()> {
        self.check_spec(tensor.dtype(), tensor.shape())?;
        if let Some(layout) = self.seen_whole() {
            return self.change_whole(layout, |_| Ok((tensor.host()?.clone(), ())));
        }
        let _guard = self.lock_from_outside();
        self.set(tensor)
    }

    /// Sets the value that this thread sees; the caller holds the lock of all components if there are several.
    fn set(&self, tensor: EagerTensor) -> Result<()> {
        self.here().set(tensor)?;
        self.spread()
    }

    /// Replaces the value by what `change` makes of it, where it lives.
    ///
    /// # Errors
    ///
    /// As [`update`](VariableState::update).
    pub fn replace(&self, change: impl FnOnce(EagerTensor) -> Result<EagerTensor>) -> Result<()> {
        if let Some(layout) = self.seen_whole() {
            let new = |old: &Whole<'_>| Ok((change(old.read()?.into())?.host()?.clone(), ()));
            return self.change_whole(layout, new);
        }
        let _guard = self.lock_from_outside();
        let here = self.here();
        let mut value = here.value.lock();
        let old = value.tensor.clone().ok_or_else(|| self.uninitialized())?;
        let new = change(old.into())?;
        self.check_spec(new.dtype(), new.shape())?;
        value.set(here.stored(new)?);
        drop(value);
        self.spread()
    }

    /// Whether there is a value.
    pub fn is_initialized(&self) -> bool {
        self.here().value.lock().tensor.is_some()
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// [`Error::VariableMismatch`] when dtype or shape do not fit.
    pub fn assign(&self, value: HostTensor) -> Result<()> {
        self.assign_tensor(value.into())
    }

    /// Clears the value of the variable.
    pub fn clear(&self) {
        let _guard = self.lock_from_outside();
        for component in self.components() {
            *component.value.lock() = Value::default();
        }
    }

    /// Changes the value in place; no reader sees a half-changed value. If `change` fails the value
    /// stays what it was changed to until then.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet, [`Error::VariableMismatch`] when dtype or
    /// shape no longer fit, and those of `change`.
    pub fn update<R>(&self, change: impl FnOnce(&mut HostTensor) -> Result<R>) -> Result<R> {
        if let Some(layout) = self.seen_whole() {
            return self.update_whole(layout, change);
        }
        let _guard = self.lock_from_outside();
        let here = self.here();
        let mut value = here.value.lock();
        let tensor = value.host_mut()?.ok_or_else(|| self.uninitialized())?;
        let result = masked(|| change(tensor));
        let checked = self.check(tensor);
        here.settle(&mut value)?;
        drop(value);
        self.spread()?;
        let result = result?;
        checked?;
        Ok(result)
    }

    fn check(&self, value: &HostTensor) -> Result<()> {
        self.check_spec(value.dtype(), value.shape())
    }

    pub(crate) fn check_spec(&self, found_dtype: DType, found_shape: &Shape) -> Result<()> {
        self.check_against(self.seen_shape(), found_dtype, found_shape)
    }

    fn check_component(&self, value: &HostTensor) -> Result<()> {
        let shape = self.piece_shape().unwrap_or(&self.shape);
        self.check_against(shape, value.dtype(), value.shape())
    }

    fn check_against(
        &self,
        expected: &PartialShape,
        found_dtype: DType,
        found_shape: &Shape,
    ) -> Result<()> {
        let shape = PartialShape::from(found_shape);
        if found_dtype == self.dtype && shape.is_subtype_of(expected) {
            return Ok(());
        }
        Err(Error::VariableMismatch {
            name: self.name.clone(),
            dtype: self.dtype,
            shape: Box::new(expected.clone()),
            found_dtype,
            found_shape: Box::new(found_shape.clone()),
        })
    }

    fn uninitialized(&self) -> Error {
        Error::Uninitialized { name: self.name.clone() }
    }
}

impl Component {
    fn tensor(&self) -> Option<EagerTensor> {
        self.value.lock().tensor.clone().map(EagerTensor::from)
    }

    /// A value, where values of this replica live.
    fn stored(&self, tensor: EagerTensor) -> Result<Buffer> {
        Ok(match self.home.get() {
            None => Buffer::Host(tensor.into_host()?),
            Some(home) => Buffer::Device(on_device(&tensor, home)?),
        })
    }

    fn set(&self, tensor: EagerTensor) -> Result<()> {
        let tensor = self.stored(tensor)?;
        self.value.lock().set(tensor);
        Ok(())
    }

    /// A value that was changed in host memory goes back to where values live.
    fn settle(&self, value: &mut Value) -> Result<()> {
        if let (Some(home), Some(Buffer::Host(tensor))) = (self.home.get(), &value.tensor) {
            let tensor = EagerTensor::from(tensor.clone());
            value.set(Buffer::Device(on_device(&tensor, home)?));
        }
        Ok(())
    }
}

/// Changes the values of several variables in place; no reader sees a half-changed value.
///
/// # Errors
///
/// [`Error::Uninitialized`] when one has no value yet, [`Error::Status`] when one is given twice,
/// and those of `change`.
pub(crate) fn update_all<R>(
    variables: &[Arc<VariableState>],
    change: impl FnOnce(Vec<&mut HostTensor>) -> Result<R>,
) -> Result<R> {
    // Everybody locks in the order of addresses, so that nobody waits in a circle.
    let mut order: SmallVec<[usize; 4]> = (0..variables.len()).collect();
    order.sort_unstable_by_key(|&index| Arc::as_ptr(&variables[index]));
    let is_same = |pair: &[usize]| Arc::ptr_eq(&variables[pair[0]], &variables[pair[1]]);
    if let Some(pair) = order.windows(2).find(|pair| is_same(pair)) {
        let name = &variables[pair[0]].name;
        let message = format!("variable `{name}` cannot be two variables of one step");
        return Err(Error::Status { code: Code::InvalidArgument, message });
    }
    if variables.iter().any(|variable| variable.seen_whole().is_some()) {
        let _guards: SmallVec<[MutexGuard<'_, ()>; 4]> =
            order.iter().map(|&index| variables[index].whole.lock()).collect();
        return pieces::update_wholes(variables, &order, change);
    }
    let _guards: SmallVec<[MutexGuard<'_, ()>; 4]> =
        order.iter().filter_map(|&index| variables[index].lock_from_outside()).collect();
    let mut locked: SmallVec<[(usize, MutexGuard<'_, Value>); 4]> =
        order.into_iter().map(|index| (index, variables[index].here().value.lock())).collect();
    locked.sort_unstable_by_key(|(index, _)| *index);
    let values: Result<Vec<&mut HostTensor>> = locked
        .iter_mut()
        .map(|(index, value)| value.host_mut()?.ok_or_else(|| variables[*index].uninitialized()))
        .collect();
    let values = values?;
    let result = masked(|| change(values));
    for (index, value) in &mut locked {
        variables[*index].here().settle(value)?;
    }
    drop(locked);
    variables.iter().try_for_each(|variable| variable.spread())?;
    result
}

impl Resource for VariableState {
    fn kind(&self) -> &'static str {
        "a variable"
    }

    fn pointee(&self) -> Option<TensorSpec> {
        Some(TensorSpec::new(self.dtype, self.seen_shape().clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_dtype_and_shape() {
        let variable = ResourceVariable::new("v", HostTensor::vector(&[1.0f32, 2.0]).unwrap());
        assert!(variable.assign(HostTensor::vector(&[3.0f32, 4.0]).unwrap()).is_ok());
        let error = variable.assign(HostTensor::vector(&[3.0f32]).unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "variable `v` holds float32[2], it cannot take a value of float32[1]"
        );
    }

    #[test]
    fn handles_know_but_do_not_own() {
        let variable = ResourceVariable::new("v", HostTensor::scalar(1.0f32));
        let handle = variable.handle();
        assert!(handle.resource().is_ok());
        drop(variable);
        assert!(matches!(handle.resource(), Err(Error::Dropped { name, .. }) if name == "v"));
    }

    #[test]
    fn variables_of_one_step_are_different_ones() {
        let values =
            [1.0f32, 2.0].map(|value| ResourceVariable::new("v", HostTensor::scalar(value)));
        let [a, b] = values.clone().map(|variable| variable.0);
        let swapped = update_all(&[b.clone(), a.clone()], |mut state| {
            let (first, second) = state.split_at_mut(1);
            std::mem::swap(first[0], second[0]);
            Ok(())
        });
        assert!(swapped.is_ok());
        let read =
            |variable: &ResourceVariable| variable.read().unwrap().as_scalar::<f32>().unwrap();
        assert_eq!((read(&values[0]), read(&values[1])), (2.0, 1.0));
        assert!(update_all(&[a.clone(), b, a], |_| Ok(())).is_err());
    }
}
