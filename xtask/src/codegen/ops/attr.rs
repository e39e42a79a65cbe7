//! Attributes as parameters and as fields.

use super::name;
use ferroflow_ir::{
    DType,
    op::{AttrDef, AttrDefault, AttrKind},
};

/// The type of an attribute that is a parameter.
pub(super) fn parameter_type(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::String => "&str",
        AttrKind::Int => "i64",
        AttrKind::Float => "f32",
        AttrKind::Bool => "bool",
        AttrKind::Type => "DType",
        AttrKind::Shape => "PartialShape",
        AttrKind::Tensor => "&HostTensor",
        AttrKind::Func => "&NameAttrList",
        AttrKind::Strings => "&[&str]",
        AttrKind::Ints => "&[i64]",
        AttrKind::Floats => "&[f32]",
        AttrKind::Bools => "&[bool]",
        AttrKind::Types => "&[DType]",
        AttrKind::Shapes => "&[PartialShape]",
        AttrKind::Tensors => "&[HostTensor]",
        AttrKind::Funcs => "&[NameAttrList]",
    }
}

/// A parameter as the value of its attribute.
pub(super) fn parameter_value(attr: &AttrDef) -> String {
    let name = name::parameter(attr.name);
    match attr.kind {
        AttrKind::Tensor | AttrKind::Func => format!("{name}.clone()"),
        _ => name,
    }
}

/// The type of an attribute that is a field.
pub(super) fn field_type(kind: AttrKind) -> &'static str {
    match kind {
        AttrKind::String => "String",
        AttrKind::Int => "i64",
        AttrKind::Float => "f32",
        AttrKind::Bool => "bool",
        AttrKind::Type => "DType",
        AttrKind::Shape => "PartialShape",
        AttrKind::Tensor => "HostTensor",
        AttrKind::Func => "NameAttrList",
        AttrKind::Strings => "Vec<String>",
        AttrKind::Ints => "Vec<i64>",
        AttrKind::Floats => "Vec<f32>",
        AttrKind::Bools => "Vec<bool>",
        AttrKind::Types => "Vec<DType>",
        AttrKind::Shapes => "Vec<PartialShape>",
        AttrKind::Tensors => "Vec<HostTensor>",
        AttrKind::Funcs => "Vec<NameAttrList>",
    }
}

/// A field of `attrs` as the value of its attribute.
pub(super) fn field_value(attr: &AttrDef) -> String {
    let name = name::parameter(attr.name);
    match attr.kind {
        AttrKind::Int | AttrKind::Float | AttrKind::Bool | AttrKind::Type => {
            format!("attrs.{name}")
        }
        AttrKind::String => format!("attrs.{name}.as_str()"),
        AttrKind::Shape | AttrKind::Tensor | AttrKind::Func => format!("attrs.{name}.clone()"),
        AttrKind::Strings
        | AttrKind::Ints
        | AttrKind::Floats
        | AttrKind::Bools
        | AttrKind::Types
        | AttrKind::Shapes
        | AttrKind::Tensors
        | AttrKind::Funcs => format!("attrs.{name}.as_slice()"),
    }
}

/// A default as an expression.
pub(super) fn default_value(default: AttrDefault) -> String {
    match default {
        AttrDefault::Required => unreachable!("only attributes with defaults are fields"),
        AttrDefault::String(text) => format!("{text:?}.into()"),
        AttrDefault::Int(value) => value.to_string(),
        AttrDefault::Float(f32::INFINITY) => "f32::INFINITY".into(),
        AttrDefault::Float(f32::NEG_INFINITY) => "f32::NEG_INFINITY".into(),
        AttrDefault::Float(value) => format!("{value:?}"),
        AttrDefault::Bool(value) => value.to_string(),
        AttrDefault::Type(dtype) => dtype_path(dtype),
        AttrDefault::Shape(dims) => {
            let dim = |&dim| if dim < 0 { "None".into() } else { format!("Some({dim})") };
            format!("PartialShape::ranked({})", array(dims.iter().map(dim)))
        }
        AttrDefault::UnknownShape => "PartialShape::Unknown".into(),
        AttrDefault::Ints(list) => vec(list.iter().map(i64::to_string)),
        AttrDefault::Floats(list) => vec(list.iter().map(|value| format!("{value:?}"))),
        AttrDefault::Bools(list) => vec(list.iter().map(bool::to_string)),
        AttrDefault::Types(list) => vec(list.iter().map(|&dtype| dtype_path(dtype))),
        AttrDefault::Strings(list) => vec(list.iter().map(|text| format!("{text:?}.into()"))),
        AttrDefault::Shapes | AttrDefault::Funcs => "Vec::new()".into(),
        AttrDefault::Func => "NameAttrList::new(\"\")".into(),
    }
}

/// Whether a default is that of its Rust type.
pub(super) fn is_type_default(default: AttrDefault) -> bool {
    match default {
        AttrDefault::String(text) => text.is_empty(),
        AttrDefault::Int(value) => value == 0,
        AttrDefault::Float(value) => value == 0.0,
        AttrDefault::Bool(value) => !value,
        AttrDefault::Ints(list) => list.is_empty(),
        AttrDefault::Floats(list) => list.is_empty(),
        AttrDefault::Bools(list) => list.is_empty(),
        AttrDefault::Types(list) => list.is_empty(),
        AttrDefault::Strings(list) => list.is_empty(),
        AttrDefault::UnknownShape | AttrDefault::Shapes | AttrDefault::Funcs => true,
        AttrDefault::Required
        | AttrDefault::Type(_)
        | AttrDefault::Shape(_)
        | AttrDefault::Func => false,
    }
}

fn dtype_path(dtype: DType) -> String {
    format!("DType::{dtype:?}")
}

fn vec(items: impl Iterator<Item = String>) -> String {
    format!("vec!{}", array(items))
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
