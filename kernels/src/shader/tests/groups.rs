//! Calls that groups of invocations work on together, where they may.

use super::cases::{Case, cast, ints, numbers, shape};
use ferroflow_ir::{Attrs, DType, HostTensor};

/// Numbers above zero: their sums lose nothing.
pub(super) fn positive(dtype: DType, dims: &[usize]) -> HostTensor {
    let n = shape(dims).num_elements();
    let values: Vec<f32> = (0..n).map(|i| ((i * 7 + 3) % 23 + 1) as f32 / 8.0).collect();
    cast(&HostTensor::from_slice(shape(dims), &values).unwrap(), dtype)
}

/// Gradients of convolutions with strides and padding.
fn gradients(cases: &mut Vec<Case>) {
    let sizes = |dims: [usize; 4]| ints(&dims.map(|dim| dim as i32));
    let (image, filter) = ([2, 8, 9, 66], [3, 3, 66, 65]);
    for (padding, strides, result) in [
        ("SAME", [1i64, 1, 2, 1], [2, 8, 5, 65]),
        ("VALID", [1, 1, 1, 1], [2, 6, 7, 65]),
        ("VALID", [1, 3, 2, 1], [2, 2, 4, 65]),
    ] {
        let attrs = Attrs::new().with("padding", padding).with("strides", strides.to_vec());
        let (x, w) = (positive(DType::F32, &image), positive(DType::F32, &filter));
        let dy = positive(DType::F32, &result);
        let inputs = vec![sizes(image), w, dy.clone()];
        cases.push(Case { op: "Conv2DBackpropInput", attrs: attrs.clone(), inputs });
        let inputs = vec![x, sizes(filter), dy];
        cases.push(Case { op: "Conv2DBackpropFilter", attrs, inputs });
    }
}

/// Calls of so many elements that invocations take several, and of none.
pub(super) fn many_and_none() -> Vec<Case> {
    let inputs = vec![numbers(DType::F32, &[1049, 1000]), numbers(DType::F32, &[1000])];
    let mut cases = vec![Case { op: "AddV2", attrs: Attrs::new(), inputs }];
    for op in ["Softmax", "LogSoftmax"] {
        for dims in [[2, 0], [0, 3]] {
            let inputs = vec![numbers(DType::F32, &dims)];
            cases.push(Case { op, attrs: Attrs::new(), inputs });
        }
    }
    cases
}

/// Calls that groups of invocations work on together, where they may.
pub(crate) fn tiled() -> Vec<Case> {
    let mut cases = Vec::new();
    for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
        let (a, b) = (if ta { [33, 70] } else { [70, 33] }, if tb { [131, 33] } else { [33, 131] });
        let attrs = Attrs::new().with("transpose_a", ta).with("transpose_b", tb);
        let inputs = vec![numbers(DType::F32, &a), numbers(DType::F32, &b)];
        cases.push(Case { op: "MatMul", attrs, inputs });
    }
    let inputs = vec![numbers(DType::F16, &[2, 1, 65, 20]), numbers(DType::F16, &[3, 20, 64])];
    cases.push(Case { op: "BatchMatMulV2", attrs: Attrs::new(), inputs });
    for (dtype, padding, strides, dilations) in [
        (DType::F32, "SAME", [1i64, 2, 1, 1], [1i64, 1, 1, 1]),
        (DType::F16, "VALID", [1, 1, 1, 1], [1, 1, 2, 1]),
    ] {
        let attrs = Attrs::new().with("padding", padding).with("strides", strides.to_vec());
        let attrs = attrs.with("dilations", dilations.to_vec());
        let inputs = vec![positive(dtype, &[2, 13, 12, 5]), positive(dtype, &[3, 2, 5, 70])];
        cases.push(Case { op: "Conv2D", attrs, inputs });
    }
    gradients(&mut cases);
    let attrs = Attrs::new().with("padding", "SAME").with("strides", vec![1i64; 5]);
    let inputs =
        vec![positive(DType::F32, &[1, 5, 4, 6, 3]), positive(DType::F32, &[2, 2, 3, 3, 64])];
    cases.push(Case { op: "Conv3D", attrs, inputs });
    for op in ["Softmax", "LogSoftmax"] {
        for dtype in [DType::F32, DType::F16] {
            for dims in [[3, 777], [13, 100]] {
                cases.push(Case { op, attrs: Attrs::new(), inputs: vec![numbers(dtype, &dims)] });
            }
        }
    }
    for op in ["Sum", "Mean", "Max", "Min", "EuclideanNorm"] {
        for (dims, axes) in [(&[3, 1111][..], &[1][..]), (&[40, 3, 50], &[0, 2]), (&[700], &[0])] {
            let inputs = vec![numbers(DType::F32, dims), ints(axes)];
            cases.push(Case { op, attrs: Attrs::new(), inputs });
        }
    }
    let mut growing = [1.0f32; 600];
    growing[290..320].fill(1.25);
    let inputs = vec![HostTensor::from_slice(shape(&[600]), &growing).unwrap(), ints(&[0])];
    cases.push(Case { op: "Prod", attrs: Attrs::new(), inputs });
    let mut odd = vec![1.0f32; 600];
    odd[301] = f32::NAN;
    let inputs = vec![HostTensor::from_slice(shape(&[600]), &odd).unwrap(), ints(&[0])];
    cases.push(Case { op: "Max", attrs: Attrs::new(), inputs });
    cases.extend(super::attention::large());
    cases
}
