//! Inputs of the command line.

use super::{examples, literal};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use ferroflow::{
    ir::{Attrs, DType, HostTensor, Shape, TensorSpec, ops::names},
    npy,
    runtime::{Context, EagerTensor, execute},
};
use std::{collections::BTreeMap, fs, io::Read};

/// The inputs of a call.
#[derive(Args)]
pub(super) struct InputArguments {
    /// Inputs from files: `x=file.npy`, `y=file.npz[key]`, `z=-` for an array on standard input,
    /// and `image=@cat.jpg` for the bytes of a file, or the pixels of an image where numbers are
    /// expected (`@-`: of standard input); several with semicolons between them.
    #[arg(long, value_name = "NAME=FILE")]
    inputs: Vec<String>,
    /// Inputs as Python literals: `x=[[1.0, 2.0]]`; several with semicolons between them.
    #[arg(long = "input_exprs", alias = "input-exprs", value_name = "NAME=LITERAL")]
    input_exprs: Vec<String>,
    /// Inputs as lists of dictionaries, which become serialised `tf.train.Example` messages:
    /// `examples=[{"age": [22.0], "education": ["BS"]}]`.
    #[arg(long = "input_examples", alias = "input-examples", value_name = "NAME=LIST")]
    input_examples: Vec<String>,
}

impl InputArguments {
    /// The names of the inputs that are passed.
    ///
    /// # Errors
    ///
    /// When a text has no name.
    pub(super) fn names(&self) -> Result<Vec<&str>> {
        let all = [&self.inputs, &self.input_exprs].map(|texts| pairs(texts));
        let mut names = Vec::new();
        for given in all {
            names.extend(given?.into_iter().map(|(name, _)| name));
        }
        for text in &self.input_examples {
            names.push(example_pair(text)?.0);
        }
        Ok(names)
    }

    /// The tensors. `specs` are the inputs that there are: arrays of files are cast to their
    /// dtypes, as in TensorFlow's tool.
    ///
    /// # Errors
    ///
    /// When an input is unknown, given twice, cannot be read, or does not fit its dtype.
    pub(super) fn tensors(
        &self,
        context: &Context,
        specs: &[(String, TensorSpec)],
    ) -> Result<BTreeMap<String, EagerTensor>> {
        let mut inputs = BTreeMap::new();
        let mut add = |name: &str, make: &dyn Fn(&TensorSpec) -> Result<HostTensor>| {
            let spec = specs.iter().find(|(input, _)| input == name);
            let (_, spec) = spec.with_context(|| {
                let names: Vec<&str> = specs.iter().map(|(name, _)| name.as_str()).collect();
                format!("there is no input `{name}`; there are [{}]", names.join(", "))
            })?;
            let tensor = make(spec).with_context(|| format!("input `{name}`"))?;
            let before = inputs.insert(name.to_string(), tensor.into());
            ensure!(before.is_none(), "input `{name}` is given twice");
            Ok(())
        };
        for (name, file) in pairs(&self.inputs)? {
            add(name, &|spec| of_file(context, file, spec))?;
        }
        for (name, text) in pairs(&self.input_exprs)? {
            add(name, &|spec| literal::tensor(text, spec.dtype))?;
        }
        for text in &self.input_examples {
            let (name, list) = example_pair(text)?;
            add(name, &|_| examples::tensor(list))?;
        }
        Ok(inputs)
    }
}

/// The name and the list of an input passed as examples.
fn example_pair(text: &str) -> Result<(&str, &str)> {
    let pair =
        text.split_once('=').with_context(|| format!("`{text}` is not of the form name=value"))?;
    Ok((pair.0.trim(), pair.1.trim()))
}

/// The tensor of a file for an input.
fn of_file(context: &Context, file: &str, spec: &TensorSpec) -> Result<HostTensor> {
    match file.strip_prefix('@') {
        Some("-") => of_content(context, standard_input()?, spec),
        Some(path) => of_content(context, fs::read(path).with_context(|| path.to_string())?, spec),
        None => cast(context, array(file)?, spec.dtype),
    }
}

fn standard_input() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("standard input")?;
    Ok(bytes)
}

/// The array in `file.npy`, `file.npz`, `file.npz[key]` or, for `-`, standard input.
fn array(path: &str) -> Result<HostTensor> {
    if path == "-" {
        return Ok(npy::from_bytes(&standard_input()?)?);
    }
    if let Some((path, key)) = path.strip_suffix(']').and_then(|path| path.split_once('[')) {
        return Ok(npy::read_npz(path, Some(key))?);
    }
    if path.ends_with(".npz") {
        return Ok(npy::read_npz(path, None)?);
    }
    Ok(npy::read(path)?)
}

/// The bytes of a file as a string, or the pixels of an image, from 0 to 255; in a batch of one
/// where the input has a dimension for that.
fn of_content(context: &Context, bytes: Vec<u8>, spec: &TensorSpec) -> Result<HostTensor> {
    let rank = spec.shape.rank();
    if spec.dtype == DType::String {
        let shape = if rank == Some(0) { Shape::scalar() } else { Shape::new([1])? };
        return Ok(HostTensor::from_strings(shape, vec![bytes.into()])?);
    }
    let channels = match spec.shape.dim(-1) {
        Some(channels @ (1 | 3 | 4)) => channels as i64,
        _ => 3,
    };
    let attrs = Attrs::new().with("channels", channels).with("expand_animations", false);
    let content = HostTensor::from_strings(Shape::scalar(), vec![bytes.into()])?;
    let image =
        execute(context, names::DECODE_IMAGE, attrs, &[content.into()])?.remove(0).into_host()?;
    let image = match rank {
        Some(3) => image,
        _ => {
            let dims = [1].into_iter().chain(image.shape().iter().copied());
            image.reshaped(Shape::new(dims)?)?
        }
    };
    cast(context, image, spec.dtype)
}

/// An array as one of this dtype: floats are rounded, integers must fit. Arrays of other dtypes
/// stay as they are, which the signature refuses.
fn cast(context: &Context, tensor: HostTensor, to: DType) -> Result<HostTensor> {
    let from = tensor.dtype();
    let is_number = |dtype: DType| dtype.is_float() || dtype.is_integer() || dtype == DType::Bool;
    if from == to || !is_number(from) || !is_number(to) {
        return Ok(tensor);
    }
    let cast = |tensor: HostTensor, to: DType| -> Result<HostTensor> {
        let attrs = Attrs::new().with("DstT", to);
        Ok(execute(context, names::CAST, attrs, &[EagerTensor::from(tensor)])?
            .remove(0)
            .into_host()?)
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
    use ferroflow::ir::PartialShape;

    #[test]
    fn pairs_are_split_outside_quotes() {
        let texts = ["x=[1];y='a;b\\';='".to_string(), "z = 3;".to_string()];
        assert_eq!(pairs(&texts).unwrap(), [("x", "[1]"), ("y", "'a;b\\';='"), ("z", "3")]);
        assert!(pairs(&["x".into()]).is_err());
    }

    #[test]
    fn files_become_strings_or_pixels() {
        let context = Context::new();
        let pixels = HostTensor::from_slice(Shape::new([1, 2, 3]).unwrap(), &[1u8, 2, 3, 4, 5, 6]);
        let pixels = pixels.unwrap();
        let png = execute(&context, "EncodePng", Attrs::new(), &[pixels.clone().into()]).unwrap();
        let png = png[0].host().unwrap().strings().unwrap()[0].to_vec();
        let read = |dtype: DType, dims: PartialShape| {
            of_content(&context, png.clone(), &TensorSpec::new(dtype, dims)).unwrap()
        };
        assert_eq!(read(DType::U8, PartialShape::ranked([None, None, Some(3)])), pixels);
        let batch = read(DType::F32, PartialShape::ranked([None, Some(1), Some(2), Some(3)]));
        assert_eq!(batch.shape().dims(), [1, 1, 2, 3]);
        assert_eq!(batch.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let grey = read(DType::U8, PartialShape::ranked([None, None, Some(1)]));
        assert_eq!(grey.shape().dims(), [1, 2, 1]);
        assert_eq!(read(DType::String, PartialShape::scalar()).strings().unwrap(), [&png[..]]);
        assert_eq!(read(DType::String, PartialShape::vector(None)).shape().dims(), [1]);
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
