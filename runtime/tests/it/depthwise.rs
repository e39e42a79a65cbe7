//! Convolutions in as many groups as channels run as depthwise ones: the numbers are the same.

use crate::support::*;
use ferroflow_ir::{AttrValue, Attrs, DType, HostTensor, Shape, ValueType};
use ferroflow_runtime::{CompileOptions, Context, ContextOptions, EagerTensor};

const CHANNELS: usize = 5;

/// Small integers, whose sums are exact.
fn ints(dims: &[usize], seed: usize) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let value = |index: usize| ((index * 7919 + seed * 31) % 11) as f32 - 5.0;
    let values: Vec<f32> = (0..shape.num_elements()).map(value).collect();
    HostTensor::from_slice(shape, &values).unwrap()
}

/// The result for windows of 3 × 2 and so many filters for each channel.
fn convolved(attrs: &Attrs, filters: usize, fuse: bool) -> (Shape, Vec<f32>) {
    let compile = CompileOptions { fuse, ..Default::default() };
    let context = Context::with_options(ContextOptions { compile, ..Default::default() });
    let dims = [2, 9, 8, CHANNELS];
    let ty = ValueType::new(DType::F32, Shape::new(dims).unwrap());
    let def = function("f", &[("x", ty)], |b, args| {
        let filter = b.constant("filter", ints(&[3, 2, 1, CHANNELS * filters], 3))?;
        let y = b.call_with("Conv2D", "conv", attrs.clone(), &[args[0], filter])?[0];
        b.call("Relu", "y", &[y]).map(|y| y.to_vec())
    });
    let x: EagerTensor = ints(&dims, 1).into();
    let results = concrete(&context, def, Vec::new(), Vec::new()).call(&[x]).unwrap();
    (results[0].shape().clone(), values(&results, 0))
}

#[test]
fn results_are_the_same() {
    let explicit = AttrValue::from(vec![0i64, 0, 2, 1, 0, 3, 0, 0]);
    for filters in [1, 3] {
        for (stride, dilation) in [(1, 1), (2, 1), (1, 2)] {
            for padding in ["SAME", "VALID", "EXPLICIT"] {
                let along = |size: i64| AttrValue::from(vec![1, size, size, 1]);
                let mut attrs = Attrs::new().with("padding", padding);
                attrs.set("strides", along(stride));
                attrs.set("dilations", along(dilation));
                if padding == "EXPLICIT" {
                    attrs.set("explicit_paddings", explicit.clone());
                }
                let [found, expected] = [true, false].map(|fuse| convolved(&attrs, filters, fuse));
                assert_eq!(found, expected, "{filters} {stride} {dilation} {padding}");
                assert!(found.1.iter().any(|&y| y > 0.0), "not only zeros");
            }
        }
    }
}
