//! Tests of the graphs that are attention, and of those that are not.

use super::*;
use crate::pass::{fuse::fuse, infer_types::infer_types, prune::prune};
use crate::{HostTensor, PartialShape, Shape, ValueType, build::GraphBuilder};
use expect_test::{Expect, expect};

/// A graph whose results are what `build` gives of queries `[2, 3, 4, 8]`, keys `[2, 3, 5, 8]`,
/// values `[2, 3, 5, 6]` and a mask `[2, 1, 1, 5]`.
fn graph(build: impl Fn(&mut GraphBuilder, [Outlet; 4]) -> Vec<Outlet>) -> (Graph, Vec<Outlet>) {
    let mut builder = GraphBuilder::new();
    let mut arg = |name: &str, dtype: DType, dims: [usize; 4]| {
        let shape: PartialShape = (&Shape::new(dims).unwrap()).into();
        builder.arg(name, ValueType::new(dtype, shape)).unwrap()
    };
    let args = [
        arg("q", DType::F32, [2, 3, 4, 8]),
        arg("k", DType::F32, [2, 3, 5, 8]),
        arg("v", DType::F32, [2, 3, 5, 6]),
        arg("mask", DType::Bool, [2, 1, 1, 5]),
    ];
    let results = build(&mut builder, args);
    let mut graph = builder.finish();
    infer_types(&mut graph).unwrap();
    fuse(&mut graph, &results, |_, _| true).unwrap();
    prune(&mut graph, results.iter().map(|result| result.node)).unwrap();
    (graph, results)
}

fn check(build: impl Fn(&mut GraphBuilder, [Outlet; 4]) -> Vec<Outlet>, expected: &Expect) {
    let (mut graph, results) = graph(build);
    attention(&mut graph, &results, |_, _| true).unwrap();
    let found = graph.iter().filter(|(_, node)| node.op.name() == "_FusedAttention");
    let lines = found.map(|(_, node)| {
        let names: Vec<&str> = node.inputs().iter().map(|input| &*graph[input.node].name).collect();
        let attrs = ["query_order", "key_order", "value_order", "output_order", "keep"];
        let attrs = attrs.map(|name| format!("{}", node.attrs.get(name).unwrap()));
        let expr = node.expr.as_ref().map_or(0, |expr| expr.nodes().len());
        let (names, attrs) = (names.join(", "), attrs.join(" "));
        format!("{}: {names}; {attrs}; {expr} scalars; {}\n", node.name, node.outputs()[0])
    });
    expected.assert_eq(&lines.collect::<String>());
}

fn product(b: &mut GraphBuilder, name: &str, x: Outlet, y: Outlet, adjoint: bool) -> Outlet {
    let attrs = Attrs::new().with("adj_y", adjoint);
    b.call_with("BatchMatMulV2", name, attrs, &[x, y]).unwrap()[0]
}

fn transposed(b: &mut GraphBuilder, name: &str, x: Outlet, order: [i32; 4]) -> Outlet {
    let order = HostTensor::vector(&order).unwrap();
    let order = b.constant(&format!("{name}_order"), order).unwrap();
    b.call("Transpose", name, &[x, order]).unwrap()[0]
}

fn scalar(b: &mut GraphBuilder, name: &str, value: f32) -> Outlet {
    b.constant(name, HostTensor::scalar(value)).unwrap()
}

fn softmax(b: &mut GraphBuilder, x: Outlet) -> Outlet {
    b.call("Softmax", "weights", &[x]).unwrap()[0]
}

#[test]
fn a_softmax_between_products_is_attention() {
    check(
        |b, [q, k, v, _]| {
            let scores = product(b, "scores", q, k, true);
            let weights = softmax(b, scores);
            vec![product(b, "averages", weights, v, false)]
        },
        &expect![[r#"
            averages: q, k, v; [] [] [] [] -1; 0 scalars; float32[2,3,4,6]
        "#]],
    );
}

#[test]
fn what_happens_to_scores_goes_along() {
    check(
        |b, [q, k, v, mask]| {
            let scores = product(b, "scores", q, k, true);
            let (scale, low) = (scalar(b, "scale", 0.5), scalar(b, "low", -1e9));
            let scaled = b.call("Mul", "scaled", &[scores, scale]).unwrap()[0];
            let masked = b.call("SelectV2", "masked", &[mask, scaled, low]).unwrap()[0];
            let weights = softmax(b, masked);
            let zero = scalar(b, "zero", 0.0);
            let kept = b.call("SelectV2", "kept", &[mask, weights, zero]).unwrap()[0];
            vec![product(b, "averages", kept, v, false)]
        },
        &expect![[r#"
            averages: q, k, v, mask; [] [] [] [] 0; 7 scalars; float32[2,3,4,6]
        "#]],
    );
}

#[test]
fn transpositions_are_orders() {
    check(
        |b, [q, k, v, _]| {
            let (q, k) =
                (transposed(b, "qt", q, [0, 2, 1, 3]), transposed(b, "kt", k, [0, 2, 1, 3]));
            let (q, k) =
                (transposed(b, "q2", q, [0, 2, 1, 3]), transposed(b, "k2", k, [0, 2, 3, 1]));
            // Scores by columns.
            let k = transposed(b, "k3", k, [0, 1, 3, 2]);
            let columns = product(b, "columns", k, q, true);
            let rows = transposed(b, "rows", columns, [0, 1, 3, 2]);
            let weights = softmax(b, rows);
            let averages = product(b, "averages", weights, v, false);
            let heads = transposed(b, "heads", averages, [0, 2, 1, 3]);
            // Rows of the next would not be contiguous.
            vec![transposed(b, "columns2", heads, [3, 0, 1, 2])]
        },
        &expect![[r#"
            heads: q, k, v; [] [] [] [0, 2, 1, 3] -1; 0 scalars; float32[2,4,3,6]
        "#]],
    );
}

#[test]
fn weights_may_come_second() {
    check(
        |b, [q, k, v, _]| {
            let scores = product(b, "scores", q, k, true);
            let weights = softmax(b, scores);
            let attrs = Attrs::new().with("adj_x", true).with("adj_y", true);
            let columns = b.call_with("BatchMatMulV2", "columns", attrs, &[v, weights]).unwrap()[0];
            vec![transposed(b, "rows", columns, [0, 1, 3, 2])]
        },
        &expect![[r#"
            rows: q, k, v; [] [] [] [] -1; 0 scalars; float32[2,3,4,6]
        "#]],
    );
}

#[test]
fn slices_that_add_or_drop_dimensions_are_no_transpositions() {
    let permutation = |shrink: i64, new: i64| {
        let mut b = GraphBuilder::new();
        let x = Shape::new([1, 2, 4, 3]).unwrap();
        let x = b.arg("x", ValueType::new(DType::F32, x)).unwrap();
        let bounds = [("begin", 0), ("end", 4), ("step", 1)].map(|(name, bound)| {
            let bounds = vec![bound; 4 + new.count_ones() as usize];
            b.constant(name, HostTensor::vector::<i32>(&bounds).unwrap()).unwrap()
        });
        let attrs = Attrs::new().with("shrink_axis_mask", shrink).with("new_axis_mask", new);
        let inputs = [x, bounds[0], bounds[1], bounds[2]];
        let slice = b.call_with("StridedSlice", "slice", attrs, &inputs).unwrap()[0];
        let mut graph = b.finish();
        infer_types(&mut graph).unwrap();
        let search = Search { graph: &graph, kept: &FastSet::default(), ops: &Ops::find() };
        search.permutation(slice.node)
    };
    assert_eq!(permutation(0, 0), Some(vec![0, 1, 2, 3]));
    for (shrink, new) in [(1, 0), (0, 1), (1, 16)] {
        assert_eq!(permutation(shrink, new), None);
    }
}

#[test]
fn what_others_need_stays() {
    for needed in ["scores", "weights", "squared"] {
        check(
            |b, [q, k, v, _]| {
                let scores = product(b, "scores", q, k, true);
                let weights = softmax(b, scores);
                let averages = product(b, "averages", weights, v, false);
                match needed {
                    "scores" => vec![averages, scores],
                    "weights" => vec![averages, weights],
                    _ => vec![averages, b.call("Square", "squared", &[weights]).unwrap()[0]],
                }
            },
            &expect![""],
        );
    }
}

#[test]
fn weights_that_are_changed_are_none() {
    for (op, other) in [("Square", None), ("AddV2", Some(1.0)), ("Mul", Some(2.0))] {
        check(
            |b, [q, k, v, _]| {
                let scores = product(b, "scores", q, k, true);
                let weights = softmax(b, scores);
                let mut inputs = vec![weights];
                inputs.extend(other.map(|other| scalar(b, "other", other)));
                let changed = b.call(op, "changed", &inputs).unwrap()[0];
                vec![product(b, "averages", changed, v, false)]
            },
            &expect![""],
        );
    }
}

#[test]
fn who_does_not_gain_keeps_the_graph() {
    let (mut found, results) = graph(|b, [q, k, v, _]| {
        let scores = product(b, "scores", q, k, true);
        let weights = softmax(b, scores);
        vec![product(b, "averages", weights, v, false)]
    });
    let before = found.to_string();
    attention(&mut found, &results, |_, node| node.op.name() != "_FusedAttention").unwrap();
    assert_eq!(found.to_string(), before);
}
