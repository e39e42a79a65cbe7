//! Tensors and attributes as the recorded cases hold them.

use anyhow::{Context as _, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ferroflow::ir::{
    AttrValue, Attrs, DType, HostTensor, NameAttrList, OpDef, PartialShape, Shape, op::AttrKind,
};
use serde_json::Value;

pub(crate) fn base64(value: &Value) -> Result<Vec<u8>> {
    Ok(STANDARD.decode(value.as_str().context("base64 text")?)?)
}

pub(crate) fn shape(value: &Value) -> Result<Shape> {
    let dims = value.as_array().context("a shape is a list")?;
    let dims: Option<Vec<usize>> =
        dims.iter().map(|dim| dim.as_u64().map(|dim| dim as usize)).collect();
    Ok(Shape::new(dims.context("a known shape")?)?)
}

/// A tensor `{"dtype", "shape", "b64" | "values"}`.
pub(crate) fn tensor(value: &Value) -> Result<HostTensor> {
    let dtype: DType = value["dtype"].as_str().context("a dtype")?.parse()?;
    let shape = shape(&value["shape"])?;
    if dtype == DType::String {
        let values = value["values"].as_array().context("the values of a string tensor")?;
        let strings: Result<Vec<_>> = values.iter().map(|v| Ok(base64(v)?.into())).collect();
        return Ok(HostTensor::from_strings(shape, strings?)?);
    }
    Ok(HostTensor::from_bytes(dtype, shape, &base64(&value["b64"])?)?)
}

/// Attributes by the kinds in the op's record.
pub(crate) fn attrs(op: &OpDef, value: &Value) -> Result<Attrs> {
    let mut attrs = Attrs::new();
    let attributes = value.as_object().context("attrs are an object")?;
    for (name, value) in attributes {
        if let Some(def) = op.attr(name) {
            attrs
                .set(name.as_str(), attr(def.kind, value).with_context(|| format!("attr {name}"))?);
        }
    }
    Ok(attrs)
}

fn attr(kind: AttrKind, value: &Value) -> Result<AttrValue> {
    let list = || value.as_array().context("a list");
    Ok(match kind {
        AttrKind::String => AttrValue::String(text(value)?.into()),
        AttrKind::Int => AttrValue::Int(value.as_i64().context("an integer")?),
        AttrKind::Float => AttrValue::Float(float(value)?),
        AttrKind::Bool => AttrValue::Bool(value.as_bool().context("a flag")?),
        AttrKind::Type => AttrValue::Type(dtype(value)?),
        AttrKind::Shape => AttrValue::Shape(partial_shape(value)?),
        AttrKind::Tensor => AttrValue::Tensor(tensor(&value["tensor"])?),
        AttrKind::Func => AttrValue::Func(NameAttrList::new(value.as_str().unwrap_or(""))),
        AttrKind::Strings => {
            let texts: Result<Vec<_>> = list()?.iter().map(|v| Ok(text(v)?.into())).collect();
            AttrValue::Strings(texts?)
        }
        AttrKind::Ints => {
            let ints: Option<Vec<i64>> = list()?.iter().map(Value::as_i64).collect();
            AttrValue::Ints(ints.context("integers")?)
        }
        AttrKind::Floats => AttrValue::Floats(list()?.iter().map(float).collect::<Result<_>>()?),
        AttrKind::Bools => {
            let bools: Option<Vec<bool>> = list()?.iter().map(Value::as_bool).collect();
            AttrValue::Bools(bools.context("flags")?)
        }
        AttrKind::Types => AttrValue::Types(list()?.iter().map(dtype).collect::<Result<_>>()?),
        AttrKind::Shapes => {
            AttrValue::Shapes(list()?.iter().map(partial_shape).collect::<Result<_>>()?)
        }
        AttrKind::Tensors | AttrKind::Funcs => bail!("no case has such a list"),
    })
}

fn dtype(value: &Value) -> Result<DType> {
    Ok(value.as_str().context("a dtype")?.parse()?)
}

fn float(value: &Value) -> Result<f32> {
    match value.as_str() {
        Some("nan") => Ok(f32::NAN),
        Some("inf") => Ok(f32::INFINITY),
        Some("-inf") => Ok(f32::NEG_INFINITY),
        _ => Ok(value.as_f64().context("a float")? as f32),
    }
}

fn text(value: &Value) -> Result<Vec<u8>> {
    match value.as_str() {
        Some(text) => Ok(text.as_bytes().to_vec()),
        None => base64(&value["b64"]),
    }
}

fn partial_shape(value: &Value) -> Result<PartialShape> {
    match value.as_array() {
        None => Ok(PartialShape::Unknown),
        Some(dims) => {
            Ok(PartialShape::ranked(dims.iter().map(|dim| dim.as_u64().map(|dim| dim as usize))))
        }
    }
}
