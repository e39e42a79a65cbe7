//! Results whose length is known when the last element is.

use crate::{error::Result, kernel::Io};
use bytemuck::Pod;
use ferroflow_ir::{DType, Error, HostTensor, Shape, budget};

/// Elements that are collected before they are written to the tensor.
const COLLECTED: usize = 64;

/// A vector of plain elements that grows in recycled memory, and becomes an output as it is.
pub(super) struct GrowingVector<T> {
    tensor: HostTensor,
    /// The elements that the tensor has.
    written: usize,
    /// The next ones.
    collected: [T; COLLECTED],
    n_collected: usize,
}

impl<T: Pod> GrowingVector<T> {
    /// An empty vector of a dtype whose elements are `T`, with room for `n` of them.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory, or the budget of the call.
    pub(super) fn with_room(dtype: DType, n: usize) -> Result<GrowingVector<T>, Error> {
        let tensor = HostTensor::recycled(dtype, Shape::new([n])?)?;
        Ok(GrowingVector {
            tensor,
            written: 0,
            collected: [T::zeroed(); COLLECTED],
            n_collected: 0,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.written + self.n_collected
    }

    /// Adds an element. Where there is no memory the call ends by unwinding, as with
    /// [`Scratch::needed`](crate::scratch::Scratch::needed).
    #[inline]
    pub(super) fn push(&mut self, element: T) {
        if self.n_collected == COLLECTED {
            self.write().unwrap_or_else(|error| budget::end_with(error));
        }
        self.collected[self.n_collected] = element;
        self.n_collected += 1;
    }

    /// Leaves the first `len` elements, if there are more.
    #[cfg(any(feature = "text", test))]
    pub(super) fn truncate(&mut self, len: usize) {
        self.written = self.written.min(len);
        self.n_collected = self.n_collected.min(len - self.written);
    }

    /// Writes what is collected to the tensor, which becomes twice as large if it is full.
    #[inline(never)]
    fn write(&mut self) -> Result<(), Error> {
        let (start, end) = (self.written, self.len());
        if end > self.tensor.len() {
            let room = Shape::new([end.max(2 * self.tensor.len())])?;
            let mut larger = HostTensor::recycled(self.tensor.dtype(), room)?;
            let bytes = start * size_of::<T>();
            larger.bytes_mut()[..bytes].copy_from_slice(&self.tensor.bytes()[..bytes]);
            self.tensor = larger;
        }
        let bytes = bytemuck::cast_slice(&self.collected[..self.n_collected]);
        let (start, end) = (start * size_of::<T>(), end * size_of::<T>());
        self.tensor.bytes_mut()[start..end].copy_from_slice(bytes);
        (self.written, self.n_collected) = (self.len(), 0);
        Ok(())
    }

    /// Sets an output to the vector.
    ///
    /// # Errors
    ///
    /// When it is larger than an output may be.
    pub(super) fn put(mut self, io: &mut Io<'_>, output: usize) -> Result<()> {
        self.write()?;
        let shape = Shape::new([self.written])?;
        io.check_size(self.tensor.dtype(), &shape)?;
        io.put(output, self.tensor.window(0..self.written, shape)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Target, threads::Threads};
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(u8),
        Truncate(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            20 => any::<u8>().prop_map(Step::Push),
            1 => any::<u8>().prop_map(Step::Truncate),
        ];
        proptest::collection::vec(step, 0..400)
    }

    proptest! {
        #[test]
        fn elements_are_those_of_a_vector(steps in steps(), room in 0usize..200) {
            let mut expected = Vec::new();
            let mut found = GrowingVector::with_room(DType::I32, room).unwrap();
            for step in &steps {
                match *step {
                    Step::Push(number) => {
                        expected.push(i32::from(number));
                        found.push(i32::from(number));
                    }
                    Step::Truncate(len) => {
                        expected.truncate(usize::from(len));
                        found.truncate(usize::from(len));
                    }
                }
                prop_assert_eq!(found.len(), expected.len());
            }
            let (mut output, threads) = (None, Threads::single());
            let mut io = Io::new([], [Target::Empty(&mut output)], &threads, usize::MAX);
            found.put(&mut io, 0).unwrap();
            drop(io);
            let output: HostTensor = output.unwrap();
            prop_assert_eq!(output.as_slice::<i32>().unwrap(), expected);
        }
    }
}
