//! Views, donated operands and values that loops carry: no write overtakes a read of the same memory.

use crate::support::*;
use ferroflow_ir::{
    Attrs, DType, FunctionDef, HostTensor, Outlet, PartialShape, Shape, ValueType,
    build::GraphBuilder,
};
use ferroflow_runtime::{CompileOptions, Context, ContextOptions, EagerTensor};

type Body = fn(&mut GraphBuilder, &[Outlet]) -> ferroflow_ir::Result<Vec<Outlet>>;

fn ints(b: &mut GraphBuilder, name: &str, values: &[i32]) -> ferroflow_ir::Result<Outlet> {
    b.constant(name, HostTensor::vector(values)?)
}

fn rows(b: &mut GraphBuilder, name: &str, x: Outlet, start: i32) -> ferroflow_ir::Result<Outlet> {
    let begin = ints(b, &format!("{name}/begin"), &[start, 0])?;
    let size = ints(b, &format!("{name}/size"), &[1, -1])?;
    Ok(b.call("Slice", name, &[x, begin, size])?[0])
}

fn matrix(values: &[f32], dims: [usize; 2]) -> EagerTensor {
    HostTensor::from_slice(Shape::new(dims).unwrap(), values).unwrap().into()
}

/// Runs a body as it is compiled by default, and without donation and reuse of memory.
fn agree(args: &[(&str, ValueType)], body: Body, library: &[FunctionDef], given: &[EagerTensor]) {
    let run = |compile: CompileOptions| {
        let context = Context::with_options(ContextOptions { compile, ..Default::default() });
        let def = function("main", args, body);
        let results = concrete(&context, def, library.to_vec(), Vec::new()).call(given).unwrap();
        let values = |index: usize| (results[index].shape().clone(), values(&results, index));
        (0..results.len()).map(values).collect::<Vec<_>>()
    };
    let all = CompileOptions::default();
    let plain = CompileOptions {
        fold: false,
        hoist: false,
        cse: false,
        fuse: false,
        scalar: false,
        reuse: false,
        donate: false,
        ..all
    };
    assert_eq!(run(all), run(plain));
}

#[test]
fn a_view_outlives_the_last_direct_read_of_its_root() {
    let square = f32s(&[2, 2]);
    let body: Body = |b, args| {
        let y = b.call("MatMul", "y", args)?[0];
        let v = rows(b, "v", y, 0)?;
        let e = b.call("Exp", "e", &[y])?[0];
        let m = b.call("MatMul", "m", &[e, args[1]])?[0];
        Ok(vec![b.call("MatMul", "vw", &[v, args[1]])?[0], m])
    };
    let given = [matrix(&[1.0, 2.0, 3.0, 4.0], [2, 2]), matrix(&[1.0, 0.0, 0.0, 1.0], [2, 2])];
    agree(&[("x", square.clone()), ("w", square)], body, &[], &given);
}

#[test]
fn parts_of_a_split_are_views_of_one_root() {
    let body: Body = |b, args| {
        let y = b.call("MatMul", "y", args)?[0];
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        let parts =
            b.call_with("Split", "parts", Attrs::new().with("num_split", 2i64), &[axis, y])?;
        let first = b.call("Exp", "first", &[parts[0]])?[0];
        let second = b.call("Neg", "second", &[y])?[0];
        let product = b.call("MatMul", "product", &[second, args[1]])?[0];
        let sum = b.call("AddV2", "sum", &[first, parts[1]])?[0];
        Ok(vec![sum, product, parts[0]])
    };
    let given = [matrix(&[1.0, 2.0, 3.0, 4.0], [2, 2]), matrix(&[1.0, 1.0, 0.0, 1.0], [2, 2])];
    agree(&[("x", f32s(&[2, 2])), ("w", f32s(&[2, 2]))], body, &[], &given);
}

#[test]
fn an_operand_is_not_donated_while_the_step_reads_a_view_of_it() {
    let body: Body = |b, args| {
        let y = b.call("MatMul", "y", args)?[0];
        let v = rows(b, "v", y, 1)?;
        let sum = b.call("AddV2", "sum", &[y, v])?[0];
        Ok(vec![b.call("MatMul", "result", &[sum, args[1]])?[0]])
    };
    let given = [matrix(&[1.0, 2.0, 3.0, 4.0], [2, 2]), matrix(&[1.0, 1.0, 0.0, 1.0], [2, 2])];
    agree(&[("x", f32s(&[2, 2])), ("w", f32s(&[2, 2]))], body, &[], &given);
}

fn counted(body: FunctionDef, extra: &[(&str, ValueType)]) -> Vec<FunctionDef> {
    let int = || ValueType::new(DType::I32, Shape::scalar());
    let args: Vec<(&str, ValueType)> =
        [("i", int())].into_iter().chain(extra.iter().cloned()).collect();
    let condition = function("below", &args, |b, args| {
        let three = b.constant("three", HostTensor::scalar(3i32))?;
        b.call("Less", "less", &[args[0], three])
    });
    vec![condition, body]
}

fn repeat(
    b: &mut GraphBuilder,
    name: &str,
    variables: &[Outlet],
    types: Vec<DType>,
) -> ferroflow_ir::Result<Vec<Outlet>> {
    let zero = b.constant(&format!("{name}/zero"), HostTensor::scalar(0i32))?;
    let inputs: Vec<Outlet> = [zero].into_iter().chain(variables.iter().copied()).collect();
    let types: Vec<DType> = [DType::I32].into_iter().chain(types).collect();
    let attrs =
        Attrs::new().with("T", types).with("cond", func("below")).with("body", func("body"));
    Ok(b.call_with("StatelessWhile", name, attrs, &inputs)?[1..].to_vec())
}

fn next(b: &mut GraphBuilder, i: Outlet) -> ferroflow_ir::Result<Outlet> {
    let one = b.constant("one", HostTensor::scalar(1i32))?;
    Ok(b.call("AddV2", "next", &[i, one])?[0])
}

#[test]
fn a_variable_may_become_a_view_of_another() {
    let int = ValueType::new(DType::I32, Shape::scalar());
    let extra = [("a", f32s(&[2, 2])), ("row", f32s(&[1, 2]))];
    let args: Vec<(&str, ValueType)> = [("i", int)].into_iter().chain(extra.clone()).collect();
    let body = function("body", &args, |b, args| {
        let i = next(b, args[0])?;
        let row = rows(b, "last", args[1], 1)?;
        Ok(vec![i, b.call("AddV2", "sum", &[args[1], args[2]])?[0], row])
    });
    let main: Body = |b, args| repeat(b, "loop", args, vec![DType::F32, DType::F32]);
    let given = [matrix(&[1.0, 2.0, 3.0, 4.0], [2, 2]), matrix(&[10.0, 20.0], [1, 2])];
    agree(&extra, main, &counted(body, &extra), &given);
}

#[test]
fn a_result_of_a_loop_is_an_invariant_of_the_next() {
    let int = ValueType::new(DType::I32, Shape::scalar());
    let any = ValueType::new(DType::F32, PartialShape::of_rank(1));
    let extra = [("x", any.clone()), ("y", any)];
    let args: Vec<(&str, ValueType)> = [("i", int)].into_iter().chain(extra.clone()).collect();
    let body = function("body", &args, |b, args| {
        let i = next(b, args[0])?;
        let axis = b.constant("axis", HostTensor::scalar(0i32))?;
        let attrs = Attrs::new().with("N", 2i64);
        let longer = b.call_with("ConcatV2", "longer", attrs, &[args[1], args[2], axis])?[0];
        Ok(vec![i, longer, args[2]])
    });
    let main: Body = |b, args| {
        let first = repeat(b, "first", args, vec![DType::F32, DType::F32])?;
        // The grown value is what the second loop appends in every round.
        repeat(b, "second", &[args[1], first[0]], vec![DType::F32, DType::F32])
    };
    agree(&extra, main, &counted(body, &extra), &[vector(&[1.0]), vector(&[2.0, 3.0])]);
}

#[test]
fn reshapes_between_equal_partial_types_stay() {
    let sizes = ValueType::new(DType::I32, Shape::new([2]).unwrap());
    for shape in [PartialShape::of_rank(2), PartialShape::Unknown] {
        // The indices make every size unknown until the call runs.
        let args = [("x", ValueType::new(DType::F32, shape)), ("shape", sizes.clone())];
        let def = function("main", &args, |b, args| {
            let picked = b.call("Where", "where", &[args[0]])?[0];
            let values = b.call("GatherNd", "values", &[args[0], picked])?[0];
            let once = b.call("Reshape", "once", &[values, args[1]])?[0];
            let axis = b.constant("axis", HostTensor::vector(&[0i32])?)?;
            let swapped = b.call("ReverseV2", "swapped", &[args[1], axis])?[0];
            Ok(vec![b.call("Reshape", "twice", &[once, swapped])?[0]])
        });
        let main = concrete(&context(), def, Vec::new(), Vec::new());
        let shape: EagerTensor = HostTensor::vector(&[2i32, 3]).unwrap().into();
        let x = matrix(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3]);
        let results = main.call(&[x, shape]).unwrap();
        assert_eq!(results[0].shape().to_vec(), [3, 2]);
    }
}
