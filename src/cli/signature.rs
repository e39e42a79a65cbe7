//! Signatures as their messages describe them.

use ferroflow::{
    ir::{Limits, PartialShape},
    saved_model::{
        convert,
        proto::{SignatureDef, TensorInfo, tensor_info::Encoding},
    },
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The signature that tells how state is initialised; it is not for users.
pub(super) const INIT_OP: &str = "__saved_model_init_op";

/// `(inputs) -> (outputs)`, as dtypes and shapes.
pub(super) fn brief(signature: &SignatureDef) -> String {
    let input = |(name, info): (&String, _)| match default(signature, name) {
        Some(value) => format!("{name}: {} = {value}", ty(info)),
        None => format!("{name}: {}", ty(info)),
    };
    let inputs = signature.inputs.iter().map(input);
    let outputs = signature.outputs.iter().map(|(name, info)| format!("{name}: {}", ty(info)));
    let list = |each: Vec<String>| each.join(", ");
    format!("({}) -> ({})", list(inputs.collect()), list(outputs.collect()))
}

/// The value that an input has where a call leaves it out; a long one is cut.
pub(super) fn default(signature: &SignatureDef, input: &str) -> Option<String> {
    const MOST: usize = 40;
    let message = signature.defaults.get(input)?;
    let text = match convert::tensor(message, &Limits::default()) {
        Ok(value) => value.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
        Err(_) => return Some("[bad value]".into()),
    };
    Some(match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    })
}

/// Dtype and shape of a tensor, such as `float32[?,4]`.
pub(super) fn ty(info: &TensorInfo) -> String {
    let shape = shape(info);
    format!(
        "{}{}",
        dtype(info),
        shape.map_or_else(|| "[bad shape]".into(), |shape| shape.to_string())
    )
}

fn dtype(info: &TensorInfo) -> String {
    match convert::dtype(info.dtype) {
        Ok((dtype, _)) => dtype.name().into(),
        Err(_) => format!("dtype {}", info.dtype),
    }
}

fn shape(info: &TensorInfo) -> Option<PartialShape> {
    match &info.tensor_shape {
        Some(shape) => convert::shape(shape).ok(),
        None => Some(PartialShape::Unknown),
    }
}

/// The names in the graph of what makes up a tensor.
pub(super) fn tensors(info: &TensorInfo) -> Vec<String> {
    match &info.encoding {
        Some(Encoding::Name(name)) => vec![name.clone()],
        Some(Encoding::CooSparse(parts)) => vec![
            parts.indices_tensor_name.clone(),
            parts.values_tensor_name.clone(),
            parts.dense_shape_tensor_name.clone(),
        ],
        // Composite tensors of composite tensors do not occur.
        Some(Encoding::CompositeTensor(composite)) => composite
            .components
            .iter()
            .map(|part| match &part.encoding {
                Some(Encoding::Name(name)) => name.clone(),
                _ => String::new(),
            })
            .collect(),
        None => Vec::new(),
    }
}

pub(super) fn json(signature: &SignatureDef) -> Value {
    json!({
        "method": signature.method_name,
        "inputs": sides(&signature.inputs),
        "defaults": signature.defaults.keys().collect::<Vec<_>>(),
        "outputs": sides(&signature.outputs),
    })
}

fn sides(tensors: &BTreeMap<String, TensorInfo>) -> Value {
    let each = |(name, info): (&String, &TensorInfo)| {
        let dims = shape(info).and_then(|shape| shape.dims().map(<[_]>::to_vec));
        let value = json!({ "dtype": dtype(info), "shape": dims, "tensors": self::tensors(info) });
        (name.clone(), value)
    };
    Value::Object(tensors.iter().map(each).collect())
}
