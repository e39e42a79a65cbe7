//! Slices that begin where a value of the call says, read and written.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, FunctionDef, HostTensor, Shape, ValueType, build::GraphBuilder};
use ferroflow_runtime::{CallableFunction, EagerTensor};

const DIMS: [usize; 3] = [4, 5, 3];

fn int() -> ValueType {
    ValueType::new(DType::I32, Shape::scalar())
}

/// `x[:, i, :]`, and the `[2, 5, 2]` elements of `x` from `[i, 0, 1]` on, negated so that they are computed with.
fn sliced() -> FunctionDef {
    function("sliced", &[("i", int()), ("x", f32s(&DIMS))], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let begin = b.call("Pack", "begin", &[zero, args[0], zero])?[0];
        let end = b.call("Pack", "end", &[zero, next, zero])?[0];
        let steps = b.constant("steps", HostTensor::vector(&[1i32, 1, 1])?)?;
        let masks = Attrs::new().with("begin_mask", 5i64).with("end_mask", 5i64);
        let masks = masks.with("shrink_axis_mask", 2i64);
        let inputs = [args[1], begin, end, steps];
        let column = b.call_with("StridedSlice", "column", masks, &inputs)?[0];
        let corner = b.call("Pack", "corner", &[args[0], zero, one])?[0];
        let size = b.constant("size", HostTensor::vector(&[2i32, 5, 2])?)?;
        let block = b.call("Slice", "block", &[args[1], corner, size])?[0];
        Ok(vec![b.call("Neg", "minus_column", &[column])?[0], b.call("Neg", "minus", &[block])?[0]])
    })
}

fn number(at: [usize; 3]) -> f32 {
    ((at[0] * DIMS[1] + at[1]) * DIMS[2] + at[2]) as f32
}

fn call(f: &CallableFunction, i: i32) -> ferroflow_runtime::Result<Vec<EagerTensor>> {
    f.call(&[EagerTensor::scalar(i), numbers().into()])
}

/// The numbers from 0 on.
fn numbers() -> HostTensor {
    let numbers: Vec<f32> = (0..DIMS.iter().product()).map(|n: usize| n as f32).collect();
    HostTensor::from_slice(Shape::new(DIMS).unwrap(), &numbers).unwrap()
}

#[test]
fn windows_move_from_call_to_call() {
    let f = concrete(&context(), sliced(), Vec::new(), Vec::new());
    let text = f.optimized_text(&[int(), f32s(&DIMS)]).unwrap();
    assert!(text.contains("float32[4,3]") && text.contains("float32[2,5,2]"), "{text}");
    for i in 0..3 {
        let found = call(&f, i as i32).unwrap();
        let column = (0..4).flat_map(|a| (0..3).map(move |c| -number([a, i, c])));
        assert_eq!(values(&found, 0), column.collect::<Vec<_>>(), "column {i}");
        let rows = (i..i + 2).flat_map(|a| (0..5).map(move |b| (a, b)));
        let block = rows.flat_map(|(a, b)| (1..3).map(move |c| -number([a, b, c])));
        assert_eq!(values(&found, 1), block.collect::<Vec<_>>(), "block {i}");
    }
}

#[test]
fn windows_beyond_the_ends_are_errors() {
    let f = concrete(&context(), sliced(), Vec::new(), Vec::new());
    // A column, but no block: and neither.
    for (i, op) in [(3, "Slice"), (5, "StridedSlice"), (-6, "StridedSlice"), (-1, "Slice")] {
        let error = call(&f, i).unwrap_err().to_string();
        assert!(error.contains(op), "{i}: {error}");
    }
    assert!(call(&f, 2).is_ok());
}

/// `exp(x[b:b + [2, 5, 2]])` where `b = clamp([i, j, 1])`, by a strided slice whose bounds are put together of
/// elements, as JAX writes slices of programs with symbolic sizes. `last` is the clamp from above.
fn clamped(last: [i32; 3]) -> FunctionDef {
    function("clamped", &[("i", int()), ("j", int()), ("x", f32s(&DIMS))], |b, args| {
        let vector = |b: &mut GraphBuilder, name: &str, numbers: &[i32]| {
            b.constant(name, HostTensor::vector(numbers)?)
        };
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let wanted = b.call("Pack", "wanted", &[args[0], args[1], one])?[0];
        let (first, last) = (vector(b, "first", &[0, 0, 0])?, vector(b, "last", &last)?);
        let above = b.call("Maximum", "above", &[wanted, first])?[0];
        let begin = b.call("Minimum", "begin", &[above, last])?[0];
        let size = vector(b, "size", &[2, 5, 2])?;
        let end = b.call("AddV2", "end", &[begin, size])?[0];
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        let mut bounds = Vec::new();
        for (name, bound) in [("from", begin), ("to", end)] {
            let (wide, mut parts) = (Attrs::new().with("DstT", DType::I64), Vec::new());
            let bound = b.call_with("Cast", &format!("{name}_wide"), wide, &[bound])?[0];
            for index in 0..3 {
                let part = format!("{name}_part_{index}");
                let index = b.constant(&format!("{name}_{index}"), HostTensor::scalar(index))?;
                parts.push(b.call("GatherV2", &part, &[bound, index, axis])?[0]);
            }
            bounds.push(b.call("Pack", name, &parts)?[0]);
        }
        let ones = b.constant("ones", HostTensor::vector(&[1i64, 1, 1])?)?;
        let inputs = [args[2], bounds[0], bounds[1], ones];
        let window = b.call("StridedSlice", "window", &inputs)?[0];
        Ok(vec![b.call("Exp", "exp", &[window])?[0]])
    })
}

/// A window that is clamped into its input has a known size, for which its readers are compiled; one that
/// may be cut off has not. Both are what they are for all indices.
#[test]
fn windows_between_computed_bounds_have_sizes() {
    for (last, is_known) in [([2, 0, 1], true), ([3, 0, 1], false)] {
        let f = concrete(&context(), clamped(last), Vec::new(), Vec::new());
        let text = f.optimized_text(&[int(), int(), f32s(&DIMS)]).unwrap();
        assert_eq!(text.contains("float32[2,5,2]"), is_known, "{text}");
        assert!(!is_known || !text.contains("GatherV2"), "{text}");
        let x: Vec<f32> = (0..60).map(|n| n as f32 / 64.0).collect();
        let x: EagerTensor = HostTensor::from_slice(Shape::new(DIMS).unwrap(), &x).unwrap().into();
        for i in [i32::MIN, -1, 0, 1, 2, 3, 4, i32::MAX] {
            let found = f.call(&[EagerTensor::scalar(i), EagerTensor::scalar(7), x.clone()]);
            let from = i.clamp(0, last[0]) as usize;
            let rows = (from..(from + 2).min(4)).flat_map(|a| (0..5).map(move |b| (a, b)));
            let expected: Vec<f32> = rows
                .flat_map(|(a, b)| (1..3).map(move |c| (number([a, b, c]) / 64.0).exp()))
                .collect();
            let found = values(&found.unwrap(), 0);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
            assert!(found.len() == expected.len() && found.iter().zip(&expected).all(near), "{i}");
        }
    }
}

/// `-x` with `value` at `[i:i + 2, :, 1:]`, and zeros with `value` there.
fn written() -> FunctionDef {
    function(
        "written",
        &[("i", int()), ("x", f32s(&DIMS)), ("value", f32s(&[2, 1, 2]))],
        |b, args| {
            let two = b.constant("two", HostTensor::scalar(2i32))?;
            let next = b.call("AddV2", "next", &[args[0], two])?[0];
            let constants = [("zero", 0), ("one", 1)];
            let [zero, one] = constants.map(|(name, x)| b.constant(name, HostTensor::scalar(x)));
            let (zero, one) = (zero?, one?);
            let begin = b.call("Pack", "begin", &[args[0], zero, one])?[0];
            let end = b.call("Pack", "end", &[next, zero, zero])?[0];
            let steps = b.constant("steps", HostTensor::vector(&[1i32, 1, 1])?)?;
            let masks = Attrs::new().with("begin_mask", 2i64).with("end_mask", 6i64);
            let minus = b.call("Neg", "minus", &[args[1]])?[0];
            let inputs = [minus, begin, end, steps, args[2]];
            let update =
                b.call_with("TensorStridedSliceUpdate", "update", masks.clone(), &inputs)?[0];
            let elements = b.constant("elements", HostTensor::vector(&[2i32, 5, 2])?)?;
            let all = b.call("BroadcastTo", "all", &[args[2], elements])?[0];
            let shape = b.constant("shape", HostTensor::vector(&DIMS.map(|n| n as i32))?)?;
            let inputs = [shape, begin, end, steps, all];
            let gradient = b.call_with("StridedSliceGrad", "gradient", masks, &inputs)?[0];
            Ok(vec![update, gradient])
        },
    )
}

#[test]
fn windows_that_are_written_move_from_call_to_call() {
    let f = concrete(&context(), written(), Vec::new(), Vec::new());
    let (x, value) = (
        EagerTensor::from(numbers()),
        HostTensor::from_slice(Shape::new([2, 1, 2]).unwrap(), &[100f32, 101.0, 102.0, 103.0]),
    );
    let value = EagerTensor::from(value.unwrap());
    let call = |i: i32| f.call(&[EagerTensor::scalar(i), x.clone(), value.clone()]);
    for i in 0..3 {
        let found = call(i as i32).unwrap();
        let at = |n: usize| [n / 15, n / 3 % 5, n % 3];
        let written = |[a, _, c]: [usize; 3]| {
            let row = a.checked_sub(i).filter(|&row| row < 2 && c > 0)?;
            Some((100 + 2 * row + c - 1) as f32)
        };
        let updated = (0..60).map(|n| written(at(n)).unwrap_or(-(n as f32)));
        assert_eq!(values(&found, 0), updated.collect::<Vec<_>>(), "update {i}");
        let gradient = (0..60).map(|n| written(at(n)).unwrap_or(0.0));
        assert_eq!(values(&found, 1), gradient.collect::<Vec<_>>(), "gradient {i}");
    }
    for i in [-1, 3, 4] {
        let error = call(i).unwrap_err().to_string();
        assert!(error.contains("StridedSlice") && error.contains("as the slice"), "{i}: {error}");
    }
}
