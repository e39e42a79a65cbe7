//! Variables: tensors that change.

use crate::{
    error::{Error, Result},
    resource::{Resource, ResourceHandle},
};
use ferroflow_ir::{Code, DType, HostTensor, PartialShape, TensorSpec};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use std::{any::Any, fmt, sync::Arc};

/// A variable. Clones are the same variable; it lives as long as one of them does.
#[derive(Clone)]
pub struct Variable(Arc<VariableState>);

/// What all clones of a [`Variable`] share.
pub struct VariableState {
    name: String,
    dtype: DType,
    shape: PartialShape,
    trainable: bool,
    value: Mutex<Option<HostTensor>>,
}

impl Variable {
    /// A variable with a value, whose dtype and shape it keeps.
    pub fn new(name: impl Into<String>, value: HostTensor) -> Variable {
        let spec = TensorSpec::like(&value);
        let variable = Variable::uninitialized(name, spec.dtype, spec.shape, true);
        *variable.0.value.lock() = Some(value);
        variable
    }

    /// A variable without a value.
    pub fn uninitialized(
        name: impl Into<String>,
        dtype: DType,
        shape: PartialShape,
        trainable: bool,
    ) -> Variable {
        let value = Mutex::new(None);
        Variable(Arc::new(VariableState { name: name.into(), dtype, shape, trainable, value }))
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

    /// A handle that does not keep the variable alive.
    pub fn handle(&self) -> ResourceHandle {
        let resource: Arc<dyn Resource> = self.0.clone();
        ResourceHandle::knowing(self.0.name.as_str(), &resource)
    }

    /// The variable as a resource; it stays alive as long as that does.
    pub fn resource(&self) -> Arc<dyn Resource> {
        self.0.clone()
    }

    /// Whether the two are the same variable.
    pub fn is(&self, other: &Variable) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Arc<VariableState>> for Variable {
    fn from(state: Arc<VariableState>) -> Variable {
        Variable(state)
    }
}

impl fmt::Debug for VariableState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<variable `{}` {}{}>", self.name, self.dtype, self.shape)
    }
}

impl VariableState {
    /// The value.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet.
    pub fn read(&self) -> Result<HostTensor> {
        self.value.lock().clone().ok_or_else(|| self.uninitialized())
    }

    /// Whether there is a value.
    pub fn is_initialized(&self) -> bool {
        self.value.lock().is_some()
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// [`Error::VariableMismatch`] when dtype or shape do not fit.
    pub fn assign(&self, value: HostTensor) -> Result<()> {
        self.check(&value)?;
        *self.value.lock() = Some(value);
        Ok(())
    }

    /// Gives the variable no value again.
    pub fn clear(&self) {
        *self.value.lock() = None;
    }

    /// Changes the value in place; nobody reads a half-changed value. If `change` fails the value
    /// stays what it was changed to until then.
    ///
    /// # Errors
    ///
    /// [`Error::Uninitialized`] when there is none yet, [`Error::VariableMismatch`] when dtype or
    /// shape no longer fit, and those of `change`.
    pub fn update<R>(&self, change: impl FnOnce(&mut HostTensor) -> Result<R>) -> Result<R> {
        let mut value = self.value.lock();
        let tensor = value.as_mut().ok_or_else(|| self.uninitialized())?;
        let result = change(tensor)?;
        self.check(tensor)?;
        Ok(result)
    }

    fn check(&self, value: &HostTensor) -> Result<()> {
        let shape = PartialShape::from(value.shape());
        if value.dtype() == self.dtype && shape.is_subtype_of(&self.shape) {
            return Ok(());
        }
        Err(Error::VariableMismatch {
            name: self.name.clone(),
            dtype: self.dtype,
            shape: Box::new(self.shape.clone()),
            found_dtype: value.dtype(),
            found_shape: Box::new(value.shape().clone()),
        })
    }

    fn uninitialized(&self) -> Error {
        Error::Uninitialized { name: self.name.clone() }
    }
}

/// Changes the values of several variables in place; nobody reads a half-changed value.
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
    let mut locked: SmallVec<[(usize, MutexGuard<'_, Option<HostTensor>>); 4]> =
        order.into_iter().map(|index| (index, variables[index].value.lock())).collect();
    locked.sort_unstable_by_key(|(index, _)| *index);
    let values: Result<Vec<&mut HostTensor>> = locked
        .iter_mut()
        .map(|(index, value)| value.as_mut().ok_or_else(|| variables[*index].uninitialized()))
        .collect();
    change(values?)
}

impl Resource for VariableState {
    fn kind(&self) -> &'static str {
        "a variable"
    }

    fn pointee(&self) -> Option<TensorSpec> {
        Some(TensorSpec::new(self.dtype, self.shape.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_dtype_and_shape() {
        let variable = Variable::new("v", HostTensor::vector(&[1.0f32, 2.0]).unwrap());
        assert!(variable.assign(HostTensor::vector(&[3.0f32, 4.0]).unwrap()).is_ok());
        let error = variable.assign(HostTensor::vector(&[3.0f32]).unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "variable `v` holds float32[2], it cannot take a value of float32[1]"
        );
    }

    #[test]
    fn handles_know_but_do_not_own() {
        let variable = Variable::new("v", HostTensor::scalar(1.0f32));
        let handle = variable.handle();
        assert!(handle.resource().is_ok());
        drop(variable);
        assert!(matches!(handle.resource(), Err(Error::Dropped { name, .. }) if name == "v"));
    }

    #[test]
    fn variables_of_one_step_are_different_ones() {
        let values = [1.0f32, 2.0].map(|value| Variable::new("v", HostTensor::scalar(value)));
        let [a, b] = values.clone().map(|variable| variable.0);
        let swapped = update_all(&[b.clone(), a.clone()], |mut state| {
            let (first, second) = state.split_at_mut(1);
            std::mem::swap(first[0], second[0]);
            Ok(())
        });
        assert!(swapped.is_ok());
        let read = |variable: &Variable| variable.read().unwrap().as_scalar::<f32>().unwrap();
        assert_eq!((read(&values[0]), read(&values[1])), (2.0, 1.0));
        assert!(update_all(&[a.clone(), b, a], |_| Ok(())).is_err());
    }
}
