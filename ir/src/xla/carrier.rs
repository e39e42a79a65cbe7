//! Elements narrower than what ops compute with, and the wider ones that carry them.
//!
//! A carrier has all values of the narrow type. Sums, products and shifts of carried integers, cast
//! back, are those modulo the narrow type's range; floats are rounded when they are cast back.

use crate::{dtype::DType, emit::Value};

/// The dtype that ops compute with instead of a narrower one: `f32` for floats of 8 bits or fewer,
/// bytes for integers of fewer bits. `None` for a dtype that ops compute with.
pub fn carrier(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F8E5M2
        | DType::F8E4M3FN
        | DType::F8E4M3FNUZ
        | DType::F8E4M3B11FNUZ
        | DType::F8E5M2FNUZ
        | DType::F4E2M1FN => Some(DType::F32),
        DType::I4 | DType::I2 => Some(DType::I8),
        DType::U4 | DType::U2 => Some(DType::U8),
        _ => None,
    }
}

/// The value as its carrier.
pub fn widened(x: Value<'_>) -> Value<'_> {
    carrier(x.dtype()).map_or(x, |wide| x.cast(wide))
}
