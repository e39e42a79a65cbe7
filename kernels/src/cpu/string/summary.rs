//! Tensors in a line of text, as messages show them.
//!
//! Source: `Tensor::SummarizeValue` in TensorFlow's `tensor.cc`.

use super::printf::{escaped, flushed, shown};
use ferroflow_ir::{DType, HostTensor};
use half::{bf16, f16};

/// The first `limit` elements of a tensor, or all if it is negative: elements of a row are apart by
/// spaces, rows are in brackets, and dots stand for what is left out.
pub fn summary(tensor: &HostTensor, limit: i64) -> Vec<u8> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX).min(tensor.len());
    let mut text = Vec::new();
    // Flags of which none is shown leave no trace.
    if limit == 0 && tensor.dtype() == DType::Bool {
        return text;
    }
    match &tensor.shape()[..] {
        [] if limit > 0 => element(tensor, 0, b"", &mut text),
        [] => {}
        dims => rows(tensor, dims, &mut (0, limit), &mut text),
    }
    if tensor.len() > limit {
        text.extend_from_slice(b"...");
    }
    text
}

/// Writes elements in the brackets of their dimensions; `at` is the next element, and how many are
/// shown.
fn rows(tensor: &HostTensor, dims: &[usize], at: &mut (usize, usize), text: &mut Vec<u8>) {
    let [size, inner @ ..] = dims else { return };
    for index in 0..*size {
        if at.0 >= at.1 {
            if inner.is_empty() && dims.len() < tensor.shape().rank() {
                text.extend_from_slice(b"...");
            }
            return;
        }
        if inner.is_empty() {
            if index > 0 {
                text.push(b' ');
            }
            element(tensor, at.0, b"", text);
            at.0 += 1;
        } else {
            text.push(b'[');
            rows(tensor, inner, at, text);
            text.push(b']');
        }
    }
}

/// Writes an element; strings stand between `quotes`.
pub(super) fn element(tensor: &HostTensor, index: usize, quotes: &[u8], out: &mut Vec<u8>) {
    macro_rules! text {
        ($type:ty, $convert:expr) => {
            $convert(bytemuck::cast_slice::<u8, $type>(tensor.bytes())[index])
        };
        ($type:ty) => {
            text!($type, |value: $type| value.to_string())
        };
    }
    let text = match tensor.dtype() {
        DType::F32 => text!(f32, |value| shown(flushed(value), 6, 9)),
        DType::F64 => text!(f64, |value| shown(value, 15, 17)),
        DType::F16 => text!(f16, |value| shown(f32::from(value), 6, 9)),
        DType::BF16 => text!(bf16, |value: bf16| shown(flushed(value.into()), 6, 9)),
        DType::I8 | DType::QI8 => text!(i8),
        DType::I16 | DType::QI16 => text!(i16),
        DType::I32 | DType::QI32 => text!(i32),
        DType::I64 => text!(i64),
        DType::U8 | DType::QU8 | DType::Bool => text!(u8),
        DType::U16 | DType::QU16 => text!(u16),
        DType::U32 => text!(u32),
        DType::U64 => text!(u64),
        DType::String => {
            out.extend_from_slice(quotes);
            escaped(tensor.strings().map_or(&[][..], |strings| &strings[index]), out);
            out.extend_from_slice(quotes);
            return;
        }
        _ => "?".to_string(),
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use ferroflow_ir::Shape;

    fn check(tensor: &HostTensor, limit: i64, expected: &str) {
        assert_eq!(String::from_utf8_lossy(&summary(tensor, limit)), expected, "{limit}");
    }

    // Recorded with TensorFlow 2.21.
    #[test]
    fn rows_and_dots_are_those_of_tensorflow() {
        let shape = |dims: &[usize]| Shape::new(dims.to_vec()).unwrap();
        let table = HostTensor::from_slice(shape(&[2, 3]), &[0, 1, 2, 3, 4, 5]).unwrap();
        check(&table, 3, "[0 1 2]...");
        check(&table, 2, "[0 1...]...");
        check(&table, -1, "[0 1 2][3 4 5]");
        check(&table, 0, "...");
        check(&HostTensor::scalar(1.5f32), 0, "...");
        check(&HostTensor::vector(&[0.1f32, f32::NAN, 1e30]).unwrap(), 2, "0.1 nan...");
        check(&HostTensor::from_bools(shape(&[2]), &[true, false]).unwrap(), 3, "1 0");
        let column = HostTensor::from_slice(shape(&[3, 1]), &[0u8, 1, 2]).unwrap();
        check(&column, 2, "[0][1]...");
        let cube = HostTensor::from_slice(shape(&[2, 2, 1]), &[0.5f64, 1.0, 2.0, 3.0]).unwrap();
        check(&cube, 1, "[[0.5]]...");
        check(&cube, 9, "[[0.5][1]][[2][3]]");
        check(&HostTensor::zeros(DType::F32, shape(&[0, 3])).unwrap(), 3, "");
        let words = [Bytes::from_static(b"a\n"), Bytes::from_static(b"b\"c")];
        check(&HostTensor::from_strings(shape(&[2]), words.to_vec()).unwrap(), 3, "a\\n b\\\"c");
    }
}
