//! Ops that read and write files of the format, and the others that need its messages.

use crate::bundle::{Reader, SliceSpec, Writer, merge};
use bytes::Bytes;
use ferroflow_ir::{DType, Error as IrError, HostTensor};
use ferroflow_runtime::{
    Context, EagerTensor, Error, Result, Results,
    ops::{RuntimeCall, none, one},
};
use std::path::{Path, PathBuf};

/// Makes the ops that this crate implements known to a context. Loading a model does so.
pub fn add_ops(context: &Context) {
    context.add_host_op("MergeV2Checkpoints", merge_checkpoints);
    context.add_host_op("Restore", restore_one);
    context.add_host_op("RestoreSlice", restore_slice);
    context.add_host_op("RestoreV2", restore);
    context.add_host_op("SaveV2", save);
    crate::events::add_ops(context);
    crate::proto_ops::add_ops(context);
    crate::readers::add_ops(context);
    crate::sparse_ops::add_ops(context);
    crate::summary_ops::add_ops(context);
}

/// Opens the checkpoint that input 0 names.
fn open(call: &RuntimeCall<'_>) -> Result<Reader> {
    let prefix = call.path(0)?;
    call.scope.check_file(&prefix)?;
    Reader::open(prefix, call.context().limits()).map_err(status)
}

/// Reads tensors of a checkpoint: whole ones, or slices where `shape_and_slices` says so.
fn restore(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let reader = open(call)?;
    let (names, slices) = (call.host(1)?.strings()?, call.host(2)?.strings()?);
    let dtypes = call.attrs.types("dtypes")?;
    check_counts(call, dtypes.len(), names, slices)?;
    let mut results = Results::new();
    for ((name, slice), &dtype) in names.iter().zip(slices).zip(dtypes) {
        results.push(read(call, &reader, name, slice, dtype)?);
    }
    Ok(results)
}

fn restore_one(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (reader, name) = (open(call)?, scalar(call, 1)?);
    one(read(call, &reader, name, b"", call.attrs.dtype("dt")?)?)
}

fn restore_slice(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (reader, name, slice) = (open(call)?, scalar(call, 1)?, scalar(call, 2)?);
    one(read(call, &reader, name, slice, call.attrs.dtype("dt")?)?)
}

fn scalar<'a>(call: &'a RuntimeCall<'_>, index: usize) -> Result<&'a [u8]> {
    let tensor = call.host(index)?;
    match tensor.strings()? {
        [string] => Ok(string),
        _ => {
            let name = format!("input {index}");
            Err(IrError::argument(call.op.name, name, "a scalar", tensor.shape()).into())
        }
    }
}

fn check_counts(call: &RuntimeCall<'_>, n: usize, names: &[Bytes], slices: &[Bytes]) -> Result<()> {
    for (argument, found) in [("tensor_names", names.len()), ("shape_and_slices", slices.len())] {
        if found != n {
            let expected = format!("a vector of {n} strings");
            return Err(IrError::argument(call.op.name, argument, expected, found).into());
        }
    }
    Ok(())
}

fn read(
    call: &RuntimeCall<'_>,
    reader: &Reader,
    name: &[u8],
    slice: &[u8],
    dtype: DType,
) -> Result<EagerTensor> {
    let name = String::from_utf8_lossy(name);
    let tensor: HostTensor = match slice {
        [] => reader.read(&name),
        slice => reader.read_slice(&name, &parse_slice(call, slice)?),
    }
    .map_err(status)?;
    tensor.check(dtype)?;
    Ok(tensor.into())
}

fn parse_slice(call: &RuntimeCall<'_>, text: &[u8]) -> Result<SliceSpec> {
    let text = String::from_utf8_lossy(text);
    let wrong = |_| IrError::argument(call.op.name, "shape_and_slices", "a slice", &text);
    Ok(text.parse().map_err(wrong)?)
}

/// Writes tensors to a checkpoint: whole ones, or slices where `shape_and_slices` says so.
fn save(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let prefix = call.path(0)?;
    call.context().check_file(&prefix)?;
    let (names, slices) = (call.host(1)?.strings()?, call.host(2)?.strings()?);
    check_counts(call, call.inputs.len() - 3, names, slices)?;
    let mut writer = Writer::create(prefix).map_err(status)?;
    for ((name, slice), tensor) in names.iter().zip(slices).zip(&call.inputs[3..]) {
        let (name, tensor) = (String::from_utf8_lossy(name), tensor.host()?);
        match &slice[..] {
            [] => writer.add(&name, tensor),
            slice => writer.add_slice(&name, &parse_slice(call, slice)?, tensor),
        }
        .map_err(status)?;
    }
    writer.finish().map_err(status)?;
    none()
}

/// Makes one checkpoint of several.
fn merge_checkpoints(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let destination = call.path(1)?;
    let prefixes: Vec<PathBuf> =
        call.host(0)?.strings()?.iter().map(RuntimeCall::path_of).collect::<Result<_>>()?;
    for path in prefixes.iter().chain([&destination]) {
        call.context().check_file(path)?;
    }
    let allow_missing = call.attrs.bool("allow_missing_files")?;
    merge(&prefixes, &destination, allow_missing, call.context().limits()).map_err(status)?;
    if call.attrs.bool("delete_old_dirs")? {
        let folders = prefixes.iter().filter_map(|prefix| prefix.parent());
        for folder in folders.filter(|&folder| Some(folder) != destination.parent()) {
            remove_if_empty(folder);
        }
    }
    none()
}

/// A folder that holds anything else, or was removed before, is left alone.
fn remove_if_empty(folder: &Path) {
    let _ = std::fs::remove_dir(folder);
}

fn status(error: ferroflow_format::Error) -> Error {
    Error::Status { code: error.code(), message: error.to_string() }
}
