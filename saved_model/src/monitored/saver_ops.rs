//! Savers that graphs have ops for, by the keys that these ops name.
//!
//! A graph's `SaveV2` and `RestoreV2` ops say which tensors are saved under which keys. The files
//! are written and read here, and the tensors fetched and fed: a graph needs no access to files,
//! which a [`Context`](ferroflow_runtime::Context) does not grant by default. Ops for other files
//! run themselves, where the context grants it.

use crate::{
    bundle::{Reader, SliceSpec, Writer},
    error::Result,
    proto::SaverDef,
    session::{Session, path_tensor},
};
use bytes::Bytes;
use ferroflow_ir::{Error as IrError, Graph, HostTensor, Outlet, tensor_name};
use ferroflow_runtime::EagerTensor;
use std::path::Path;

/// Writes what the saver's ops save.
pub(super) fn save(session: &Session, def: &SaverDef, prefix: &Path) -> Result<()> {
    let graph = session.graph().graph();
    let inputs = inputs_of(graph, &def.save_tensor_name, "SaveV2")?;
    if inputs.is_empty() {
        let feeds = [(def.filename_tensor_name.as_str(), path_tensor(prefix))];
        return session.run(&feeds, &[&def.save_tensor_name], &[]).map(drop);
    }
    let mut writer = Writer::create(prefix)?;
    for op in &inputs {
        let fetched = fetch(session, op.inputs.iter().skip(1))?;
        let [names, slices, values @ ..] = &fetched[..] else { continue };
        for (key, value) in keys(op, names, slices, values.len())?.into_iter().zip(values) {
            match &key.slice {
                None => writer.add(&key.name, value)?,
                Some(slice) => writer.add_slice(&key.name, slice, value)?,
            }
        }
    }
    Ok(writer.finish()?)
}

/// Sets what the saver's ops restore.
pub(super) fn restore(session: &Session, def: &SaverDef, prefix: &Path) -> Result<()> {
    let graph = session.graph().graph();
    let inputs = inputs_of(graph, &def.restore_op_name, "RestoreV2")?;
    let mut feeds: Vec<(String, EagerTensor)> = Vec::new();
    if inputs.is_empty() {
        feeds.push((def.filename_tensor_name.clone(), path_tensor(prefix)));
    } else {
        let reader = Reader::open(prefix, session.context().limits())?;
        for op in &inputs {
            let fetched = fetch(session, op.inputs.iter().skip(1))?;
            let [names, slices] = &fetched[..] else { continue };
            let keys = keys(op, names, slices, op.outputs.len())?;
            for (key, output) in keys.iter().zip(&op.outputs) {
                feeds.push((output.clone(), key.read(&reader)?.into()));
            }
        }
    }
    let feeds: Vec<(&str, EagerTensor)> =
        feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    session.run(&feeds, &[], &[&def.restore_op_name]).map(drop)
}

/// Op of a saver.
struct SaverOp {
    node: String,
    /// The names of the tensors it takes and has as results.
    inputs: Vec<String>,
    outputs: Vec<String>,
}

/// The ops of a kind that a tensor or op needs, in the order of the graph.
fn inputs_of(graph: &Graph, root: &str, kind: &str) -> Result<Vec<SaverOp>> {
    let root = tensor_name::parse(root).0;
    let absent = || IrError::NotFound { kind: "op", name: root.into() };
    let needed = graph.reachable_from([graph.find(root).ok_or_else(absent)?]);
    let found = graph.iter().filter(|(id, node)| node.op.name() == kind && needed.contains(id));
    let op = found.map(|(id, node)| {
        let name = |outlet: Outlet| tensor_name::of(graph, outlet);
        SaverOp {
            node: node.name.to_string(),
            inputs: node.inputs().iter().copied().map(name).collect(),
            outputs: (0..node.outputs().len()).map(|index| name(Outlet::new(id, index))).collect(),
        }
    });
    Ok(op.collect())
}

fn fetch<'a>(
    session: &Session,
    names: impl Iterator<Item = &'a String>,
) -> Result<Vec<HostTensor>> {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let values = session.run(&[], &names, &[])?.into_iter();
    values.map(|value| Ok(value.into_host()?)).collect()
}

/// Key of a tensor in a checkpoint: whole, or a slice of a larger one.
struct SaverKey {
    name: String,
    slice: Option<SliceSpec>,
}

impl SaverKey {
    fn read(&self, reader: &Reader) -> Result<HostTensor> {
        Ok(match &self.slice {
            None => reader.read(&self.name)?,
            Some(slice) => reader.read_slice(&self.name, slice)?,
        })
    }
}

/// The keys that an op names for `n` tensors.
fn keys(op: &SaverOp, names: &HostTensor, slices: &HostTensor, n: usize) -> Result<Vec<SaverKey>> {
    let (names, slices) = (names.strings()?, slices.strings()?);
    if [names.len(), slices.len()] != [n, n] {
        let rule = format!("there are {n} names and as many slices").into();
        return Err(IrError::Malformed { node: op.node.clone(), rule }.into());
    }
    names.iter().zip(slices).map(|(name, slice)| key(op, name, slice)).collect()
}

fn key(op: &SaverOp, name: &Bytes, slice: &Bytes) -> Result<SaverKey> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let parsed = (!slice.is_empty()).then(|| text(slice).parse()).transpose();
    let wrong = |_| {
        let rule = format!("`{}` is a slice", text(slice)).into();
        IrError::Malformed { node: op.node.clone(), rule }
    };
    Ok(SaverKey { name: text(name), slice: parsed.map_err(wrong)? })
}
