//! Operands of ops.

use crate::{
    error::{Error, Result},
    tensor::Tensor,
    variable::Variable,
};
use ferroflow_ir::{DType, HostTensor, Shape, trace_type::Literal};
use half::{bf16, f16};
use std::borrow::Borrow;

/// A tensor, a variable (its value), or a Rust value or array that becomes a tensor of the other
/// operand's dtype.
pub trait IntoOperand {
    /// The tensor, or a reference to it.
    type Operand: Borrow<Tensor>;

    /// The tensor, where the other operand is of this dtype.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when the dtype cannot hold the value.
    fn into_operand(self, dtype: DType) -> Result<Self::Operand>;
}

impl IntoOperand for Tensor {
    type Operand = Tensor;

    fn into_operand(self, _: DType) -> Result<Tensor> {
        Ok(self)
    }
}

impl<'a> IntoOperand for &'a Tensor {
    type Operand = &'a Tensor;

    fn into_operand(self, _: DType) -> Result<&'a Tensor> {
        Ok(self)
    }
}

impl IntoOperand for Result<Tensor> {
    type Operand = Tensor;

    /// The tensor that another operator returned: `b + x * w` needs one `?`, behind it.
    fn into_operand(self, _: DType) -> Result<Tensor> {
        self
    }
}

impl IntoOperand for &Variable {
    type Operand = Tensor;

    #[track_caller]
    fn into_operand(self, _: DType) -> Result<Tensor> {
        self.read()
    }
}

impl IntoOperand for &str {
    type Operand = Tensor;

    fn into_operand(self, _: DType) -> Result<Tensor> {
        Ok(self.into())
    }
}

impl IntoOperand for bool {
    type Operand = Tensor;

    fn into_operand(self, _: DType) -> Result<Tensor> {
        Ok(self.into())
    }
}

macro_rules! number_operands {
    ($($rust:ty: $variant:ident as $as:ty),*) => {$(
        impl IntoOperand for $rust {
            type Operand = Tensor;

            fn into_operand(self, dtype: DType) -> Result<Tensor> {
                let literal = Literal::$variant(self as $as);
                tensor_of(dtype, Shape::scalar(), &[literal])
            }
        }

        impl<const N: usize> IntoOperand for [$rust; N] {
            type Operand = Tensor;

            fn into_operand(self, dtype: DType) -> Result<Tensor> {
                let literals = self.map(|value| Literal::$variant(value as $as));
                tensor_of(dtype, Shape::new([N])?, &literals)
            }
        }

        impl<const N: usize, const M: usize> IntoOperand for [[$rust; N]; M] {
            type Operand = Tensor;

            fn into_operand(self, dtype: DType) -> Result<Tensor> {
                let all = self.as_flattened().iter();
                let literals: Vec<Literal> = all.map(|&value| Literal::$variant(value as $as)).collect();
                tensor_of(dtype, Shape::new([M, N])?, &literals)
            }
        }

        impl IntoOperand for Vec<$rust> {
            type Operand = Tensor;

            fn into_operand(self, dtype: DType) -> Result<Tensor> {
                let all = self.iter();
                let literals: Vec<Literal> = all.map(|&value| Literal::$variant(value as $as)).collect();
                tensor_of(dtype, Shape::new([literals.len()])?, &literals)
            }
        }
    )*};
}

/// The tensor of these numbers, which the dtype must hold.
fn tensor_of(dtype: DType, shape: Shape, literals: &[Literal]) -> Result<Tensor> {
    let tensor = numbers(dtype, shape, literals);
    let wrong = || {
        let of_dtype = |literal: &&Literal| {
            numbers(dtype, Shape::scalar(), std::slice::from_ref(*literal)).is_none()
        };
        let found = literals.iter().find(of_dtype).map_or_else(String::new, Literal::to_string);
        Error::Conversion {
            expected: format!("a value of dtype {dtype}"),
            found: format!("the number {found}"),
        }
    };
    Ok(tensor.ok_or_else(wrong)?.into())
}

number_operands!(
    f32: Float as f64, f64: Float as f64, i8: Int as i64, i16: Int as i64, i32: Int as i64,
    i64: Int as i64, u8: UInt as u64, u16: UInt as u64, u32: UInt as u64, u64: UInt as u64
);

/// A tensor of numbers; `None` when the dtype cannot hold them: fractions in integers, numbers out
/// of range, anything but numbers.
pub(crate) fn numbers(dtype: DType, shape: Shape, elements: &[Literal]) -> Option<HostTensor> {
    macro_rules! floats {
        ($rust:ty, |$value:ident| $from:expr) => {{
            let convert = |literal: &Literal| -> Option<$rust> {
                let $value = float(literal)?;
                Some($from)
            };
            let elements: Option<Vec<$rust>> = elements.iter().map(convert).collect();
            HostTensor::from_slice(shape, &elements?).ok()
        }};
    }
    macro_rules! integers {
        ($rust:ty) => {{
            let convert =
                |literal: &Literal| -> Option<$rust> { integer(literal)?.try_into().ok() };
            let elements: Option<Vec<$rust>> = elements.iter().map(convert).collect();
            HostTensor::from_slice(shape, &elements?).ok()
        }};
    }
    match dtype {
        DType::F32 => floats!(f32, |value| value as f32),
        DType::F64 => floats!(f64, |value| value),
        DType::F16 => floats!(f16, |value| f16::from_f64(value)),
        DType::BF16 => floats!(bf16, |value| bf16::from_f64(value)),
        DType::C64 => floats!(num_complex::Complex32, |value| (value as f32).into()),
        DType::C128 => floats!(num_complex::Complex64, |value| value.into()),
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        DType::U8 => integers!(u8),
        DType::U16 => integers!(u16),
        DType::U32 => integers!(u32),
        DType::U64 => integers!(u64),
        _ => None,
    }
}

fn float(literal: &Literal) -> Option<f64> {
    match literal {
        Literal::Float(value) => Some(*value),
        literal => integer(literal).map(|value| value as f64),
    }
}

fn integer(literal: &Literal) -> Option<i128> {
    match literal {
        Literal::Int(value) => Some((*value).into()),
        Literal::UInt(value) => Some((*value).into()),
        Literal::Bool(_)
        | Literal::Float(_)
        | Literal::Str(_)
        | Literal::DType(_)
        | Literal::Shape(_) => None,
    }
}
