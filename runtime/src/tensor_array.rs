//! Arrays of tensors and stacks of tensors: state that programs from before TensorFlow 2 use.

use crate::{
    error::{Error, Result},
    resource::Resource,
    sync::{Mutex, MutexGuard},
    variant::tensor_list::checked_length,
};
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor, PartialShape, Shape, workspace};
use std::{collections::HashMap, fmt, sync::Arc};

/// Properties of an array that are fixed when it is made.
#[derive(Debug, Clone)]
pub(crate) struct ArrayOptions {
    pub(crate) dtype: DType,
    /// Whether writing past the end makes it longer.
    pub(crate) grows: bool,
    /// Whether an element is gone once it was read.
    pub(crate) clears: bool,
    /// Whether the first element that is written tells the shape of all.
    pub(crate) identical: bool,
    /// Whether it collects gradients: what is written more than once is added up.
    pub(crate) adds: bool,
    /// Largest number of bytes of the elements, those they refer to not counted.
    pub(crate) limit: usize,
}

/// An array of tensors, each of which is written once.
pub(crate) struct TensorArrayResource {
    pub(crate) options: ArrayOptions,
    state: Mutex<State>,
}

struct State {
    shape: PartialShape,
    elements: Vec<Element>,
    closed: bool,
    grows: bool,
    gradients: HashMap<String, Arc<TensorArrayResource>>,
}

/// An element: never written, holding a tensor, or gone.
#[derive(Debug, Clone, Default)]
struct Element {
    value: Option<HostTensor>,
    /// The shape of what was written; without a value it means zeros.
    shape: Option<Shape>,
    is_read: bool,
    is_cleared: bool,
}

impl fmt::Debug for TensorArrayResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorArray").field("options", &self.options).finish_non_exhaustive()
    }
}

fn wrong(argument: &'static str, expected: impl Into<String>, found: impl fmt::Display) -> Error {
    IrError::argument("tensor array", argument, expected.into(), found).into()
}

impl TensorArrayResource {
    /// An array of `size` elements that are still to be written.
    ///
    /// # Errors
    ///
    /// When the size is negative or beyond the limit.
    pub(crate) fn new(
        options: ArrayOptions,
        shape: PartialShape,
        size: i64,
    ) -> Result<TensorArrayResource> {
        let elements = workspace::filled(Element::default(), checked_length(size, options.limit)?)?;
        let (grows, gradients) = (options.grows, HashMap::new());
        let state = State { shape, elements, closed: false, grows, gradients };
        Ok(TensorArrayResource { options, state: Mutex::new(state) })
    }

    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        if state.closed {
            return Err(wrong("array", "open", "one that was closed"));
        }
        Ok(state)
    }

    /// The number of elements.
    ///
    /// # Errors
    ///
    /// When the array was closed.
    pub(crate) fn size(&self) -> Result<usize> {
        Ok(self.open()?.elements.len())
    }

    /// Whether writing past the end makes it longer.
    pub(crate) fn grows(&self) -> bool {
        self.state.lock().grows
    }

    /// Forgets all elements; nothing can be read or written any more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.elements = Vec::new();
        state.gradients = HashMap::new();
        state.closed = true;
    }

    /// Writes an element. `sum` adds tensors, for arrays that collect gradients.
    ///
    /// # Errors
    ///
    /// When there is no such element, it was written or read before, or the value does not fit.
    pub(crate) fn write(
        &self,
        index: i64,
        value: HostTensor,
        sum: &dyn Fn(&HostTensor, &HostTensor) -> Result<HostTensor>,
    ) -> Result<()> {
        let mut state = self.open()?;
        let position = state.position_to_write(index, self.options.limit)?;
        if value.dtype() != self.options.dtype {
            return Err(wrong("value", format!("of dtype {}", self.options.dtype), value.dtype()));
        }
        let shape = PartialShape::from(value.shape());
        if !state.shape.is_compatible_with(&shape) {
            return Err(wrong("value", format!("of shape {}", state.shape), shape));
        }
        if self.options.identical {
            state.shape = shape;
        }
        let element = &mut state.elements[position];
        if element.is_read {
            return Err(wrong("index", "one that was not read yet", index));
        }
        if element.shape.is_some() && !self.options.adds {
            return Err(wrong("index", "one that was not written yet", index));
        }
        if let Some(shape) = element.shape.as_ref().filter(|&shape| shape != value.shape()) {
            return Err(wrong("value", format!("of shape {shape}"), value.shape()));
        }
        element.shape = Some(value.shape().clone());
        element.value = Some(match &element.value {
            Some(old) => sum(old, &value)?,
            None => value,
        });
        Ok(())
    }

    /// Reads an element; zeros if it was never written and its shape is known.
    ///
    /// # Errors
    ///
    /// When there is no such element, or it is gone.
    pub(crate) fn read(&self, index: i64) -> Result<HostTensor> {
        let mut state = self.open()?;
        let n = state.elements.len();
        let known = state.shape.known();
        let position = usize::try_from(index).ok().filter(|&index| index < n);
        let position = position.ok_or_else(|| outside(index, n))?;
        let element = &mut state.elements[position];
        if element.is_cleared {
            return Err(wrong("index", "one that was not read yet, as reading clears", index));
        }
        let value = match element.value.take() {
            Some(value) => value,
            None => {
                let shape = element.shape.clone().or(known).ok_or_else(|| {
                    wrong("index", "one that was written, as no element shape is known", index)
                })?;
                HostTensor::zeros(self.options.dtype, shape)?
            }
        };
        element.is_read = true;
        if self.options.clears {
            element.is_cleared = true;
        } else {
            element.shape = Some(value.shape().clone());
            element.value = Some(value.clone());
        }
        Ok(value)
    }

    /// Notes what shape elements are expected to have; returns what is known of it.
    ///
    /// # Errors
    ///
    /// When it contradicts what is known.
    pub(crate) fn expect_shape(&self, expected: &PartialShape) -> Result<PartialShape> {
        let mut state = self.open()?;
        let known = &state.shape;
        let shape = known
            .merge(expected)
            .ok_or_else(|| wrong("element shape", format!("{known}"), expected))?;
        state.shape = shape.clone();
        Ok(shape)
    }

    /// The array that collects gradients by the elements, one for each name. Its elements have
    /// `prepended` dimensions more.
    ///
    /// # Errors
    ///
    /// When the array was closed, or shapes grow too large.
    pub(crate) fn gradient(
        &self,
        name: &str,
        prepended: &[i64],
    ) -> Result<Arc<TensorArrayResource>> {
        let mut state = self.open()?;
        if let Some(gradient) = state.gradients.get(name) {
            return Ok(gradient.clone());
        }
        let longer = |shape: &PartialShape| -> Result<PartialShape> {
            let Some(dims) = shape.dims() else { return Ok(PartialShape::Unknown) };
            let front = PartialShape::from_i64(prepended)?;
            let front = front.dims().unwrap_or_default();
            Ok(PartialShape::ranked(front.iter().chain(dims).copied()))
        };
        let options =
            ArrayOptions { grows: false, clears: false, adds: true, ..self.options.clone() };
        let size = state.elements.len() as i64;
        let gradient = TensorArrayResource::new(options, longer(&state.shape)?, size)?;
        for (own, other) in gradient.state.lock().elements.iter_mut().zip(&state.elements) {
            if let Some(shape) = &other.shape {
                own.shape = longer(&shape.into())?.known();
            }
        }
        let gradient = Arc::new(gradient);
        // What is not there yet cannot have a gradient any more.
        state.grows = false;
        state.gradients.insert(name.into(), gradient.clone());
        Ok(gradient)
    }
}

fn outside(index: i64, n: usize) -> Error {
    IrError::Index { what: "array element".into(), index, low: 0, high: n as i64 }.into()
}

impl State {
    fn position_to_write(&mut self, index: i64, limit: usize) -> Result<usize> {
        let n = self.elements.len();
        match usize::try_from(index) {
            Ok(position) if position < n => Ok(position),
            Ok(position) if self.grows => {
                let needed = checked_length(index.saturating_add(1), limit)?;
                self.elements.resize(needed, Element::default());
                Ok(position)
            }
            _ => Err(outside(index, n)),
        }
    }
}

impl Resource for TensorArrayResource {
    fn kind(&self) -> &'static str {
        "a tensor array"
    }
}

/// A stack of tensors.
#[derive(Debug)]
pub(crate) struct TensorStack {
    dtype: DType,
    capacity: Option<usize>,
    /// `None` once it was closed.
    tensors: Mutex<Option<Vec<HostTensor>>>,
}

impl TensorStack {
    /// An empty stack for at most `capacity` tensors.
    pub(crate) fn new(dtype: DType, capacity: Option<usize>) -> TensorStack {
        TensorStack { dtype, capacity, tensors: Mutex::new(Some(Vec::new())) }
    }

    /// Puts a tensor on top.
    ///
    /// # Errors
    ///
    /// When it is of another dtype, or the stack is full or closed.
    pub(crate) fn push(&self, tensor: HostTensor) -> Result<()> {
        tensor.check(self.dtype)?;
        let mut tensors = self.tensors.lock();
        let tensors = tensors.as_mut().ok_or_else(closed)?;
        if let Some(capacity) = self.capacity.filter(|&capacity| tensors.len() >= capacity) {
            return Err(wrong("stack", format!("of at most {capacity} tensors"), "one more"));
        }
        tensors.push(tensor);
        Ok(())
    }

    /// Takes the top tensor off.
    ///
    /// # Errors
    ///
    /// When the stack is empty or closed.
    pub(crate) fn pop(&self) -> Result<HostTensor> {
        let mut tensors = self.tensors.lock();
        let top = tensors.as_mut().ok_or_else(closed)?.pop();
        top.ok_or_else(|| wrong("stack", "not empty", "an empty one"))
    }

    /// Forgets all tensors; nothing can be put on it any more.
    pub(crate) fn close(&self) {
        *self.tensors.lock() = None;
    }
}

fn closed() -> Error {
    Error::Status { code: Code::InvalidArgument, message: "the stack was closed".into() }
}

impl Resource for TensorStack {
    fn kind(&self) -> &'static str {
        "a stack"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(grows: bool, clears: bool) -> TensorArrayResource {
        let options = ArrayOptions {
            dtype: DType::F32,
            grows,
            clears,
            identical: false,
            adds: false,
            limit: 1 << 20,
        };
        TensorArrayResource::new(options, PartialShape::Unknown, 1).unwrap()
    }

    fn sum(_: &HostTensor, b: &HostTensor) -> Result<HostTensor> {
        Ok(b.clone())
    }

    #[test]
    fn elements_are_written_once() {
        let (array, value) = (array(false, false), HostTensor::scalar(1.0f32));
        array.write(0, value.clone(), &sum).unwrap();
        assert!(array.write(0, value.clone(), &sum).is_err());
        assert!(array.write(1, value.clone(), &sum).is_err());
        assert_eq!(array.read(0).unwrap(), value);
        assert_eq!(array.read(0).unwrap(), value);
        array.close();
        assert!(array.read(0).is_err());
    }

    #[test]
    fn reading_may_clear() {
        let array = array(true, true);
        array.write(4, HostTensor::scalar(1.0f32), &sum).unwrap();
        assert_eq!(array.size().unwrap(), 5);
        assert!(array.read(4).is_ok());
        assert!(array.read(4).is_err());
        assert!(array.read(3).is_err());
    }

    #[test]
    fn gradients_add_up_and_start_from_zeros() {
        let array = array(true, false);
        array.write(0, HostTensor::vector(&[1.0f32, 2.0]).unwrap(), &sum).unwrap();
        let gradient = array.gradient("g", &[]).unwrap();
        assert_eq!(gradient.read(0).unwrap(), HostTensor::vector(&[0.0f32, 0.0]).unwrap());
        let again = array.gradient("g", &[]).unwrap();
        assert!(Arc::ptr_eq(&gradient, &again));
        assert!(array.write(1, HostTensor::scalar(1.0f32), &sum).is_err());
    }
}
