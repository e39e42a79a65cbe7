//! Files that hold weights and no graph: those of Keras, and safetensors.

use super::{Report, array_json, columns, file_kind::FileKind};
use anyhow::{Result, anyhow};
use ferroflow::{ir::HostTensor, keras_file, safetensors};
use serde_json::{Value, json};
use std::path::Path;

/// Weights by name, sorted.
pub(super) type NamedWeights = Vec<(String, HostTensor)>;

/// The weights in a file, if it is one of weights.
///
/// # Errors
///
/// When it is, and cannot be read.
pub(super) fn read(path: &Path) -> Result<Option<NamedWeights>> {
    Ok(match FileKind::of(path) {
        FileKind::KerasArchive | FileKind::KerasWeights | FileKind::Hdf5 => {
            Some(keras_file::read(path)?)
        }
        FileKind::Safetensors => Some(safetensors::read(path)?),
        _ => None,
    })
}

/// Names and types of weights, or the elements of those that are named.
///
/// # Errors
///
/// When there is none of a name.
pub(super) fn show(path: &Path, weights: &NamedWeights, names: &[String]) -> Result<Report> {
    if names.is_empty() {
        return Ok(list(path, weights));
    }
    let found = names.iter().map(|name| {
        let weight = weights.iter().find(|(weight, _)| weight == name);
        let all = || weights.iter().map(|(name, _)| name.as_str());
        let (name, tensor) = weight.ok_or_else(|| no_tensor(name, all()))?;
        Ok((name.as_str(), tensor.clone()))
    });
    Ok(values(&found.collect::<Result<Vec<_>>>()?))
}

fn list(path: &Path, weights: &NamedWeights) -> Report {
    let cell = |(name, tensor): &(String, HostTensor)| {
        (name.clone(), format!("{}{}", tensor.dtype(), tensor.shape()))
    };
    let row = |(name, tensor): &(String, HostTensor)| json!({ "name": name, "dtype": tensor.dtype().name(), "shape": tensor.shape().dims() });
    let bytes: usize = weights.iter().map(|(_, tensor)| tensor.bytes().len()).sum();
    let cells: Vec<(String, String)> = weights.iter().map(cell).collect();
    let end = format!("{} tensors, {bytes} bytes of numbers", weights.len());
    let text = if cells.is_empty() { end } else { format!("{}\n{end}", columns(&cells, "")) };
    let rows: Vec<_> = weights.iter().map(row).collect();
    Report { text, json: json!({ "file": path.display().to_string(), "tensors": rows }) }
}

/// The error of a name that is none, with those that are like it.
pub(super) fn no_tensor<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> anyhow::Error {
    let like = |entry: &&str| entry.to_lowercase().contains(&name.to_lowercase());
    let near: Vec<&str> = names.filter(like).collect();
    match near.is_empty() {
        true => anyhow!("there is no tensor `{name}`, nor one of a similar name"),
        false => anyhow!("there is no tensor `{name}`; similar names: [{}]", near.join(", ")),
    }
}

/// Names, types and elements of tensors.
pub(super) fn values(tensors: &[(&str, HostTensor)]) -> Report {
    let text = |(name, tensor): &(&str, HostTensor)| {
        format!("{name}: {}{}\n{tensor}", tensor.dtype(), tensor.shape())
    };
    let field =
        |(name, tensor): &(&str, HostTensor)| ((*name).to_string(), array_json::tensor(tensor));
    Report {
        text: tensors.iter().map(text).collect::<Vec<_>>().join("\n"),
        json: Value::Object(tensors.iter().map(field).collect()),
    }
}
