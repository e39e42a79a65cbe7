//! Structured values.

use super::{optional_shape, tensor, value_dtype};
use crate::{
    proto::{self, structured_value::Kind, type_spec_proto::TypeSpecClass},
    structured_value::{StructuredValue, TypeSpec},
};
use ferroflow_ir::{Error, Limits, Result, TensorSpec};

/// A structured value.
///
/// # Errors
///
/// [`Error::Limit`] when it nests too deep, [`Error::Argument`] for a part that is left out, and
/// whatever is wrong with dtypes, shapes and tensors in it.
pub fn structured_value(
    proto: &proto::StructuredValue,
    limits: &Limits,
) -> Result<StructuredValue> {
    convert(proto, limits, 0)
}

fn convert(
    proto: &proto::StructuredValue,
    limits: &Limits,
    depth: usize,
) -> Result<StructuredValue> {
    if depth > limits.structure_depth {
        let (needed, limit) = (format!("{depth} levels"), limits.structure_depth as u64);
        return Err(Error::Limit { what: "structured value".into(), needed, limit });
    }
    let nested = |value: &proto::StructuredValue| convert(value, limits, depth + 1);
    let kind = proto.kind.as_ref().ok_or_else(|| missing("kind"))?;
    Ok(match kind {
        Kind::NoneValue(_) => StructuredValue::None,
        Kind::Float64Value(value) => StructuredValue::Float(*value),
        Kind::Int64Value(value) => StructuredValue::Int(*value),
        Kind::StringValue(value) => StructuredValue::String(value.clone()),
        Kind::BoolValue(value) => StructuredValue::Bool(*value),
        Kind::TensorShapeValue(shape) => StructuredValue::Shape(super::shape(shape)?),
        Kind::TensorDtypeValue(number) => StructuredValue::DType(value_dtype(*number)?),
        Kind::TensorSpecValue(spec) => {
            StructuredValue::TensorSpec(tensor_spec(&spec.name, spec.shape.as_ref(), spec.dtype)?)
        }
        Kind::BoundedTensorSpecValue(spec) => StructuredValue::BoundedTensorSpec {
            spec: tensor_spec(&spec.name, spec.shape.as_ref(), spec.dtype)?,
            minimum: tensor(spec.minimum.as_ref().ok_or_else(|| missing("minimum"))?, limits)?,
            maximum: tensor(spec.maximum.as_ref().ok_or_else(|| missing("maximum"))?, limits)?,
        },
        Kind::TypeSpecValue(spec) => {
            let state = spec.type_state.as_ref().ok_or_else(|| missing("type_state"))?;
            StructuredValue::TypeSpec(Box::new(type_spec(spec, nested(state)?)?))
        }
        Kind::ListValue(list) => {
            StructuredValue::List(list.values.iter().map(nested).collect::<Result<_>>()?)
        }
        Kind::TupleValue(tuple) => {
            StructuredValue::Tuple(tuple.values.iter().map(nested).collect::<Result<_>>()?)
        }
        Kind::DictValue(dict) => {
            let fields = dict.fields.iter().map(|(key, value)| Ok((key.clone(), nested(value)?)));
            StructuredValue::Dict(fields.collect::<Result<_>>()?)
        }
        Kind::NamedTupleValue(tuple) => {
            let fields = tuple.values.iter().map(|pair| {
                let value = pair.value.as_ref().ok_or_else(|| missing("value"))?;
                Ok((pair.key.clone(), nested(value)?))
            });
            let fields = fields.collect::<Result<_>>()?;
            StructuredValue::NamedTuple { name: tuple.name.clone(), fields }
        }
        Kind::TensorValue(value) => StructuredValue::Tensor(tensor(value, limits)?),
        Kind::NumpyValue(value) => StructuredValue::Numpy(tensor(value, limits)?),
    })
}

fn missing(part: &'static str) -> Error {
    Error::argument("structured value", part, "given", "nothing")
}

fn tensor_spec(
    name: &str,
    shape: Option<&proto::TensorShapeProto>,
    dtype: i32,
) -> Result<TensorSpec> {
    let spec = TensorSpec::new(value_dtype(dtype)?, optional_shape(shape)?);
    Ok(TensorSpec { name: name.into(), ..spec })
}

fn type_spec(spec: &proto::TypeSpecProto, state: StructuredValue) -> Result<TypeSpec> {
    let class = TypeSpecClass::try_from(spec.type_spec_class).unwrap_or(TypeSpecClass::Unknown);
    let n_components = n_components(spec, class, &state)?;
    Ok(TypeSpec { class, class_name: spec.type_spec_class_name.clone(), state, n_components })
}

/// The number of tensors in a value, which older files do not tell.
fn n_components(
    spec: &proto::TypeSpecProto,
    class: TypeSpecClass,
    state: &StructuredValue,
) -> Result<usize> {
    let state = match state {
        StructuredValue::Tuple(state) => &state[..],
        _ => &[],
    };
    let from_class = match (class, state) {
        (TypeSpecClass::SparseTensorSpec, _) => 3,
        (TypeSpecClass::IndexedSlicesSpec, [_, _, _, StructuredValue::DType(_), ..]) => 3,
        (TypeSpecClass::IndexedSlicesSpec, _) => 2,
        (TypeSpecClass::RaggedTensorSpec, [_, _, StructuredValue::Int(rank), ..]) => {
            rank.saturating_add(1)
        }
        (TypeSpecClass::VariableSpec, _) => 1,
        _ => i64::from(spec.num_flat_components),
    };
    let fits = usize::try_from(from_class).ok().filter(|&n| n <= MAX_COMPONENTS);
    fits.ok_or_else(|| {
        let expected = format!("between 0 and {MAX_COMPONENTS}");
        Error::argument("type spec", "number of components", expected, from_class)
    })
}

/// No value is made of more tensors than this.
const MAX_COMPONENTS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> proto::StructuredValue {
        let none = proto::StructuredValue { kind: Some(Kind::NoneValue(proto::NoneValue {})) };
        (0..depth).fold(none, |inner, _| {
            let list = proto::ListValue { values: vec![inner] };
            proto::StructuredValue { kind: Some(Kind::ListValue(list)) }
        })
    }

    #[test]
    fn depth_is_limited() {
        let limits = Limits { structure_depth: 5, ..Limits::default() };
        let value = structured_value(&nested(5), &limits).unwrap();
        assert_eq!(value.to_string(), "[[[[[None]]]]]");
        assert!(matches!(structured_value(&nested(6), &limits), Err(Error::Limit { .. })));
    }

    #[test]
    fn parts_must_be_there() {
        let check = |kind: Option<Kind>, expected: &str| {
            let error = structured_value(&proto::StructuredValue { kind }, &Limits::default());
            assert_eq!(error.unwrap_err().to_string(), expected);
        };
        check(None, "structured value: kind must be given, found nothing");
        check(
            Some(Kind::TypeSpecValue(Box::default())),
            "structured value: type_state must be given, found nothing",
        );
        check(
            Some(Kind::TensorDtypeValue(99)),
            "dtype: number must be that of a known dtype, found 99",
        );
    }
}
