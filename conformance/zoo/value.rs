//! Arguments and results as the cases hold them.

use crate::{
    compare::{Compare, Tolerance},
    ops::base64,
};
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    ir::{DType, HostTensor, PartialShape, Shape},
    npy,
    runtime::EagerTensor,
    saved_model::{CompositeTensor, PythonValue, structured_value::TypeSpecClass},
};
use serde_json::Value as Json;
use std::{collections::BTreeMap, path::Path};

/// A tensor `{"npy", "dtype", "shape"}` or `{"dtype", "shape", "values"}`.
pub(crate) fn tensor(json: &Json, folder: &Path) -> Result<HostTensor> {
    let dtype: DType = json["dtype"].as_str().context("a dtype")?.parse()?;
    if let Some(path) = json["npy"].as_str() {
        let stored = npy::read(folder.join(path))?;
        let shape = stored.shape().clone();
        return match stored.dtype() {
            DType::String => Ok(stored),
            _ => Ok(HostTensor::from_bytes(dtype, shape, stored.bytes())?),
        };
    }
    let values = json["values"].as_array().context("the values of a string tensor")?;
    let strings: Result<Vec<_>> = values.iter().map(|value| Ok(base64(value)?.into())).collect();
    Ok(HostTensor::from_strings(shape(&json["shape"])?, strings?)?)
}

fn shape(json: &Json) -> Result<Shape> {
    let shape = partial_shape(json)?;
    shape.known().context("a known shape")
}

fn partial_shape(json: &Json) -> Result<PartialShape> {
    match json.as_array() {
        None => Ok(PartialShape::Unknown),
        Some(dims) => {
            Ok(PartialShape::ranked(dims.iter().map(|dim| dim.as_u64().map(|dim| dim as usize))))
        }
    }
}

/// The only key of an object that says which kind of value it is.
fn tagged(json: &Json) -> Option<(&str, &Json)> {
    let fields = json.as_object()?;
    match fields.len() {
        1 => fields.iter().next().map(|(key, value)| (key.as_str(), value)),
        _ => None,
    }
}

/// An argument.
pub(crate) fn argument(json: &Json, folder: &Path) -> Result<PythonValue> {
    let list = |json: &Json| -> Result<Vec<PythonValue>> {
        json.as_array().context("a list")?.iter().map(|value| argument(value, folder)).collect()
    };
    Ok(match tagged(json) {
        None => tensor(json, folder)?.into(),
        Some(("py", value)) => python(value)?,
        Some(("py_dtype", value)) => {
            PythonValue::DType(value.as_str().context("a dtype")?.parse()?)
        }
        Some(("py_shape", value)) => PythonValue::Shape(partial_shape(value)?),
        Some(("list", values)) => PythonValue::List(list(values)?),
        Some(("tuple", values)) => PythonValue::Tuple(list(values)?),
        Some(("dict", fields)) => {
            let fields = fields.as_object().context("fields")?;
            let each =
                fields.iter().map(|(key, value)| Ok((key.clone(), argument(value, folder)?)));
            PythonValue::Dict(each.collect::<Result<_>>()?)
        }
        Some(("namedtuple", tuple)) => {
            let fields = tuple["fields"].as_array().context("fields")?;
            let each = fields.iter().map(|field| {
                let name = field[0].as_str().context("a name")?;
                Ok((name.to_string(), argument(&field[1], folder)?))
            });
            let name = tuple["type"].as_str().unwrap_or("").to_string();
            PythonValue::NamedTuple { name, fields: each.collect::<Result<_>>()? }
        }
        Some((tag, parts)) => PythonValue::Composite(composite(tag, parts, folder)?),
    })
}

fn python(json: &Json) -> Result<PythonValue> {
    Ok(match json {
        Json::Null => PythonValue::None,
        Json::Bool(value) => PythonValue::Bool(*value),
        Json::String(value) => PythonValue::String(value.clone()),
        Json::Number(value) => match value.as_i64() {
            Some(value) => PythonValue::Int(value),
            None => PythonValue::Float(value.as_f64().context("a float")?),
        },
        other => bail!("{other} is no Python value"),
    })
}

/// A value of several tensors.
fn composite(tag: &str, parts: &Json, folder: &Path) -> Result<CompositeTensor> {
    let several = |keys: &[&str]| -> Result<Vec<EagerTensor>> {
        let given = keys.iter().filter(|key| parts.get(**key).is_some());
        given.map(|key| Ok(tensor(&parts[key], folder)?.into())).collect()
    };
    let (class, components) = match tag {
        "sparse" => {
            let keys = ["indices", "values", "dense_shape"];
            (TypeSpecClass::SparseTensorSpec, several(&keys)?)
        }
        "indexed_slices" => {
            let keys = ["values", "indices", "dense_shape"];
            (TypeSpecClass::IndexedSlicesSpec, several(&keys)?)
        }
        "ragged" => {
            let (mut splits, mut values) = (Vec::new(), parts);
            loop {
                splits.push(tensor(&values["row_splits"], folder)?.into());
                values = &values["values"];
                match values.get("ragged") {
                    Some(inner) => values = inner,
                    None => break,
                }
            }
            splits.insert(0, tensor(values, folder)?.into());
            (TypeSpecClass::RaggedTensorSpec, splits)
        }
        other => bail!("unknown kind of value `{other}`"),
    };
    Ok(CompositeTensor { class, components })
}

/// Checks that a result is the recorded one.
pub(crate) fn check(
    found: &PythonValue,
    expected: &Json,
    folder: &Path,
    tolerance: Tolerance,
) -> Result<()> {
    let all = |found: &[PythonValue], expected: &Json| {
        let expected = expected.as_array().context("a list")?;
        if found.len() != expected.len() {
            bail!("{} values instead of {}", found.len(), expected.len());
        }
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            check(found, expected, folder, tolerance).with_context(|| format!("[{index}]"))?;
        }
        Ok(())
    };
    match (found, tagged(expected)) {
        (PythonValue::Tensor(found), None) => {
            Compare::Close(tolerance).check(found.host()?, &tensor(expected, folder)?)
        }
        (PythonValue::Tensor(found), Some(("spec", spec))) => {
            let found = found.spec();
            let dtype = spec["dtype"].as_str().context("a dtype")?.parse::<DType>()?;
            let same = found.dtype == dtype && found.shape == partial_shape(&spec["shape"])?;
            if same { Ok(()) } else { bail!("{found} instead of {spec}") }
        }
        (PythonValue::List(found), Some(("list", expected)))
        | (PythonValue::Tuple(found), Some(("tuple", expected))) => all(found, expected),
        (PythonValue::Dict(found), Some(("dict", expected))) => {
            let expected = expected.as_object().context("fields")?;
            let found = joined(found, expected);
            if !found.keys().eq(expected.keys().collect::<std::collections::BTreeSet<_>>()) {
                let found: Vec<&String> = found.keys().collect();
                bail!("{found:?} instead of {:?}", expected.keys().collect::<Vec<_>>());
            }
            for (key, found) in &found {
                check(found, &expected[key], folder, tolerance).with_context(|| key.clone())?;
            }
            Ok(())
        }
        (PythonValue::NamedTuple { name, fields }, Some(("namedtuple", expected))) => {
            let expected_fields = expected["fields"].as_array().context("fields")?;
            let names = fields.iter().map(|(name, _)| Some(name.as_str()));
            if expected["type"].as_str() != Some(name)
                || !names.eq(expected_fields.iter().map(|field| field[0].as_str()))
            {
                bail!("{found} instead of {expected}");
            }
            for ((name, found), expected) in fields.iter().zip(expected_fields) {
                check(found, &expected[1], folder, tolerance).with_context(|| name.clone())?;
            }
            Ok(())
        }
        (PythonValue::Composite(found), Some((tag, parts))) => {
            let expected = composite(tag, parts, folder)?;
            let (n, n_expected) = (found.components.len(), expected.components.len());
            // The dense shape of slices is not recorded.
            let as_many = match expected.class {
                TypeSpecClass::IndexedSlicesSpec => n >= n_expected,
                _ => n == n_expected,
            };
            if found.class != expected.class || !as_many {
                bail!("{found:?} instead of {expected:?}");
            }
            for (found, expected) in found.components.iter().zip(&expected.components) {
                Compare::Close(tolerance).check(found.host()?, expected.host()?)?;
            }
            Ok(())
        }
        (found, Some(("py" | "py_dtype" | "py_shape", _))) => {
            let expected = argument(expected, folder)?;
            let same = found.to_string() == expected.to_string();
            if same { Ok(()) } else { bail!("{found} instead of {expected}") }
        }
        (found, _) => bail!("{found} instead of {expected}"),
    }
}

/// The fields with the parts of sparse tensors together where a sparse tensor is expected.
fn joined(
    found: &BTreeMap<String, PythonValue>,
    expected: &serde_json::Map<String, Json>,
) -> BTreeMap<String, PythonValue> {
    let mut fields = found.clone();
    for name in expected.iter().filter(|(_, value)| value.get("sparse").is_some()).map(|(k, _)| k) {
        let parts = ["indices", "values", "dense_shape"].map(|part| format!("{name}_{part}"));
        let components: Option<Vec<EagerTensor>> =
            parts.iter().map(|part| fields.get(part)?.tensor().cloned()).collect();
        if let Some(components) = components {
            parts.iter().for_each(|part| drop(fields.remove(part)));
            let class = TypeSpecClass::SparseTensorSpec;
            fields.insert(
                name.clone(),
                PythonValue::Composite(CompositeTensor { class, components }),
            );
        }
    }
    fields
}
