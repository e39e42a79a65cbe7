//! The sets of dtypes that many ops share.

use crate::dtype::DType::{self, *};

/// The index types.
pub(crate) const INDEX: &[DType] = &[I32, I64];
/// The real floating types.
pub(crate) const FLOATS: &[DType] = &[BF16, F16, F32, F64];
/// The complex types.
pub(crate) const COMPLEX: &[DType] = &[C64, C128];
/// The real floating types and the complex types.
pub(crate) const FLOATS_AND_COMPLEX: &[DType] = &[BF16, F16, F32, F64, C64, C128];
/// The plain integer types.
pub(crate) const INTS: &[DType] = &[I8, I16, I32, I64, U8, U16, U32, U64];
/// The real types: floats and plain integers.
pub(crate) const REALS: &[DType] = &[BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64];
/// The types plain arithmetic works on: reals and complex.
pub(crate) const ARITHMETIC: &[DType] =
    &[BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, C64, C128];
/// Every type of numbers, quantised ones included.
pub(crate) const NUMBERS: &[DType] = &[
    BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, C64, C128, QI8, QU8, QI16, QU16,
    QI32,
];
/// The quantised types.
pub(crate) const QUANTIZED: &[DType] = &[QI8, QU8, QI16, QU16, QI32];
/// Single and double precision.
pub(crate) const F32_F64: &[DType] = &[F32, F64];
/// Half and single precision.
pub(crate) const F16_F32: &[DType] = &[F16, F32];
/// The 16-bit floats and single precision.
pub(crate) const UP_TO_F32: &[DType] = &[BF16, F16, F32];
/// Half, single and double precision.
pub(crate) const IEEE_FLOATS: &[DType] = &[F16, F32, F64];
/// The types of linear algebra.
pub(crate) const LINALG: &[DType] = &[F16, F32, F64, C64, C128];
/// The types of features in a `tf.Example`.
pub(crate) const FEATURES: &[DType] = &[F32, I64, String];
/// Signed types that have a negative, and complex.
pub(crate) const NEGATABLE: &[DType] = &[BF16, F16, F32, F64, I8, I16, I32, I64, C64, C128];
