//! Attributes.

use super::{budget::Budget, dtype, shape, tensor::tensor_within};
use crate::proto::{
    self,
    attr_value::{ListValue, Value},
};
use ferroflow_ir::{AttrValue, Attrs, Error, Limits, NameAttrList, OpDef, Result, op::AttrKind};
use std::collections::BTreeMap;

/// The value of an attribute; `None` when it has none, which some writers leave so.
///
/// A list without elements has no kind of its own: it becomes one of kind `expected` if that is
/// given.
///
/// # Errors
///
/// [`Error::Argument`] for a list of several kinds, and whatever is wrong with a dtype, a shape or
/// a tensor in it.
pub fn attr_value(
    proto: &proto::AttrValue,
    expected: Option<AttrKind>,
    limits: &Limits,
) -> Result<Option<AttrValue>> {
    value_within(proto, expected, &Budget::new(limits))
}

fn value_within(
    proto: &proto::AttrValue,
    expected: Option<AttrKind>,
    budget: &Budget,
) -> Result<Option<AttrValue>> {
    let Some(value) = &proto.value else { return Ok(None) };
    Ok(Some(match value {
        Value::S(bytes) => AttrValue::String(bytes.clone()),
        Value::I(value) => AttrValue::Int(*value),
        Value::F(value) => AttrValue::Float(*value),
        Value::B(value) => AttrValue::Bool(*value),
        Value::Type(number) => AttrValue::Type(dtype(*number)?.0),
        Value::Shape(proto) => AttrValue::Shape(shape(proto)?),
        Value::Tensor(proto) => AttrValue::Tensor(tensor_within(proto, budget)?),
        Value::List(proto) => list(proto, expected, budget)?,
        Value::Func(proto) => AttrValue::Func(func(proto, budget)?),
        Value::Placeholder(name) => AttrValue::Placeholder(name.clone()),
    }))
}

/// The attributes of a node of `op`, or of a function.
pub(super) fn attrs(
    protos: &BTreeMap<String, proto::AttrValue>,
    op: Option<&'static OpDef>,
    budget: &Budget,
) -> Result<Attrs> {
    let mut attrs = Attrs::new();
    for (name, proto) in protos {
        let expected = op.and_then(|op| op.attr(name)).map(|def| def.kind);
        let value = value_within(proto, expected, budget).map_err(|error| at_attr(error, name))?;
        if let Some(value) = value {
            attrs.set(name.as_str(), value);
        }
    }
    Ok(attrs)
}

/// An error in the value of an attribute, with the attribute's name where that is not known yet.
fn at_attr(error: Error, name: &str) -> Error {
    match error {
        Error::Argument { argument, expected, found, .. } => {
            Error::Argument { op: format!("attribute `{name}`").into(), argument, expected, found }
        }
        other => other,
    }
}

fn list(proto: &ListValue, expected: Option<AttrKind>, budget: &Budget) -> Result<AttrValue> {
    let ListValue { s, i, f, b, r#type, shape: shapes, tensor: tensors, func: funcs } = proto;
    let found = [
        (AttrKind::Strings, s.len()),
        (AttrKind::Ints, i.len()),
        (AttrKind::Floats, f.len()),
        (AttrKind::Bools, b.len()),
        (AttrKind::Types, r#type.len()),
        (AttrKind::Shapes, shapes.len()),
        (AttrKind::Tensors, tensors.len()),
        (AttrKind::Funcs, funcs.len()),
    ];
    let mut kinds = found.into_iter().filter(|(_, len)| *len > 0).map(|(kind, _)| kind);
    let kind = kinds.next().or(expected).unwrap_or(AttrKind::Ints);
    if let Some(other) = kinds.next() {
        let found = format!("elements of kinds {kind:?} and {other:?}");
        return Err(Error::argument("attribute", "list", "of one kind", found));
    }
    Ok(match kind {
        AttrKind::Strings => AttrValue::Strings(s.clone()),
        AttrKind::Floats => AttrValue::Floats(f.clone()),
        AttrKind::Bools => AttrValue::Bools(b.clone()),
        AttrKind::Types => {
            let types = r#type.iter().map(|&number| Ok(dtype(number)?.0));
            AttrValue::Types(types.collect::<Result<_>>()?)
        }
        AttrKind::Shapes => AttrValue::Shapes(shapes.iter().map(shape).collect::<Result<_>>()?),
        AttrKind::Tensors => {
            let tensors = tensors.iter().map(|proto| tensor_within(proto, budget));
            AttrValue::Tensors(tensors.collect::<Result<_>>()?)
        }
        AttrKind::Funcs => {
            let funcs = funcs.iter().map(|proto| func(proto, budget));
            AttrValue::Funcs(funcs.collect::<Result<_>>()?)
        }
        AttrKind::Ints
        | AttrKind::String
        | AttrKind::Int
        | AttrKind::Float
        | AttrKind::Bool
        | AttrKind::Type
        | AttrKind::Shape
        | AttrKind::Tensor
        | AttrKind::Func => AttrValue::Ints(i.clone()),
    })
}

fn func(proto: &proto::NameAttrList, budget: &Budget) -> Result<NameAttrList> {
    let attrs = attrs(&proto.attr, None, budget)?;
    Ok(NameAttrList::with_attrs(proto.name.as_str(), attrs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: Value, expected: Option<AttrKind>, text: &str) {
        let proto = proto::AttrValue { value: Some(value) };
        let found = match attr_value(&proto, expected, &Limits::default()) {
            Ok(value) => value.unwrap().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, text);
    }

    #[test]
    fn values_of_each_kind() {
        check(Value::S("hi".into()), None, "\"hi\"");
        check(Value::Type(1), None, "float32");
        check(Value::Type(101), None, "float32");
        check(Value::Type(77), None, "dtype: number must be that of a known dtype, found 77");
        check(Value::Placeholder("T".into()), None, "$T");
        let function = proto::NameAttrList { name: "f".into(), attr: BTreeMap::new() };
        check(Value::Func(function), None, "@f");
    }

    #[test]
    fn lists_take_their_kind_from_the_elements_or_from_the_op() {
        let types = ListValue { r#type: vec![1, 3], ..ListValue::default() };
        check(Value::List(types), None, "[float32, int32]");
        check(Value::List(ListValue::default()), Some(AttrKind::Types), "[]");
        let mixed = ListValue { i: vec![1], b: vec![true], ..ListValue::default() };
        check(
            Value::List(mixed),
            None,
            "attribute: list must be of one kind, found elements of kinds Ints and Bools",
        );
        let empty = proto::AttrValue { value: Some(Value::List(ListValue::default())) };
        let value = attr_value(&empty, Some(AttrKind::Types), &Limits::default()).unwrap();
        assert!(matches!(value, Some(AttrValue::Types(list)) if list.is_empty()));
        let unset = proto::AttrValue::default();
        assert!(attr_value(&unset, None, &Limits::default()).unwrap().is_none());
    }
}
