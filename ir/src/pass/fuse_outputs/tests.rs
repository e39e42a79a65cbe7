//! Tests of the calls that become one, and of those that do not.

use super::*;
use crate::{
    PartialShape,
    build::GraphBuilder,
    host_tensor::HostTensor,
    pass::{fuse::fuse, infer_types::infer_types, prune::prune},
};
use expect_test::{Expect, expect};

/// Checks the nodes that a graph of `x: [8, 16]`, `c: [8, 4]`, `b: [16]` and `w: [4, 4]` becomes, without
/// constants and arguments.
fn check(build: impl Fn(&mut GraphBuilder, [Outlet; 4]) -> Vec<Outlet>, expected: &Expect) {
    let mut builder = GraphBuilder::new();
    let mut arg = |name: &str, dims: &[usize]| {
        let shape: PartialShape = (&Shape::new(dims.iter().copied()).unwrap()).into();
        builder.arg(name, ValueType::new(DType::F32, shape)).unwrap()
    };
    let args = [arg("x", &[8, 16]), arg("c", &[8, 4]), arg("b", &[16]), arg("w", &[4, 4])];
    let mut results = build(&mut builder, args);
    let mut graph = builder.finish();
    let roots = |results: &[Outlet]| results.iter().map(|result| result.node).collect::<Vec<_>>();
    infer_types(&mut graph).unwrap();
    fuse(&mut graph, &results, |_, _| true).unwrap();
    prune(&mut graph, roots(&results)).unwrap();
    form_groups(&mut graph, &mut results, |_, _| true).unwrap();
    prune(&mut graph, roots(&results)).unwrap();
    graph.topological_order().unwrap();
    let text = graph.to_string();
    let lines = text.lines().filter(|line| !line.contains("Const(") && !line.contains("_Arg("));
    let lines = lines.map(|line| format!("{line}\n")).collect::<String>();
    let names =
        results.iter().map(|result| format!("{}:{} ", graph[result.node].name, result.index));
    expected.assert_eq(&format!("{lines}returns {}\n", names.collect::<String>().trim_end()));
}

fn split(b: &mut GraphBuilder, x: Outlet, sizes: &[i64]) -> Vec<Outlet> {
    let name = format!("{}_parts", sizes.len());
    let lengths = b.constant(&format!("{name}_sizes"), HostTensor::vector(sizes).unwrap()).unwrap();
    let axis = b.constant(&format!("{name}_axis"), HostTensor::scalar(1i32)).unwrap();
    let attrs = Attrs::new().with("num_split", sizes.len() as i64);
    b.call_with("SplitV", &name, attrs, &[x, lengths, axis]).unwrap().to_vec()
}

fn slice(b: &mut GraphBuilder, name: &str, x: Outlet, begin: i64, size: i64) -> Outlet {
    let vector = |numbers: &[i64]| HostTensor::vector(numbers).unwrap();
    let begin = b.constant(&format!("{name}_begin"), vector(&[0, begin])).unwrap();
    let size = b.constant(&format!("{name}_size"), vector(&[-1, size])).unwrap();
    b.call("Slice", name, &[x, begin, size]).unwrap()[0]
}

#[test]
fn a_recurrent_cell_is_one_call() {
    check(
        |b, [x, c, bias, _]| {
            let sum = b.call("AddV2", "sum", &[x, bias]).unwrap()[0];
            let gates = split(b, sum, &[4, 4, 4, 4]);
            let gate = |b: &mut GraphBuilder, op, name, index: usize| {
                b.call(op, name, &[gates[index]]).unwrap()[0]
            };
            let input = gate(b, "Sigmoid", "input", 0);
            let new = gate(b, "Tanh", "new", 2);
            let added = b.call("Mul", "added", &[input, new]).unwrap()[0];
            let cell = b.call("AddV2", "cell", &[c, added]).unwrap()[0];
            let bounded = b.call("Tanh", "bounded", &[cell]).unwrap()[0];
            let output = gate(b, "Sigmoid", "output", 3);
            let hidden = b.call("Mul", "hidden", &[output, bounded]).unwrap()[0];
            vec![cell, hidden]
        },
        &expect![[r#"
            %hidden = _FusedExpressions(%x, %b, %c, %x, %b, %x, %b) {Tin: [float32, float32, float32, float32, float32, float32, float32], Tout: [float32, float32], shape: [8, 4], views: [12, 16, 1, 12, 0, 1, 0, 4, 1, 8, 16, 1, 8, 0, 1, 0, 16, 1, 0, 0, 1]} = Mul(Div(1, Add(Exp(Neg(Add($0, $1))), 1)), Tanh(Add($2, Mul(Div(1, Add(Exp(Neg(Add($5, $6))), 1)), Tanh(Add($3, $4)))))); Add($2, Mul(Div(1, Add(Exp(Neg(Add($5, $6))), 1)), Tanh(Add($3, $4)))) : float32[8,4], float32[8,4]
            returns hidden:1 hidden:0
        "#]],
    );
}

#[test]
fn a_result_that_leads_back_to_the_group_stays_outside() {
    check(
        |b, [_, c, _, w]| {
            let first = b.call("Exp", "first", &[c]).unwrap()[0];
            let product = b.call("MatMul", "product", &[first, w]).unwrap()[0];
            b.call("Mul", "last", &[first, product]).unwrap()
        },
        &expect![[r#"
            %first = Exp(%c) {T: float32} : float32[8,4]
            %product = MatMul(%first, %w) {T: float32, grad_a: false, grad_b: false, transpose_a: false, transpose_b: false} : float32[8,4]
            %last = Mul(%first, %product) {T: float32} : float32[8,4]
            returns last:0
        "#]],
    );
}

/// The first result is read before the last one can be computed.
#[test]
fn results_stay_before_those_that_read_them() {
    check(
        |b, [_, c, _, w]| {
            let first = b.call("Exp", "first", &[c]).unwrap()[0];
            let sum = b.call("MatMul", "early", &[first, w]).unwrap()[0];
            let late = b.call("MatMul", "late", &[c, w]).unwrap()[0];
            let last = b.call("Mul", "last", &[first, late]).unwrap()[0];
            vec![sum, last]
        },
        &expect![[r#"
            %first = Exp(%c) {T: float32} : float32[8,4]
            %early = MatMul(%first, %w) {T: float32, grad_a: false, grad_b: false, transpose_a: false, transpose_b: false} : float32[8,4]
            %late = MatMul(%c, %w) {T: float32, grad_a: false, grad_b: false, transpose_a: false, transpose_b: false} : float32[8,4]
            %last = Mul(%first, %late) {T: float32} : float32[8,4]
            returns early:0 last:0
        "#]],
    );
}

#[test]
fn results_that_others_read_are_outputs() {
    check(
        |b, [_, c, _, w]| {
            let first = b.call("Exp", "first", &[c]).unwrap()[0];
            let product = b.call("MatMul", "product", &[first, w]).unwrap()[0];
            let last = b.call("Tanh", "last", &[first]).unwrap()[0];
            vec![product, last]
        },
        &expect![[r#"
            %last = _FusedExpressions(%c) {Tin: [float32], Tout: [float32, float32], shape: [8, 4], views: [0, 4, 1]} = Tanh(Exp($0)); Exp($0) : float32[8,4], float32[8,4]
            %product = MatMul(%last:1, %w) {T: float32, grad_a: false, grad_b: false, transpose_a: false, transpose_b: false} : float32[8,4]
            returns product:0 last:0
        "#]],
    );
}

#[test]
fn elements_that_stand_for_several_are_not_windows() {
    check(
        |b, [x, c, _, _]| {
            let column = slice(b, "column", x, 3, 1);
            let block = slice(b, "block", x, 5, 4);
            let scaled = b.call("Mul", "scaled", &[c, column]).unwrap()[0];
            b.call("AddV2", "moved", &[scaled, block]).unwrap()
        },
        &expect![[r#"
            %column = Slice(%x, %column_begin, %column_size) {Index: int64, T: float32} : float32[8,1]
            %moved = _FusedExpressions(%x, %c, %column) {Tin: [float32, float32, float32], Tout: [float32], shape: [8, 4], views: [5, 16, 1, 0, 4, 1, 0, 1, 0]} = Add(Mul($1, $2), $0) : float32[8,4]
            returns moved:0
        "#]],
    );
}

#[test]
fn windows_that_are_results_stay() {
    check(
        |b, [x, c, _, _]| {
            let block = slice(b, "block", x, 5, 4);
            let first = b.call("Mul", "first", &[c, block]).unwrap()[0];
            let last = b.call("Exp", "last", &[first]).unwrap()[0];
            vec![block, last, first]
        },
        &expect![[r#"
            %block = Slice(%x, %block_begin, %block_size) {Index: int64, T: float32} : float32[8,4]
            %last = _FusedExpressions(%c, %x) {Tin: [float32, float32], Tout: [float32, float32], shape: [8, 4], views: [0, 4, 1, 5, 16, 1]} = Exp(Mul($0, $1)); Mul($0, $1) : float32[8,4], float32[8,4]
            returns block:0 last:0 last:1
        "#]],
    );
}

#[test]
fn results_of_which_windows_overlap_are_computed_once() {
    check(
        |b, [x, _, bias, _]| {
            let sum = b.call("AddV2", "sum", &[x, bias]).unwrap()[0];
            let first = slice(b, "first", sum, 0, 12);
            let second = slice(b, "second", sum, 4, 12);
            b.call("Mul", "both", &[first, second]).unwrap()
        },
        &expect![[r#"
            %sum = AddV2(%x, %b) {T: float32} : float32[8,16]
            %both = _FusedExpressions(%sum, %sum) {Tin: [float32, float32], Tout: [float32], shape: [8, 12], views: [0, 16, 1, 4, 16, 1]} = Mul($0, $1) : float32[8,12]
            returns both:0
        "#]],
    );
}
