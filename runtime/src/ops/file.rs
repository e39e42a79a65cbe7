//! Files. Which of them ops may touch is the context's to say.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    files, glob,
};
use bytes::Bytes;
use ferroflow_ir::{Code, Error as IrError, HostTensor, Shape, host_tensor::byte_len};
use std::{
    fs,
    io::{self, ErrorKind},
    path::Path,
};

/// Error of the system about a file, as TensorFlow names it.
pub(super) fn file_error(path: &Path, error: &io::Error) -> Error {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::PermissionDenied => Code::PermissionDenied,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::IsADirectory | ErrorKind::NotADirectory => Code::FailedPrecondition,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::ResourceExhausted,
        _ => Code::Unavailable,
    };
    Error::Status { code, message: format!("{}: {error}", path.display()) }
}

fn string<'a>(call: &'a RuntimeCall<'_>, index: usize) -> Result<&'a Bytes> {
    let tensor = call.host(index)?;
    match (tensor.shape().rank(), tensor.strings()?) {
        (0, [string]) => Ok(string),
        _ => {
            let name = format!("input {index}");
            Err(IrError::argument(call.op.name, name, "a scalar", tensor.shape()).into())
        }
    }
}

fn read(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar_string(contents(call, &call.path(0)?)?))
}

/// The bytes of a file that the call may read, no more than a tensor may have.
pub(super) fn contents(call: &RuntimeCall<'_>, path: &Path) -> Result<Bytes> {
    call.scope.check_file(path)?;
    let failed = |error: io::Error| file_error(path, &error);
    let size = files::size(path).map_err(failed)?;
    let limit = call.context().limits().tensor_bytes;
    if size > limit as u64 {
        let (what, needed) = ("a file".into(), format!("{} bytes", size));
        return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
    }
    files::read(path).map_err(failed)
}

/// The elements are as the file has them: little-endian, row by row.
fn immutable(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (dtype, shape) = (call.attrs.dtype("dtype")?, call.attrs.shape("shape")?);
    if dtype.size().is_none() {
        let what = format!("elements of dtype {dtype}").into();
        return Err(IrError::Unsupported { op: call.op.name.into(), what }.into());
    }
    let wrong = |expected: String, found: String| {
        IrError::argument(call.op.name, "memory_region_name", expected, found)
    };
    let size =
        shape.known().ok_or_else(|| IrError::argument(call.op.name, "shape", "known", shape))?;
    let name = Bytes::copy_from_slice(call.attrs.string("memory_region_name")?.as_bytes());
    let bytes = contents(call, &RuntimeCall::path_of(&name)?)?;
    let needed = byte_len(dtype, &size)?;
    match bytes.get(..needed) {
        Some(bytes) => one(HostTensor::from_bytes(dtype, size, bytes)?),
        None => {
            let expected = format!("a file of {needed} bytes");
            Err(wrong(expected, format!("one of {}", bytes.len())).into())
        }
    }
}

fn write(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (path, contents) = (call.path(0)?, string(call, 1)?);
    call.context().check_file(&path)?;
    let failed = |error: io::Error| file_error(&path, &error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(&path, contents).map_err(failed)?;
    none()
}

fn matching(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut found = Vec::new();
    for pattern in call.host(0)?.strings()? {
        let allowed = |path: &Path| call.scope.check_file(path);
        glob::find(&RuntimeCall::path_of(pattern)?, &allowed, &mut found)?;
    }
    found.sort();
    let names: Vec<Bytes> =
        found.into_iter().map(|path| path.to_string_lossy().into_owned().into()).collect();
    one(HostTensor::from_strings(Shape::new([names.len()])?, names)?)
}

fn sharded_name(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (shard, n_shards) = (call.host(1)?.as_scalar::<i32>()?, call.host(2)?.as_scalar::<i32>()?);
    let suffix = format!("-{shard:05}-of-{n_shards:05}");
    one(HostTensor::scalar_string([string(call, 0)?, suffix.as_bytes()].concat()))
}

fn sharded_pattern(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let suffix = format!("-?????-of-{:05}", call.host(1)?.as_scalar::<i32>()?);
    one(HostTensor::scalar_string([string(call, 0)?, suffix.as_bytes()].concat()))
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("ImmutableConst", immutable),
    ("MatchingFiles", matching),
    ("ReadFile", read),
    ("ShardedFilename", sharded_name),
    ("ShardedFilespec", sharded_pattern),
    ("WriteFile", write),
];
