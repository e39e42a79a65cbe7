//! Attributes.

use super::tensor_message;
use crate::{
    convert::partial_shape_message,
    proto::{
        self,
        attr_value::{ListValue, Value},
    },
};
use ferroflow_ir::{AttrValue, Attrs, NameAttrList, Result};
use std::collections::BTreeMap;

/// The message of an attribute's value.
///
/// # Errors
///
/// Those of [`tensor_message`].
pub fn attr_message(value: &AttrValue) -> Result<proto::AttrValue> {
    let list = |list: ListValue| Value::List(list);
    let none = ListValue::default;
    let value = match value {
        AttrValue::String(bytes) => Value::S(bytes.clone()),
        AttrValue::Int(value) => Value::I(*value),
        AttrValue::Float(value) => Value::F(*value),
        AttrValue::Bool(value) => Value::B(*value),
        AttrValue::Type(dtype) => Value::Type(dtype.number()),
        AttrValue::Shape(shape) => Value::Shape(partial_shape_message(shape)),
        AttrValue::Tensor(tensor) => Value::Tensor(tensor_message(tensor)?),
        AttrValue::Func(function) => Value::Func(func_message(function)?),
        AttrValue::Placeholder(name) => Value::Placeholder(name.clone()),
        AttrValue::Strings(s) => list(ListValue { s: s.clone(), ..none() }),
        AttrValue::Ints(i) => list(ListValue { i: i.clone(), ..none() }),
        AttrValue::Floats(f) => list(ListValue { f: f.clone(), ..none() }),
        AttrValue::Bools(b) => list(ListValue { b: b.clone(), ..none() }),
        AttrValue::Types(dtypes) => {
            let r#type = dtypes.iter().map(|dtype| dtype.number()).collect();
            list(ListValue { r#type, ..none() })
        }
        AttrValue::Shapes(shapes) => {
            let shape = shapes.iter().map(partial_shape_message).collect();
            list(ListValue { shape, ..none() })
        }
        AttrValue::Tensors(tensors) => {
            let tensor = tensors.iter().map(tensor_message).collect::<Result<_>>()?;
            list(ListValue { tensor, ..none() })
        }
        AttrValue::Funcs(functions) => {
            let func = functions.iter().map(func_message).collect::<Result<_>>()?;
            list(ListValue { func, ..none() })
        }
    };
    Ok(proto::AttrValue { value: Some(value) })
}

/// The messages of attributes, by name.
///
/// # Errors
///
/// As [`attr_message`].
pub fn attr_messages(attrs: &Attrs) -> Result<BTreeMap<String, proto::AttrValue>> {
    attrs.iter().map(|(name, value)| Ok((name.to_string(), attr_message(value)?))).collect()
}

fn func_message(function: &NameAttrList) -> Result<proto::NameAttrList> {
    let attr = attr_messages(&function.attrs)?;
    Ok(proto::NameAttrList { name: function.name.to_string(), attr })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::attr_value;
    use bytes::Bytes;
    use ferroflow_ir::{DType, HostTensor, Limits, PartialShape, Shape};
    use proptest::{collection::vec, prelude::*};

    fn shape() -> impl Strategy<Value = PartialShape> {
        let dims = vec(prop::option::of(0usize..100), 0..5);
        prop_oneof![Just(PartialShape::Unknown), dims.prop_map(PartialShape::ranked)]
    }

    fn dtype() -> impl Strategy<Value = DType> {
        prop::sample::select(DType::ALL)
    }

    fn bytes() -> impl Strategy<Value = Bytes> {
        vec(any::<u8>(), 0..10).prop_map(Bytes::from)
    }

    fn tensor() -> impl Strategy<Value = HostTensor> {
        let ints = vec(-2i32..2, 0..10).prop_map(|list| HostTensor::vector(&list).unwrap());
        let texts = vec(bytes(), 0..4).prop_map(|list| {
            HostTensor::from_strings(Shape::new([list.len()]).unwrap(), list).unwrap()
        });
        prop_oneof![ints, texts]
    }

    fn simple() -> impl Strategy<Value = AttrValue> {
        prop_oneof![
            bytes().prop_map(AttrValue::String),
            any::<i64>().prop_map(AttrValue::Int),
            (-1e9f32..1e9).prop_map(AttrValue::Float),
            any::<bool>().prop_map(AttrValue::Bool),
            dtype().prop_map(AttrValue::Type),
            shape().prop_map(AttrValue::Shape),
            tensor().prop_map(AttrValue::Tensor),
            "[a-zA-Z]{1,8}".prop_map(AttrValue::Placeholder),
            vec(bytes(), 1..4).prop_map(AttrValue::Strings),
            vec(any::<i64>(), 1..4).prop_map(AttrValue::Ints),
            vec(-1e9f32..1e9, 1..4).prop_map(AttrValue::Floats),
            vec(any::<bool>(), 1..4).prop_map(AttrValue::Bools),
            vec(dtype(), 1..4).prop_map(AttrValue::Types),
            vec(shape(), 1..4).prop_map(AttrValue::Shapes),
            vec(tensor(), 1..4).prop_map(AttrValue::Tensors),
        ]
    }

    fn function(attr: impl Strategy<Value = AttrValue>) -> impl Strategy<Value = NameAttrList> {
        ("[a-z]{1,5}", vec(("[a-z]{1,5}", attr), 0..3))
            .prop_map(|(name, attrs)| NameAttrList::with_attrs(name, attrs.into_iter().collect()))
    }

    fn any_attr() -> impl Strategy<Value = AttrValue> {
        simple().prop_recursive(3, 20, 3, |inner| {
            prop_oneof![
                function(inner.clone()).prop_map(AttrValue::Func),
                vec(function(inner), 1..3).prop_map(AttrValue::Funcs),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_come_back(value in any_attr()) {
            let message = attr_message(&value).unwrap();
            let back = attr_value(&message, None, &Limits::default()).unwrap();
            prop_assert_eq!(back, Some(value));
        }
    }

    #[test]
    fn empty_lists_come_back_as_what_the_op_takes() {
        let value = AttrValue::Types(Vec::new());
        let (message, limits) = (attr_message(&value).unwrap(), Limits::default());
        let expected = Some(ferroflow_ir::op::AttrKind::Types);
        assert_eq!(attr_value(&message, expected, &limits).unwrap(), Some(value));
    }
}
