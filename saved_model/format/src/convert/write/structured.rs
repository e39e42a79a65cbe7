//! Structured values, and the types of arguments as such.

use super::tensor_message;
use crate::{
    convert::partial_shape_message,
    proto::{self, structured_value::Kind, type_spec_proto::TypeSpecClass},
    structured_value::{StructuredValue, TypeSpec},
};
use ferroflow_ir::{
    Error, Result, TensorSpec, TraceType,
    trace_type::{Literal, MapKey, VariableSpec},
};
use std::collections::BTreeMap;

/// The message of a structured value.
///
/// # Errors
///
/// Those of [`tensor_message`].
pub fn structured_message(value: &StructuredValue) -> Result<proto::StructuredValue> {
    let all = |values: &[StructuredValue]| -> Result<Vec<proto::StructuredValue>> {
        values.iter().map(structured_message).collect()
    };
    let kind = match value {
        StructuredValue::None => Kind::NoneValue(proto::NoneValue {}),
        StructuredValue::Float(value) => Kind::Float64Value(*value),
        StructuredValue::Int(value) => Kind::Int64Value(*value),
        StructuredValue::String(value) => Kind::StringValue(value.clone()),
        StructuredValue::Bool(value) => Kind::BoolValue(*value),
        StructuredValue::Shape(shape) => Kind::TensorShapeValue(partial_shape_message(shape)),
        StructuredValue::DType(dtype) => Kind::TensorDtypeValue(dtype.number()),
        StructuredValue::TensorSpec(spec) => Kind::TensorSpecValue(proto::TensorSpecProto {
            name: spec.name.clone(),
            shape: Some(partial_shape_message(&spec.shape)),
            dtype: spec.dtype.number(),
        }),
        StructuredValue::BoundedTensorSpec { spec, minimum, maximum } => {
            Kind::BoundedTensorSpecValue(proto::BoundedTensorSpecProto {
                name: spec.name.clone(),
                shape: Some(partial_shape_message(&spec.shape)),
                dtype: spec.dtype.number(),
                minimum: Some(tensor_message(minimum)?),
                maximum: Some(tensor_message(maximum)?),
            })
        }
        StructuredValue::TypeSpec(spec) => Kind::TypeSpecValue(Box::new(proto::TypeSpecProto {
            type_spec_class: spec.class.into(),
            type_state: Some(Box::new(structured_message(&spec.state)?)),
            type_spec_class_name: spec.class_name.clone(),
            num_flat_components: spec.n_components as i32,
        })),
        StructuredValue::List(values) => Kind::ListValue(proto::ListValue { values: all(values)? }),
        StructuredValue::Tuple(values) => {
            Kind::TupleValue(proto::TupleValue { values: all(values)? })
        }
        StructuredValue::Dict(fields) => {
            let fields =
                fields.iter().map(|(key, value)| Ok((key.clone(), structured_message(value)?)));
            Kind::DictValue(proto::DictValue { fields: fields.collect::<Result<_>>()? })
        }
        StructuredValue::NamedTuple { name, fields } => {
            let pair = |(key, value): &(String, StructuredValue)| {
                let value = Some(structured_message(value)?);
                Ok(proto::PairValue { key: key.clone(), value })
            };
            let values = fields.iter().map(pair).collect::<Result<_>>()?;
            Kind::NamedTupleValue(proto::NamedTupleValue { name: name.clone(), values })
        }
        StructuredValue::Tensor(tensor) => Kind::TensorValue(tensor_message(tensor)?),
        StructuredValue::Numpy(tensor) => Kind::NumpyValue(tensor_message(tensor)?),
    };
    Ok(proto::StructuredValue { kind: Some(kind) })
}

/// The type of an argument or a result as files describe it. Tensors that have no name of their own
/// are called `name`.
///
/// # Errors
///
/// [`Error::Argument`] for what files cannot hold: types with rules of their own, maps with numbers
/// as keys, and integers beyond 64 bits.
pub fn structured_type(ty: &TraceType, name: &str) -> Result<StructuredValue> {
    let refused = |found: &dyn std::fmt::Display| {
        let expected = "of a kind that files hold: tensors, variables, numbers, texts, dtypes, \
                        shapes, and lists, tuples, structures and maps by name of these";
        Err(Error::argument("signature", name.to_string(), expected, found))
    };
    let all = |types: &[TraceType]| -> Result<Vec<StructuredValue>> {
        types.iter().map(|ty| structured_type(ty, name)).collect()
    };
    Ok(match ty {
        TraceType::None => StructuredValue::None,
        TraceType::Tensor(spec) => {
            let name = if spec.name.is_empty() { name } else { &spec.name };
            StructuredValue::TensorSpec(TensorSpec { name: name.into(), ..spec.clone() })
        }
        TraceType::Variable(spec) => variable_type(spec),
        TraceType::Literal(literal) => match literal {
            Literal::Bool(value) => StructuredValue::Bool(*value),
            Literal::Int(value) => StructuredValue::Int(*value),
            Literal::UInt(value) => match i64::try_from(*value) {
                Ok(value) => StructuredValue::Int(value),
                Err(_) => return refused(value),
            },
            Literal::Float(value) => StructuredValue::Float(*value),
            Literal::Str(value) => StructuredValue::String(value.to_string()),
            Literal::DType(dtype) => StructuredValue::DType(*dtype),
            Literal::Shape(shape) => StructuredValue::Shape(shape.clone()),
        },
        TraceType::List(types) => StructuredValue::List(all(types)?),
        TraceType::Tuple(types) => StructuredValue::Tuple(all(types)?),
        TraceType::Struct(struct_name, fields) => {
            let field = |(key, ty): &(std::sync::Arc<str>, TraceType)| {
                Ok((key.to_string(), structured_type(ty, key)?))
            };
            let fields = fields.iter().map(field).collect::<Result<_>>()?;
            StructuredValue::NamedTuple { name: struct_name.to_string(), fields }
        }
        TraceType::Dict(entries) => {
            let mut fields = BTreeMap::new();
            for (key, ty) in entries {
                match key {
                    MapKey::Str(key) => {
                        fields.insert(key.to_string(), structured_type(ty, key)?);
                    }
                    MapKey::Int(key) => return refused(&format_args!("a map with the key {key}")),
                }
            }
            StructuredValue::Dict(fields)
        }
        TraceType::Custom(_) => return refused(ty),
    })
}

fn variable_type(spec: &VariableSpec) -> StructuredValue {
    let state = vec![
        StructuredValue::Shape(spec.value.shape.clone()),
        StructuredValue::DType(spec.value.dtype),
        StructuredValue::Bool(spec.trainable),
        StructuredValue::Int(spec.alias_id as i64),
    ];
    StructuredValue::TypeSpec(Box::new(TypeSpec {
        class: TypeSpecClass::VariableSpec,
        class_name: "VariableSpec".into(),
        state: StructuredValue::Tuple(state),
        n_components: 1,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::structured_value;
    use ferroflow_ir::{DType, HostTensor, Limits, PartialShape};

    #[test]
    fn values_come_back() {
        let spec = TensorSpec::new(DType::F32, PartialShape::vector(None));
        let one = HostTensor::scalar(1.0f32);
        let values = vec![
            StructuredValue::None,
            StructuredValue::Float(2.5),
            StructuredValue::Int(-3),
            StructuredValue::String("text".into()),
            StructuredValue::Bool(true),
            StructuredValue::Shape(PartialShape::Unknown),
            StructuredValue::DType(DType::F32),
            StructuredValue::Tuple(vec![StructuredValue::Tensor(one.clone())]),
            StructuredValue::Dict([("a".to_string(), StructuredValue::Numpy(one.clone()))].into()),
            StructuredValue::NamedTuple {
                name: "Point".into(),
                fields: vec![("x".into(), StructuredValue::TensorSpec(spec.clone()))],
            },
            StructuredValue::BoundedTensorSpec { spec, minimum: one.clone(), maximum: one },
        ];
        let value = StructuredValue::List(values);
        let message = structured_message(&value).unwrap();
        assert_eq!(structured_value(&message, &Limits::default()).unwrap(), value);
    }

    #[test]
    fn what_files_cannot_hold_is_named() {
        let ty = TraceType::Dict(vec![(MapKey::Int(3), TraceType::None)]);
        let error = structured_type(&ty, "x").unwrap_err().to_string();
        assert!(error.ends_with("found a map with the key 3"), "{error}");
        let ty = TraceType::Literal(Literal::UInt(u64::MAX));
        assert!(structured_type(&ty, "x").is_err());
    }
}
