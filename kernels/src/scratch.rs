//! Working memory of kernels.

use bytemuck::Pod;
use ferroflow_ir::{Error, budget, memory::HostMemory};
use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

/// Elements that live while a kernel runs, in recycled memory.
pub(crate) struct Scratch<T> {
    memory: HostMemory,
    element: PhantomData<T>,
}

impl<T: Pod> Scratch<T> {
    /// Room for `len` elements, whose contents are unspecified.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] when the system refuses the memory.
    pub(crate) fn new(len: usize) -> Result<Scratch<T>, Error> {
        let bytes = len.saturating_mul(size_of::<T>());
        Ok(Scratch { memory: HostMemory::recycled(bytes)?, element: PhantomData })
    }

    /// As [`new`](Scratch::new), where no error can be returned: the call ends with it by unwinding.
    pub(crate) fn needed(len: usize) -> Scratch<T> {
        Scratch::new(len).unwrap_or_else(|error| budget::end_with(error))
    }
}

impl<T: Pod> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(self.memory.bytes())
    }
}

impl<T: Pod> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.memory.bytes_mut())
    }
}
