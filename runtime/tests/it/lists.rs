//! Lists of tensors in loops.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, FunctionDef, HostTensor, PartialShape, Shape, ValueType};
use ferroflow_runtime::EagerTensor;

fn int() -> ValueType {
    ValueType::new(DType::I32, Shape::scalar())
}

fn list() -> ValueType {
    ValueType::new(DType::Variant, PartialShape::scalar())
}

fn vector_of(values: &[i32]) -> HostTensor {
    HostTensor::vector(values).unwrap()
}

/// `i < n`, for loops over `(i, n, list, x)`.
fn below() -> FunctionDef {
    let args = [("i", int()), ("n", int()), ("list", list()), ("x", f32s(&[8]))];
    function("below", &args, |b, args| b.call("Less", "less", &args[..2]))
}

/// Puts `x` into the list, which may be as it was given or hold `x` twice.
fn body(op: &'static str, twice: bool) -> FunctionDef {
    let args = [("i", int()), ("n", int()), ("list", list()), ("x", f32s(&[8]))];
    function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let inputs = match op {
            "TensorListSetItem" => vec![args[2], args[0], args[3]],
            _ => vec![args[2], args[3]],
        };
        let changed = b.call(op, "changed", &inputs)?[0];
        let results = if twice { b.call(op, "again", &[changed, args[3]])?[0] } else { changed };
        Ok(vec![next, args[1], results, args[3]])
    })
}

fn attrs() -> Attrs {
    let types = vec![DType::I32, DType::I32, DType::Variant, DType::F32];
    Attrs::new().with("T", types).with("cond", func("below")).with("body", func("body"))
}

/// The exponentials of the squares of what a loop of `n` rounds has written to a list of three elements. The
/// stack says how many they are, or leaves it to the list.
fn stacked_of_loop(says: bool) -> FunctionDef {
    function("fill", &[("n", int()), ("x", f32s(&[8]))], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let three = b.constant("three", HostTensor::scalar(3i32))?;
        let shape = b.constant("shape", vector_of(&[-1]))?;
        let dtype = Attrs::new().with("element_dtype", DType::F32);
        let made = b.call_with("TensorListReserve", "made", dtype.clone(), &[shape, three])?[0];
        let inputs = [zero, args[0], made, args[1]];
        let filled = b.call_with("StatelessWhile", "loop", attrs(), &inputs)?[2];
        let dtype = dtype.with("num_elements", if says { 3i64 } else { -1 });
        let stacked = b.call_with("TensorListStack", "stacked", dtype, &[filled, shape])?[0];
        let squares = b.call("Square", "squares", &[stacked])?[0];
        b.call("Exp", "exponentials", &[squares]).map(|results| results.to_vec())
    })
}

/// A list that asks for a shape which is not known says of what is stacked of it what was written to it: as
/// many rows as it has elements, of the shape of `x`. Calls after it are compiled for that.
#[test]
fn what_rounds_write_tells_the_shape_of_what_is_stacked() {
    let x = vector(&[0.0, 1.0, 2.0, 0.5, 0.0, 1.0, 2.0, 0.5]);
    let row = [1.0, 1f32.exp(), 4f32.exp(), 0.25f32.exp()].repeat(2);
    for says in [false, true] {
        let library = vec![below(), body("TensorListSetItem", false)];
        let fill = concrete(&context(), stacked_of_loop(says), library, Vec::new());
        let text = fill.optimized_text(&[int(), f32s(&[8])]).unwrap();
        assert!(text.contains("_FusedElementwise") && text.contains("float32[3,8]"), "{text}");
        let call = |n: i32| fill.call(&[EagerTensor::scalar(n), x.clone()]);
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b;
        let found = call(3).unwrap();
        assert!(values(&found, 0).iter().zip(&row.repeat(3)).all(near), "{found:?}");
        // Rows that were not written are zeros of the shape of the others.
        let (found, rest) = (call(1).unwrap(), vec![1.0; 16]);
        assert!(values(&found, 0).iter().zip(&[row.clone(), rest].concat()).all(near), "{found:?}");
        let error = call(0).unwrap_err().to_string();
        assert!(error.contains("element_shape must be known"), "{error}");
    }
}

#[test]
fn lists_are_filled_in_loops() {
    let context = context();
    let def = function("fill", &[("n", int()), ("x", f32s(&[8]))], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let shape = b.constant("shape", vector_of(&[8]))?;
        let dtype = Attrs::new().with("element_dtype", DType::F32);
        let made = b.call_with("TensorListReserve", "made", dtype.clone(), &[shape, args[0]])?[0];
        let inputs = [zero, args[0], made, args[1]];
        let filled = b.call_with("StatelessWhile", "loop", attrs(), &inputs)?[2];
        let stacked = b.call_with("TensorListStack", "stacked", dtype, &[filled, shape])?;
        // The list that the loop began with is as it was.
        let untouched = b.call("TensorListLength", "untouched", &[made])?;
        Ok(vec![stacked[0], untouched[0]])
    });
    let library = vec![below(), body("TensorListSetItem", false)];
    let fill = concrete(&context, def, library, Vec::new());
    // Copying the list in each iteration would move a hundred gigabytes.
    let n = 30_000;
    let results = fill.call(&[EagerTensor::scalar(n), vector(&[2.0; 8])]).unwrap();
    assert_eq!(results[0].shape().dims(), [n as usize, 8]);
    assert!(values(&results, 0).iter().all(|&value| value == 2.0));
    assert_eq!(results[1].host().unwrap().as_scalar::<i32>().unwrap(), n);
}

#[test]
fn lists_are_values() {
    let context = context();
    let def = function("grow", &[("n", int()), ("x", f32s(&[8]))], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let (shape, any) =
            (b.constant("shape", vector_of(&[8]))?, b.constant("any", HostTensor::scalar(-1i32))?);
        let dtype = Attrs::new().with("element_dtype", DType::F32);
        let empty = b.call_with("EmptyTensorList", "empty", dtype, &[shape, any])?[0];
        let one = b.call("TensorListPushBack", "one", &[empty, args[1]])?[0];
        let inputs = [zero, args[0], one, args[1]];
        let grown = b.call_with("StatelessWhile", "loop", attrs(), &inputs)?[2];
        let lists = [empty, one, grown];
        let lists = lists.iter().zip(["before", "between", "after"]);
        lists.map(|(&list, name)| Ok(b.call("TensorListLength", name, &[list])?[0])).collect()
    });
    let library = vec![below(), body("TensorListPushBack", true)];
    let grow = concrete(&context, def, library, Vec::new());
    for n in [0, 3] {
        let results = grow.call(&[EagerTensor::scalar(n), vector(&[0.0; 8])]).unwrap();
        let lengths: Vec<i32> =
            results.iter().map(|length| length.host().unwrap().as_scalar().unwrap()).collect();
        assert_eq!(lengths, [0, 1, 1 + 2 * n]);
    }
}
