//! Pools: which elements of a window get its gradient.

use crate::support::context;
use ferroflow_ir::{Attrs, DType, HostTensor, Shape};
use ferroflow_runtime::execute;

/// The gradients of two elements of one window in three dimensions, as TensorFlow 2.21 gives them.
fn shared(dtype: DType, pair: [f32; 2]) -> Vec<f32> {
    let line = |values: &[f32]| {
        let shape = Shape::new([1, 1, 1, values.len(), 1]).unwrap();
        HostTensor::from_slice(shape, values).unwrap().into()
    };
    let cast = |tensor, from: DType, to: DType| {
        let attrs = Attrs::new().with("SrcT", from).with("DstT", to);
        execute(&context(), "Cast", attrs, &[tensor]).unwrap().remove(0)
    };
    let attrs = || {
        let attrs = Attrs::new().with("T", dtype).with("padding", "VALID");
        attrs.with("ksize", vec![1i64, 1, 1, 2, 1]).with("strides", vec![1i64, 1, 1, 1, 1])
    };
    let x = cast(line(&pair), DType::F32, dtype);
    let y = execute(&context(), "MaxPool3D", attrs(), std::slice::from_ref(&x)).unwrap().remove(0);
    let dy = cast(line(&[1.0]), DType::F32, dtype);
    let attrs = attrs().with("TInput", dtype);
    let dx = execute(&context(), "MaxPool3DGrad", attrs, &[x, y, dy]).unwrap().remove(0);
    cast(dx, dtype, DType::F32).host().unwrap().as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn elements_near_the_largest_of_a_volume_share_its_gradient() {
    for dtype in [DType::F32, DType::BF16] {
        assert_eq!(shared(dtype, [9.9e-6, 0.0]), [1.0, 1.0]);
        assert_eq!(shared(dtype, [1e-5, 0.0]), [1.0, 0.0]);
        assert_eq!(shared(dtype, [2.0, 1.0]), [1.0, 0.0]);
        assert_eq!(shared(dtype, [f32::INFINITY, 1.0]), [0.0, 0.0]);
    }
    assert_eq!(shared(DType::F32, [1.000_009, 1.0]), [1.0, 1.0]);
}
