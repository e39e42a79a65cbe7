//! Element types.

use ferroflow_ir::{DType, Error, Result};

/// References to 1.x variables have the number of their element type plus this.
const REFERENCE: i32 = 100;

/// A dtype by its wire number, and whether it is a reference to a 1.x variable.
///
/// # Errors
///
/// [`Error::Argument`] for a number that no dtype has.
pub fn dtype(number: i32) -> Result<(DType, bool)> {
    let found = match number {
        ..=REFERENCE => DType::from_number(number).map(|dtype| (dtype, false)),
        _ => DType::from_number(number - REFERENCE).map(|dtype| (dtype, true)),
    };
    found.ok_or_else(|| unknown(number))
}

/// A dtype by its wire number, which may not be that of a reference.
///
/// # Errors
///
/// [`Error::Argument`] for any other number.
pub fn value_dtype(number: i32) -> Result<DType> {
    DType::from_number(number).ok_or_else(|| unknown(number))
}

fn unknown(number: i32) -> Error {
    Error::argument("dtype", "number", "that of a known dtype", number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_offset_by_a_hundred() {
        assert_eq!(dtype(1).unwrap(), (DType::F32, false));
        assert_eq!(dtype(101).unwrap(), (DType::F32, true));
        for number in [0, -1, 34, 100, 134, i32::MAX, i32::MIN] {
            assert!(dtype(number).is_err(), "{number}");
        }
        assert!(value_dtype(101).is_err());
    }
}
