//! Attributes as numbers, tensors and constants.

use super::module::{Attr, HloElement, HloOp, TensorType};
use ferroflow_ir::{DType, Error, HostTensor, PartialShape, Result, Shape, ValueType};
use std::borrow::Cow;

/// The error that an operation breaks a rule.
pub(super) fn malformed(op: &HloOp, rule: impl Into<String>) -> Error {
    Error::Malformed { node: format!("operation {}", op.name), rule: rule.into().into() }
}

/// The error that nothing here does what an operation asks for.
pub(super) fn unsupported(op: &HloOp, what: impl Into<Cow<'static, str>>) -> Error {
    Error::Unsupported { op: format!("stablehlo.{}", op.name).into(), what: what.into() }
}

/// The dtype of an element.
pub(super) fn dtype(element: HloElement) -> Result<DType> {
    match element {
        HloElement::Of(dtype) => Ok(dtype),
        HloElement::Unsupported(name) => Err(Error::Unsupported {
            op: "XlaCallModule".into(),
            what: format!("elements of the type {name}").into(),
        }),
    }
}

/// The shape of a tensor, as far as its type tells.
pub(super) fn partial_shape(ty: &TensorType) -> PartialShape {
    PartialShape::ranked(ty.dims.iter().copied())
}

/// The type of a tensor as a graph has it.
pub(super) fn value_type(ty: &TensorType) -> Result<ValueType> {
    Ok(ValueType::new(dtype(ty.element)?, partial_shape(ty)))
}

/// The elements of a constant: all of them, or the one that they all are.
pub(super) enum Elements {
    All(HostTensor),
    Same(HostTensor, Shape),
}

/// The constant of an attribute.
pub(super) fn elements(op: &HloOp, ty: &TensorType, data: &[u8]) -> Result<Elements> {
    let dtype = dtype(ty.element)?;
    let shape = partial_shape(ty).known();
    let shape = shape.ok_or_else(|| malformed(op, "a constant has a shape"))?;
    let n = shape.num_elements();
    if dtype == DType::Bool {
        return bools(op, shape, data);
    }
    let width = dtype.size().ok_or_else(|| malformed(op, "a constant has plain elements"))?;
    if data.len() == width && n != 1 {
        let one = HostTensor::from_bytes(dtype, Shape::scalar(), data)?;
        return Ok(Elements::Same(one, shape));
    }
    if n.checked_mul(width) != Some(data.len()) {
        return Err(malformed(op, format!("{n} elements take {width} bytes each")));
    }
    HostTensor::from_bytes(dtype, shape, data).map(Elements::All)
}

/// Bools are stored as bits, lowest first, or as bytes; one byte of ones or zeros stands for all.
fn bools(op: &HloOp, shape: Shape, data: &[u8]) -> Result<Elements> {
    let n = shape.num_elements();
    if n != 1 && data.len() == 1 && (data[0] == 0xff || data[0] == 0) {
        return Ok(Elements::Same(HostTensor::scalar_bool(data[0] != 0), shape));
    }
    let bits: Vec<bool> = if data.len() == n {
        data.iter().map(|&byte| byte != 0).collect()
    } else if data.len() == n.div_ceil(8) {
        (0..n).map(|at| data[at / 8] >> (at % 8) & 1 == 1).collect()
    } else {
        return Err(malformed(op, format!("{n} bools take a bit or a byte each")));
    };
    HostTensor::from_bools(shape, &bits).map(Elements::All)
}

/// No list of numbers in an attribute is longer.
const MOST_NUMBERS: usize = 1 << 16;

impl HloOp {
    fn missing(&self, name: &str) -> Error {
        malformed(self, format!("it has the attribute `{name}`"))
    }

    /// The integers of an attribute; none if it is absent.
    pub(super) fn ints(&self, name: &str) -> Result<Vec<i64>> {
        match self.attr(name) {
            None => Ok(Vec::new()),
            Some(Attr::Int(value)) => Ok(vec![*value]),
            Some(Attr::Array(list)) => list
                .iter()
                .map(|attr| match **attr {
                    Attr::Int(value) => Ok(value),
                    _ => Err(malformed(self, format!("`{name}` has integers"))),
                })
                .collect(),
            Some(Attr::Tensor(ty, data)) => match elements(self, ty, data)? {
                Elements::All(tensor) => integers(&tensor),
                Elements::Same(one, shape) => {
                    let n = shape.num_elements();
                    if n > MOST_NUMBERS {
                        return Err(malformed(self, format!("`{name}` is not that long")));
                    }
                    Ok(vec![integers(&one)?.first().copied().unwrap_or(0); n])
                }
            },
            Some(_) => Err(malformed(self, format!("`{name}` has integers"))),
        }
    }

    /// Axes, all below `rank` and none twice.
    pub(super) fn axes(&self, name: &str, rank: usize) -> Result<Vec<usize>> {
        let axes: Vec<usize> = self
            .ints(name)?
            .into_iter()
            .map(|axis| usize::try_from(axis).ok().filter(|&axis| axis < rank))
            .collect::<Option<_>>()
            .ok_or_else(|| malformed(self, format!("`{name}` has axes")))?;
        match ferroflow_ir::xla::region::distinct(&axes) {
            true => Ok(axes),
            false => Err(malformed(self, format!("`{name}` has each axis once"))),
        }
    }

    /// An integer.
    pub(super) fn int(&self, name: &str) -> Result<i64> {
        let ints = self.ints(name)?;
        ints.first().copied().ok_or_else(|| self.missing(name))
    }

    /// An axis below `rank`.
    pub(super) fn axis(&self, name: &str, rank: usize) -> Result<usize> {
        let axis = self.int(name)?;
        let axis = usize::try_from(axis).ok().filter(|&axis| axis < rank);
        axis.ok_or_else(|| malformed(self, format!("`{name}` is an axis")))
    }

    /// A flag; `false` if it is absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.attr(name) {
            None => Ok(false),
            Some(Attr::Bool(value)) => Ok(*value),
            Some(_) => Err(malformed(self, format!("`{name}` is a flag"))),
        }
    }

    /// Flags; none if they are absent.
    pub(super) fn flags(&self, name: &str) -> Result<Vec<bool>> {
        match self.attr(name) {
            None => Ok(Vec::new()),
            Some(Attr::Array(_)) | Some(Attr::Tensor(..)) => {
                Ok(self.ints(name)?.into_iter().map(|value| value != 0).collect())
            }
            Some(_) => Err(malformed(self, format!("`{name}` has flags"))),
        }
    }

    /// A case of an enumeration.
    pub(super) fn case(&self, name: &str) -> Result<u64> {
        match self.attr(name) {
            Some(Attr::Case(value)) => Ok(*value),
            _ => Err(self.missing(name)),
        }
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Result<&str> {
        self.attr(name).and_then(Attr::text).ok_or_else(|| self.missing(name))
    }

    /// A float.
    pub(super) fn float(&self, name: &str) -> Result<f64> {
        match self.attr(name) {
            Some(Attr::Float(value)) => Ok(*value),
            _ => Err(self.missing(name)),
        }
    }

    /// The tensor type of result `index`.
    pub(super) fn result_type(&self, index: usize) -> Result<&TensorType> {
        match self.results.get(index) {
            Some((_, super::module::Type::Tensor(ty))) => Ok(ty),
            _ => Err(malformed(self, "it has a tensor as its result")),
        }
    }
}

fn integers(tensor: &HostTensor) -> Result<Vec<i64>> {
    match tensor.dtype() {
        DType::Bool => Ok(tensor.bytes().iter().map(|&byte| i64::from(byte)).collect()),
        _ => tensor.to_i64s(),
    }
}
