//! Strides that move up to where less is computed: nobody can tell from the results.

use crate::support::*;
use ferroflow_ir::{
    AttrValue, Attrs, DType, FunctionDef, HostTensor, Outlet, Shape, ValueType, build::GraphBuilder,
};
use ferroflow_runtime::{CompileOptions, Context, ContextOptions, EagerTensor};

fn ints(dims: &[usize], seed: usize) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let value = |index: usize| ((index * 7919 + seed * 31) % 11) as f32 - 5.0;
    let values: Vec<f32> = (0..shape.num_elements()).map(value).collect();
    HostTensor::from_slice(shape, &values).unwrap()
}

struct Conv {
    op: &'static str,
    size: usize,
    stride: i64,
    padding: &'static str,
}

fn conv(b: &mut GraphBuilder, x: Outlet, conv: &Conv) -> ferroflow_ir::Result<Outlet> {
    let n = b.graph().iter().count();
    let last = if conv.op == "Conv2D" { 4 } else { 1 };
    let filter = b.constant(&format!("filter{n}"), ints(&[conv.size, conv.size, 4, last], n))?;
    let strides = AttrValue::from(vec![1, conv.stride, conv.stride, 1]);
    let attrs = Attrs::new().with("strides", strides).with("padding", conv.padding);
    Ok(b.call_with(conv.op, &format!("conv{n}"), attrs, &[x, filter])?[0])
}

/// A residual block before two pointwise convolutions with strides.
fn block(first: Conv, stride: i64, rows: usize, cols: usize) -> (FunctionDef, EagerTensor) {
    let dims = [2, rows, cols, 4];
    let ty = ValueType::new(DType::F32, Shape::new(dims).unwrap());
    let def = function("f", &[("x", ty)], |b, args| {
        let pointwise =
            |stride: i64, padding: &'static str| Conv { op: "Conv2D", size: 1, stride, padding };
        let before = conv(b, args[0], &Conv { op: "Conv2D", size: 3, stride: 1, padding: "SAME" })?;
        let first = conv(b, before, &first)?;
        let scale = b.constant("scale", ints(&[4], 5))?;
        let scaled = b.call("Mul", "scaled", &[first, scale])?[0];
        let second = conv(b, scaled, &pointwise(1, "VALID"))?;
        let other = b.call("Relu", "other", &[first])?[0];
        let sum = b.call("AddV2", "sum", &[second, other])?[0];
        let stage = b.call("Relu", "stage", &[sum])?[0];
        let shortcut = conv(b, stage, &pointwise(stride, "SAME"))?;
        Ok(vec![conv(b, stage, &pointwise(stride, "VALID"))?, shortcut])
    });
    (def, ints(&dims, 1).into())
}

#[test]
fn results_are_the_same() {
    for (op, size, own) in
        [("Conv2D", 3, 1), ("Conv2D", 2, 2), ("DepthwiseConv2dNative", 3, 1), ("Conv2D", 1, 1)]
    {
        for (padding, stride) in [("SAME", 2), ("VALID", 2), ("SAME", 3)] {
            for (rows, cols) in [(9, 8), (7, 12), (5, 5)] {
                let run = |fuse: bool| {
                    let compile = CompileOptions { fuse, ..Default::default() };
                    let context =
                        Context::with_options(ContextOptions { compile, ..Default::default() });
                    let first = Conv { op, size, stride: own, padding };
                    let (def, x) = block(first, stride, rows, cols);
                    let results =
                        concrete(&context, def, Vec::new(), Vec::new()).call(&[x]).unwrap();
                    let value =
                        |index: usize| (results[index].shape().clone(), values(&results, index));
                    [value(0), value(1)]
                };
                assert_eq!(run(true), run(false), "{op} {size} {own} {padding} {stride} {rows}");
            }
        }
    }
}
