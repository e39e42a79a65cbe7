//! Tensors as JSON.

use ferroflow::ir::{DType, HostTensor};
use half::{bf16, f16};
use num_complex::Complex;
use serde_json::{Value, json};

/// Dtype, shape and elements of a tensor, the elements in nested lists.
///
/// What JSON has no number for is written as text: `"nan"`, `"inf"`, `"-inf"`; complex numbers are
/// pairs. Strings that are not UTF-8 have their other bytes written as `\xNN`.
pub(super) fn tensor(tensor: &HostTensor) -> Value {
    let elements: Vec<Value> = (0..tensor.len()).map(|index| element(tensor, index)).collect();
    json!({
        "dtype": tensor.dtype().name(),
        "shape": tensor.shape().dims(),
        "values": nested(elements, tensor.shape().dims()),
    })
}

fn nested(elements: Vec<Value>, dims: &[usize]) -> Value {
    let Some((&size, inner)) = dims.split_first() else {
        return elements.into_iter().next().unwrap_or(Value::Null);
    };
    let each = inner.iter().product::<usize>();
    let mut elements = elements.into_iter();
    let part = |_| nested(elements.by_ref().take(each).collect(), inner);
    (0..size).map(part).collect()
}

fn element(tensor: &HostTensor, index: usize) -> Value {
    macro_rules! plain {
        ($rust:ty) => {
            bytemuck::cast_slice::<u8, $rust>(tensor.bytes())[index]
        };
    }
    match tensor.dtype() {
        DType::F16 => short(plain!(f16).into()),
        DType::BF16 => short(plain!(bf16).into()),
        DType::F32 => short(plain!(f32)),
        DType::F64 => number(plain!(f64)),
        DType::C64 => {
            let value = plain!(Complex<f32>);
            json!([short(value.re), short(value.im)])
        }
        DType::C128 => {
            let value = plain!(Complex<f64>);
            json!([number(value.re), number(value.im)])
        }
        DType::Bool => json!(tensor.bytes()[index] != 0),
        DType::String => tensor.strings().map_or(Value::Null, |all| json!(text(&all[index]))),
        _ => {
            let mut text = String::new();
            // Writing to a String cannot fail.
            let _ = tensor.fmt_element(index, &mut text);
            text.parse::<serde_json::Number>().map_or(json!(text), Value::Number)
        }
    }
}

/// The fewest digits that read back as the same `f32`.
fn short(value: f32) -> Value {
    number(value.to_string().parse().unwrap_or(f64::NAN))
}

fn number(value: f64) -> Value {
    match value.is_finite() {
        true => json!(value),
        false if value.is_nan() => json!("nan"),
        false => json!(if value > 0.0 { "inf" } else { "-inf" }),
    }
}

fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow::ir::Shape;

    #[test]
    fn elements_nest_as_the_shape_says() {
        let matrix =
            HostTensor::from_slice(Shape::new([2, 2]).unwrap(), &[1.0f32, 2.5, f32::NAN, 0.0]);
        let expected = json!({
            "dtype": "float32", "shape": [2, 2], "values": [[1.0, 2.5], ["nan", 0.0]],
        });
        assert_eq!(tensor(&matrix.unwrap()), expected);
        assert_eq!(tensor(&HostTensor::scalar(7i64))["values"], json!(7));
        assert_eq!(tensor(&HostTensor::scalar_string(&b"a\xff"[..]))["values"], json!("a\\xff"));
        let empty = HostTensor::from_slice::<f32>(Shape::new([2, 0]).unwrap(), &[]).unwrap();
        assert_eq!(tensor(&empty)["values"], json!([[], []]));
    }
}
