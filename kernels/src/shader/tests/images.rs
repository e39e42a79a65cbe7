//! Calls on images.

use super::cases::{Case, ints, numbers, shape};
use ferroflow_ir::{Attrs, DType, HostTensor};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |op, attrs: Attrs, inputs: Vec<HostTensor>| {
        cases.push(Case { op, attrs, inputs });
    };
    let none = Attrs::new;
    let x = |dims: &[usize]| numbers(DType::F32, dims);
    let boxes = [0.1f32, 0.0, 0.8, 1.0, 0.9, 0.6, -0.2, 0.3, 0.0, 0.0, 1.0, 1.2];
    let boxes = HostTensor::from_slice(shape(&[3, 4]), &boxes).unwrap();
    let of = ints(&[1, 0, 1]);
    for (method, crop) in [("bilinear", [3, 5]), ("nearest", [4, 2]), ("bilinear", [1, 3])] {
        let attrs = || none().with("method", method);
        let inputs = vec![x(&[2, 6, 5, 3]), boxes.clone(), of.clone(), ints(&crop)];
        add("CropAndResize", attrs().with("extrapolation_value", 0.25f32), inputs);
        let dy = x(&[3, crop[0] as usize, crop[1] as usize, 3]);
        let size = ints(&[2, 6, 5, 3]);
        let inputs = vec![dy.clone(), boxes.clone(), of.clone(), size];
        add("CropAndResizeGradImage", attrs().with("T", DType::F32), inputs);
        if method == "bilinear" {
            let inputs = vec![dy, x(&[2, 6, 5, 3]), boxes.clone(), of.clone()];
            add("CropAndResizeGradBoxes", attrs(), inputs);
        }
    }
    for padding in ["SAME", "VALID"] {
        let attrs = none().with("padding", padding).with("strides", vec![1i64, 2, 1, 1]);
        let dilated = attrs.clone().with("rates", vec![1i64, 1, 2, 1]);
        let (image, kernel) = (x(&[2, 6, 7, 3]), x(&[3, 2, 3]));
        let forward = Case {
            op: "Dilation2D",
            attrs: dilated.clone(),
            inputs: vec![image.clone(), kernel.clone()],
        };
        let y = super::cases::on_cpu(&forward).unwrap().remove(0);
        add("Dilation2D", dilated.clone(), vec![image.clone(), kernel.clone()]);
        for op in ["Dilation2DBackpropInput", "Dilation2DBackpropFilter"] {
            add(op, dilated.clone(), vec![image.clone(), kernel.clone(), y.clone()]);
        }
        for dtype in [DType::F32, DType::I32] {
            let attrs = attrs.clone().with("ksizes", vec![1i64, 2, 3, 1]);
            let attrs = attrs.with("rates", vec![1i64, 2, 1, 1]);
            add("ExtractImagePatches", attrs, vec![numbers(dtype, &[2, 6, 7, 2])]);
        }
    }
    for (aligned, centred) in [(false, false), (true, false), (false, true)] {
        let attrs = || none().with("align_corners", aligned);
        let both = || attrs().with("half_pixel_centers", centred);
        for size in [[7, 3], [2, 1]] {
            let dy = x(&[2, size[0] as usize, size[1] as usize, 3]);
            if !centred {
                let inputs = vec![numbers(DType::U8, &[2, 4, 5, 3]), ints(&size)];
                add("ResizeArea", attrs(), inputs);
            }
            add("ResizeBicubic", both(), vec![x(&[2, 4, 5, 3]), ints(&size)]);
            for op in ["ResizeBicubicGrad", "ResizeBilinearGrad"] {
                add(op, both(), vec![dy.clone(), x(&[2, 4, 5, 3])]);
            }
            add("ResizeNearestNeighborGrad", both(), vec![dy, ints(&[4, 5])]);
        }
    }
    let turn = [0.8137f32, -0.3113, 1.2171, 0.4019, 0.9211, -1.7133, 0.0101, -0.0203];
    // Whole steps by quarters, so that nothing is rounded.
    let both = [
        [1.0f32, 0.25, -1.5, 0.0, 1.25, 0.5, 0.0, 0.0],
        [1.5, 0.5, -3.25, -0.25, 1.5, 2.0, 0.0, 0.0],
    ]
    .concat();
    let one = HostTensor::from_slice(shape(&[1, 8]), &turn).unwrap();
    let each = HostTensor::from_slice(shape(&[2, 8]), &both).unwrap();
    for mode in ["CONSTANT", "REFLECT", "WRAP", "NEAREST"] {
        for (way, turns) in [("NEAREST", &one), ("BILINEAR", &each)] {
            let attrs = none().with("fill_mode", mode).with("interpolation", way);
            let image = x(&[2, 5, 6, 3]);
            let mut inputs = vec![image, turns.clone(), ints(&[7, 4])];
            add("ImageProjectiveTransformV2", attrs.clone(), inputs.clone());
            inputs.push(HostTensor::scalar(0.5f32));
            add("ImageProjectiveTransformV3", attrs, inputs);
        }
    }
    for dtype in [DType::F32, DType::F16] {
        let attrs = none().with("depth_radius", 2i64).with("bias", 1.5f32);
        let attrs = attrs.with("alpha", 0.3f32).with("beta", 0.6f32);
        let x = || numbers(dtype, &[1, 2, 3, 7]);
        add("LRN", attrs.clone(), vec![x()]);
        add("LRNGrad", attrs, vec![x(), x(), x()]);
    }
    cases
}
