//! Python literals as tensors: `[[1.0, 2.0]]`, `b"text"`, `np.ones((2, 3))`.

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use ferroflow::{
    ir::{DType, HostTensor, Shape},
    python_literal::PythonLiteral as Value,
};
use num_complex::Complex;

/// The tensor of dtype `dtype` that a literal stands for: a number, text or bool, or nested
/// lists of them. `np.zeros(shape)` and `np.ones(shape)` stand for tensors full of those.
pub(super) fn tensor(text: &str, dtype: DType) -> Result<HostTensor> {
    let text = text.trim();
    if let Some(tensor) = filled(text, dtype)? {
        return Ok(tensor);
    }
    let value: Value = text.parse().ok().with_context(|| format!("`{text}` is not a literal"))?;
    let mut dims = Vec::new();
    shape_of(&value, &mut dims);
    let mut leaves = Vec::new();
    collect(&value, &dims, &mut leaves)?;
    of_leaves(&leaves, Shape::new(dims)?, dtype)
}

/// `np.zeros(…)` and `np.ones(…)`.
fn filled(text: &str, dtype: DType) -> Result<Option<HostTensor>> {
    let call = |name: &str| text.strip_prefix(name)?.trim().strip_prefix('(')?.strip_suffix(')');
    let one = ["np.ones", "numpy.ones"].into_iter().find_map(call);
    let zero = ["np.zeros", "numpy.zeros"].into_iter().find_map(call);
    let Some(shape) = one.or(zero) else { return Ok(None) };
    let shape = tensor(shape, DType::I64).context("the shape")?;
    let shape = Shape::from_i64(&shape.to_i64s()?)?;
    ensure!(dtype != DType::String, "{text} gives numbers, string is expected");
    let leaf = Value::Integer(i32::from(one.is_some()).into());
    ensure!(shape.num_elements() <= 1 << 28, "{text} is too large to be written out");
    Ok(Some(of_leaves(&vec![&leaf; shape.num_elements()], shape, dtype)?))
}

fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::List(items) | Value::Tuple(items) => Some(items),
        _ => None,
    }
}

/// The sizes along the first item of each level.
fn shape_of(value: &Value, dims: &mut Vec<usize>) {
    if let Some(items) = items(value) {
        dims.push(items.len());
        if let Some(first) = items.first() {
            shape_of(first, dims);
        }
    }
}

fn collect<'a>(value: &'a Value, dims: &[usize], leaves: &mut Vec<&'a Value>) -> Result<()> {
    match (items(value), dims.split_first()) {
        (Some(items), Some((&size, inner))) => {
            ensure!(items.len() == size, "a list of {} items among lists of {size}", items.len());
            items.iter().try_for_each(|item| collect(item, inner, leaves))
        }
        (None, None) => {
            leaves.push(value);
            Ok(())
        }
        _ => bail!("lists of different depths"),
    }
}

fn of_leaves(leaves: &[&Value], shape: Shape, dtype: DType) -> Result<HostTensor> {
    macro_rules! integers {
        ($rust:ty) => {{
            let parse = |leaf: &&Value| match leaf {
                Value::Integer(number) => <$rust>::try_from(*number)
                    .ok()
                    .with_context(|| format!("{number} is no {dtype}")),
                other => wrong(other, dtype),
            };
            let elements = leaves.iter().map(parse).collect::<Result<Vec<$rust>>>()?;
            HostTensor::from_slice(shape, &elements)?
        }};
    }
    macro_rules! floats {
        ($from:expr) => {{
            let parse = |leaf: &&Value| Ok($from(float(leaf, dtype)?));
            HostTensor::from_slice(shape, &leaves.iter().map(parse).collect::<Result<Vec<_>>>()?)?
        }};
    }
    Ok(match dtype {
        DType::F16 => floats!(half::f16::from_f64),
        DType::BF16 => floats!(half::bf16::from_f64),
        DType::F32 => floats!(|value| value as f32),
        DType::F64 => floats!(|value: f64| value),
        DType::C64 => {
            let parse = |leaf: &&Value| {
                let value = complex(leaf, dtype)?;
                Ok(Complex::new(value.re as f32, value.im as f32))
            };
            HostTensor::from_slice(shape, &leaves.iter().map(parse).collect::<Result<Vec<_>>>()?)?
        }
        DType::C128 => {
            let parse = |leaf: &&Value| complex(leaf, dtype);
            HostTensor::from_slice(shape, &leaves.iter().map(parse).collect::<Result<Vec<_>>>()?)?
        }
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        DType::U8 => integers!(u8),
        DType::U16 => integers!(u16),
        DType::U32 => integers!(u32),
        DType::U64 => integers!(u64),
        DType::Bool => {
            let parse = |leaf: &&Value| match leaf {
                Value::Bool(value) => Ok(*value),
                other => wrong(other, dtype),
            };
            let elements = leaves.iter().map(parse).collect::<Result<Vec<bool>>>()?;
            HostTensor::from_bools(shape, &elements)?
        }
        DType::String => {
            let parse = |leaf: &&Value| match leaf {
                Value::Text(text) => Ok(Bytes::from(text.clone().into_bytes())),
                Value::Bytes(bytes) => Ok(Bytes::from(bytes.clone())),
                other => wrong(other, dtype),
            };
            let elements = leaves.iter().map(parse).collect::<Result<Vec<Bytes>>>()?;
            HostTensor::from_strings(shape, elements)?
        }
        _ => bail!("{dtype} cannot be written as a literal; use --inputs"),
    })
}

fn float(value: &Value, dtype: DType) -> Result<f64> {
    match value {
        Value::Float(value) => Ok(*value),
        Value::Integer(number) => Ok(*number as f64),
        other => wrong(other, dtype),
    }
}

fn complex(value: &Value, dtype: DType) -> Result<Complex<f64>> {
    match value {
        Value::Complex(value) => Ok(Complex::new(value.re, value.im)),
        other => Ok(Complex::new(float(other, dtype)?, 0.0)),
    }
}

fn wrong<T>(value: &Value, dtype: DType) -> Result<T> {
    bail!("{value} where {dtype} is expected")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_tensors() {
        let matrix = tensor("[[1.0, 2], (3, 4e1)]", DType::F32).unwrap();
        assert_eq!(matrix.shape().dims(), [2, 2]);
        assert_eq!(matrix.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 40.0]);
        assert_eq!(tensor("-7", DType::I8).unwrap().as_scalar::<i8>().unwrap(), -7);
        assert_eq!(tensor("[]", DType::F32).unwrap().shape().dims(), [0]);
        let texts = tensor("['a', b'\\xff']", DType::String).unwrap();
        assert_eq!(texts.strings().unwrap()[1][..], [0xff]);
        let ones = tensor("np.ones((2, 1))", DType::I32).unwrap();
        assert_eq!(ones.as_slice::<i32>().unwrap(), [1, 1]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, dtype) in [
            ("[1, [2]]", DType::F32),
            ("[[1], [2, 3]]", DType::F32),
            ("300", DType::U8),
            ("1.5", DType::I32),
            ("'a'", DType::F32),
            ("1", DType::String),
            ("1", DType::Bool),
            ("[1,", DType::F32),
            ("os.remove('x')", DType::F32),
            ("np.ones((-1,))", DType::F32),
            ("np.ones((99999999, 99999999))", DType::F32),
        ] {
            assert!(tensor(text, dtype).is_err(), "{text} as {dtype}");
        }
    }
}
