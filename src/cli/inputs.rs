//! Inputs as the command line gives them.

use super::literal;
use anyhow::{Context as _, Result, bail, ensure};
use ferroflow::{
    ir::{HostTensor, TensorSpec},
    npy,
};
use std::collections::BTreeMap;

/// The tensors given by `--inputs 'x=file.npy;y=file.npz[key]'` and `--input_exprs 'z=[1, 2]'`.
/// `specs` are the inputs of the signature.
pub(super) fn inputs(
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
        add(name, of_file(path))?;
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
}
