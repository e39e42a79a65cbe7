//! Sparse tensors as three messages, or as three tensors in values of dtype variant:
//! `SerializeSparse`, `SerializeManySparse`.

use super::{SparseInputs, put_values};
use crate::{
    cpu::{Build, cell::Cell, dispatch::with_cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    tensor_message::{Strings, write_plain, write_strings},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Handle, HostTensor, Shape, workspace};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("SerializeManySparse", serialize_many), ("SerializeSparse", serialize)];

fn serialize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Message>(form: SparseInputs, dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let coordinates = form.coordinates(io);
            let indices = integers(&[form.n, form.rank], coordinates.indices)?;
            let values = T::message(dtype, T::read(io, form.values)?)?;
            put_values(io, 0, DType::String, &[indices, values, dims(coordinates.dims)?])
        })
    }
    fn holding<T: Message>(form: SparseInputs, dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let coordinates = form.coordinates(io);
            let values = T::read(io, form.values)?;
            let parts =
                held([form.n, form.rank], coordinates.indices, dtype, values, coordinates.dims)?;
            put_values(io, 0, DType::Variant, &parts)
        })
    }
    let (sparse, dtype) = (SparseInputs::new(call, 0), call.dtype(1));
    Ok(match call.attrs.dtype("out_type")? {
        DType::Variant => with_cell!(dtype, T => holding::<T>(sparse, dtype)),
        _ => with_cell!(dtype, T => kernel::<T>(sparse, dtype)),
    })
}

fn integers(dims: &[usize], elements: &[i64]) -> Result<Bytes> {
    let shape = Shape::new(dims.iter().copied())?;
    Ok(write_plain(DType::I64, &shape, bytemuck::cast_slice(elements)))
}

fn dims(dims: &[i64]) -> Result<Bytes> {
    integers(&[dims.len()], dims)
}

/// A sparse tensor as values of dtype variant: coordinates, elements and sizes.
fn held<T: Message>(
    shape: [usize; 2],
    indices: &[i64],
    dtype: DType,
    values: &[T],
    dims: &[i64],
) -> Result<[Arc<dyn Handle>; 3]> {
    let indices = HostTensor::from_slice(Shape::new(shape)?, indices)?;
    let values = T::tensor(dtype, values)?;
    Ok([Arc::new(indices), Arc::new(values), Arc::new(HostTensor::vector(dims)?)])
}

/// A vector of elements as a message, or as a tensor.
trait Message: Cell {
    fn message(dtype: DType, elements: &[Self]) -> Result<Bytes>;

    fn tensor(dtype: DType, elements: &[Self]) -> Result<HostTensor>;
}

impl Message for Bytes {
    fn message(_: DType, elements: &[Bytes]) -> Result<Bytes> {
        Ok(write_strings(&Shape::new([elements.len()])?, elements, Strings::Packed))
    }

    fn tensor(_: DType, elements: &[Bytes]) -> Result<HostTensor> {
        Ok(HostTensor::from_strings(Shape::new([elements.len()])?, elements.to_vec())?)
    }
}

macro_rules! plain_messages {
    ($($type:ty)*) => {$(
        impl Message for $type {
            fn message(dtype: DType, elements: &[$type]) -> Result<Bytes> {
                let shape = Shape::new([elements.len()])?;
                Ok(write_plain(dtype, &shape, bytemuck::cast_slice(elements)))
            }

            fn tensor(dtype: DType, elements: &[$type]) -> Result<HostTensor> {
                let mut tensor = HostTensor::zeros(dtype, Shape::new([elements.len()])?)?;
                tensor.bytes_mut().copy_from_slice(bytemuck::cast_slice(elements));
                Ok(tensor)
            }
        }
    )*};
}

plain_messages! { u8 u16 u32 u64 [u64; 2] }

impl Message for Arc<dyn Handle> {
    fn message(dtype: DType, _: &[Self]) -> Result<Bytes> {
        let (op, what) = ("serialization of a sparse tensor".into(), dtype.name().into());
        Err(Error::Unsupported { op, what }.into())
    }

    fn tensor(dtype: DType, elements: &[Self]) -> Result<HostTensor> {
        Ok(HostTensor::from_handles(dtype, Shape::new([elements.len()])?, elements.to_vec())?)
    }
}

/// Each row is written with its own coordinates, which lack the first one.
fn serialize_many(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Message>(form: SparseInputs, dtype: DType) -> Arc<dyn Kernel> {
        each_row(form, DType::String, move |places, values: &[T], row| {
            let indices = integers(&[values.len(), form.rank - 1], &places)?;
            Ok([indices, T::message(dtype, values)?, dims(row)?])
        })
    }
    fn holding<T: Message>(form: SparseInputs, dtype: DType) -> Arc<dyn Kernel> {
        each_row(form, DType::Variant, move |places, values: &[T], row| {
            held([values.len(), form.rank - 1], &places, dtype, values, row)
        })
    }
    let (sparse, dtype) = (SparseInputs::new(call, 0), call.dtype(1));
    if sparse.rank < 2 {
        return Err(call.wrong("sparse_shape", "of rank 2 or more", sparse.rank));
    }
    Ok(match call.attrs.dtype("out_type")? {
        DType::Variant => with_cell!(dtype, T => holding::<T>(sparse, dtype)),
        _ => with_cell!(dtype, T => kernel::<T>(sparse, dtype)),
    })
}

/// A kernel that makes three elements of the coordinates, elements and sizes of each row.
fn each_row<T: Cell, U: Cell>(
    form: SparseInputs,
    dtype: DType,
    make: impl Fn(Vec<i64>, &[T], &[i64]) -> Result<[U; 3]> + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let (coordinates, values) = (form.coordinates(io), T::read(io, form.values)?);
        let n_rows = coordinates.shape()?[0];
        let shape = Shape::new([n_rows, 3])?;
        io.check_size(dtype, &shape)?;
        coordinates.check()?;
        if !coordinates.iter().is_sorted() {
            let (op, expected) = ("SerializeManySparse", "in row-major order");
            return Err(Error::argument(op, "sparse_indices", expected, "others").into());
        }
        let mut written = workspace::reserve(3 * n_rows)?;
        let mut start = 0;
        for row in 0..n_rows {
            let own = coordinates.iter().skip(start).take_while(|place| place[0] == row as i64);
            let n = own.count();
            let indices: Vec<i64> =
                (start..start + n).flat_map(|n| &coordinates.get(n)[1..]).copied().collect();
            written.extend(make(indices, &values[start..start + n], &coordinates.dims[1..])?);
            start += n;
        }
        U::write(io, 0, dtype, &shape, |out| {
            out.clone_from_slice(&written);
            Ok(())
        })
    })
}
