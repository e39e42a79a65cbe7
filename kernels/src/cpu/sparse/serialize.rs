//! Sparse tensors as messages: `SerializeSparse`, `SerializeManySparse`.

use super::{Form, put_values};
use crate::{
    cpu::{Build, cell::Cell, dispatch::with_cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    wire::tensor::{Strings, write_plain, write_strings},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape, workspace};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("SerializeManySparse", serialize_many), ("SerializeSparse", serialize)];

fn serialize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Message>(form: Form, dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let places = form.places(io);
            let indices = integers(&[form.n, form.rank], places.indices)?;
            let values = T::message(dtype, T::read(io, form.values)?)?;
            put_values(io, 0, DType::String, &[indices, values, dims(places.dims)?])
        })
    }
    if call.attrs.dtype("out_type")? != DType::String {
        return Ok(None);
    }
    let (form, dtype) = (Form::new(call, 0), call.dtype(1));
    Ok(with_cell!(dtype, T => kernel::<T>(form, dtype)))
}

fn integers(dims: &[usize], elements: &[i64]) -> Result<Bytes> {
    let shape = Shape::new(dims.iter().copied())?;
    Ok(write_plain(DType::I64, &shape, bytemuck::cast_slice(elements)))
}

fn dims(dims: &[i64]) -> Result<Bytes> {
    integers(&[dims.len()], dims)
}

/// A vector of elements as a message.
trait Message: Cell {
    fn message(dtype: DType, elements: &[Self]) -> Result<Bytes>;
}

impl Message for Bytes {
    fn message(_: DType, elements: &[Bytes]) -> Result<Bytes> {
        Ok(write_strings(&Shape::new([elements.len()])?, elements, Strings::Packed))
    }
}

macro_rules! plain_messages {
    ($($type:ty)*) => {$(
        impl Message for $type {
            fn message(dtype: DType, elements: &[$type]) -> Result<Bytes> {
                let shape = Shape::new([elements.len()])?;
                Ok(write_plain(dtype, &shape, bytemuck::cast_slice(elements)))
            }
        }
    )*};
}

plain_messages! { u8 u16 u32 u64 [u64; 2] }

impl Message for Arc<dyn ferroflow_ir::Handle> {
    fn message(dtype: DType, _: &[Self]) -> Result<Bytes> {
        let (op, what) = ("serialization of a sparse tensor".into(), dtype.name().into());
        Err(Error::Unsupported { op, what }.into())
    }
}

/// Each row is written with its own coordinates, which lack the first one.
fn serialize_many(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Message>(form: Form, dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (places, values) = (form.places(io), T::read(io, form.values)?);
            let n_rows = places.shape()?[0];
            let shape = Shape::new([n_rows, 3])?;
            io.check_size(DType::String, &shape)?;
            places.check()?;
            if !places.iter().is_sorted() {
                let (op, expected) = ("SerializeManySparse", "in row-major order");
                return Err(Error::argument(op, "sparse_indices", expected, "others").into());
            }
            let mut written = workspace::reserve(3 * n_rows)?;
            let (mut start, row_dims) = (0, dims(&places.dims[1..])?);
            for row in 0..n_rows {
                let own = places.iter().skip(start).take_while(|place| place[0] == row as i64);
                let n = own.count();
                let indices: Vec<i64> =
                    (start..start + n).flat_map(|n| &places.get(n)[1..]).copied().collect();
                written.push(integers(&[n, form.rank - 1], &indices)?);
                written.push(T::message(dtype, &values[start..start + n])?);
                written.push(row_dims.clone());
                start += n;
            }
            Bytes::write(io, 0, DType::String, &shape, |out| {
                out.clone_from_slice(&written);
                Ok(())
            })
        })
    }
    let (form, dtype) = (Form::new(call, 0), call.dtype(1));
    if call.attrs.dtype("out_type")? != DType::String {
        return Ok(None);
    }
    if form.rank < 2 {
        return Err(call.wrong("sparse_shape", "of rank 2 or more", form.rank));
    }
    Ok(with_cell!(dtype, T => kernel::<T>(form, dtype)))
}
