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
            add(name, &|spec| of_file(context, name, file, spec))?;
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
fn of_file(context: &Context, name: &str, file: &str, spec: &TensorSpec) -> Result<HostTensor> {
    ensure!(!file.is_empty() && file != "@", "no file is named");
    match file.strip_prefix('@') {
        Some("-") => of_content(context, standard_input()?, spec).context("standard input"),
        Some(path) => {
            let bytes = || of_content(context, fs::read(path)?, spec);
            bytes().with_context(|| path.to_string())
        }
        None => {
            let (tensor, change) = cast(context, array(file)?, spec.dtype)?;
            if let Some(change) = change {
                eprintln!("warning: input `{name}`: {change}");
            }
            Ok(tensor)
        }
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
        return npy::from_bytes(&standard_input()?).context("standard input");
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
    ensure!(!bytes.starts_with(b"\x93NUMPY"), "a NumPy array is passed without `@`");
    ensure!(
        rank.is_none_or(|rank| rank == 3 || rank == 4),
        "the pixels of an image are [height, width, channels], and the input is {}",
        TensorSpec::new(spec.dtype, spec.shape.clone())
    );
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
    Ok(cast(context, image, spec.dtype)?.0)
}

/// An array as one of this dtype, as NumPy's `asarray` casts it for TensorFlow's tool: floats lose
/// their fraction as integers, integers wrap, and complex numbers lose their imaginary part, which is
/// told in a text. Arrays of texts stay as they are, and so does what becomes texts: the signature
/// refuses them.
///
/// # Errors
///
/// When a float is beyond the integers of the dtype, or not a number: what NumPy makes of it depends
/// on the processor.
fn cast(context: &Context, tensor: HostTensor, to: DType) -> Result<(HostTensor, Option<String>)> {
    let from = tensor.dtype();
    let is_number = |dtype: DType| {
        dtype.is_float() || dtype.is_complex() || dtype.is_integer() || dtype == DType::Bool
    };
    if from == to || !is_number(from) || !is_number(to) {
        return Ok((tensor, None));
    }
    let cast = |tensor: HostTensor, to: DType| -> Result<HostTensor> {
        let attrs = Attrs::new().with("DstT", to);
        Ok(execute(context, names::CAST, attrs, &[EagerTensor::from(tensor)])?
            .remove(0)
            .into_host()?)
    };
    if from.is_float() && to.is_integer() {
        let numbers = cast(tensor.clone(), DType::F64)?;
        let (least, most) = range(to);
        let beyond = numbers.as_slice::<f64>()?.iter().find(|number| {
            let whole = number.trunc();
            !(whole >= least && whole < most)
        });
        if let Some(number) = beyond {
            bail!("{number} of the {from} array is no {to}");
        }
    }
    let result = cast(tensor.clone(), to)?;
    if to.is_float() && !from.is_complex() || to.is_complex() || to == DType::Bool {
        return Ok((result, None));
    }
    let back = cast(result.clone(), from)?;
    let n_changed = if from.is_float() {
        let (before, after) = (cast(tensor.clone(), DType::F64)?, cast(back, DType::F64)?);
        let pairs = before.as_slice::<f64>()?.iter().zip(after.as_slice::<f64>()?);
        pairs.filter(|(before, after)| before != after).count()
    } else {
        let size = from.size().unwrap_or(1);
        let pairs = tensor.bytes().chunks(size).zip(back.bytes().chunks(size));
        pairs.filter(|(before, after)| before != after).count()
    };
    let n = tensor.shape().num_elements();
    let change = format!("{n_changed} of {n} values change in the cast from {from} to {to}");
    Ok((result, (n_changed > 0).then_some(change)))
}

/// The least integer of a dtype, and the first beyond the largest.
fn range(dtype: DType) -> (f64, f64) {
    let bits = dtype.size().unwrap_or(8) as i32 * 8;
    match dtype.is_unsigned_integer() {
        true => (0.0, 2f64.powi(bits)),
        false => (-2f64.powi(bits - 1), 2f64.powi(bits - 1)),
    }
}

/// `name=value` pairs; several in one text have semicolons between them.
fn pairs(texts: &[String]) -> Result<Vec<(&str, &str)>> {
    let mut pairs = Vec::new();
    for part in texts.iter().flat_map(|text| split(text)).filter(|part| !part.trim().is_empty()) {
        match part.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                pairs.push((name.trim(), value.trim()));
            }
            _ => bail!("`{part}` is not of the form name=value"),
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
    fn arrays_are_cast_as_numpy_does() {
        let context = Context::new();
        let cast = |tensor: &HostTensor, to: DType| cast(&context, tensor.clone(), to);
        let floats = HostTensor::vector(&[0.1f64, 300.0]).unwrap();
        let (found, change) = cast(&floats, DType::F32).unwrap();
        assert_eq!((found.as_slice::<f32>().unwrap(), change), (&[0.1, 300.0][..], None));
        let (found, change) = cast(&floats, DType::I32).unwrap();
        assert_eq!(found.as_slice::<i32>().unwrap(), [0, 300]);
        assert_eq!(change.unwrap(), "1 of 2 values change in the cast from float64 to int32");
        let error = cast(&floats, DType::U8).unwrap_err().to_string();
        assert_eq!(error, "300 of the float64 array is no uint8");
        let none = HostTensor::vector(&[f64::NAN]).unwrap();
        assert_eq!(
            cast(&none, DType::I64).unwrap_err().to_string(),
            "NaN of the float64 array is no int64"
        );
        let integers = HostTensor::vector(&[1i64, 300]).unwrap();
        let (found, change) = cast(&integers, DType::I32).unwrap();
        assert_eq!((found.as_slice::<i32>().unwrap(), change), (&[1, 300][..], None));
        let (found, change) = cast(&integers, DType::U8).unwrap();
        assert_eq!(found.as_slice::<u8>().unwrap(), [1, 44]);
        assert!(change.is_some());
        let (found, change) = cast(&integers, DType::C64).unwrap();
        assert_eq!((found.dtype(), change), (DType::C64, None));
        let (_, change) = cast(&found, DType::F32).unwrap();
        assert_eq!(change, None);
        assert_eq!(cast(&integers, DType::String).unwrap().0, integers);
    }
}
