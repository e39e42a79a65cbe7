//! Lookup tables.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    resource::{Resource, ResourceHandle},
    table::{
        LookupTable, TableKind, TableOptions,
        buckets::Buckets,
        text::{Lines, TextColumns},
    },
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor, Shape};
use smallvec::SmallVec;
use std::{collections::HashMap, sync::Arc};

fn table(call: &RuntimeCall<'_>) -> Result<Arc<LookupTable>> {
    call.resource(0, "a lookup table")
}

/// A new table behind a handle, or the one of the name that the call returns.
fn handle(call: &RuntimeCall<'_>, kind: TableKind, key_shape: Shape) -> Result<Results> {
    let attrs = call.attrs;
    let value_shape = match attrs.get("value_shape") {
        None => Shape::scalar(),
        Some(_) => attrs.shape("value_shape")?.known().ok_or_else(|| {
            wrong(call, "value_shape", "known", attrs.get("value_shape").map(|s| s.to_string()))
        })?,
    };
    let options = TableOptions {
        kind,
        key_dtype: attrs.dtype("key_dtype")?,
        key_shape,
        value_dtype: attrs.dtype("value_dtype")?,
        value_shape,
    };
    let name = attrs.string("shared_name").unwrap_or_default();
    let make = || Ok(Arc::new(LookupTable::new(options.clone())?) as Arc<dyn Resource>);
    if name.is_empty() {
        return one(ResourceHandle::owning(name, make()?).to_tensor());
    }
    let resource = call.scope.resources.find_or_create(attrs.string("container")?, name, make)?;
    let handle = ResourceHandle::owning(name, resource);
    let found = handle.downcast::<LookupTable>("a lookup table")?;
    if *found.options() != options {
        let found = Some(format!("{:?}", found.options()));
        return Err(wrong(call, "shared_name", "the name of a table of this kind", found));
    }
    one(handle.to_tensor())
}

fn wrong(
    call: &RuntimeCall<'_>,
    argument: &'static str,
    expected: &'static str,
    found: Option<String>,
) -> Error {
    let found = found.unwrap_or_else(|| "something else".into());
    IrError::argument(call.op.name, argument, expected, found).into()
}

fn constant(call: &mut RuntimeCall<'_>) -> Result<Results> {
    handle(call, TableKind::Constant, Shape::scalar())
}

fn mutable(call: &mut RuntimeCall<'_>) -> Result<Results> {
    handle(call, TableKind::Mutable, Shape::scalar())
}

fn mutable_of_tensors(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let shape = call.attrs.shape("value_shape")?;
    if shape.rank() != Some(1) {
        return Err(wrong(call, "value_shape", "that of a vector", Some(shape.to_string())));
    }
    handle(call, TableKind::Mutable, Shape::scalar())
}

fn dense(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (empty, deleted) = (call.host(0)?.clone(), call.host(1)?.clone());
    if empty.shape() != deleted.shape() || empty == deleted {
        let found = Some(format!("{empty:?} and {deleted:?}"));
        return Err(wrong(call, "deleted_key", "another key than `empty_key`", found));
    }
    let initial = call.attrs.int("initial_num_buckets")?;
    let is_fit = |n: &usize| *n >= 4 && n.is_power_of_two();
    let Some(initial) = usize::try_from(initial).ok().filter(is_fit) else {
        let expected = "4 or a higher power of 2";
        return Err(wrong(call, "initial_num_buckets", expected, Some(initial.to_string())));
    };
    let load = call.attrs.float("max_load_factor")?;
    if !(load > 0.0 && load < 1.0) {
        return Err(wrong(call, "max_load_factor", "between 0 and 1", Some(load.to_string())));
    }
    let shape = call.attrs.shape("value_shape")?;
    if shape.rank().is_none_or(|rank| rank > 1) {
        let found = Some(shape.to_string());
        return Err(wrong(call, "value_shape", "that of a scalar or a vector", found));
    }
    let shape = empty.shape().clone();
    let buckets = Buckets { initial, load };
    handle(call, TableKind::Dense { reserved: [empty, deleted], buckets }, shape)
}

fn initialize(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (keys, values) = (call.host(1)?, call.host(2)?);
    if keys.shape().rank() != 1 {
        return Err(wrong(call, "keys", "a vector", Some(keys.shape().to_string())));
    }
    table(call)?.fill(keys, values)?;
    none()
}

fn initialize_from_text(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let table = table(call)?;
    let TableOptions { key_dtype, value_dtype, .. } = *table.options();
    let path = call.path(1)?;
    call.scope.check_file(&path)?;
    let columns = TextColumns {
        key: call.attrs.int("key_index")?,
        key_dtype,
        value: call.attrs.int("value_index")?,
        value_dtype,
        delimiter: one_char(call)?,
        offset: call.attrs.int("offset")?,
    };
    columns.check()?;
    let text = crate::files::read(&path).map_err(|error| super::file::file_error(&path, &error))?;
    let size = usize::try_from(call.attrs.int("vocab_size")?).ok();
    let (keys, values) = columns.parse(Lines { path: &path, text: &text, size })?;
    table.fill(&keys, &values)?;
    none()
}

/// The lines of the vocabulary in scalar string input `index`, no more of them than `size`.
fn vocabulary(call: &RuntimeCall<'_>, index: usize, size: Option<usize>) -> Result<Vec<Bytes>> {
    let path = call.path(index)?;
    if path.as_os_str().is_empty() {
        return Err(wrong(call, call.op.inputs[index].name, "the name of a file", None));
    }
    let columns = TextColumns {
        key: -2,
        key_dtype: DType::String,
        value: -1,
        value_dtype: DType::I64,
        delimiter: b'\t',
        offset: 0,
    };
    let text = super::file::contents(call, &path)?;
    let (lines, _) = columns.parse(Lines { path: &path, text: &text, size })?;
    Ok(lines.strings()?.to_vec())
}

/// Source: `generate_vocab_remapping_op.cc` of TensorFlow.
fn remap_vocabulary(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let count = |name: &str| Ok::<_, Error>(usize::try_from(call.attrs.int(name)?).ok());
    let offset = count("new_vocab_offset")?.unwrap_or_default();
    let n = count("num_new_vocab")?.unwrap_or_default();
    let new = vocabulary(call, 0, None)?;
    let own = offset.checked_add(n).and_then(|end| new.get(offset..end)).ok_or_else(|| {
        let expected = "within the lines of the new vocabulary";
        wrong(call, "num_new_vocab", expected, Some(format!("{n} from {offset} of {}", new.len())))
    })?;
    let mut old: HashMap<Bytes, i64> = HashMap::new();
    for (at, line) in vocabulary(call, 1, count("old_vocab_size")?)?.into_iter().enumerate() {
        if old.insert(line.clone(), at as i64).is_some() {
            let line = String::from_utf8_lossy(&line);
            let detail = format!("the old vocabulary has the line `{line}` twice");
            let (code, op) = (Code::FailedPrecondition, call.op.name.into());
            return Err(IrError::Status { code, op, detail }.into());
        }
    }
    let found: Vec<i64> = own.iter().map(|line| old.get(line).copied().unwrap_or(-1)).collect();
    let n_present = found.iter().filter(|&&at| at >= 0).count() as i32;
    let present = HostTensor::scalar(n_present);
    Ok(Results::from_iter([HostTensor::vector(&found)?.into(), present.into()]))
}

fn one_char(call: &RuntimeCall<'_>) -> Result<u8> {
    match call.attrs.string("delimiter")?.as_bytes() {
        [delimiter] => Ok(*delimiter),
        other => {
            let found = Some(String::from_utf8_lossy(other).into_owned());
            Err(wrong(call, "delimiter", "one character", found))
        }
    }
}

fn export(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (keys, values) = table(call)?.export(call.context())?;
    keys.check(call.attrs.dtype("Tkeys")?)?;
    values.check(call.attrs.dtype("Tvalues")?)?;
    Ok(SmallVec::from_iter([keys.into(), values.into()]))
}

fn find(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(table(call)?.find(call.context(), call.host(1)?, call.host(2)?)?)
}

fn import(call: &mut RuntimeCall<'_>) -> Result<Results> {
    table(call)?.import(call.host(1)?, call.host(2)?)?;
    none()
}

fn insert(call: &mut RuntimeCall<'_>) -> Result<Results> {
    table(call)?.insert(call.host(1)?, call.host(2)?)?;
    none()
}

fn remove(call: &mut RuntimeCall<'_>) -> Result<Results> {
    table(call)?.remove(call.host(1)?)?;
    none()
}

fn size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(table(call)?.len() as i64))
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("AnonymousHashTable", constant),
    ("AnonymousMutableDenseHashTable", dense),
    ("AnonymousMutableHashTable", mutable),
    ("AnonymousMutableHashTableOfTensors", mutable_of_tensors),
    ("GenerateVocabRemapping", remap_vocabulary),
    ("HashTableV2", constant),
    ("InitializeTableFromTextFileV2", initialize_from_text),
    ("InitializeTableV2", initialize),
    ("LookupTableExportV2", export),
    ("LookupTableFindV2", find),
    ("LookupTableImportV2", import),
    ("LookupTableInsertV2", insert),
    ("LookupTableRemoveV2", remove),
    ("LookupTableSizeV2", size),
    ("MutableDenseHashTableV2", dense),
    ("MutableHashTableOfTensorsV2", mutable_of_tensors),
    ("MutableHashTableV2", mutable),
];
