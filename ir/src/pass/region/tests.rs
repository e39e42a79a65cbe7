//! Tests of the graphs that are regions, and of those that are not.

use super::*;
use crate::{
    AttrValue, DType, PartialShape, ValueType,
    build::GraphBuilder,
    host_tensor::HostTensor,
    pass::{
        fuse::fuse,
        infer_types::infer_types,
        prune::prune,
        specialize::Specialized,
        test_bodies::{function, specialized},
        verify::verify,
    },
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

/// The factor of a batch normalisation is read by the product and by the offset, which is small itself.
#[test]
fn on_a_device_an_anchor_takes_small_calls_that_small_calls_read() {
    let mut builder = GraphBuilder::new();
    let mut arg = |name: &str, dims: &[usize]| {
        let shape: PartialShape = (&Shape::new(dims.iter().copied()).unwrap()).into();
        builder.arg(name, ValueType::new(DType::F32, shape)).unwrap()
    };
    let [x, w] = [arg("x", &[8, 16]), arg("w", &[16, 4])];
    let [gamma, variance, mean, beta] =
        ["gamma", "variance", "mean", "beta"].map(|name| arg(name, &[4]));
    let mut call = |op, name, inputs: &[Outlet]| builder.call(op, name, inputs).unwrap()[0];
    let y = call("MatMul", "y", &[x, w]);
    let rsqrt = call("Rsqrt", "rsqrt", &[variance]);
    let factor = call("Mul", "factor", &[rsqrt, gamma]);
    let product = call("Mul", "product", &[mean, factor]);
    let offset = call("Sub", "offset", &[beta, product]);
    let scaled = call("Mul", "scaled", &[y, factor]);
    let sum = call("AddV2", "sum", &[scaled, offset]);
    let built = builder.finish();
    for (device, expected) in [("/device:GPU:0", 1), ("", 3)] {
        let mut graph = built.clone();
        let ids: Vec<NodeId> = graph.ids().collect();
        for id in ids {
            *graph.node_mut(id).device = device.into();
        }
        infer_types(&mut graph).unwrap();
        fuse(&mut graph, &[sum], |_, _| true).unwrap();
        prune(&mut graph, [sum.node]).unwrap();
        regions(&mut graph, &[sum], |_, _| true).unwrap();
        prune(&mut graph, [sum.node]).unwrap();
        let calls = graph.iter().filter(|(_, node)| !node.inputs().is_empty()).count();
        assert_eq!(calls, expected, "{graph}");
    }
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

/// Checks the nodes that a function of `[8, 16]`, `[16, 4]` and `[4]` becomes whose expressions are
/// split.
fn check_split(
    build: impl FnOnce(&mut GraphBuilder, &[Outlet]) -> Result<Vec<Outlet>>,
    expected: &Expect,
) {
    let types = [&[8, 16][..], &[16, 4], &[4]]
        .map(|dims| ValueType::new(DType::F32, Shape::new(dims.iter().copied()).unwrap()));
    let mut body = specialized(&function(&types, build), &types);
    let clean = |body: &mut Specialized, after: &'static str| {
        let outlets = body.results.iter().chain(&body.args);
        let roots: Vec<NodeId> = outlets.map(|outlet| outlet.node).collect();
        prune(&mut body.graph, roots).unwrap();
        verify(body, after).unwrap();
    };
    fuse(&mut body.graph, &body.results, |_, _| true).unwrap();
    clean(&mut body, "fusion");
    split_epilogues(&mut body, |_, _| true).unwrap();
    clean(&mut body, "splitting");
    regions(&mut body.graph, &body.results, |_, _| true).unwrap();
    clean(&mut body, "regions");
    let line = |node: &NodeDef| {
        let inputs: Vec<&str> =
            node.inputs().iter().map(|input| &*body.graph[input.node].name).collect();
        let expr = node.expr.as_ref().map_or(String::new(), |expr| format!(" = {expr}"));
        format!("{}: {}({}){expr}\n", node.name, node.op.name(), inputs.join(", "))
    };
    let nodes = body.graph.iter().filter(|(_, node)| !node.inputs().is_empty());
    expected.assert_eq(&nodes.map(|(_, node)| line(node)).collect::<String>());
}

#[test]
fn anchors_have_an_epilogue_each() {
    check_split(
        |b, x| {
            let first = b.call("MatMul", "first", &x[..2])?[0];
            let second = b.call("MatMul", "second", &x[..2])?[0];
            let shift = b.call("Neg", "shift", &x[2..])?[0];
            let scaled = b.call("Mul", "scaled", &[first, x[2]])?[0];
            let shifted = b.call("AddV2", "shifted", &[scaled, shift])?[0];
            let other = b.call("AddV2", "other", &[second, x[2]])?[0];
            let sum = b.call("AddV2", "sum", &[shifted, other])?[0];
            Ok(b.call("Relu", "relu", &[sum])?.to_vec())
        },
        &expect![[r#"
            shift: Neg(x2)
            first_1: _Region(x0, x1, x2, shift) = Add(Mul($0, $1), $2)
            relu: _Region(x0, x1, x2, first_1) = Max(Add($2, Add($0, $1)), 0)
        "#]],
    );
}

#[test]
fn what_meets_another_anchor_twice_has_nothing_of_its_own() {
    check_split(
        |b, x| {
            let first = b.call("MatMul", "first", &x[..2])?[0];
            let second = b.call("MatMul", "second", &x[..2])?[0];
            let scaled = b.call("Mul", "scaled", &[first, x[2]])?[0];
            let sum = b.call("AddV2", "sum", &[scaled, second])?[0];
            Ok(b.call("Mul", "again", &[sum, first])?.to_vec())
        },
        &expect![[r#"
            first: MatMul(x0, x1)
            again: _Region(x0, x1, first, x2) = Mul(Add(Mul($1, $2), $0), $1)
        "#]],
    );
}

/// Checks the nodes that convolutions of an image `[1, 8, 8, 4]` become.
fn check_chain(build: impl Fn(&mut Convolutions, Outlet) -> Vec<Outlet>, expected: &Expect) {
    let mut convolutions = Convolutions(GraphBuilder::new());
    let x = convolutions.arg("x", &[1, 8, 8, 4]);
    let results = build(&mut convolutions, x);
    let mut graph = convolutions.0.finish();
    infer_types(&mut graph).unwrap();
    fuse(&mut graph, &results, |_, _| true).unwrap();
    let roots = results.iter().map(|result| result.node);
    prune(&mut graph, roots.clone()).unwrap();
    regions(&mut graph, &results, |_, _| true).unwrap();
    prune(&mut graph, roots.clone()).unwrap();
    convolution_chains(&mut graph, &results, |_, _| true).unwrap();
    prune(&mut graph, roots).unwrap();
    let node = |node: &NodeDef| {
        let convolutions =
            node.attrs.get("convolutions").map_or(String::new(), |c| format!(" {c}"));
        let inputs: Vec<&str> =
            node.inputs().iter().map(|input| &*graph[input.node].name).collect();
        format!("{} = {}({}){convolutions}\n", node.name, node.op.name(), inputs.join(", "))
    };
    let nodes = graph.iter().filter(|(_, node)| !node.inputs().is_empty());
    expected.assert_eq(&nodes.map(|(_, found)| node(found)).collect::<String>());
}

struct Convolutions(GraphBuilder);

impl Convolutions {
    fn arg(&mut self, name: &str, dims: &[usize]) -> Outlet {
        let shape: PartialShape = (&Shape::new(dims.iter().copied()).unwrap()).into();
        self.0.arg(name, ValueType::new(DType::F32, shape)).unwrap()
    }

    fn convolve(&mut self, op: &str, name: &str, x: Outlet, filter: &[usize]) -> Outlet {
        let filter = self.arg(&format!("{name}_filter"), filter);
        let attrs =
            Attrs::new().with("strides", AttrValue::from(vec![1, 1, 1, 1])).with("padding", "SAME");
        self.0.call_with(op, name, attrs, &[x, filter]).unwrap()[0]
    }
}

#[test]
fn convolutions_are_chained() {
    check_chain(
        |b, x| {
            let expanded = b.convolve("Conv2D", "expand", x, &[1, 1, 4, 24]);
            let bounded = b.0.call("Relu6", "bounded", &[expanded]).unwrap()[0];
            let across = b.convolve("DepthwiseConv2dNative", "across", bounded, &[3, 3, 24, 1]);
            let projected = b.convolve("Conv2D", "project", across, &[1, 1, 24, 4]);
            b.0.call("AddV2", "sum", &[projected, x]).unwrap()
        },
        &expect![[r#"
            sum = _FusedConvolutions(x, expand_filter, across_filter, project_filter, x) [@_Region(@Conv2D = Min(Max($0, 0), 6)), @DepthwiseConv2dNative, @_Region(@Conv2D = Add($0, $1))]
        "#]],
    );
}

#[test]
fn a_chain_ends_where_others_read() {
    check_chain(
        |b, x| {
            let first = b.convolve("Conv2D", "first", x, &[1, 1, 4, 24]);
            let second = b.convolve("DepthwiseConv2dNative", "second", first, &[3, 3, 24, 1]);
            let third = b.convolve("Conv2D", "third", second, &[1, 1, 24, 24]);
            let sum = b.0.call("AddV2", "sum", &[third, second]).unwrap()[0];
            let fourth = b.convolve("DepthwiseConv2dNative", "fourth", sum, &[3, 3, 24, 1]);
            vec![b.convolve("Conv2D", "fifth", fourth, &[1, 1, 24, 8]), sum]
        },
        &expect![[r#"
            second = _FusedConvolutions(x, first_filter, second_filter) [@Conv2D, @DepthwiseConv2dNative]
            sum = _Region(second, third_filter, second)
            fifth = _FusedConvolutions(sum, fourth_filter, fifth_filter) [@DepthwiseConv2dNative, @Conv2D]
        "#]],
    );
}
