//! Nodes that loops compute once, before their first round.

use crate::support::*;
use ferroflow_ir::{
    Attrs, DType, FunctionDef, HostTensor, PartialShape, Shape, TensorSpec, ValueType,
};
use ferroflow_runtime::{
    CapturedInput, CompileOptions, Context, ContextOptions, EagerTensor, ResourceVariable,
    RunOptions, TraceLevel,
};

const N_ITEMS: usize = 3;

fn int() -> ValueType {
    ValueType::new(DType::I32, Shape::scalar())
}

fn handle() -> ValueType {
    ValueType::handle(DType::Resource, TensorSpec::new(DType::F32, Shape::new([2, 4]).unwrap()))
}

/// The variables of the loop: `h += item(i) @ read(weights)` for `i < n`.
fn variables() -> Vec<(&'static str, ValueType)> {
    let list = ValueType::new(DType::Variant, PartialShape::scalar());
    vec![("i", int()), ("h", f32s(&[5, 4])), ("list", list), ("weights", handle())]
}

/// A recurrent layer over `[3, 5, 2]`: `n` rounds. If `writes`, rounds double the weights too.
fn recurrent(n: i32, writes: bool) -> (FunctionDef, Vec<FunctionDef>) {
    let below = function("below", &variables(), |b, args| {
        let n = b.constant("n", HostTensor::scalar(n))?;
        b.call("Less", "less", &[args[0], n])
    });
    let dtype = || Attrs::new().with("dtype", DType::F32);
    let body = function("body", &variables(), |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let shape = b.constant("shape", HostTensor::vector(&[-1i32, 2])?)?;
        let element = Attrs::new().with("element_dtype", DType::F32);
        let item = [args[2], args[0], shape];
        let item = b.call_with("TensorListGetItem", "item", element, &item)?[0];
        let weights = b.call_with("ReadVariableOp", "read", dtype(), &args[3..])?[0];
        if writes {
            b.call_with("AssignAddVariableOp", "double", dtype(), &[args[3], weights])?;
        }
        let product = b.call("MatMul", "product", &[item, weights])?[0];
        Ok(vec![next, b.call("AddV2", "sum", &[args[1], product])?[0], args[2], args[3]])
    });
    let outer = [("x", f32s(&[N_ITEMS, 5, 2])), ("h", f32s(&[5, 4])), ("weights", handle())];
    let run = function("run", &outer, |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let shape = b.constant("shape", HostTensor::vector(&[-1i32, 2])?)?;
        let list = b.call("TensorListFromTensor", "list", &[args[0], shape])?[0];
        let types = vec![DType::I32, DType::F32, DType::Variant, DType::Resource];
        let attrs = Attrs::new().with("T", types).with("cond", func("below"));
        let attrs = attrs.with("body", func("body"));
        let inputs = [zero, args[1], list, args[2]];
        Ok(b.call_with("While", "loop", attrs, &inputs)?[1..2].to_vec())
    });
    (run, vec![below, body])
}

fn counted(values: usize, dims: &[usize]) -> HostTensor {
    let values: Vec<f32> = (0..values).map(|value| value as f32 - 3.0).collect();
    HostTensor::from_slice(Shape::new(dims.iter().copied()).unwrap(), &values).unwrap()
}

fn weights() -> ResourceVariable {
    ResourceVariable::new("weights", counted(8, &[2, 4]))
}

/// The result of a call, and how often the nodes of these names ran.
fn run(
    hoist: bool,
    function: (FunctionDef, Vec<FunctionDef>),
    weights: &ResourceVariable,
    names: [&str; 2],
) -> ferroflow_runtime::Result<(Vec<f32>, [usize; 2])> {
    let compile = CompileOptions { hoist, ..Default::default() };
    let context = Context::with_options(ContextOptions { compile, ..Default::default() });
    let captures = vec![CapturedInput::Resource(weights.handle())];
    let function = concrete(&context, function.0, function.1, captures);
    let args: [EagerTensor; 2] =
        [counted(N_ITEMS * 10, &[N_ITEMS, 5, 2]).into(), counted(20, &[5, 4]).into()];
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let (results, metadata) = function.call_with_options(&options, &args.each_ref())?;
    let count = |name: &str| metadata.ops.iter().filter(|op| op.node.ends_with(name)).count();
    Ok((values(&results, 0), names.map(count)))
}

const NAMES: [&str; 2] = ["read", "product"];

#[test]
fn items_of_lists_are_multiplied_at_once() {
    let (plain, counts) = run(false, recurrent(3, false), &weights(), NAMES).unwrap();
    assert_eq!(counts, [3, 3]);
    let metadata = |names| run(true, recurrent(3, false), &weights(), names).unwrap();
    let (hoisted, [reads, _]) = metadata(NAMES);
    assert_eq!((hoisted, reads), (plain, 1));
    // The matmul before the loop has a name of its own; the rounds read items in its place.
    assert_eq!(metadata(["product_2", "product"]).1, [1, 3]);
}

#[test]
fn lists_that_no_round_reads_are_not_made() {
    let count =
        |hoist| run(hoist, recurrent(3, false), &weights(), ["/list", "list"]).unwrap().1[1];
    assert_eq!((count(false), count(true)), (1, 0));
}

/// A loop of three rounds, each of which adds one to a variable and doubles `kept` and `unread`. Its results
/// are `kept`, and what is read of the variable behind it.
fn counting() -> (FunctionDef, Vec<FunctionDef>) {
    let shape = || f32s(&[2, 4]);
    let variables = [("i", int()), ("kept", shape()), ("unread", shape()), ("count", handle())];
    let below = function("below", &variables, |b, args| {
        let n = b.constant("n", HostTensor::scalar(3i32))?;
        b.call("Less", "less", &[args[0], n])
    });
    let dtype = || Attrs::new().with("dtype", DType::F32);
    let body = function("body", &variables, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let ones = b.constant("ones", counted(8, &[2, 4]))?;
        b.call_with("AssignAddVariableOp", "add", dtype(), &[args[3], ones])?;
        let kept = b.call("AddV2", "keep", &[args[1], args[1]])?[0];
        let unread = b.call("AddV2", "waste", &[args[2], args[2]])?[0];
        Ok(vec![next, kept, unread, args[3]])
    });
    let outer = [("x", f32s(&[N_ITEMS, 5, 2])), ("h", f32s(&[5, 4])), ("count", handle())];
    let run = function("run", &outer, |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let start = b.constant("start", counted(8, &[2, 4]))?;
        let types = vec![DType::I32, DType::F32, DType::F32, DType::Resource];
        let attrs = Attrs::new().with("T", types).with("cond", func("below"));
        let attrs = attrs.with("body", func("body"));
        let inputs = [zero, start, start, args[2]];
        let results = b.call_with("While", "loop", attrs, &inputs)?.to_vec();
        let after = b.call_with("ReadVariableOp", "after", dtype(), &results[3..])?[0];
        b.call("AddV2", "both", &[results[1], after]).map(|sum| sum.to_vec())
    });
    (run, vec![below, body])
}

#[test]
fn what_no_result_needs_is_not_computed_in_rounds() {
    let (before, after) = (weights(), weights());
    let plain = run(false, counting(), &before, ["keep", "waste"]).unwrap();
    let pruned = run(true, counting(), &after, ["keep", "waste"]).unwrap();
    assert_eq!(plain.0, pruned.0);
    assert_eq!((plain.1, pruned.1), ([3, 3], [3, 0]));
    // What is read behind the loop is what rounds have made of it: eight times, and four times.
    let expected: Vec<f32> = (0..8).map(|value| 12.0 * (value as f32 - 3.0)).collect();
    assert_eq!(pruned.0, expected);
}

#[test]
fn variables_that_rounds_write_are_read_in_each() {
    let (before, after) = (weights(), weights());
    let plain = run(false, recurrent(3, true), &before, NAMES).unwrap();
    assert_eq!(plain, run(true, recurrent(3, true), &after, NAMES).unwrap());
    assert_eq!(plain.1[0], 3);
    assert_eq!(before.read().unwrap().bytes(), after.read().unwrap().bytes());
}

#[test]
fn a_loop_that_does_not_run_reads_nothing() {
    let shape = Shape::new([2, 4]).unwrap();
    let unset = ResourceVariable::uninitialized("weights", DType::F32, shape.into(), true);
    let (result, counts) = run(true, recurrent(0, false), &unset, NAMES).unwrap();
    assert_eq!((result, counts), (counted(20, &[5, 4]).as_slice().unwrap().to_vec(), [0, 0]));
    assert!(run(true, recurrent(1, false), &unset, NAMES).is_err());
}

#[test]
fn items_that_are_not_there_are_errors() {
    for hoist in [false, true] {
        let error = run(hoist, recurrent(4, false), &weights(), NAMES).unwrap_err().to_string();
        assert!(error.contains("3 is outside [0, 3)"), "{error}");
    }
}

/// A slice may be outside, wherever its size is known: a loop that does not run does not look.
#[test]
fn slices_at_unknown_begins_stay_in_loops_that_may_not_run() {
    let begin = ValueType::new(DType::I32, Shape::new([1]).unwrap());
    let args =
        [("i", int()), ("n", int()), ("sum", f32s(&[2])), ("x", f32s(&[5])), ("begin", begin)];
    let below = function("below", &args, |b, args| b.call("Less", "less", &args[..2]));
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let size = b.constant("size", HostTensor::vector(&[2i32])?)?;
        let slice = b.call("Slice", "slice", &[args[3], args[4], size])?[0];
        let sum = b.call("AddV2", "add", &[args[2], slice])?[0];
        Ok(vec![next, args[1], sum, args[3], args[4]])
    });
    let outer = [args[1].clone(), args[3].clone(), args[4].clone()];
    let run = function("run", &outer, |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let none = b.constant("none", HostTensor::vector(&[0.0f32; 2])?)?;
        let types = vec![DType::I32, DType::I32, DType::F32, DType::F32, DType::I32];
        let attrs = Attrs::new().with("T", types).with("cond", func("below"));
        let attrs = attrs.with("body", func("body"));
        let inputs = [zero, args[0], none, args[1], args[2]];
        Ok(b.call_with("While", "loop", attrs, &inputs)?[2..3].to_vec())
    });
    let run = concrete(&context(), run, vec![below, body], vec![]);
    let sum = |rounds: i32, begin: i32| {
        let begin = HostTensor::vector(&[begin]).unwrap().into();
        let x = vector(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        let args: [EagerTensor; 3] = [HostTensor::scalar(rounds).into(), x, begin];
        run.call(&args).map(|results| values(&results, 0))
    };
    assert_eq!(sum(3, 1).unwrap(), [6.0, 9.0]);
    assert_eq!(sum(0, 9).unwrap(), [0.0, 0.0]);
    assert!(sum(1, 9).is_err());
}

/// A variable that is read before a loop can be read once for all rounds, however many there are.
#[test]
fn variables_that_are_read_before_are_not_read_again() {
    let dtype = || Attrs::new().with("dtype", DType::F32);
    let args = [("i", int()), ("n", int()), ("sum", f32s(&[2, 4])), ("weights", handle())];
    let below = function("below", &args, |b, args| b.call("Less", "less", &args[..2]));
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let weights = b.call_with("ReadVariableOp", "read", dtype(), &args[3..])?[0];
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        Ok(vec![next, args[1], b.call("AddV2", "add", &[args[2], weights])?[0], args[3]])
    });
    let of = |reads_before: bool| {
        let outer = [("n", int()), ("weights", handle())];
        function("run", &outer, |b, args| {
            let zero = b.constant("zero", HostTensor::scalar(0i32))?;
            let none = b.constant("none", counted(8, &[2, 4]))?;
            let types = vec![DType::I32, DType::I32, DType::F32, DType::Resource];
            let attrs = Attrs::new().with("T", types).with("cond", func("below"));
            let attrs = attrs.with("body", func("body"));
            let before = match reads_before {
                true => b.call_with("ReadVariableOp", "first", dtype(), &args[1..])?[0],
                false => none,
            };
            let inputs = [zero, args[0], none, args[1]];
            let sum = b.call_with("While", "loop", attrs, &inputs)?[2];
            Ok(vec![b.call("AddV2", "total", &[sum, before])?[0]])
        })
    };
    for (reads_before, rounds, expected) in
        [(true, 3, 1), (true, 0, 1), (false, 3, 3), (false, 0, 0)]
    {
        let weights = weights();
        let captures = vec![CapturedInput::Resource(weights.handle())];
        let functions = vec![below.clone(), body.clone()];
        let run = concrete(&context(), of(reads_before), functions, captures);
        let args: [EagerTensor; 1] = [HostTensor::scalar(rounds).into()];
        let options = RunOptions { trace_level: TraceLevel::Ops };
        let (results, metadata) = run.call_with_options(&options, &args.each_ref()).unwrap();
        let one = counted(8, &[2, 4]);
        let one = one.as_slice::<f32>().unwrap();
        let wanted: Vec<f32> = one.iter().map(|x| x * (rounds + 2) as f32).collect();
        assert_eq!(values(&results, 0), wanted);
        let reads = metadata.ops.iter().filter(|op| op.node.ends_with("read")).count();
        assert_eq!(reads, expected, "{reads_before} {rounds}");
    }
}

/// Another caller may change what a loop waits for.
#[test]
fn reads_that_end_a_loop_stay_in_it() {
    let dtype = || Attrs::new().with("dtype", DType::F32);
    let args = [("i", int()), ("weights", handle())];
    let below = function("below", &args, |b, args| {
        let weights = b.call_with("ReadVariableOp", "watched", dtype(), &args[1..])?[0];
        let axes = b.constant("axes", HostTensor::vector(&[0i32, 1])?)?;
        let sum = b.call("Sum", "sum", &[weights, axes])?[0];
        let (n, most) = (HostTensor::scalar(3i32), HostTensor::scalar(1e9f32));
        let (n, most) = (b.constant("n", n)?, b.constant("most", most)?);
        let goes_on = b.call("Less", "goes_on", &[sum, most])?[0];
        let counts = b.call("Less", "counts", &[args[0], n])?[0];
        b.call("LogicalAnd", "both", &[goes_on, counts])
    });
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        Ok(vec![b.call("AddV2", "next", &[args[0], one])?[0], args[1]])
    });
    let def = function("run", &args[1..], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = Attrs::new().with("T", vec![DType::I32, DType::Resource]);
        let attrs = attrs.with("cond", func("below")).with("body", func("body"));
        Ok(b.call_with("While", "loop", attrs, &[zero, args[0]])?[..1].to_vec())
    });
    let weights = weights();
    let captures = vec![CapturedInput::Resource(weights.handle())];
    let run = concrete(&context(), def, vec![below, body], captures);
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let (results, metadata) = run.call_with_options(&options, &[]).unwrap();
    assert_eq!(results[0].host().unwrap().as_scalar::<i32>().unwrap(), 3);
    assert_eq!(metadata.ops.iter().filter(|op| op.node.ends_with("watched")).count(), 4);
}

/// A call of a function may do anything in each round, whatever the record says of its op.
#[test]
fn calls_of_functions_stay_in_loops() {
    let x = || f32s(&[5, 4]);
    let args = [("i", int()), ("x", x()), ("y", x())];
    let below = function("below", &args, |b, args| {
        let n = b.constant("n", HostTensor::scalar(3i32))?;
        b.call("Less", "less", &[args[0], n])
    });
    let twice = function("twice", &[("row", f32s(&[4]))], |b, args| {
        b.call("AddV2", "sum", &[args[0], args[0]])
    });
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let attrs = Attrs::new()
            .with("Targuments", vec![DType::F32])
            .with("Tcaptured", Vec::<DType>::new())
            .with("output_types", vec![DType::F32])
            .with("output_shapes", vec![PartialShape::from(&Shape::new([4])?)])
            .with("f", func("twice"));
        let mapped = b.call_with("MapDefun", "mapped", attrs, &args[1..2])?[0];
        Ok(vec![b.call("AddV2", "next", &[args[0], one])?[0], args[1], mapped])
    });
    let def = function("run", &args[1..2], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = Attrs::new().with("T", vec![DType::I32, DType::F32, DType::F32]);
        let attrs = attrs.with("cond", func("below")).with("body", func("body"));
        Ok(b.call_with("While", "loop", attrs, &[zero, args[0], args[0]])?[2..].to_vec())
    });
    let run = concrete(&context(), def, vec![below, body, twice], Vec::new());
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let x: EagerTensor = counted(20, &[5, 4]).into();
    let (results, metadata) = run.call_with_options(&options, &[&x]).unwrap();
    assert_eq!(values(&results, 0)[..2], [-6.0, -4.0]);
    assert_eq!(metadata.ops.iter().filter(|op| op.node.ends_with("mapped")).count(), 3);
}
