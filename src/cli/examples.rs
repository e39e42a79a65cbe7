//! Inputs passed as dictionaries of features: serialised `tf.train.Example` messages.

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use ferroflow::{
    ir::{HostTensor, Shape},
    python_literal::PythonLiteral as Value,
    saved_model::proto::{
        BytesList, Example, Feature, Features, FloatList, Int64List, feature::Kind,
    },
};
use prost::Message;

/// The vector of serialised examples that a list of dictionaries stands for, such as
/// `[{"age": [22.0], "education": ["BS"]}]`: floats, integers and texts, each in a list.
///
/// # Errors
///
/// When the text is no such literal, or a list mixes types.
pub(super) fn tensor(text: &str) -> Result<HostTensor> {
    let value: Value = text.parse().ok().with_context(|| format!("`{text}` is not a literal"))?;
    let Value::List(examples) = value else { bail!("a list of dictionaries is expected") };
    let examples = examples.iter().map(|value| Ok(example(value)?.encode_to_vec().into()));
    let examples: Vec<Bytes> = examples.collect::<Result<_>>()?;
    Ok(HostTensor::from_strings(Shape::new([examples.len()])?, examples)?)
}

fn example(value: &Value) -> Result<Example> {
    let Value::Dict(entries) = value else { bail!("each example is a dictionary") };
    let feature = |(name, value): &(Value, Value)| {
        let Value::Text(name) = name else { bail!("names of features are texts") };
        let kind = feature(value).with_context(|| format!("feature `{name}`"))?;
        Ok((name.clone(), Feature { kind: Some(kind) }))
    };
    let feature = entries.iter().map(feature).collect::<Result<_>>()?;
    Ok(Example { features: Some(Features { feature }) })
}

fn feature(value: &Value) -> Result<Kind> {
    let (Value::List(items) | Value::Tuple(items)) = value else {
        bail!("a feature is a list of values")
    };
    let floats = || items.iter().map(float).collect::<Option<Vec<f32>>>();
    let integers = || items.iter().map(integer).collect::<Option<Vec<i64>>>();
    let texts = || items.iter().map(bytes).collect::<Option<Vec<Bytes>>>();
    ensure!(!items.is_empty(), "a feature without values has no type");
    if let Some(value) = integers() {
        return Ok(Kind::Int64List(Int64List { value }));
    }
    if let Some(value) = floats() {
        return Ok(Kind::FloatList(FloatList { value }));
    }
    let value = texts().context("the values are integers, floats or texts, all of one type")?;
    Ok(Kind::BytesList(BytesList { value }))
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}

fn float(value: &Value) -> Option<f32> {
    match value {
        Value::Float(number) => Some(*number as f32),
        Value::Integer(_) => integer(value).map(|number| number as f32),
        _ => None,
    }
}

fn bytes(value: &Value) -> Option<Bytes> {
    match value {
        Value::Text(text) => Some(text.clone().into()),
        Value::Bytes(bytes) => Some(bytes.clone().into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_become_examples() {
        let found = tensor(r#"[{"a": [1, 2], "b": [1.5], "c": ["x", b"y"]}, {}]"#).unwrap();
        let examples = found.strings().unwrap();
        let example = Example::decode(&examples[0][..]).unwrap();
        let features = example.features.unwrap().feature;
        let kinds: Vec<_> =
            features.values().map(|feature| feature.kind.clone().unwrap()).collect();
        let value = vec![Bytes::from_static(b"x"), Bytes::from_static(b"y")];
        let expected = [
            Kind::Int64List(Int64List { value: vec![1, 2] }),
            Kind::FloatList(FloatList { value: vec![1.5] }),
            Kind::BytesList(BytesList { value }),
        ];
        assert_eq!(kinds, expected);
        for wrong in ["{}", "[1]", r#"[{"a": 1}]"#, r#"[{"a": [1, "x"]}]"#, r#"[{"a": []}]"#] {
            assert!(tensor(wrong).is_err(), "{wrong}");
        }
    }
}
