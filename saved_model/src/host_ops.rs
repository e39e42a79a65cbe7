//! Ops that read and write files of the format, and the others that need its messages.

use crate::bundle::{Extent, Reader, SliceSpec, SliceTableWriter, TensorSlice, Writer, merge};
use bytes::Bytes;
use ferroflow_ir::{DType, Error as IrError, HostTensor, Shape, host_tensor::byte_len};
use ferroflow_runtime::{
    Context, EagerTensor, Error, Result, Results,
    ops::{RuntimeCall, none, one},
};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// Makes the ops that this crate implements known to a context. Loading a model does so.
pub fn add_ops(context: &Context) {
    context.add_host_op("LoadAndRemapMatrix", load_and_remap);
    context.add_host_op("MergeV2Checkpoints", merge_checkpoints);
    context.add_host_op("Restore", restore_one);
    context.add_host_op("RestoreSlice", restore_slice);
    context.add_host_op("RestoreV2", restore);
    context.add_host_op("Save", save_first_format);
    context.add_host_op("SaveSlices", save_slices_first_format);
    context.add_host_op("SaveV2", save);
    crate::events::add_ops(context);
    crate::json_example::add_ops(context);
    crate::forest::add_ops(context);
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

fn save_first_format(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let none = vec![Bytes::new(); call.inputs.len().saturating_sub(2)];
    save_table(call, &none, 2)
}

fn save_slices_first_format(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let slices = call.host(2)?.strings()?.to_vec();
    save_table(call, &slices, 3)
}

/// Writes the inputs from `first` on to a checkpoint of the first format.
fn save_table(call: &RuntimeCall<'_>, slices: &[Bytes], first: usize) -> Result<Results> {
    let path = call.path(0)?;
    call.context().check_file(&path)?;
    let names = call.host(1)?.strings()?;
    check_counts(call, call.inputs.len().saturating_sub(first), names, slices)?;
    let mut writer = SliceTableWriter::new(path);
    for ((name, slice), tensor) in names.iter().zip(slices).zip(&call.inputs[first..]) {
        let spec = match &slice[..] {
            [] => None,
            slice => Some(parse_slice(call, slice)?),
        };
        let name = String::from_utf8_lossy(name);
        writer.add(&name, spec.as_ref(), tensor.host()?).map_err(status)?;
    }
    writer.finish().map_err(status)?;
    none()
}

/// Reads a matrix whose rows and columns have new indices. An element without an old index takes the
/// next of the initial values. Source: `load_and_remap_matrix_op.cc` of TensorFlow.
fn load_and_remap(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let wrong = |name: &'static str, expected: String, found: String| -> Error {
        IrError::argument(call.op.name, name, expected, found).into()
    };
    let (reader, name) = (open(call)?, String::from_utf8_lossy(scalar(call, 1)?).into_owned());
    let entry = reader.entry(&name).ok_or_else(|| Error::Status {
        code: ferroflow_ir::Code::NotFound,
        message: format!("the checkpoint has no tensor `{name}`"),
    })?;
    let [old_rows, old_cols] = match (entry.dtype, entry.shape.dims()) {
        (DType::F32, &[rows, cols]) => [rows, cols],
        (dtype, _) => {
            let found = format!("{dtype}{}", entry.shape);
            return Err(wrong("old_tensor_name", "a matrix of float32".into(), found));
        }
    };
    let size = |name| Ok::<_, Error>(usize::try_from(call.attrs.int(name)?).unwrap_or_default());
    let (n_rows, n_cols) = (size("num_rows")?, size("num_cols")?);
    let rows = remapping(call, 2, n_rows, old_rows)?;
    // Without a list, columns stay where they are.
    let cols = match call.host(3)?.len() {
        0 if n_cols == old_cols => None,
        0 => return Err(wrong("num_cols", old_cols.to_string(), n_cols.to_string())),
        _ => Some(remapping(call, 3, n_cols, old_cols)?),
    };
    let shape = Shape::new([n_rows, n_cols])?;
    let (needed, limit) = (byte_len(DType::F32, &shape)?, call.context().limits().tensor_bytes);
    if needed > limit {
        let (what, needed) = ("a matrix of a checkpoint".into(), format!("{needed} bytes"));
        return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
    }
    let (first, last) = (rows.iter().flatten().min(), rows.iter().flatten().max());
    let old = match (first, last) {
        (Some(&start), Some(&last)) => {
            let rows = Extent::Range { start, length: last - start + 1 };
            let slice = TensorSlice::new([rows, Extent::Full]);
            let spec = SliceSpec { shape: entry.shape.clone(), slice };
            Some((start, reader.read_slice(&name, &spec).map_err(status)?))
        }
        _ => None,
    };
    let old = match &old {
        Some((start, tensor)) => (*start, tensor.as_slice::<f32>()?),
        None => (0, &[][..]),
    };
    let initial = call.host(4)?.as_slice::<f32>()?;
    let mut values = initial.iter();
    let mut found = Vec::with_capacity(shape.num_elements());
    for row in &rows {
        for at in 0..n_cols {
            let col = cols.as_ref().map_or(Some(at), |cols| cols[at]);
            let value = match (row, col) {
                (Some(row), Some(col)) => old.1.get((row - old.0) * old_cols + col),
                _ => values.next(),
            };
            let missing = || {
                let expected = "a value for each element without an old index".into();
                wrong("initializing_values", expected, initial.len().to_string())
            };
            found.push(*value.ok_or_else(missing)?);
        }
    }
    match values.len() {
        0 => one(HostTensor::from_slice(shape, &found)?),
        left => {
            let expected = format!("{} values", initial.len() - left);
            Err(wrong("initializing_values", expected, initial.len().to_string()))
        }
    }
}

/// The old index of each row or column, where it has one. None has two new indices.
fn remapping(
    call: &RuntimeCall<'_>,
    index: usize,
    n: usize,
    n_old: usize,
) -> Result<Vec<Option<usize>>> {
    let (name, listed) = (call.op.inputs[index].name, call.host(index)?.as_slice::<i64>()?);
    if listed.len() != n {
        return Err(
            IrError::argument(call.op.name, name, format!("{n} numbers"), listed.len()).into()
        );
    }
    let mut taken = HashSet::new();
    let mut indices = Vec::with_capacity(n);
    for &old in listed {
        let at = usize::try_from(old).ok();
        if at.is_some_and(|at| !taken.insert(at)) {
            let what = format!("two new indices for {old}").into();
            return Err(IrError::Unsupported { op: call.op.name.into(), what }.into());
        }
        if at.is_some_and(|at| at >= n_old) {
            let expected = format!("below {n_old}");
            return Err(IrError::argument(call.op.name, name, expected, old).into());
        }
        indices.push(at);
    }
    Ok(indices)
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
