//! Rows of tensors that calls read where they are.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, FunctionDef, HostTensor, Shape, ValueType};
use ferroflow_runtime::{
    CompileOptions, Context, ContextOptions, EagerTensor, RunOptions, TraceLevel,
};

const N_ROWS: usize = 3;

fn int() -> ValueType {
    ValueType::new(DType::I32, Shape::scalar())
}

/// A loop of `n` rounds of `h = tanh(h + rows[i]) * rows[i]`, and whether its result is the row besides.
fn rounds(n: i32, returns_row: bool) -> (FunctionDef, Vec<FunctionDef>) {
    let variables =
        [("i", int()), ("h", f32s(&[2, 2])), ("rows", f32s(&[N_ROWS, 4])), ("row", f32s(&[2, 2]))];
    let below = function("below", &variables, |b, args| {
        let n = b.constant("n", HostTensor::scalar(n))?;
        b.call("Less", "less", &[args[0], n])
    });
    let body = function("body", &variables, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        let row = b.call("GatherV2", "row_of", &[args[2], args[0], axis])?[0];
        let shape = b.constant("shape", HostTensor::vector(&[2i32, 2])?)?;
        let row = b.call("Reshape", "reshaped", &[row, shape])?[0];
        let sum = b.call("AddV2", "sum", &[args[1], row])?[0];
        let tanh = b.call("Tanh", "tanh", &[sum])?[0];
        let h = b.call("Mul", "scaled", &[tanh, row])?[0];
        Ok(vec![next, h, args[2], if returns_row { row } else { args[3] }])
    });
    let outer = [("rows", f32s(&[N_ROWS, 4])), ("h", f32s(&[2, 2]))];
    let main = function("main", &outer, |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = Attrs::new()
            .with("T", vec![DType::I32, DType::F32, DType::F32, DType::F32])
            .with("cond", func("below"))
            .with("body", func("body"));
        let inputs = [zero, args[1], args[0], args[1]];
        let results = b.call_with("StatelessWhile", "loop", attrs, &inputs)?;
        Ok(vec![results[1], results[3]])
    });
    (main, vec![below, body])
}

/// The results, or the error, and how often a row was copied.
fn run(regions: bool, n: i32, returns_row: bool) -> (Result<[Vec<f32>; 2], String>, usize) {
    let compile = CompileOptions { regions, verify: true, ..Default::default() };
    let context = Context::with_options(ContextOptions { compile, ..Default::default() });
    let (main, library) = rounds(n, returns_row);
    let main = concrete(&context, main, library, Vec::new());
    let numbers = |n: usize, dims: [usize; 2]| -> EagerTensor {
        let numbers: Vec<f32> = (0..n).map(|number| number as f32 / 4.0 - 1.0).collect();
        HostTensor::from_slice(Shape::new(dims).unwrap(), &numbers).unwrap().into()
    };
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let args = [numbers(4 * N_ROWS, [N_ROWS, 4]), numbers(4, [2, 2])];
    match main.call_with_options(&options, &args.each_ref()) {
        Ok((results, metadata)) => {
            let copies = metadata.ops.iter().filter(|op| op.op.starts_with("Gather")).count();
            (Ok([0, 1].map(|index| values(&results, index))), copies)
        }
        Err(error) => (Err(error.to_string()), 0),
    }
}

#[test]
fn rows_that_one_call_reads_are_not_copied() {
    let (plain, fused) = (run(false, 3, false), run(true, 3, false));
    assert_eq!((plain.1, fused.1), (N_ROWS, 0));
    assert_eq!(fused.0, plain.0);
    assert!(fused.0.is_ok());
}

#[test]
fn rows_that_others_read_are_copied() {
    let (plain, fused) = (run(false, 2, true), run(true, 2, true));
    assert_eq!(fused, plain);
    assert_eq!(fused.1, 2);
}

#[test]
fn rows_that_are_not_there_are_errors() {
    for regions in [false, true] {
        let error = run(regions, 4, false).0.unwrap_err();
        assert!(error.contains("3 is outside [0, 3)"), "{error}");
    }
}
