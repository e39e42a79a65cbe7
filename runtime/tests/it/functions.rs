//! Straight programs: fusion, reuse of memory, calls of functions.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, HostTensor, PartialShape, Shape, ValueType};
use ferroflow_runtime::{CallableFunction, Context, ContextOptions, EagerTensor, RunOptions};
use std::num::NonZeroUsize;

#[test]
fn a_chain_becomes_one_fused_call() {
    let context = context();
    let def = function("chain", &[("x", vectors()), ("y", vectors())], |b, args| {
        let half = b.constant("half", HostTensor::scalar(0.5f32))?;
        let product = b.call("Mul", "product", &[args[0], args[1]])?[0];
        let scaled = b.call("Mul", "scaled", &[product, half])?[0];
        let squashed = b.call("Tanh", "squashed", &[scaled])?[0];
        b.call("AddV2", "sum", &[squashed, args[0]])
    });
    let chain = CallableFunction::new(&context, def).unwrap();
    let text = chain.optimized_text(&[f32s(&[3]), f32s(&[3])]).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("_FusedElementwise")).count(), 1, "{text}");
    assert!(!text.contains("Tanh"), "{text}");
    let result = call(&chain, &[vector(&[1.0, 2.0, 3.0]), vector(&[2.0, 2.0, 2.0])]).unwrap();
    let expected: Vec<f32> = [1.0f32, 2.0, 3.0].iter().map(|x| x.tanh() + x).collect();
    for (found, expected) in values(&result, 0).iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5);
    }
}

#[test]
fn bytes_that_come_in_under_two_dtypes_are_not_written_over() {
    let context = context();
    let def = function("twice", &[("x", f32s(&[3]))], |b, args| {
        let attrs = Attrs::new().with("axis", 0i64);
        let y = b.call_with("Pack", "y", attrs.with("N", 2i64), &[args[0], args[0]])?[0];
        let bits = b.call_with("Bitcast", "bits", Attrs::new().with("type", DType::I32), &[y])?;
        let attrs = Attrs::new().with("type", DType::F32);
        let same = b.call_with("Bitcast", "same", attrs, &bits)?[0];
        b.call("Sub", "difference", &[y, same])
    });
    let twice = CallableFunction::new(&context, def).unwrap();
    let result = call(&twice, &[vector(&[1.0, 2.0, 3.0])]).unwrap();
    assert_eq!(values(&result, 0), [0.0; 6]);
}

#[test]
fn what_a_window_still_reads_is_not_written_over() {
    let context = context();
    let def = function("window", &[("x", f32s(&[3]))], |b, args| {
        let attrs = Attrs::new().with("axis", 0i64).with("N", 2i64);
        let y = b.call_with("Pack", "y", attrs, &[args[0], args[0]])?[0];
        let begin = b.constant("begin", HostTensor::vector(&[1i32, 0]).unwrap())?;
        let size = b.constant("size", HostTensor::vector(&[1i32, 3]).unwrap())?;
        let row = b.call("Slice", "row", &[y, begin, size])?[0];
        let negated = b.call("Neg", "negated", &[y])?[0];
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        b.call_with("ConcatV2", "all", Attrs::new().with("N", 2i64), &[row, negated, axis])
    });
    let window = CallableFunction::new(&context, def).unwrap();
    let result = call(&window, &[vector(&[1.0, 2.0, 3.0])]).unwrap();
    assert_eq!(values(&result, 0), [1.0, 2.0, 3.0, -1.0, -2.0, -3.0, -1.0, -2.0, -3.0]);
}

#[test]
fn each_set_of_shapes_gets_its_own_form() {
    let context = context();
    let def = function("shape", &[("x", vectors())], |b, args| b.call("Shape", "shape", args));
    let shape = CallableFunction::new(&context, def).unwrap();
    for n in [1usize, 4, 2] {
        let result = shape.call(&[vector(&vec![0.0; n])]).unwrap();
        assert_eq!(result[0].host().unwrap().as_slice::<i32>().unwrap(), [n as i32]);
    }
    let error = shape.call(&[EagerTensor::scalar(1.0f32)]).unwrap_err().to_string();
    assert_eq!(error, "function `shape`: x must be float32[?], found float32[]");
    assert!(shape.call(&[]).is_err());
}

#[test]
fn windows_and_other_shapes_share_memory_with_their_source() {
    let context = context();
    let def = function("rows", &[("x", f32s(&[4, 3]))], |b, args| {
        let doubled = b.call("AddV2", "doubled", &[args[0], args[0]])?[0];
        let attrs = Attrs::new().with("num", 4i64).with("axis", 0i64);
        let rows = b.call_with("Unpack", "rows", attrs, &[doubled])?;
        let target = b.constant("target", HostTensor::vector(&[3i32, 1]).unwrap())?;
        let column = b.call("Reshape", "column", &[rows[2], target])?[0];
        let sum = b.call("AddV2", "sum", &[rows[0], rows[3]])?[0];
        Ok(vec![column, sum, rows[1]])
    });
    let rows = CallableFunction::new(&context, def).unwrap();
    let input: Vec<f32> = (0..12).map(|x| x as f32).collect();
    let x = HostTensor::from_slice(Shape::new([4, 3]).unwrap(), &input).unwrap();
    let result = rows.call(&[x.into()]).unwrap();
    assert_eq!(result[0].shape().dims(), [3, 1]);
    assert_eq!(values(&result, 0), [12.0, 14.0, 16.0]);
    assert_eq!(values(&result, 1), [18.0, 22.0, 26.0]);
    assert_eq!(values(&result, 2), [6.0, 8.0, 10.0]);
}

#[test]
fn memory_is_reused_but_never_too_early() {
    // Values that live side by side, of sizes that tempt a planner to overlap them.
    let context = context();
    let def = function("web", &[("x", f32s(&[64]))], |b, args| {
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        let mut alive = vec![args[0]];
        for index in 0..12 {
            let (a, c) = (alive[index], alive[index / 2]);
            let joined = b.call_with(
                "ConcatV2",
                &format!("j{index}"),
                Attrs::new().with("N", 2i64),
                &[a, c, axis],
            )?[0];
            let keep = Attrs::new().with("keep_dims", true);
            let total = b.call_with("Max", &format!("m{index}"), keep, &[joined, axis])?[0];
            alive.push(b.call("AddV2", &format!("s{index}"), &[a, total])?[0]);
        }
        Ok(alive[1..].to_vec())
    });
    let web = CallableFunction::new(&context, def).unwrap();
    let x: Vec<f32> = (0..64).map(|x| x as f32 / 64.0).collect();
    let mut alive = vec![x.clone()];
    for index in 0..12 {
        let (a, c) = (alive[index].clone(), alive[index / 2].clone());
        let total = a.iter().chain(&c).copied().fold(f32::MIN, f32::max);
        alive.push(a.iter().map(|a| a + total).collect());
    }
    for _ in 0..2 {
        let result = web.call(&[vector(&x)]).unwrap();
        for (index, expected) in alive[1..].iter().enumerate() {
            assert_eq!(&values(&result, index), expected, "{index}");
        }
    }
}

#[test]
fn calls_are_inlined_and_recursion_is_refused() {
    let context = context();
    let square = || function("square", &[("x", vectors())], |b, args| b.call("Square", "y", args));
    let twice = function("twice", &[("x", vectors())], |b, args| {
        let attrs = || call_attrs(&[DType::F32], &[DType::F32], "square");
        // The builder cannot know what a function gives, so the types are stated.
        let first = b.call_with("PartitionedCall", "first", attrs(), args)?[0];
        b.call_with("PartitionedCall", "second", attrs(), &[first])
    });
    let twice = concrete(&context, twice, vec![square()], Vec::new());
    assert_eq!(values(&twice.call(&[vector(&[2.0])]).unwrap(), 0), [16.0]);

    let forever = || {
        function("forever", &[("x", vectors())], |b, args| {
            let attrs = call_attrs(&[DType::F32], &[DType::F32], "forever");
            b.call_with("PartitionedCall", "again", attrs, args)
        })
    };
    let recursive = concrete(&context, forever(), vec![forever()], Vec::new());
    let error = recursive.call(&[vector(&[2.0])]).unwrap_err().to_string();
    assert!(error.contains("a call of `forever` inside itself"), "{error}");
}

#[test]
fn errors_name_node_op_and_function() {
    let context = context();
    let def =
        function("divide", &[("x", ValueType::new(DType::I32, Shape::scalar()))], |b, args| {
            let one = b.constant("one", HostTensor::scalar(1i32))?;
            b.call("FloorDiv", "quotient", &[one, args[0]])
        });
    let divide = CallableFunction::new(&context, def).unwrap();
    assert!(divide.call(&[EagerTensor::scalar(2i32)]).is_ok());
    let error = divide.call(&[EagerTensor::scalar(0i32)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "integer division by zero (node `quotient`, op FloorDiv, function `divide`)"
    );
    // A failed call leaves the function as it was.
    assert!(divide.call(&[EagerTensor::scalar(2i32)]).is_ok());
}

#[test]
fn one_function_runs_on_many_threads_at_once() {
    let context = context();
    let def = function("f", &[("x", vectors())], |b, args| {
        let sum = b.call("AddV2", "sum", &[args[0], args[0]])?[0];
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        let total = b.call("Sum", "total", &[sum, axis])?[0];
        b.call("Mul", "scaled", &[args[0], total])
    });
    let function = CallableFunction::new(&context, def).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..8 {
            let function = &function;
            scope.spawn(move || {
                for round in 0..50 {
                    let n = 1 + (seed + round) % 5;
                    let x = vec![seed as f32; n];
                    let expected = seed as f32 * (2.0 * seed as f32 * n as f32);
                    let result = function.call(&[vector(&x)]).unwrap();
                    assert_eq!(values(&result, 0), vec![expected; n]);
                }
            });
        }
    });
}

#[test]
fn unknown_shapes_are_resolved_while_running() {
    let context = context();
    let unknown = ValueType::new(DType::F32, PartialShape::Unknown);
    let def = function(
        "flat",
        &[("x", unknown), ("n", ValueType::new(DType::I32, Shape::new([2]).unwrap()))],
        |b, args| {
            // The target shape is an argument, so nothing after it is known ahead.
            let reshaped = b.call("Reshape", "reshaped", args)?[0];
            let squared = b.call("Square", "squared", &[reshaped])?[0];
            let axis = b.constant("axis", HostTensor::scalar(1i32))?;
            b.call("Sum", "sums", &[squared, axis])
        },
    );
    let flat = CallableFunction::new(&context, def).unwrap();
    let shape = |dims: &[i32]| EagerTensor::from(HostTensor::vector(dims).unwrap());
    let x = vector(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let result = flat.call(&[x.clone(), shape(&[2, 3])]).unwrap();
    assert_eq!(values(&result, 0), [14.0, 77.0]);
    let result = flat.call(&[x, shape(&[3, 2])]).unwrap();
    assert_eq!(values(&result, 0), [5.0, 25.0, 61.0]);
}

#[test]
fn the_specialization_used_longest_ago_is_dropped() {
    let context = Context::with_options(ContextOptions {
        specializations: NonZeroUsize::new(2),
        ..ContextOptions::default()
    });
    let def = function("double", &[("x", vectors())], |b, args| {
        b.call("AddV2", "sum", &[args[0], args[0]])
    });
    let double = concrete(&context, def, Vec::new(), Vec::new());
    let compilations = |size: usize| {
        let x = vector(&vec![1.0; size]);
        let (results, metadata) = double.call_with_options(&RunOptions::default(), &[&x]).unwrap();
        assert_eq!(values(&results, 0), vec![2.0; size]);
        metadata.compilations
    };
    // The first stays; of the others, 2 is the oldest when 4 comes.
    assert_eq!([1, 2, 3, 3, 4, 3, 1, 2].map(compilations), [1, 2, 3, 3, 4, 4, 4, 5]);
}
