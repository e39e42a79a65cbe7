//! Loops and branches.

use crate::support::*;
use ferroflow_ir::{Attrs, DType, FunctionDef, HostTensor, PartialShape, Shape, ValueType};
use ferroflow_runtime::{Context, ContextOptions, EagerTensor, RunOptions, TraceLevel};

fn int() -> ValueType {
    ValueType::new(DType::I32, Shape::scalar())
}

/// `i < n`, for loops over `(i, n, …)`.
fn below(extra: &[(&str, ValueType)]) -> FunctionDef {
    let args: Vec<(&str, ValueType)> =
        [("i", int()), ("n", int())].into_iter().chain(extra.to_vec()).collect();
    function("below", &args, |b, args| b.call("Less", "less", &args[..2]))
}

fn while_attrs(types: &[DType]) -> Attrs {
    Attrs::new().with("T", types.to_vec()).with("cond", func("below")).with("body", func("body"))
}

#[test]
fn a_counter_counts() {
    let context = context();
    let body = function("body", &[("i", int()), ("n", int())], |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        Ok(vec![next, args[1]])
    });
    let count = function("count", &[("n", int())], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = while_attrs(&[DType::I32, DType::I32]);
        Ok(b.call_with("StatelessWhile", "loop", attrs, &[zero, args[0]])?[..1].to_vec())
    });
    let count = concrete(&context, count, vec![below(&[]), body], Vec::new());
    for n in [0i32, 1, 10_000] {
        let result = count.call(&[EagerTensor::scalar(n)]).unwrap();
        assert_eq!(result[0].host().unwrap().as_scalar::<i32>().unwrap(), n);
    }
}

/// A result of a call that nothing reads: a loop that counts.
#[test]
fn loops_that_nothing_reads_are_not_run() {
    let body = function("body", &[("i", int()), ("n", int())], |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        Ok(vec![b.call("AddV2", "next", &[args[0], one])?[0], args[1]])
    });
    let count = function("count", &[("n", int())], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = while_attrs(&[DType::I32, DType::I32]);
        let counted = b.call_with("While", "loop", attrs, &[zero, args[0]])?[0];
        Ok(vec![counted, b.call("Neg", "negative", args)?[0]])
    });
    let caller = function("caller", &[("n", int())], |b, args| {
        let attrs = call_attrs(&[DType::I32], &[DType::I32; 2], "count");
        Ok(vec![b.call_with("PartitionedCall", "call", attrs, args)?[1]])
    });
    let caller = concrete(&context(), caller, vec![below(&[]), body, count], Vec::new());
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let n = EagerTensor::scalar(7i32);
    let (results, metadata) = caller.call_with_options(&options, &[&n]).unwrap();
    assert_eq!(results[0].host().unwrap().as_scalar::<i32>().unwrap(), -7);
    let ops: Vec<&str> = metadata.ops.iter().map(|op| &*op.op).collect();
    assert_eq!(ops, ["Neg"]);
}

#[test]
fn variables_that_swap_are_assigned_at_once() {
    let context = context();
    let extra = [("a", f32s(&[2])), ("b", f32s(&[2]))];
    let args: Vec<(&str, ValueType)> =
        [("i", int()), ("n", int())].into_iter().chain(extra.clone()).collect();
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let sum = b.call("AddV2", "sum", &[args[2], args[3]])?[0];
        Ok(vec![next, args[1], args[3], sum])
    });
    let fibonacci =
        function("fibonacci", &[("n", int()), ("a", f32s(&[2])), ("b", f32s(&[2]))], |b, args| {
            let zero = b.constant("zero", HostTensor::scalar(0i32))?;
            let attrs = while_attrs(&[DType::I32, DType::I32, DType::F32, DType::F32]);
            Ok(b.call_with("While", "loop", attrs, &[zero, args[0], args[1], args[2]])?[2..]
                .to_vec())
        });
    let fibonacci = concrete(&context, fibonacci, vec![below(&extra), body], Vec::new());
    let result = fibonacci
        .call(&[EagerTensor::scalar(10i32), vector(&[0.0, 1.0]), vector(&[1.0, 1.0])])
        .unwrap();
    assert_eq!(values(&result, 0), [55.0, 89.0]);
    assert_eq!(values(&result, 1), [89.0, 144.0]);
}

#[test]
fn a_variable_may_grow() {
    let context = context();
    let grow = ValueType::new(DType::F32, PartialShape::of_rank(1));
    let extra = [("x", grow.clone())];
    let args: Vec<(&str, ValueType)> =
        [("i", int()), ("n", int())].into_iter().chain(extra.clone()).collect();
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let longer = b.call_with(
            "ConcatV2",
            "longer",
            Attrs::new().with("N", 2i64),
            &[args[2], args[2], axis],
        )?[0];
        Ok(vec![next, args[1], longer])
    });
    let double = function("double", &[("n", int()), ("x", grow)], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = while_attrs(&[DType::I32, DType::I32, DType::F32]);
        Ok(b.call_with("StatelessWhile", "loop", attrs, &[zero, args[0], args[1]])?[2..].to_vec())
    });
    let double = concrete(&context, double, vec![below(&extra), body], Vec::new());
    let result = double.call(&[EagerTensor::scalar(3i32), vector(&[7.0])]).unwrap();
    assert_eq!(values(&result, 0), [7.0; 8]);
}

/// A loop that gives a shape on, beside a variable that grows: what is reshaped to it has a known shape in the
/// rounds and after them.
#[test]
fn constants_are_known_beside_variables_that_grow() {
    let grow = ValueType::new(DType::F32, PartialShape::of_rank(1));
    let shape = ValueType::new(DType::I32, Shape::new([2]).unwrap());
    let extra = [("x", grow.clone()), ("shape", shape), ("y", f32s(&[6]))];
    let args: Vec<(&str, ValueType)> =
        [("i", int()), ("n", int())].into_iter().chain(extra.clone()).collect();
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let flat = b.constant("flat", HostTensor::vector(&[6i32])?)?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let two = Attrs::new().with("N", 2i64);
        let longer = b.call_with("ConcatV2", "longer", two, &[args[2], args[2], zero])?[0];
        let matrix = b.call("Reshape", "matrix", &[args[4], args[3]])?[0];
        let sums = b.call("Cumsum", "sums", &[matrix, zero])?[0];
        let y = b.call("Reshape", "y_next", &[sums, flat])?[0];
        Ok(vec![next, args[1], longer, args[3], y])
    });
    let outer = [("n", int()), ("x", grow), ("y", f32s(&[6]))];
    let summed = function("summed", &outer, |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let shape = b.constant("shape", HostTensor::vector(&[2i32, 3])?)?;
        let types = [DType::I32, DType::I32, DType::F32, DType::I32, DType::F32];
        let inputs = [zero, args[0], args[1], shape, args[2]];
        let looped = b.call_with("StatelessWhile", "loop", while_attrs(&types), &inputs)?;
        let matrix = b.call("Reshape", "matrix", &[looped[4], looped[3]])?[0];
        Ok(vec![looped[2], b.call("Exp", "exp", &[matrix])?[0]])
    });
    let summed = concrete(&context(), summed, vec![below(&extra), body], Vec::new());
    let text = summed.optimized_text(&[int(), f32s(&[1]), f32s(&[6])]).unwrap();
    assert!(text.contains("Reshape(%loop:4, %shape)"), "{text}");
    let y = vector(&[0.5, 0.0, 1.0, 0.25, 0.0, 0.0]);
    let (options, n) = (RunOptions { trace_level: TraceLevel::Ops }, EagerTensor::scalar(2i32));
    let (result, metadata) =
        summed.call_with_options(&options, &[&n, &vector(&[7.0]), &y]).unwrap();
    // Where shapes are known, another shape is another name.
    let ops: Vec<&str> = metadata.ops.iter().map(|op| &*op.op).collect();
    assert!(ops.contains(&"Cumsum") && !ops.contains(&"Reshape"), "{ops:?}");
    assert_eq!(values(&result, 0), [7.0; 4]);
    let near = |(a, b): (&f32, f32)| (a - b.exp()).abs() < 1e-5;
    let expected = [0.5, 0.0, 1.0, 1.25, 0.0, 2.0];
    assert!(values(&result, 1).iter().zip(expected).all(near), "{result:?}");
}

#[test]
fn a_loop_stops_at_its_limit() {
    let mut options = ContextOptions::default();
    options.limits.loop_iterations = 100;
    let context = Context::with_options(options);
    let body = function("body", &[("i", int()), ("n", int())], |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        Ok(vec![b.call("Sub", "before", &[args[0], one])?[0], args[1]])
    });
    let forever = function("forever", &[("n", int())], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = while_attrs(&[DType::I32, DType::I32]);
        Ok(b.call_with("StatelessWhile", "loop", attrs, &[zero, args[0]])?[..1].to_vec())
    });
    let forever = concrete(&context, forever, vec![below(&[]), body], Vec::new());
    let error = forever.call(&[EagerTensor::scalar(1i32)]).unwrap_err().to_string();
    assert!(error.contains("the loop needs more than 100 iterations"), "{error}");
}

#[test]
fn a_body_that_changes_a_dtype_is_refused() {
    let context = context();
    let body = function("body", &[("i", int()), ("n", int())], |b, args| {
        let attrs = Attrs::new().with("DstT", DType::F32);
        Ok(vec![b.call_with("Cast", "float", attrs, &[args[0]])?[0], args[1]])
    });
    let wrong = function("wrong", &[("n", int())], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = while_attrs(&[DType::I32, DType::I32]);
        Ok(b.call_with("StatelessWhile", "loop", attrs, &[zero, args[0]])?[..1].to_vec())
    });
    let wrong = concrete(&context, wrong, vec![below(&[]), body], Vec::new());
    let error = wrong.call(&[EagerTensor::scalar(1i32)]).unwrap_err().to_string();
    assert!(error.contains("body result 0 must be int32, found float32[]"), "{error}");
}

#[test]
fn branches_run_alone() {
    let context = context();
    let truth = ValueType::new(DType::Bool, Shape::scalar());
    let arg = [("x", int())];
    let divide = function("divide", &arg, |b, args| {
        let hundred = b.constant("hundred", HostTensor::scalar(100i32))?;
        b.call("FloorDiv", "quotient", &[hundred, args[0]])
    });
    let same = function("same", &arg, |_, args| Ok(args.to_vec()));
    let choose = function("choose", &[("p", truth), ("x", int())], |b, args| {
        let attrs = Attrs::new()
            .with("Tin", vec![DType::I32])
            .with("Tout", vec![DType::I32])
            .with("then_branch", func("divide"))
            .with("else_branch", func("same"));
        b.call_with("If", "choice", attrs, args)
    });
    let choose = concrete(&context, choose, vec![divide, same], Vec::new());
    let run = |p: bool, x: i32| {
        let p = EagerTensor::from(HostTensor::scalar_bool(p));
        choose
            .call(&[p, EagerTensor::scalar(x)])
            .map(|r| r[0].host().unwrap().as_scalar::<i32>().unwrap())
    };
    assert_eq!(run(true, 7).unwrap(), 14);
    assert_eq!(run(false, 0).unwrap(), 0);
    let error = run(true, 0).unwrap_err().to_string();
    assert!(error.contains("function `divide`"), "{error}");
}

/// `for i in 0..n { x = if i % 2 == 0 { x + 1 } else { x / 2 }; y -= x }`, all of it scalars.
fn scalar_loop(context: &Context) -> ferroflow_runtime::CallableFunction {
    let float = || ValueType::new(DType::F32, Shape::scalar());
    let extra = [("x", float()), ("y", float())];
    let args: Vec<(&str, ValueType)> =
        [("i", int()), ("n", int())].into_iter().chain(extra.clone()).collect();
    let arg = [("x", float())];
    let grow = function("grow", &arg, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1.0f32))?;
        b.call("AddV2", "sum", &[args[0], one])
    });
    let shrink = function("shrink", &arg, |b, args| {
        let two = b.constant("two", HostTensor::scalar(2.0f32))?;
        b.call("RealDiv", "quotient", &[args[0], two])
    });
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let two = b.constant("two", HostTensor::scalar(2i32))?;
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let rest = b.call("FloorMod", "rest", &[args[0], two])?[0];
        let even = b.call("Equal", "even", &[rest, zero])?[0];
        let attrs = Attrs::new()
            .with("Tin", vec![DType::F32])
            .with("Tout", vec![DType::F32])
            .with("then_branch", func("grow"))
            .with("else_branch", func("shrink"));
        let x = b.call_with("If", "choice", attrs, &[even, args[2]])?[0];
        let y = b.call("Sub", "difference", &[args[3], x])?[0];
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        Ok(vec![next, args[1], x, y])
    });
    let outer = [("n", int()), ("x", float())];
    let run = function("run", &outer, |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let start = b.constant("start", HostTensor::scalar(100.0f32))?;
        let attrs = while_attrs(&[DType::I32, DType::I32, DType::F32, DType::F32]);
        Ok(b.call_with("While", "loop", attrs, &[zero, args[0], args[1], start])?[2..].to_vec())
    });
    concrete(context, run, vec![below(&extra), body, grow, shrink], Vec::new())
}

#[test]
fn numbers_are_computed_as_by_kernels() {
    let context = context();
    let run = scalar_loop(&context);
    for n in [0, 1, 2, 7, 100] {
        let (mut x, mut y) = (1.5f32, 100.0f32);
        for i in 0..n {
            x = if i % 2 == 0 { x + 1.0 } else { x / 2.0 };
            y -= x;
        }
        let result = run.call(&[EagerTensor::scalar(n), EagerTensor::scalar(1.5f32)]).unwrap();
        assert_eq!((values(&result, 0), values(&result, 1)), (vec![x], vec![y]), "{n} rounds");
    }
}

#[test]
fn errors_among_numbers_are_located() {
    let context = context();
    let extra = [("x", int())];
    let args = [("i", int()), ("n", int()), ("x", int())];
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let left = b.call("Sub", "left", &[args[1], next])?[0];
        Ok(vec![next, args[1], b.call("FloorDiv", "quotient", &[args[2], left])?[0]])
    });
    let run = function("run", &[("n", int())], |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = while_attrs(&[DType::I32, DType::I32, DType::I32]);
        Ok(b.call_with("While", "loop", attrs, &[zero, args[0], args[0]])?[2..].to_vec())
    });
    let run = concrete(&context, run, vec![below(&extra), body], Vec::new());
    assert!(run.call(&[EagerTensor::scalar(0i32)]).is_ok());
    let error = run.call(&[EagerTensor::scalar(3i32)]).unwrap_err().to_string();
    assert!(error.contains("division by zero") && error.contains("quotient"), "{error}");
}

#[test]
fn what_does_not_change_is_computed_once() {
    let context = context();
    let extra = [("x", f32s(&[2])), ("scale", f32s(&[2]))];
    let args: Vec<(&str, ValueType)> =
        [("i", int()), ("n", int())].into_iter().chain(extra.clone()).collect();
    let body = function("body", &args, |b, args| {
        let one = b.constant("one", HostTensor::scalar(1i32))?;
        let next = b.call("AddV2", "next", &[args[0], one])?[0];
        let root = b.call("Exp", "power", &[args[3]])?[0];
        Ok(vec![next, args[1], b.call("Mul", "product", &[args[2], root])?[0], args[3]])
    });
    let outer = [("n", int()), ("x", f32s(&[2])), ("scale", f32s(&[2]))];
    let run = function("run", &outer, |b, args| {
        let zero = b.constant("zero", HostTensor::scalar(0i32))?;
        let attrs = while_attrs(&[DType::I32, DType::I32, DType::F32, DType::F32]);
        let inputs = [zero, args[0], args[1], args[2]];
        Ok(b.call_with("While", "loop", attrs, &inputs)?[2..3].to_vec())
    });
    let run = concrete(&context, run, vec![below(&extra), body], Vec::new());
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let args = [EagerTensor::scalar(5i32), vector(&[1.0, 3.0]), vector(&[0.0, 0.0])];
    let (result, metadata) = run.call_with_options(&options, &args.each_ref()).unwrap();
    assert_eq!(values(&result, 0), [1.0, 3.0]);
    let count = |name: &str| metadata.ops.iter().filter(|op| op.node.ends_with(name)).count();
    assert_eq!((count("power"), count("product")), (1, 5));
}
