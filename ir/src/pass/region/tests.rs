//! Tests of the graphs that are regions, and of those that are not.

use super::*;
use crate::{
    PartialShape, ValueType,
    build::GraphBuilder,
    host_tensor::HostTensor,
    pass::{fuse::fuse, infer_types::infer_types, prune::prune},
};
use expect_test::{Expect, expect};

/// Checks the nodes that a graph of `[8, 16]`, `[16, 4]`, `[4]` and `[8, 1]` becomes.
fn check(build: impl Fn(&mut GraphBuilder, [Outlet; 4]) -> Vec<Outlet>, expected: &Expect) {
    let mut builder = GraphBuilder::new();
    let mut arg = |name: &str, dims: &[usize]| {
        let shape: PartialShape = (&Shape::new(dims.iter().copied()).unwrap()).into();
        builder.arg(name, ValueType::new(DType::F32, shape)).unwrap()
    };
    let args = [arg("x", &[8, 16]), arg("w", &[16, 4]), arg("b", &[4]), arg("r", &[8, 1])];
    let results = build(&mut builder, args);
    let mut graph = builder.finish();
    let roots = |results: &[Outlet]| results.iter().map(|result| result.node).collect::<Vec<_>>();
    infer_types(&mut graph).unwrap();
    fuse(&mut graph, &results, |_, _| true).unwrap();
    prune(&mut graph, roots(&results)).unwrap();
    regions(&mut graph, &results, |_, _| true).unwrap();
    prune(&mut graph, roots(&results)).unwrap();
    let text = graph.to_string();
    let lines = text.lines().filter(|line| !line.contains("Const("));
    expected.assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

fn along(b: &mut GraphBuilder, op: &str, name: &str, x: Outlet) -> Outlet {
    let axes = HostTensor::vector(&[-1i32]).unwrap();
    let axes = b.constant(&format!("{name}_axes"), axes).unwrap();
    let keep = Attrs::new().with("keep_dims", true);
    b.call_with(op, name, keep, &[x, axes]).unwrap()[0]
}

#[test]
fn an_anchor_takes_what_follows_it() {
    check(
        |b, [x, w, bias, r]| {
            let y = b.call("MatMul", "y", &[x, w]).unwrap()[0];
            let sum = b.call("AddV2", "sum", &[y, bias]).unwrap()[0];
            let scaled = b.call("Mul", "scaled", &[sum, r]).unwrap()[0];
            b.call("Relu", "relu", &[scaled]).unwrap()
        },
        &expect![[r#"
            %relu = _Region(%x, %w, %r, %b) {T: float32, Tin: [float32, float32, float32, float32], anchor: @MatMul, axes: [], keep_dims: true, reduces: false} = Max(Mul(Add($0, $2), $1), 0) : float32[8,4]
        "#]],
    );
}

#[test]
fn rows_take_what_is_before_between_and_after() {
    check(
        |b, [x, _, _, r]| {
            let scaled = b.call("Mul", "scaled", &[x, r]).unwrap()[0];
            let largest = along(b, "Max", "largest", scaled);
            let shifted = b.call("Sub", "shifted", &[scaled, largest]).unwrap()[0];
            let exponential = b.call("Exp", "exponential", &[shifted]).unwrap()[0];
            let sum = along(b, "Sum", "sum", exponential);
            b.call("RealDiv", "shares", &[exponential, sum]).unwrap()
        },
        &expect![[r#"
            %shares = _Region(%x, %r) {T: float32, Tin: [float32, float32], anchor: @, axes: [1], keep_dims: true, reduces: false} = Div(Exp(Sub(Mul($0, $1), Row.Max(Mul($0, $1)))), Row.Sum(Exp(Sub(Mul($0, $1), Row.Max(Mul($0, $1)))))) : float32[8,16]
        "#]],
    );
}

#[test]
fn dimensions_that_come_back_are_kept() {
    check(
        |b, [x, _, _, _]| {
            let axes = b.constant("axes", HostTensor::vector(&[-1i32]).unwrap()).unwrap();
            let mean = b.call("Mean", "mean", &[x, axes]).unwrap()[0];
            let axis = b.constant("axis", HostTensor::scalar(-1i32)).unwrap();
            let mean = b.call("ExpandDims", "means", &[mean, axis]).unwrap()[0];
            let centred = b.call("Sub", "centred", &[x, mean]).unwrap()[0];
            let squares = b.call("Square", "squares", &[centred]).unwrap()[0];
            let sum = b.call("Sum", "sum", &[squares, axes]).unwrap()[0];
            let shape = b.constant("shape", HostTensor::vector(&[8i32, 1]).unwrap()).unwrap();
            let sum = b.call("Reshape", "sums", &[sum, shape]).unwrap()[0];
            b.call("Mul", "scaled", &[centred, sum]).unwrap()
        },
        &expect![[r#"
            %scaled = _Region(%x) {T: float32, Tin: [float32], anchor: @, axes: [1], keep_dims: true, reduces: false} = Mul(Sub($0, Row.Mean($0)), Row.Sum(Mul(Sub($0, Row.Mean($0)), Sub($0, Row.Mean($0))))) : float32[8,16]
        "#]],
    );
}

#[test]
fn values_that_are_results_stay() {
    check(
        |b, [x, w, bias, _]| {
            let y = b.call("MatMul", "y", &[x, w]).unwrap()[0];
            let sum = b.call("AddV2", "sum", &[y, bias]).unwrap()[0];
            let squares = b.call("Square", "squares", &[x]).unwrap()[0];
            let mean = along(b, "Mean", "mean", squares);
            let centred = b.call("Sub", "centred", &[x, mean]).unwrap()[0];
            vec![y, sum, mean, centred]
        },
        &expect![[r#"
            %y = MatMul(%x, %w) {T: float32, grad_a: false, grad_b: false, transpose_a: false, transpose_b: false} : float32[8,4]
            %sum = AddV2(%y, %b) {T: float32} : float32[8,4]
            %mean = _Region(%x) {T: float32, Tin: [float32], anchor: @, axes: [1], keep_dims: true, reduces: true} = Row.Mean(Mul($0, $0)) : float32[8,1]
            %centred = Sub(%x, %mean) {T: float32} : float32[8,16]
        "#]],
    );
}

#[test]
fn an_order_of_effects_is_kept() {
    let mut builder = GraphBuilder::new();
    let shape: PartialShape = (&Shape::new([8, 8]).unwrap()).into();
    let x = builder.arg("x", ValueType::new(DType::F32, shape)).unwrap();
    let y = builder.call("MatMul", "y", &[x, x]).unwrap()[0];
    let sum = builder.call("AddV2", "sum", &[y, x]).unwrap()[0];
    let relu = builder.call("Relu", "relu", &[sum]).unwrap()[0];
    let mut graph = builder.finish();
    infer_types(&mut graph).unwrap();
    // Something has to wait for the product.
    graph.connect(relu.node, [sum], [y.node]).unwrap();
    regions(&mut graph, &[relu], |_, _| true).unwrap();
    assert!(graph.iter().all(|(_, node)| node.op.name() != "_Region"), "{graph}");
}

#[test]
fn constants_alone_are_not_fused() {
    let mut builder = GraphBuilder::new();
    let one = builder.constant("one", HostTensor::scalar(1.0f32)).unwrap();
    let two = builder.call("AddV2", "two", &[one, one]).unwrap()[0];
    let three = builder.call("AddV2", "three", &[two, one]).unwrap()[0];
    let mut graph = builder.finish();
    infer_types(&mut graph).unwrap();
    fuse(&mut graph, &[three], |_, _| true).unwrap();
    // A node without inputs has no shape to compute.
    assert!(graph.iter().all(|(_, node)| node.op.name() != "_FusedElementwise"), "{graph}");
}
