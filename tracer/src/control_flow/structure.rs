//! Values taken apart into tensors and put together again, and what tells two of them apart.
//!
//! Variables are no tensors here: graphs do not choose between variables, both sides of a choice and
//! all iterations of a loop have the same.

use crate::{error::Result, tensor::Tensor, value::NestedValue};
use ferroflow_ir::trace_type::MapKey;
use std::sync::Arc;

/// The tensors of a value, in order.
pub(crate) fn tensors(value: &NestedValue) -> Vec<Tensor> {
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

fn collect(value: &NestedValue, found: &mut Vec<Tensor>) {
    match value {
        NestedValue::Tensor(tensor) => found.push(tensor.clone()),
        NestedValue::None
        | NestedValue::Literal(_)
        | NestedValue::Variable(_)
        | NestedValue::Custom(_) => {}
        NestedValue::List(items) | NestedValue::Tuple(items) => {
            items.iter().for_each(|item| collect(item, found));
        }
        NestedValue::Struct(_, fields) => {
            fields.iter().for_each(|(_, field)| collect(field, found))
        }
        NestedValue::Dict(entries) => entries.values().for_each(|entry| collect(entry, found)),
    }
}

/// The value with other tensors; its own where there are too few.
pub(crate) fn with_tensors(
    value: &NestedValue,
    tensors: &mut dyn Iterator<Item = Tensor>,
) -> NestedValue {
    match value {
        NestedValue::Tensor(own) => {
            NestedValue::Tensor(tensors.next().unwrap_or_else(|| own.clone()))
        }
        NestedValue::None
        | NestedValue::Literal(_)
        | NestedValue::Variable(_)
        | NestedValue::Custom(_) => value.clone(),
        NestedValue::List(items) => {
            NestedValue::List(items.iter().map(|item| with_tensors(item, tensors)).collect())
        }
        NestedValue::Tuple(items) => {
            NestedValue::Tuple(items.iter().map(|item| with_tensors(item, tensors)).collect())
        }
        NestedValue::Struct(name, fields) => {
            let field = |(key, field): &(Arc<str>, NestedValue)| {
                (key.clone(), with_tensors(field, tensors))
            };
            NestedValue::Struct(name.clone(), fields.iter().map(field).collect())
        }
        NestedValue::Dict(entries) => {
            let entry =
                |(key, entry): (&MapKey, &NestedValue)| (key.clone(), with_tensors(entry, tensors));
            NestedValue::Dict(entries.iter().map(entry).collect())
        }
    }
}

/// Function of a leaf, with the leaf at the same position of another value, and their name.
type ZippedLeaf<'a> = &'a mut dyn FnMut(&NestedValue, NestedValue, &str) -> Result<NestedValue>;

/// The value with other leaves, made by `change`. The leaf of `other` is `None` where that has
/// another structure.
///
/// # Errors
///
/// Those of `change`.
pub(crate) fn zip_leaves(
    other: &NestedValue,
    value: NestedValue,
    name: &str,
    change: ZippedLeaf<'_>,
) -> Result<NestedValue> {
    let others = parts(other, name);
    let mut part = |path: String, part: NestedValue| {
        let other = others.iter().find(|(found, _)| *found == path).map(|(_, other)| *other);
        zip_leaves(other.unwrap_or(&NestedValue::None), part, &path, change)
    };
    let mut all = |items: Vec<NestedValue>| -> Result<Vec<NestedValue>> {
        let items = items.into_iter().enumerate();
        items.map(|(index, item)| part(format!("{name}[{index}]"), item)).collect()
    };
    Ok(match value {
        NestedValue::List(items) => NestedValue::List(all(items)?),
        NestedValue::Tuple(items) => NestedValue::Tuple(all(items)?),
        NestedValue::Struct(kind, fields) => {
            let fields = fields.into_iter().map(|(key, field)| {
                let field = part(format!("{name}.{key}"), field)?;
                Ok((key, field))
            });
            NestedValue::Struct(kind, fields.collect::<Result<_>>()?)
        }
        NestedValue::Dict(entries) => {
            let entries = entries.into_iter().map(|(key, entry)| {
                let entry = part(format!("{name}[{key}]"), entry)?;
                Ok((key, entry))
            });
            NestedValue::Dict(entries.collect::<Result<_>>()?)
        }
        leaf => change(other, leaf, name)?,
    })
}

/// The names of the tensors of a value that is called `name`: `state[0]`, `state.sum`.
pub(crate) fn names(value: &NestedValue, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (path, part) in parts(value, name) {
        match part {
            NestedValue::Tensor(_) => found.push(path),
            part => found.extend(names(part, &path)),
        }
    }
    found
}

/// Difference between two values.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The part that differs.
    pub(crate) what: String,
    /// Description of it in the first.
    pub(crate) first: String,
    /// Description of it in the second.
    pub(crate) second: String,
}

/// Difference in structure or dtypes between two values that are called `name`.
pub(crate) fn difference(
    first: &NestedValue,
    second: &NestedValue,
    name: &str,
) -> Option<Difference> {
    let differs = || {
        let (first, second) = (described(first), described(second));
        Some(Difference { what: name.into(), first, second })
    };
    match (first, second) {
        (NestedValue::Tensor(a), NestedValue::Tensor(b)) if a.dtype() == b.dtype() => None,
        (NestedValue::Variable(a), NestedValue::Variable(b)) if a.is(b) => None,
        (NestedValue::None, NestedValue::None) => None,
        (NestedValue::Literal(a), NestedValue::Literal(b)) if a == b => None,
        (NestedValue::Custom(a), NestedValue::Custom(b)) if a.ty.is_equal(&*b.ty) => None,
        (NestedValue::List(_), NestedValue::List(_))
        | (NestedValue::Tuple(_), NestedValue::Tuple(_))
        | (NestedValue::Dict(_), NestedValue::Dict(_)) => within(first, second, name, differs),
        (NestedValue::Struct(a, _), NestedValue::Struct(b, _)) if a == b => {
            within(first, second, name, differs)
        }
        _ => differs(),
    }
}

/// Difference between the parts of two containers of a kind.
fn within(
    first: &NestedValue,
    second: &NestedValue,
    name: &str,
    differs: impl Fn() -> Option<Difference>,
) -> Option<Difference> {
    let (a, b) = (parts(first, name), parts(second, name));
    if a.iter().map(|(path, _)| path).ne(b.iter().map(|(path, _)| path)) {
        return differs();
    }
    a.iter().zip(&b).find_map(|((path, a), (_, b))| difference(a, b, path))
}

/// The parts of a container, with their names; of a tensor that itself.
fn parts<'a>(value: &'a NestedValue, name: &str) -> Vec<(String, &'a NestedValue)> {
    match value {
        NestedValue::Tensor(_) => vec![(name.into(), value)],
        NestedValue::None
        | NestedValue::Literal(_)
        | NestedValue::Variable(_)
        | NestedValue::Custom(_) => Vec::new(),
        NestedValue::List(items) | NestedValue::Tuple(items) => {
            let part = |(index, item)| (format!("{name}[{index}]"), item);
            items.iter().enumerate().map(part).collect()
        }
        NestedValue::Struct(_, fields) => {
            fields.iter().map(|(key, field)| (format!("{name}.{key}"), field)).collect()
        }
        NestedValue::Dict(entries) => {
            entries.iter().map(|(key, entry)| (format!("{name}[{key}]"), entry)).collect()
        }
    }
}

/// A value in the words of messages.
pub(crate) fn described(value: &NestedValue) -> String {
    match value {
        NestedValue::Tensor(tensor) => {
            format!("a {} tensor of shape {}", tensor.dtype(), tensor.shape())
        }
        NestedValue::None => "no value".into(),
        NestedValue::Literal(literal) => format!("the Rust value {literal}"),
        NestedValue::Variable(variable) => format!("the variable `{}`", variable.name()),
        NestedValue::List(items) => format!("a list of {}", items.len()),
        NestedValue::Tuple(items) => format!("a tuple of {}", items.len()),
        NestedValue::Struct(name, _) => format!("a `{name}`"),
        NestedValue::Dict(entries) => {
            let keys: Vec<String> = entries.keys().map(|key| format!("{key}")).collect();
            format!("a map of {}", keys.join(", "))
        }
        NestedValue::Custom(custom) => format!("{custom:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(first: NestedValue, second: NestedValue, expected: Option<&str>) {
        let found = difference(&first, &second, "result");
        let found = found.map(|d| format!("{}: {} / {}", d.what, d.first, d.second));
        assert_eq!(found.as_deref(), expected);
    }

    #[test]
    fn the_part_that_differs_is_named() {
        let [int, float] =
            [NestedValue::from(Tensor::from(1i32)), NestedValue::from(Tensor::from([1.0f32]))];
        check(int.clone(), int.clone(), None);
        check(
            NestedValue::tuple([int.clone(), NestedValue::list([int.clone()])]),
            NestedValue::tuple([int.clone(), NestedValue::list([float.clone()])]),
            Some("result[1][0]: a int32 tensor of shape [] / a float32 tensor of shape [1]"),
        );
        check(
            NestedValue::list([int.clone()]),
            NestedValue::list([int.clone(), int.clone()]),
            Some("result: a list of 1 / a list of 2"),
        );
        check(1.into(), 2.into(), Some("result: the Rust value 1 / the Rust value 2"));
        check(
            NestedValue::dict([("a", int.clone())]),
            NestedValue::dict([("b", int.clone())]),
            Some("result: a map of 'a' / a map of 'b'"),
        );
        check(int, NestedValue::None, Some("result: a int32 tensor of shape [] / no value"));
    }

    #[test]
    fn tensors_are_taken_out_and_put_back() {
        let value = NestedValue::dict([
            ("a", NestedValue::list([Tensor::from(1i32)])),
            ("b", NestedValue::tuple([NestedValue::from(7), Tensor::from(2i32).into()])),
        ]);
        assert_eq!(names(&value, "x"), ["x['a'][0]", "x['b'][1]"]);
        let changed: Vec<Tensor> = tensors(&value).iter().map(|x| (x * 10).unwrap()).collect();
        let changed = with_tensors(&value, &mut changed.into_iter());
        assert!(difference(&value, &changed, "x").is_none());
        let values: Vec<i32> = tensors(&changed).iter().map(|x| x.to_scalar().unwrap()).collect();
        assert_eq!(values, [10, 20]);
    }
}
