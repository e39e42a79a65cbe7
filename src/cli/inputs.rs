//! Inputs as the command line gives them.

use super::literal;
use anyhow::{Context as _, Result, bail, ensure};
use ferroflow::{
    ir::{Attrs, DType, HostTensor, TensorSpec},
    npy,
    runtime::{Context, EagerTensor, execute},
};
use std::collections::BTreeMap;

/// The tensors given by `--inputs 'x=file.npy;y=file.npz[key]'` and `--input_exprs 'z=[1, 2]'`.
/// `specs` are the inputs of the signature: arrays of files are cast to their dtypes, as in
/// TensorFlow's tool.
pub(super) fn inputs(
    context: &Context,
    files: &[String],
    exprs: &[String],
    specs: &[(String, TensorSpec)],
) -> Result<BTreeMap<String, HostTensor>> {
    let mut inputs = BTreeMap::new();
    let mut add = |name: &str, tensor: Result<HostTensor>| {
        let tensor = tensor.with_context(|| format!("input `{name}`"))?;
        ensure!(inputs.insert(name.to_string(), tensor).is_none(), "input `{name}` is given twice");
        Ok(())
    };
    for (name, path) in pairs(files)? {
        let spec = specs.iter().find(|(input, _)| input == name);
        let tensor = of_file(path).and_then(|tensor| match spec {
            Some((_, spec)) => cast(context, tensor, spec.dtype),
            None => Ok(tensor),
        });
        add(name, tensor)?;
    }
    for (name, text) in pairs(exprs)? {
        let spec = specs.iter().find(|(input, _)| input == name);
        let (_, spec) = spec.with_context(|| {
            let names: Vec<&str> = specs.iter().map(|(name, _)| name.as_str()).collect();
            format!("there is no input `{name}`; there are [{}]", names.join(", "))
        })?;
        add(name, literal::tensor(text, spec.dtype))?;
    }
    Ok(inputs)
}

/// The array in `file.npy`, `file.npz` or `file.npz[key]`.
fn of_file(path: &str) -> Result<HostTensor> {
    if let Some((path, key)) = path.strip_suffix(']').and_then(|path| path.split_once('[')) {
        return Ok(npy::read_npz(path, Some(key))?);
    }
    if path.ends_with(".npz") {
        return Ok(npy::read_npz(path, None)?);
    }
    Ok(npy::read(path)?)
}

/// An array as one of this dtype: floats are rounded, integers must fit. Arrays of other dtypes stay
/// as they are, which the signature refuses.
fn cast(context: &Context, tensor: HostTensor, to: DType) -> Result<HostTensor> {
    let from = tensor.dtype();
    let is_number = |dtype: DType| dtype.is_float() || dtype.is_integer() || dtype == DType::Bool;
    if from == to || !is_number(from) || !is_number(to) {
        return Ok(tensor);
    }
    let cast = |tensor: HostTensor, to: DType| -> Result<HostTensor> {
        let attrs = Attrs::new().with("DstT", to);
        Ok(execute(context, "Cast", attrs, &[EagerTensor::from(tensor)])?.remove(0).into_host()?)
    };
    let result = cast(tensor.clone(), to)?;
    let is_exact = || Ok::<_, anyhow::Error>(cast(result.clone(), from)? == tensor);
    ensure!(to.is_float() || is_exact()?, "not all values of the {from} array are {to}");
    Ok(result)
}

/// `name=value` pairs; several in one text have semicolons between them.
fn pairs(texts: &[String]) -> Result<Vec<(&str, &str)>> {
    let mut pairs = Vec::new();
    for part in texts.iter().flat_map(|text| split(text)).filter(|part| !part.trim().is_empty()) {
        match part.split_once('=') {
            Some((name, value)) => pairs.push((name.trim(), value.trim())),
            None => bail!("`{part}` is not of the form name=value"),
        }
    }
    Ok(pairs)
}

/// Splits at semicolons outside quotes.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut quote, mut escaped) = (0, None, false);
    for (at, symbol) in text.char_indices() {
        match (quote, symbol) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == symbol => quote = None,
            (None, '"' | '\'') => quote = Some(symbol),
            (None, ';') => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_outside_quotes() {
        let texts = ["x=[1];y='a;b\\';='".to_string(), "z = 3;".to_string()];
        assert_eq!(pairs(&texts).unwrap(), [("x", "[1]"), ("y", "'a;b\\';='"), ("z", "3")]);
        assert!(pairs(&["x".into()]).is_err());
    }

    #[test]
    fn arrays_are_cast_where_their_values_stay() {
        let context = Context::new();
        let floats = HostTensor::vector(&[0.1f64, 2.0]).unwrap();
        let found = cast(&context, floats.clone(), DType::F32).unwrap();
        assert_eq!(found.as_slice::<f32>().unwrap(), [0.1, 2.0]);
        let error = cast(&context, floats, DType::I32).unwrap_err();
        assert_eq!(error.to_string(), "not all values of the float64 array are int32");
        let integers = HostTensor::vector(&[1i64, 300]).unwrap();
        let found = cast(&context, integers.clone(), DType::I32).unwrap();
        assert_eq!(found.as_slice::<i32>().unwrap(), [1, 300]);
        assert!(cast(&context, integers.clone(), DType::U8).is_err());
        assert_eq!(cast(&context, integers.clone(), DType::String).unwrap(), integers);
    }
}
