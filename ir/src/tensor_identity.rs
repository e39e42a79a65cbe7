//! Identity of the elements of a tensor.

use crate::{host_tensor::HostTensor, memory::HostMemory};
use std::{
    fmt,
    sync::{Arc, Weak},
};

/// Identity of the elements of a tensor, which does not keep them: a cache of what was computed
/// from them asks whether they are still the same.
///
/// Changing a tensor in place moves its elements to another identity, so equal identities mean
/// equal elements.
///
/// ```
/// use ferroflow_ir::{HostTensor, TensorIdentity};
/// # fn main() -> ferroflow_ir::Result<()> {
/// let mut weights = HostTensor::vector(&[1.0f32; 100])?;
/// let identity = TensorIdentity::of(&weights).expect("more than fits inside a tensor");
/// assert!(identity.is_of(&weights.clone()));
/// weights.as_mut_slice::<f32>()?[0] = 2.0;
/// assert!(!identity.is_of(&weights));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TensorIdentity {
    /// As long as it is there, no other memory has this address.
    memory: Weak<HostMemory>,
    offset: usize,
    len: usize,
}

impl TensorIdentity {
    /// The identity of the elements of `tensor`; `None` for a few bytes, strings and handles.
    pub fn of(tensor: &HostTensor) -> Option<TensorIdentity> {
        let (memory, offset) = tensor.memory()?;
        Some(TensorIdentity { memory: Arc::downgrade(memory), offset, len: tensor.bytes().len() })
    }

    /// Whether `tensor` has these very elements, in whatever shape.
    pub fn is_of(&self, tensor: &HostTensor) -> bool {
        tensor.memory().is_some_and(|(memory, offset)| {
            let address = (Arc::as_ptr(memory), offset, tensor.bytes().len());
            address == (self.memory.as_ptr(), self.offset, self.len)
        })
    }

    /// Whether any tensor may still have the elements.
    pub fn is_alive(&self) -> bool {
        self.memory.strong_count() > 0
    }
}

impl PartialEq for TensorIdentity {
    fn eq(&self, other: &TensorIdentity) -> bool {
        let address = |id: &TensorIdentity| (id.memory.as_ptr(), id.offset, id.len);
        address(self) == address(other)
    }
}

impl Eq for TensorIdentity {}

impl fmt::Debug for TensorIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, alive: {}", self.len, self.is_alive())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    fn tensor() -> HostTensor {
        HostTensor::from_slice(Shape::new([2, 50]).unwrap(), &[1.0f32; 100]).unwrap()
    }

    #[test]
    fn changing_elements_in_place_moves_them_to_another_identity_without_a_copy() {
        let mut tensor = tensor();
        let identity = TensorIdentity::of(&tensor).unwrap();
        let address = tensor.bytes().as_ptr();
        assert!(identity.is_of(&tensor) && identity.is_alive());
        tensor.bytes_mut()[0] = 7;
        assert!(!identity.is_of(&tensor) && !identity.is_alive());
        assert_eq!(tensor.bytes().as_ptr(), address, "moved, not copied");
    }

    #[test]
    fn a_changed_clone_leaves_the_identity_to_the_others() {
        let tensor = tensor();
        let identity = TensorIdentity::of(&tensor).unwrap();
        let mut changed = tensor.clone();
        changed.bytes_mut()[0] = 7;
        assert!(identity.is_of(&tensor) && !identity.is_of(&changed));
    }

    #[test]
    fn new_elements_at_the_same_address_are_others() {
        let first = tensor();
        let identity = TensorIdentity::of(&first).unwrap();
        let address = first.bytes().as_ptr();
        drop(first);
        let second = tensor();
        assert_eq!(second.bytes().as_ptr(), address, "the memory is recycled");
        assert!(!identity.is_of(&second));
    }

    #[test]
    fn rows_are_not_the_whole() {
        let tensor = tensor();
        let row = tensor.rows(0..1).unwrap();
        assert!(!TensorIdentity::of(&row).unwrap().is_of(&tensor));
        assert!(TensorIdentity::of(&HostTensor::scalar(1.0f32)).is_none());
    }
}
