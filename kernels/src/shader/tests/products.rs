//! Products that libraries of devices make too: each way that factors lie, batches, and convolutions
//! that are products.

use super::cases::{Case, ints, numbers};
use ferroflow_ir::{Attrs, DType, HostTensor};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Numbers around zero, so that sums of many stay small.
fn small(dtype: DType, dims: &[usize]) -> HostTensor {
    let floats: Vec<f32> = (0..dims.iter().product::<usize>())
        .map(|i| ((i * 7 + i / 11) % 17) as f32 / 16.0 - 0.5)
        .collect();
    let shape = super::cases::shape(dims);
    let source = HostTensor::from_slice(shape, &floats).unwrap();
    if dtype == DType::F32 { source } else { super::cases::cast(&source, dtype) }
}

pub(crate) fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |op, attrs: &Attrs, inputs| {
        cases.push(Case { op, attrs: attrs.clone(), inputs });
    };
    for dtype in FLOATS {
        for turned in [[false, false], [true, false], [false, true], [true, true]] {
            let dims = |turned, [r, c]: [usize; 2]| if turned { [c, r] } else { [r, c] };
            let (a, b) = (dims(turned[0], [50, 40]), dims(turned[1], [40, 60]));
            let attrs = Attrs::new().with("transpose_a", turned[0]).with("transpose_b", turned[1]);
            add("MatMul", &attrs, vec![small(dtype, &a), small(dtype, &b)]);
            let attrs = Attrs::new().with("adj_x", turned[0]).with("adj_y", turned[1]);
            for (x, y) in [(&[2, 3][..], &[2, 3][..]), (&[6], &[]), (&[], &[6]), (&[2, 1], &[3])] {
                let (x, y) = ([x, &a].concat(), [y, &b].concat());
                add("BatchMatMulV2", &attrs, vec![small(dtype, &x), small(dtype, &y)]);
            }
        }
    }
    add(
        "MatMul",
        &Attrs::new(),
        vec![small(DType::F32, &[1, 300]), small(DType::F32, &[300, 130])],
    );
    let strides = |n| Attrs::new().with("strides", vec![1i64; n]).with("padding", "SAME");
    let sizes = |dims: &[usize]| ints(&dims.iter().map(|&dim| dim as i32).collect::<Vec<_>>());
    let (x, w, y) = (&[2, 5, 6, 32], &[1, 1, 32, 48], &[2, 5, 6, 48]);
    for dtype in [DType::F32, DType::F16] {
        let [x_, w_, y_] = [&x[..], w, y].map(|dims| small(dtype, dims));
        add("Conv2D", &strides(4), vec![x_.clone(), w_.clone()]);
        add("Conv2DBackpropInput", &strides(4), vec![sizes(x), w_, y_.clone()]);
        add("Conv2DBackpropFilter", &strides(4), vec![x_, sizes(w), y_]);
    }
    let (x, w, y) = (&[1, 3, 4, 5, 24], &[1, 1, 1, 24, 40], &[1, 3, 4, 5, 40]);
    let [x_, w_, y_] = [&x[..], w, y].map(|dims| small(DType::F32, dims));
    add("Conv3D", &strides(5), vec![x_.clone(), w_.clone()]);
    add("Conv3DBackpropInputV2", &strides(5), vec![sizes(x), w_, y_.clone()]);
    add("Conv3DBackpropFilterV2", &strides(5), vec![x_, sizes(w), y_]);
    // No product, though nearly.
    let inputs = vec![numbers(DType::F32, &[2, 5, 6, 32]), numbers(DType::F32, &[1, 1, 16, 48])];
    add("Conv2D", &strides(4), inputs);
    cases
}
