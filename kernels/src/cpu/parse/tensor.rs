//! Tensors as messages: `ParseTensor`, `SerializeTensor`.

use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    tensor_message::{Strings, read, write_plain, write_strings},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("ParseTensor", parse), ("SerializeTensor", serialize)];

fn serialize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, shape) = (call.dtype(0), call.shape(0).clone());
    if dtype.size().is_none() && dtype != DType::String {
        return Ok(None);
    }
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let message = match dtype {
            DType::String => write_strings(&shape, io.strings(0)?, Strings::Listed),
            dtype => write_plain(dtype, &shape, io.bytes(0)),
        };
        Bytes::write(io, 0, DType::String, &Shape::scalar(), |out| {
            out[0] = message;
            Ok(())
        })
    })))
}

fn parse(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.outputs[0].dtype;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let wrong = |expected: &'static str, found: String| {
            crate::Error::from(Error::argument("ParseTensor", "serialized", expected, found))
        };
        let damaged = |_| wrong("a tensor", "something else".to_string());
        let message = read(&io.strings(0)?[0]).map_err(damaged)?;
        if message.dtype != dtype {
            return Err(wrong(dtype.name(), message.dtype.to_string()));
        }
        io.check_size(dtype, &message.shape)?;
        let tensor = message.tensor().map_err(damaged)?;
        io.put(0, tensor)
    })))
}
