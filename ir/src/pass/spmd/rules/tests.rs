//! Factors of single calls.

use super::{Factors, RuleCall, factors};
use crate::{
    attr::{AttrValue, Attrs},
    build::GraphBuilder,
    dtype::DType,
    graph::Outlet,
    host_tensor::HostTensor,
    pass::spmd::sharding::TermMerge,
    shape::Shape,
    spec::ValueType,
};

/// An operand: the shape of a tensor, or a constant vector.
enum Operand {
    Floats(&'static [usize]),
    Ids(&'static [usize]),
    Ints(&'static [i32]),
    Int(i32),
}
use Operand::{Floats, Ids, Int, Ints};

/// The factors of a call, a letter each; `.` is a dimension that must be whole, `-` an operand that must.
fn text(op: &str, attrs: Attrs, operands: &[Operand]) -> String {
    let mut b = GraphBuilder::new();
    let mut inputs: Vec<Outlet> = Vec::new();
    for (index, operand) in operands.iter().enumerate() {
        let name = format!("x{index}");
        let mut tensor = |dtype, dims: &[usize]| {
            let shape = Shape::new(dims.iter().copied()).unwrap();
            b.arg(&name, ValueType::new(dtype, shape)).unwrap()
        };
        inputs.push(match operand {
            Floats(dims) => tensor(DType::F32, dims),
            Ids(dims) => tensor(DType::I32, dims),
            Ints(values) => b.constant(&name, HostTensor::vector(values).unwrap()).unwrap(),
            Int(value) => b.constant(&name, HostTensor::scalar(*value)).unwrap(),
        });
    }
    let mut graph = b.finish();
    let result = super::super::super::call::add_call(&mut graph, "y", op, attrs, &inputs).unwrap();
    let node = &graph[result.node];
    let call = RuleCall { graph: &graph, node, op: node.op.def().unwrap() };
    match factors(&call) {
        None => "no rule".into(),
        Some(factors) => shown(&factors),
    }
}

fn shown(factors: &Factors) -> String {
    let letter = |factor: &Option<usize>| factor.map_or('.', |f| (b'a' + f as u8) as char);
    let dims = |dims: &super::Dims| dims.iter().map(letter).collect::<String>();
    let operands = factors.operands.iter().map(|operand| match operand {
        Some(own) => dims(own),
        None => "-".into(),
    });
    let operands = operands.collect::<Vec<_>>().join(" ");
    let results = factors.results.iter().map(dims).collect::<Vec<_>>().join(" ");
    let merges = factors.merges.iter().map(|(factor, merge)| {
        let merge = match merge {
            TermMerge::Sum => "sum",
            TermMerge::Mean => "mean",
            TermMerge::Prod => "product",
            TermMerge::Min => "min",
            TermMerge::Max => "max",
        };
        format!(", {merge} over {}", letter(&Some(*factor)))
    });
    format!("{operands} -> {results}{}", merges.collect::<String>())
}

fn check(op: &str, operands: &[Operand], expected: &str) {
    assert_eq!(text(op, Attrs::new(), operands), expected, "{op}");
}

fn check_with(op: &str, attrs: Attrs, operands: &[Operand], expected: &str) {
    assert_eq!(text(op, attrs, operands), expected, "{op}");
}

#[test]
fn elementwise_operands_broadcast() {
    check("AddV2", &[Floats(&[2, 3, 4]), Floats(&[3, 1])], "abc b. -> abc");
    check("Tanh", &[Floats(&[])], " -> ");
}

#[test]
fn reductions_merge_what_they_reduce() {
    check("Sum", &[Floats(&[2, 3]), Ints(&[-1])], "ab - -> a, sum over b");
    let keep = || Attrs::new().with("keep_dims", true);
    check_with("Max", keep(), &[Floats(&[2, 3]), Ints(&[0])], "ab - -> .b, max over a");
    check("Mean", &[Floats(&[2, 3]), Ints(&[0, 1])], "ab - -> , mean over a, mean over b");
    check("Mean", &[Ids(&[2, 3]), Ints(&[0])], ".b - -> b");
    check("Mean", &[Floats(&[0, 3]), Ints(&[0])], ".b - -> b");
    check("EuclideanNorm", &[Floats(&[2, 3]), Ints(&[0])], ".b - -> b");
}

#[test]
fn matmuls_contract() {
    check("MatMul", &[Floats(&[2, 3]), Floats(&[3, 4])], "ac cb -> ab, sum over c");
    let turned = Attrs::new().with("transpose_a", true).with("transpose_b", true);
    check_with("MatMul", turned, &[Floats(&[3, 2]), Floats(&[4, 3])], "ca bc -> ab, sum over c");
    let operands = [Floats(&[5, 2, 3]), Floats(&[1, 4, 3])];
    let attrs = Attrs::new().with("adj_y", true);
    check_with("BatchMatMulV2", attrs, &operands, "abd .cd -> abc, sum over d");
}

#[test]
fn rows_of_the_last_dimension_are_whole() {
    check("Softmax", &[Floats(&[2, 3, 4])], "ab. -> ab.");
    check("SparseSoftmaxCrossEntropyWithLogits", &[Floats(&[2, 3]), Ids(&[2])], "a. a -> a a.");
    check("SoftmaxCrossEntropyWithLogits", &[Floats(&[2, 3]), Floats(&[2, 3])], "a. a. -> a a.");
    check("SoftmaxCrossEntropyWithLogits", &[Floats(&[2, 3]), Floats(&[1, 3])], "no rule");
}

#[test]
fn moved_dimensions_may_be_split_where_they_stay_whole() {
    check("Transpose", &[Floats(&[2, 3, 4]), Ints(&[2, 0, 1])], "abc - -> cab");
    check("ConcatV2", &[Floats(&[2, 3]), Floats(&[2, 1]), Int(-1)], "a. a. - -> a.");
    check("Slice", &[Floats(&[2, 3]), Ints(&[0, 1]), Ints(&[-1, 2])], "a. - - -> a.");
    check("Tile", &[Floats(&[2, 3]), Ints(&[1, 2])], "a. - -> a.");
    check("ReverseV2", &[Floats(&[2, 3]), Ints(&[-1])], "a. - -> a.");
    check("BroadcastTo", &[Floats(&[3, 1]), Ints(&[2, 3, 4])], "b. - -> .b.");
    let ends = [Floats(&[4, 3, 2]), Ints(&[0, 1]), Ints(&[9, 2]), Ints(&[1, 1])];
    let shrunk = Attrs::new().with("shrink_axis_mask", 2i64);
    check_with("StridedSlice", shrunk, &ends, "a.c - - - -> ac");
    let back = [Floats(&[4, 3]), Ints(&[0]), Ints(&[0]), Ints(&[-1])];
    let masks = Attrs::new().with("begin_mask", 1i64).with("end_mask", 1i64);
    check_with("StridedSlice", masks, &back, ".b - - - -> .b");
    check_with("Pack", Attrs::new().with("axis", -1i64), &[Floats(&[2, 3])], "ab -> ab.");
    let unpacked = Attrs::new().with("axis", 1i64).with("num", 3i64);
    check_with("Unpack", unpacked, &[Floats(&[2, 3])], "a. -> a a a");
}

#[test]
fn dimensions_of_indices_are_those_of_results() {
    check("GatherV2", &[Floats(&[2, 3, 4]), Ids(&[5, 6]), Int(1)], "a.c de - -> adec");
    let batch = Attrs::new().with("batch_dims", 1i64);
    check_with("GatherV2", batch, &[Floats(&[2, 3, 4]), Ids(&[2, 6]), Int(1)], "a.c ad - -> adc");
    check("UnsortedSegmentSum", &[Floats(&[4, 3]), Ids(&[4]), Int(2)], "ab a - -> .b, sum over a");
    let scattered = [Ids(&[5, 1]), Floats(&[5, 3]), Ints(&[4, 3])];
    check("ScatterNd", &scattered, "a. ab - -> .b, sum over a");
    check("ArgMax", &[Floats(&[2, 3]), Int(0)], ".b - -> b");
    check("Cumsum", &[Floats(&[2, 3]), Int(0)], ".b - -> .b");
}

#[test]
fn images_of_a_batch_are_apart() {
    let steps = || {
        let strides = AttrValue::from(vec![1i64; 4]);
        Attrs::new().with("strides", strides).with("padding", "SAME")
    };
    let (x, filter) = (Floats(&[2, 5, 5, 1]), Floats(&[3, 3, 1, 4]));
    check_with("Conv2D", steps(), &[x, filter], "a... - -> a...");
    let gradient = [Floats(&[2, 5, 5, 1]), Ints(&[3, 3, 1, 4]), Floats(&[2, 5, 5, 4])];
    check_with("Conv2DBackpropFilter", steps(), &gradient, "a... - a... -> ...., sum over a");
}

#[test]
fn ops_without_a_rule_say_nothing() {
    check("MatrixInverse", &[Floats(&[3, 3])], "no rule");
    check("Roll", &[Floats(&[3]), Int(1), Int(0)], "no rule");
}
