//! Elements as things that are moved: any plain type by its size, strings, handles.

use super::nontemporal::copy_bytes;
use crate::{error::Result, kernel::Io};
use bytemuck::Zeroable;
use bytes::Bytes;
use ferroflow_ir::{DType, Handle, HostTensor, Shape, string_room, workspace};
use half::{bf16, f16};
use num_complex::Complex;
use std::{any::Any, sync::Arc};

/// An element of any tensor.
pub(crate) trait Cell: Clone + Send + Sync + 'static {
    /// The elements of input `index`.
    fn read<'a>(io: &Io<'a>, index: usize) -> Result<&'a [Self]>;

    /// Makes output `index`, of this dtype and shape, of the elements that `fill` writes; until
    /// then they are unspecified.
    fn write(
        io: &mut Io<'_>,
        index: usize,
        dtype: DType,
        shape: &Shape,
        fill: impl FnOnce(&mut [Self]) -> Result<()>,
    ) -> Result<()>;

    /// Value of an empty cell: 0, or an empty string.
    fn blank() -> Self;

    /// Copies elements to memory that is not read soon, by non-temporal stores where there are any.
    fn copy_nontemporal(from: &[Self], to: &mut [Self]) {
        to.clone_from_slice(from);
    }
}

macro_rules! plain {
    ($($type:ty)*) => {$(
        impl Cell for $type {
            fn read<'a>(io: &Io<'a>, index: usize) -> Result<&'a [Self]> {
                Ok(io.input(index))
            }

            fn write(
                io: &mut Io<'_>,
                index: usize,
                dtype: DType,
                shape: &Shape,
                fill: impl FnOnce(&mut [Self]) -> Result<()>,
            ) -> Result<()> {
                if io.is_sized(index) {
                    return fill(io.output(index));
                }
                let mut tensor = io.allocate(dtype, shape.clone())?;
                fill(bytemuck::cast_slice_mut(tensor.bytes_mut()))?;
                io.put(index, tensor)
            }

            fn blank() -> Self {
                Self::zeroed()
            }

            fn copy_nontemporal(from: &[Self], to: &mut [Self]) {
                copy_bytes(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
            }
        }
    )*};
}

plain! {
    u8 u16 u32 u64 [u64; 2] i8 i16 i32 i64 f16 bf16 f32 f64 Complex<f32> Complex<f64>
}

impl Cell for Bytes {
    fn read<'a>(io: &Io<'a>, index: usize) -> Result<&'a [Self]> {
        io.strings(index)
    }

    fn write(
        io: &mut Io<'_>,
        index: usize,
        dtype: DType,
        shape: &Shape,
        fill: impl FnOnce(&mut [Self]) -> Result<()>,
    ) -> Result<()> {
        io.check_size(dtype, shape)?;
        let mut strings = string_room(shape.num_elements())?;
        strings.resize(shape.num_elements(), Bytes::new());
        fill(&mut strings)?;
        io.put(index, HostTensor::from_strings(shape.clone(), strings)?)
    }

    fn blank() -> Self {
        Bytes::new()
    }
}

impl Cell for Arc<dyn Handle> {
    fn read<'a>(io: &Io<'a>, index: usize) -> Result<&'a [Self]> {
        io.handles(index)
    }

    fn write(
        io: &mut Io<'_>,
        index: usize,
        dtype: DType,
        shape: &Shape,
        fill: impl FnOnce(&mut [Self]) -> Result<()>,
    ) -> Result<()> {
        io.check_size(dtype, shape)?;
        let mut handles = workspace::filled(Self::blank(), shape.num_elements())?;
        fill(&mut handles)?;
        io.put(index, HostTensor::from_handles(dtype, shape.clone(), handles)?)
    }

    fn blank() -> Self {
        Arc::new(Nothing)
    }
}

/// A handle that refers to nothing.
#[derive(Debug)]
struct Nothing;

impl Handle for Nothing {
    fn as_any(&self) -> &dyn Any {
        self
    }
}
