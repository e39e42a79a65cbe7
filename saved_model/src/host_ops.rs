//! Ops that read files of the format: `RestoreV2`.

use crate::bundle::{Reader, SliceSpec};
use ferroflow_ir::{Code, DType, HostTensor};
use ferroflow_runtime::{Context, EagerTensor, Error, Result, Results, ops::RuntimeCall};
use std::{os::unix::ffi::OsStrExt, path::Path};

/// Makes the ops that read checkpoints known to a context. Loading a model does so.
pub fn add_ops(context: &Context) {
    context.add_host_op("RestoreV2", restore);
}

/// Reads tensors of a checkpoint: whole ones, or slices where `shape_and_slices` says so.
fn restore(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let prefix = call.host(0)?.strings()?.first().cloned().unwrap_or_default();
    let prefix = Path::new(std::ffi::OsStr::from_bytes(&prefix));
    call.scope.check_file(&prefix.with_extension("index"))?;
    let reader = Reader::open(prefix, call.context().limits()).map_err(status)?;
    let (names, slices) = (call.host(1)?.strings()?, call.host(2)?.strings()?);
    let dtypes = call.attrs.types("dtypes")?;
    let mut results = Results::new();
    for ((name, slice), &dtype) in names.iter().zip(slices).zip(dtypes) {
        results.push(read(&reader, name, slice, dtype).map_err(status)?);
    }
    Ok(results)
}

fn read(reader: &Reader, name: &[u8], slice: &[u8], dtype: DType) -> crate::Result<EagerTensor> {
    let name = String::from_utf8_lossy(name);
    let tensor: HostTensor = if slice.is_empty() {
        reader.read(&name)?
    } else {
        let slice = String::from_utf8_lossy(slice);
        let spec: SliceSpec = slice.parse().map_err(|_| {
            ferroflow_ir::Error::argument("RestoreV2", "shape_and_slices", "a slice", &slice)
        })?;
        reader.read_slice(&name, &spec)?
    };
    tensor.check(dtype)?;
    Ok(tensor.into())
}

fn status(error: crate::Error) -> Error {
    let code: Code = error.code();
    Error::Status { code, message: error.to_string() }
}
