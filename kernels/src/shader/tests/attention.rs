//! Attention: small ones, and some that groups work on.

use super::{
    cases::{Case, numbers, shape},
    groups::positive,
};
use ferroflow_ir::{Attrs, DType, Expr, HostTensor};

/// Expression of a case's scores: they are scaled, and where the first of the others is false they
/// are replaced by a low number, or it is added.
pub(super) fn expr(case: &Case) -> Option<Expr> {
    let (dtype, other) = (case.inputs.first()?.dtype(), case.inputs.get(3)?.dtype());
    let scale = 0.125;
    let of_bool = other == DType::Bool;
    let infinite = case.inputs[3].shape().rank() == 1;
    let low = if infinite { f64::NEG_INFINITY } else { -1e4 };
    let expr = Expr::build(&Attrs::new(), &[dtype, other], dtype, |s| match of_bool {
        true => s.select(s.x(1), s.x(0) * scale, s.value(low, DType::F32)),
        false => s.x(0) * scale + s.x(1),
    });
    (case.op == "_FusedAttention").then(|| expr.unwrap())
}

fn attention(dtype: DType, dims: [[&[usize]; 2]; 2], orders: [&[i64]; 4]) -> Case {
    let [[query, key], [value, other]] = dims;
    let [query_order, key_order, value_order, output_order] = orders;
    let small = |dims: &[usize]| numbers(dtype, dims);
    // Averages of numbers of both signs lose digits, and devices others than the CPU.
    let mut inputs = vec![small(query), small(key), positive(dtype, value)];
    let mut attrs = Attrs::new()
        .with("query_order", query_order.to_vec())
        .with("key_order", key_order.to_vec())
        .with("value_order", value_order.to_vec())
        .with("output_order", output_order.to_vec())
        .with("Tothers", Vec::<DType>::new());
    if !other.is_empty() {
        inputs.push(small(other));
        attrs = attrs.with("Tothers", vec![dtype]);
    }
    Case { op: "_FusedAttention", attrs, inputs }
}

/// The same with a mask, under which weights that do not count are zeros if so asked for.
fn masked(case: Case, dims: &[usize], keep: bool) -> Case {
    let n = shape(dims).num_elements();
    let values: Vec<bool> = (0..n).map(|at| at % 5 < 3 && (n < 20 || at > 6)).collect();
    let mut inputs = case.inputs;
    inputs.push(HostTensor::from_bools(shape(dims), &values).unwrap());
    let attrs = case.attrs.with("Tothers", vec![DType::Bool]);
    let attrs = attrs.with("keep", if keep { 0i64 } else { -1 });
    Case { attrs, inputs, ..case }
}

const STRAIGHT: [&[i64]; 4] = [&[], &[], &[], &[]];
const HEADS: [&[i64]; 4] = [&[0, 2, 1, 3], &[0, 2, 1, 3], &[0, 2, 1, 3], &[0, 2, 1, 3]];

/// Calls that no group works on.
pub(super) fn small() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let small =
            |other| attention(dtype, [[&[2, 5, 4], &[2, 7, 4]], [&[2, 7, 3], other]], STRAIGHT);
        cases.push(small(&[]));
        cases.push(small(&[2, 1, 7]));
        cases.push(small(&[5, 1]));
        cases.push(masked(small(&[]), &[2, 5, 7], false));
        cases.push(masked(small(&[]), &[7], false));
        cases.push(masked(small(&[]), &[2, 5, 7], true));
        // Nothing to attend to.
        cases.push(attention(dtype, [[&[2, 5, 4], &[2, 0, 4]], [&[2, 0, 3], &[]]], STRAIGHT));
        // Keys by columns, one head for all queries, values of more columns than one invocation does.
        let orders: [&[i64]; 4] = [&[0, 2, 1, 3], &[0, 1, 3, 2], &[], &[1, 0, 2, 3]];
        let dims: [[&[usize]; 2]; 2] = [[&[2, 3, 4, 6], &[1, 1, 6, 9]], [&[2, 4, 9, 35], &[]]];
        cases.push(attention(dtype, dims, orders));
    }
    cases
}

/// Calls that groups work on, where they may.
pub(super) fn large() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let bias: &[usize] = &[2, 2, 70, 67];
        let large = |other| {
            let values: [&[usize]; 2] = [&[2, 67, 2, 33], other];
            attention(dtype, [[&[2, 70, 2, 20], &[2, 67, 2, 20]], values], HEADS)
        };
        cases.push(large(bias));
        cases.push(masked(large(&[]), &[2, 1, 1, 67], false));
        cases.push(masked(large(&[]), &[2, 1, 70, 67], true));
        cases.push(masked(large(&[]), &[67], true));
        let lost = HostTensor::from_bools(shape(&[1]), &[false]).unwrap();
        for keep in [false, true] {
            let mut case = masked(large(&[]), &[1], keep);
            case.inputs[3] = lost.clone();
            cases.push(case);
        }
    }
    // Such as warps multiply, where they do.
    for dtype in [DType::F16, DType::BF16] {
        let of_warps = |other| {
            let values: [&[usize]; 2] = [&[2, 67, 2, 48], other];
            attention(dtype, [[&[2, 150, 2, 32], &[2, 67, 2, 32]], values], HEADS)
        };
        cases.push(of_warps(&[2, 2, 150, 67]));
        cases.push(masked(of_warps(&[]), &[2, 1, 1, 67], false));
        cases.push(masked(of_warps(&[]), &[2, 1, 150, 67], true));
    }
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let dims: [[&[usize]; 2]; 2] = [[&[130, 64], &[128, 64]], [&[128, 128], &[]]];
        cases.push(attention(dtype, dims, STRAIGHT));
    }
    cases
}
