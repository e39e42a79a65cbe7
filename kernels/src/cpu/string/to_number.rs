//! Numbers from text: `StringToNumber`.

use super::{Mapped, put_mapped, trimmed};
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error};
use std::{str, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[("StringToNumber", to_number)];

fn to_number(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(mapped: Mapped, read: fn(&[u8]) -> Option<T>) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            put_mapped(io, &mapped, |text| {
                read(text).ok_or_else(|| {
                    let (op, found) = ("StringToNumber", String::from_utf8_lossy(text));
                    Error::argument(op, "string_tensor", "a number", found).into()
                })
            })
        })
    }
    let mapped = Mapped::new(call);
    Ok(match mapped.dtype {
        DType::F32 => Some(kernel(mapped, float::<f32>)),
        DType::F64 => Some(kernel(mapped, float::<f64>)),
        DType::I32 => Some(kernel(mapped, integer::<i32>)),
        DType::I64 => Some(kernel(mapped, integer::<i64>)),
        DType::U32 => Some(kernel(mapped, integer::<u32>)),
        DType::U64 => Some(kernel(mapped, integer::<u64>)),
        _ => None,
    })
}

/// An integer in decimal digits, with white space around it.
pub(in crate::cpu) fn integer<T: str::FromStr>(text: &[u8]) -> Option<T> {
    str::from_utf8(trimmed(text)).ok()?.parse().ok()
}

/// A float that text can be read as.
pub(in crate::cpu) trait Float: str::FromStr + std::ops::Neg<Output = Self> {
    /// The value of `digits × 2^exponent`, rounded once.
    fn scaled(digits: f64, exponent: i32) -> Self;
}

impl Float for f32 {
    fn scaled(digits: f64, exponent: i32) -> f32 {
        (digits * 2f64.powi(exponent)) as f32
    }
}

impl Float for f64 {
    fn scaled(digits: f64, exponent: i32) -> f64 {
        digits * 2f64.powi(exponent)
    }
}

/// A float in decimal or hexadecimal digits, infinity or NaN in any case, with white space around
/// it.
pub(in crate::cpu) fn float<T: Float>(text: &[u8]) -> Option<T> {
    let text = str::from_utf8(trimmed(text)).ok()?;
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value: T = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits)?,
        None => match digits.find('(') {
            Some(start) if is_payload(&digits[start..]) => Some(&digits[..start])
                .filter(|word| word.eq_ignore_ascii_case("nan"))?
                .parse()
                .ok()?,
            _ => digits.parse().ok()?,
        },
    };
    Some(if negative { -value } else { value })
}

/// Whether a text may come after the letters of a NaN, as C has it.
fn is_payload(text: &str) -> bool {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    inner
        .is_some_and(|inner| inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
}

fn hexadecimal<T: Float>(text: &str) -> Option<T> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let mut value = 0.0;
    let mut n_digits = 0;
    for digit in whole.chars().chain(part.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
        n_digits += 1;
    }
    let shift = i32::try_from(part.len()).ok()?.checked_mul(4)?;
    (n_digits > 0).then(|| T::scaled(value, exponent.saturating_sub(shift)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_number() {
        for (text, expected) in [
            ("1", 1.0f32),
            (" -2\n", -2.0),
            ("+4", 4.0),
            ("-.5", -0.5),
            ("1.", 1.0),
            ("1e3", 1000.0),
            ("INF", f32::INFINITY),
            ("-Infinity", f32::NEG_INFINITY),
            ("0x1.8p1", 3.0),
            ("0X10", 16.0),
        ] {
            assert_eq!(float::<f32>(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", "x", "1,5", "1e", ".", "--1", "-+1", "1 2", "0x", "infx"] {
            assert_eq!(float::<f32>(text.as_bytes()), None, "{text}");
        }
        for text in ["-nan", "NaN(1_a)"] {
            assert!(float::<f64>(text.as_bytes()).is_some_and(f64::is_nan));
        }
        assert_eq!(integer::<i32>(b" +07\t"), Some(7));
        assert_eq!(integer::<i32>(b"2147483648"), None);
        assert_eq!(integer::<u32>(b"1.5"), None);
    }
}
