//! Precision of matmuls and convolutions that was asked for.

use ferroflow::{
    ir::{Attrs, DType, HostTensor, PartialShape, Shape, ValueType, build::GraphBuilder},
    kernels::instructions::{InstructionLevel, allowed},
    runtime::{CallableFunction, Context, ContextOptions, EagerTensor, Precision, execute},
};
use std::{error::Error, fs};

/// An op of a tensor of equal numbers and another one, on the CPU.
fn computed(
    (op, attrs): (&str, &Attrs),
    dims: [&[usize]; 2],
    [x, y]: [f32; 2],
    precision: Precision,
) -> Result<Vec<f32>, Box<dyn Error>> {
    let context = Context::with_options(ContextOptions { precision, ..Default::default() });
    let tensor = |dims: &[usize], x: f32| {
        let shape = Shape::new(dims.iter().copied())?;
        HostTensor::from_slice(shape.clone(), &vec![x; shape.num_elements()])
    };
    let inputs = [tensor(dims[0], x)?.into(), tensor(dims[1], y)?.into()];
    // Weights are packed when they come again.
    let mut results = Vec::new();
    for _ in 0..4 {
        let result = execute(&context, op, attrs.clone(), &inputs)?.remove(0);
        results.push(result.host()?.as_slice::<f32>()?.to_vec());
    }
    assert!(
        results.iter().all(|result| *result == results[0]),
        "packed weights have the same bits"
    );
    Ok(results.remove(0))
}

#[test]
fn bfloat16_is_used_where_it_was_asked_for_and_there_are_instructions() -> Result<(), Box<dyn Error>>
{
    let matmul = (("MatMul", Attrs::new()), [&[100, 128][..], &[128, 96]], 128);
    let same = |attrs: Attrs| attrs.with("padding", "VALID").with("strides", vec![1, 1, 1, 1]);
    let convolution =
        (("Conv2D", same(Attrs::new())), [&[1, 20, 20, 32][..], &[3, 3, 32, 64]], 288);
    let pointwise =
        (("Conv2D", same(Attrs::new())), [&[1, 12, 12, 128][..], &[1, 1, 128, 96]], 128);
    // Tiles would be mostly empty.
    let one_row = (("MatMul", Attrs::new()), [&[1, 640][..], &[640, 500]], 640);
    // Twelve bits, of which bfloat16 has eight: rounded to one.
    let x = 1.0 + f32::exp2(-11.0);
    for ((op, attrs), dims, n) in [matmul, convolution, pointwise, one_row] {
        let computed = |numbers, precision| computed((op, &attrs), dims, numbers, precision);
        let exact = n as f32 * x * x;
        for precision in [Precision::Full, Precision::TensorFloat32] {
            let whole = computed([x, x], precision)?;
            assert!(whole.iter().all(|y| (y - exact).abs() < 1e-3), "{op}: {}", whole[0]);
        }
        let rounded = computed([x, x], Precision::BFloat16)?;
        let rounds = if dims[0][0] == 1 && op == "MatMul" { has_dot_products() } else { rounds() };
        let expected = if rounds { n as f32 } else { exact };
        assert!(rounded.iter().all(|y| (y - expected).abs() < 1e-3), "{op}: {}", rounded[0]);
        let infinite = computed([x, f32::INFINITY], Precision::BFloat16)?;
        assert!(infinite.iter().all(|&y| y == f32::INFINITY), "{op}: {}", infinite[0]);
    }
    Ok(())
}

/// A function of an image that has three convolutions, the last two pointwise, each with a bias and an activation.
fn convolutions(precision: Precision, x: f32) -> Result<Vec<f32>, Box<dyn Error>> {
    let context = Context::with_options(ContextOptions { precision, ..Default::default() });
    let mut builder = GraphBuilder::new();
    let dims: [&[usize]; 5] =
        [&[1, 24, 24, 32], &[3, 3, 32, 64], &[1, 1, 64, 96], &[1, 1, 96, 128], &[1, 1, 1, 1]];
    let numbers = [x, x, 1.0, 1.0, 0.0];
    let (mut args, mut tensors) = (Vec::new(), Vec::new());
    for (index, (dims, x)) in dims.iter().zip(numbers).enumerate() {
        let shape = Shape::new(dims.iter().copied())?;
        let ty = ValueType::new(DType::F32, PartialShape::from(&shape));
        args.push(builder.arg(&format!("x{index}"), ty)?);
        let values = vec![x; shape.num_elements()];
        tensors.push(EagerTensor::from(HostTensor::from_slice(shape, &values)?));
    }
    let mut y = args[0];
    for layer in 1..4 {
        let attrs = Attrs::new().with("strides", vec![1i64; 4]).with("padding", "VALID");
        let operands = [y, args[layer]];
        y = builder.call_with("Conv2D", &format!("conv{layer}"), attrs, &operands)?[0];
        y = builder.call("AddV2", &format!("sum{layer}"), &[y, args[4]])?[0];
        y = builder.call("Relu", &format!("relu{layer}"), &[y])?[0];
    }
    let function = builder.finish_function("convolutions", &[("y", y)]);
    let function = CallableFunction::new(&context, function)?;
    Ok(function.call(&tensors)?[0].host()?.as_slice::<f32>()?.to_vec())
}

#[test]
fn parts_of_fused_calls_have_the_precision_of_the_call() -> Result<(), Box<dyn Error>> {
    let x = 1.0 + f32::exp2(-11.0);
    for (precision, is_exact) in [(Precision::Full, true), (Precision::BFloat16, !rounds())] {
        let factors = if is_exact { x * x } else { 1.0 };
        let expected = (288 * 64 * 96) as f32 * factors;
        let found = convolutions(precision, x)?;
        let near = |y: &f32| (y - expected).abs() <= 1e-5 * expected;
        assert!(found.iter().all(near), "{precision:?}: {} instead of {expected}", found[0]);
    }
    Ok(())
}

/// Attention of queries and keys that are all equal: the values themselves, each a sum of products by 1.
fn attention(precision: Precision, x: f32) -> Result<Vec<f32>, Box<dyn Error>> {
    let context = Context::with_options(ContextOptions { precision, ..Default::default() });
    let mut builder = GraphBuilder::new();
    let shape = Shape::new([2, 8, 128, 64])?;
    let values = HostTensor::from_slice(shape.clone(), &vec![x; shape.num_elements()])?;
    let ty = ValueType::new(DType::F32, PartialShape::from(&shape));
    let args = ["query", "key", "value"].map(|name| builder.arg(name, ty.clone()));
    let [query, key, value] = args;
    let turned = Attrs::new().with("adj_y", true);
    let scores = builder.call_with("BatchMatMulV2", "scores", turned, &[query?, key?])?[0];
    let weights = builder.call("Softmax", "weights", &[scores])?[0];
    let y = builder.call("BatchMatMulV2", "y", &[weights, value?])?[0];
    let function = builder.finish_function("attention", &[("y", y)]);
    let function = CallableFunction::new(&context, function)?;
    let tensors = [(); 3].map(|()| EagerTensor::from(values.clone()));
    Ok(function.call(&tensors)?[0].host()?.as_slice::<f32>()?.to_vec())
}

#[test]
fn attention_has_the_precision_of_the_call() -> Result<(), Box<dyn Error>> {
    let x = 1.0 + f32::exp2(-11.0);
    for (precision, is_exact) in [(Precision::Full, true), (Precision::BFloat16, !rounds())] {
        let expected = if is_exact { x } else { 1.0 };
        let found = attention(precision, x)?;
        let near = |y: &f32| (y - expected).abs() <= 1e-6;
        assert!(found.iter().all(near), "{precision:?}: {} instead of {expected}", found[0]);
    }
    Ok(())
}

/// Whether the system names instructions of this processor that multiply `bfloat16`, and they may be used.
fn rounds() -> bool {
    has("amx_bf16", InstructionLevel::Amx) || has_dot_products()
}

fn has_dot_products() -> bool {
    has("avx512_bf16", InstructionLevel::Avx512)
}

fn has(flag: &str, level: InstructionLevel) -> bool {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processor.split_ascii_whitespace().any(|word| word == flag) && allowed() >= level
}
