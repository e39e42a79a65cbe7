//! Nodes of data-dependent shapes, which are outlined and compiled once the shapes are there.

use crate::support::*;
use ferroflow_ir::{
    Attrs, DType, FunctionDef, HostTensor, Outlet, Shape, TensorSpec, ValueType,
    build::GraphBuilder,
};
use ferroflow_runtime::{
    CapturedInput, CompileOptions, Context, ContextOptions, EagerTensor, ResourceVariable,
    RunOptions, TraceLevel,
};

fn mask(n: usize) -> ValueType {
    ValueType::new(DType::Bool, Shape::new([n]).unwrap())
}

fn handle() -> ValueType {
    ValueType::handle(DType::Resource, TensorSpec::new(DType::F32, Shape::new([4]).unwrap()))
}

/// The rows of `x` that a mask keeps.
fn masked(b: &mut GraphBuilder, x: Outlet, mask: Outlet) -> ferroflow_ir::Result<Outlet> {
    let places = b.call("Where", "places", &[mask])?[0];
    Ok(b.call("GatherNd", "kept", &[x, places])?[0])
}

/// `rows * bias` and so on: enough nodes to be worth a call.
fn layers(
    b: &mut GraphBuilder,
    name: &str,
    rows: Outlet,
    bias: Outlet,
) -> ferroflow_ir::Result<Outlet> {
    let mut rows = rows;
    for layer in 0..4 {
        let named = |op: &str| format!("{name}_{layer}_{op}");
        rows = b.call("Mul", &named("scaled"), &[rows, bias])?[0];
        rows = b.call("AddV2", &named("shifted"), &[rows, bias])?[0];
        rows = b.call("Tanh", &named("bent"), &[rows])?[0];
    }
    Ok(rows)
}

/// `f(x, mask, bias)`, whose variable `bias` is added to before and after the rows are chosen.
fn chosen_rows() -> FunctionDef {
    let args = [("x", f32s(&[6, 4])), ("mask", mask(6)), ("bias", handle())];
    function("chosen", &args, |b, args| {
        let dtype = || Attrs::new().with("dtype", DType::F32);
        let before = b.call_with("ReadVariableOp", "before", dtype(), &args[2..])?[0];
        let one = b.constant("one", HostTensor::from_slice(Shape::new([4])?, &[1.0f32; 4])?)?;
        b.call_with("AssignAddVariableOp", "add", dtype(), &[args[2], one])?;
        let between = b.call_with("ReadVariableOp", "between", dtype(), &args[2..])?[0];
        let rows = masked(b, args[0], args[1])?;
        b.call_with("AssignAddVariableOp", "add_again", dtype(), &[args[2], one])?;
        let after = b.call_with("ReadVariableOp", "after", dtype(), &args[2..])?[0];
        let first = layers(b, "first", rows, between)?;
        let second = layers(b, "second", first, after)?;
        let result = b.call("Sub", "result", &[second, before])?[0];
        Ok(vec![result, before])
    })
}

/// The results of calls with masks of these numbers of rows, the variable after them, and the ops
/// that the last call ran.
fn run(outline: bool, kept: &[usize]) -> (Vec<Vec<f32>>, Vec<f32>, Vec<String>) {
    let compile = CompileOptions { outline, ..Default::default() };
    let context = Context::with_options(ContextOptions { compile, ..Default::default() });
    let bias = HostTensor::from_slice(Shape::new([4]).unwrap(), &[0.5f32, -0.25, 1.0, 0.0]);
    let bias = ResourceVariable::new("bias", bias.unwrap());
    let captures = vec![CapturedInput::Resource(bias.handle())];
    let function = concrete(&context, chosen_rows(), vec![], captures);
    let numbers: Vec<f32> = (0..24).map(|number| number as f32 / 10.0 - 1.0).collect();
    let x = HostTensor::from_slice(Shape::new([6, 4]).unwrap(), &numbers).unwrap();
    let (mut found, mut ops) = (Vec::new(), Vec::new());
    for &kept in kept {
        let mask: Vec<bool> = (0..6).map(|row| row < kept).collect();
        let mask = HostTensor::from_bools(Shape::new([6]).unwrap(), &mask).unwrap();
        let args: [EagerTensor; 2] = [x.clone().into(), mask.into()];
        let options = RunOptions { trace_level: TraceLevel::Ops };
        let (results, metadata) = function.call_with_options(&options, &args.each_ref()).unwrap();
        found.push([values(&results, 0), values(&results, 1)].concat());
        ops = metadata.ops.iter().map(|op| op.op.to_string()).collect();
    }
    let value = bias.read().unwrap();
    (found, value.as_slice::<f32>().unwrap().to_vec(), ops)
}

#[test]
fn nodes_of_data_dependent_shapes_are_compiled_for_them() {
    let kept = [3, 3, 5, 0, 3, 5, 6, 5];
    let (plain, plain_bias, plain_ops) = run(false, &kept);
    let (outlined, bias, ops) = run(true, &kept);
    assert_eq!(outlined, plain);
    assert_eq!(bias, plain_bias);
    let runs = |ops: &[String], op: &str| ops.iter().any(|other| other == op);
    assert!(runs(&plain_ops, "Tanh") && !runs(&plain_ops, "_Outlined"), "{plain_ops:?}");
    // Three different shapes were met again: elementwise ops are one.
    assert!(runs(&ops, "_Outlined") && !runs(&ops, "Tanh"), "{ops:?}");
}

/// A function whose shapes stay unknown though nothing but shapes tells them, as nothing is folded: it must
/// not be outlined again and again.
#[test]
fn outlined_functions_inside_each_other_end() {
    let def = function("open", &[("x", f32s(&[6, 4])), ("y", f32s(&[24]))], |b, args| {
        let shape = b.call("Shape", "shape", &args[..1])?[0];
        let rows = b.call("Reshape", "rows", &[args[1], shape])?[0];
        let first = layers(b, "first", rows, rows)?;
        Ok(vec![layers(b, "second", first, first)?])
    });
    let results = [true, false].map(|fold| {
        let compile = CompileOptions { fold, ..Default::default() };
        let context = Context::with_options(ContextOptions { compile, ..Default::default() });
        let function = concrete(&context, def.clone(), vec![], vec![]);
        let values: Vec<f32> = (0..24).map(|value| value as f32 / 24.0).collect();
        let tensor = |dims: &[usize]| -> EagerTensor {
            let shape = Shape::new(dims.iter().copied()).unwrap();
            HostTensor::from_slice(shape, &values).unwrap().into()
        };
        let args = [tensor(&[6, 4]), tensor(&[24])];
        (0..3).map(|_| self::values(&function.call(&args).unwrap(), 0)).collect::<Vec<_>>()
    });
    assert_eq!(results[0], results[1]);
}

/// A result of a call that nothing reads: rows whose number only data tells.
#[test]
fn what_is_dead_is_no_operand_of_an_outlined_function() {
    let args = || [("x", f32s(&[6, 4])), ("mask", mask(6))];
    let callee = function("callee", &args(), |b, args| {
        let rows = masked(b, args[0], args[1])?;
        Ok(vec![layers(b, "dead", rows, rows)?, b.call("Neg", "alive", &args[..1])?[0]])
    });
    let caller = function("caller", &args(), |b, args| {
        let attrs = call_attrs(&[DType::F32, DType::Bool], &[DType::F32; 2], "callee");
        Ok(vec![b.call_with("PartitionedCall", "call", attrs, args)?[1]])
    });
    let function = concrete(&Context::new(), caller, vec![callee], vec![]);
    let x = HostTensor::from_slice(Shape::new([6, 4]).unwrap(), &[1f32; 24]).unwrap();
    let mask = HostTensor::from_bools(Shape::new([6]).unwrap(), &[true; 6]).unwrap();
    let args: [EagerTensor; 2] = [x.into(), mask.into()];
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let (results, metadata) = function.call_with_options(&options, &args.each_ref()).unwrap();
    assert_eq!(values(&results, 0), [-1f32; 24]);
    let ops: Vec<&str> = metadata.ops.iter().map(|op| &*op.op).collect();
    assert!(!ops.contains(&"Where") && !ops.contains(&"_Outlined"), "{ops:?}");
}

/// Rows that a mask keeps, bent and multiplied by a variable that is added to meanwhile; then those of which
/// the first number is positive.
fn rows_chosen_twice() -> FunctionDef {
    let args = [("x", f32s(&[6, 4])), ("mask", mask(6)), ("bias", handle())];
    function("chosen_twice", &args, |b, args| {
        let dtype = || Attrs::new().with("dtype", DType::F32);
        let rows = masked(b, args[0], args[1])?;
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        let total = b.call("Sum", "total", &[rows, axis])?[0];
        let before = b.call_with("ReadVariableOp", "before", dtype(), &args[2..])?[0];
        b.call_with("AssignAddVariableOp", "add", dtype(), &[args[2], total])?;
        let after = b.call_with("ReadVariableOp", "after", dtype(), &args[2..])?[0];
        let bent = layers(b, "bent", rows, after)?;
        let weights = [1f32, 0.5, -1.0, 0.25].repeat(4);
        let weights = HostTensor::from_slice(Shape::new([4, 4])?, &weights)?;
        let weights = b.constant("weights", weights)?;
        let product = b.call("MatMul", "product", &[bent, weights])?[0];
        let column = b.constant("column", HostTensor::vector(&[1.0f32, 0.0, 0.0, 0.0])?)?;
        let first = b.call("Mul", "first", &[product, column])?[0];
        let last_axis = b.constant("last_axis", HostTensor::scalar(1i32))?;
        let first = b.call("Sum", "first_number", &[first, last_axis])?[0];
        let zero = b.constant("zero", HostTensor::scalar(0.0f32))?;
        let is_positive = b.call("Greater", "is_positive", &[first, zero])?[0];
        let places = b.call("Where", "positive", &[is_positive])?[0];
        let positive = b.call("GatherNd", "positive_rows", &[product, places])?[0];
        let sum = b.call("Sum", "sum", &[positive, axis])?[0];
        b.call_with("AssignAddVariableOp", "add_sum", dtype(), &[args[2], sum])?;
        Ok(vec![positive, before, after])
    })
}

/// Products between two choices of rows are compiled for the shapes that they meet, and effects keep their
/// order. With small regions every level is outlined.
#[test]
fn products_between_sizes_of_data_are_compiled() {
    let run = |compile: CompileOptions| {
        let context = Context::with_options(ContextOptions { compile, ..Default::default() });
        let bias = HostTensor::from_slice(Shape::new([4]).unwrap(), &[0.5f32, -0.25, 1.0, 0.0]);
        let bias = ResourceVariable::new("bias", bias.unwrap());
        let captures = vec![CapturedInput::Resource(bias.handle())];
        let function = concrete(&context, rows_chosen_twice(), vec![], captures);
        let numbers: Vec<f32> =
            (0..24).map(|number| (number * 7 % 11) as f32 / 10.0 - 0.5).collect();
        let x = HostTensor::from_slice(Shape::new([6, 4]).unwrap(), &numbers).unwrap();
        let (mut found, mut ops) = (Vec::new(), Vec::new());
        for kept in [3, 3, 5, 0, 3, 5, 6, 5] {
            let mask: Vec<bool> = (0..6).map(|row| row < kept).collect();
            let mask = HostTensor::from_bools(Shape::new([6]).unwrap(), &mask).unwrap();
            let args: [EagerTensor; 2] = [x.clone().into(), mask.into()];
            let options = RunOptions { trace_level: TraceLevel::Ops };
            let called = function.call_with_options(&options, &args.each_ref());
            let (results, metadata) = called.unwrap();
            found.extend((0..3).map(|index| values(&results, index)));
            ops = metadata.ops.iter().map(|op| op.op.to_string()).collect();
        }
        let value = bias.read().unwrap();
        found.push(value.as_slice::<f32>().unwrap().to_vec());
        (found, ops)
    };
    let plain = run(CompileOptions { outline: false, ..Default::default() });
    let count = |ops: &[String], op: &str| ops.iter().filter(|other| *other == op).count();
    assert!(count(&plain.1, "Tanh") == 4 && count(&plain.1, "_Outlined") == 0, "{:?}", plain.1);
    for small_regions in [false, true] {
        let outlined = run(CompileOptions { small_regions, ..Default::default() });
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
        for (found, expected) in outlined.0.iter().zip(&plain.0) {
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(expected).all(near), "{found:?} {expected:?}");
        }
        // Elementwise ops are one where shapes are known, and the product is in an outlined function.
        assert!(count(&outlined.1, "Tanh") == 0, "{:?}", outlined.1);
        assert!(count(&outlined.1, "_Outlined") > 1, "{:?}", outlined.1);
    }
}
