//! Calls whose results look for what belongs to them: bins, segments, places of extremes, bounds.

use super::cases::{Case, ints, numbers, on_cpu, shape};
use ferroflow_ir::{Attrs, DType, HostTensor};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = colours();
    let mut add = |op, attrs: Attrs, inputs: Vec<HostTensor>| {
        cases.push(Case { op, attrs, inputs });
    };
    let (none, scalar) = (Attrs::new, HostTensor::scalar::<i32>);
    for dtype in [DType::F32, DType::F16, DType::I32, DType::I64, DType::U8] {
        let x = |dims: &[usize]| numbers(dtype, dims);
        let sorted = super::cases::cast(&ints(&[-4, 0, 0, 3, 9, 9, 9, 14]), dtype);
        let sorted = sorted.reshaped(shape(&[1, 8])).unwrap();
        for op in ["LowerBound", "UpperBound"] {
            add(op, none(), vec![sorted.clone(), x(&[1, 11])]);
        }
        for reverse in [false, true] {
            let attrs = none().with("reverse", reverse);
            add("NthElement", attrs, vec![x(&[3, 7]), scalar(2)]);
        }
        let ids = || ints(&[0, 0, 2, 3, 3]);
        let rows = || ints(&[4, 1, 1, 0, 3]);
        for op in ["Sum", "Mean", "SqrtN"] {
            let op = format!("SparseSegment{op}WithNumSegments");
            let op = ferroflow_ir::registry::find(&op).unwrap().name;
            add(op, none(), vec![x(&[5, 3]), rows(), ids(), scalar(6)]);
        }
        for op in ["_TensorScatterDiv", "_TensorScatterMul", "ScatterNdNonAliasingAdd"] {
            let places = HostTensor::from_slice(shape(&[3, 1]), &[4i32, 1, 4]).unwrap();
            add(
                op,
                none(),
                vec![
                    x(&[5, 2]),
                    places,
                    super::cases::cast(
                        &ints(&[3, 1, 2, 5, 7, 2]).reshaped(shape(&[3, 2])).unwrap(),
                        dtype,
                    ),
                ],
            );
        }
        let pool = |padding: &str| {
            let attrs = none().with("padding", padding).with("strides", vec![1i64, 2, 1, 1]);
            attrs.with("ksize", vec![1i64, 3, 2, 1])
        };
        for padding in ["SAME", "VALID"] {
            let image = x(&[2, 6, 5, 3]);
            for counted in [false, true] {
                let attrs = pool(padding).with("include_batch_in_index", counted);
                add("MaxPoolWithArgmax", attrs, vec![image.clone()]);
            }
            let y = Case { op: "MaxPool", attrs: pool(padding), inputs: vec![image.clone()] };
            let Some(y) = on_cpu(&y).map(|mut y| y.remove(0)) else { continue };
            let inputs = vec![image.clone(), y.clone(), image.clone()];
            add("MaxPoolGradGrad", pool(padding), inputs);
            add("MaxPoolGrad", pool(padding), vec![image, y.clone(), y]);
        }
    }
    for dtype in [DType::F32, DType::F16] {
        let (x, places) = (numbers(dtype, &[4, 3]), ints(&[4, 1, 1, 0, 3]));
        for op in ["SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"] {
            let inputs = vec![x.clone(), places.clone(), ints(&[0, 0, 2, 3, 3]), scalar(5)];
            add(op, none(), inputs);
        }
        let attrs = || {
            let attrs = none().with("padding", "SAME").with("strides", vec![1i64, 2, 1, 2, 1]);
            attrs.with("ksize", vec![1i64, 2, 2, 3, 1])
        };
        let volume = numbers(dtype, &[1, 4, 3, 5, 2]);
        let y = Case { op: "MaxPool3D", attrs: attrs(), inputs: vec![volume.clone()] };
        let y = on_cpu(&y).unwrap().remove(0);
        add("MaxPool3DGrad", attrs(), vec![volume.clone(), y.clone(), y.clone()]);
        add("MaxPool3DGradGrad", attrs(), vec![volume.clone(), y, volume]);
    }
    let near = [1.0f32, 0.999_995, 0.9, 9e-6, 0.0, 1.1e-5];
    let near = HostTensor::from_slice(shape(&[1, 1, 1, 6, 1]), &near).unwrap();
    let pairs = none().with("padding", "VALID").with("strides", vec![1i64; 5]);
    let pairs = pairs.with("ksize", vec![1i64, 1, 1, 2, 1]);
    let y = Case { op: "MaxPool3D", attrs: pairs.clone(), inputs: vec![near.clone()] };
    let y = on_cpu(&y).unwrap().remove(0);
    add("MaxPool3DGrad", pairs, vec![near, y.clone(), y]);
    let counted = ints(&[0, 3, 3, 9, 1, 3]);
    let rows = counted.reshaped(shape(&[2, 3])).unwrap();
    for weights in [numbers(DType::F32, &[6]), numbers(DType::F32, &[0])] {
        add("Bincount", none(), vec![counted.clone(), scalar(5), weights.clone()]);
        add(
            "DenseBincount",
            none().with("binary_output", true),
            vec![counted.clone(), scalar(5), weights],
        );
    }
    add("DenseBincount", none(), vec![rows.clone(), scalar(4), numbers(DType::F32, &[2, 3])]);
    let ends = HostTensor::vector(&[-1.5f32, 5.0]).unwrap();
    add("HistogramFixedWidth", none(), vec![numbers(DType::F32, &[40]), ends, scalar(7)]);
    let boundaries = none().with("boundaries", vec![-1.0f32, 0.5, 0.5, 3.0]);
    for dtype in [DType::F32, DType::I32, DType::I64] {
        add("Bucketize", boundaries.clone(), vec![numbers(dtype, &[20])]);
    }
    let mut scores = numbers(DType::F32, &[4, 5]).as_slice::<f32>().unwrap().to_vec();
    scores[7] = f32::NAN;
    let scores = HostTensor::from_slice(shape(&[4, 5]), &scores).unwrap();
    add("InTopK", none().with("k", 2i64), vec![scores.clone(), ints(&[0, 1, 4, 9])]);
    add("InTopKV2", none(), vec![scores, ints(&[3, 1, -1, 2]), scalar(3)]);
    let grids = none().with("num_bits", 5i64).with("narrow_range", true);
    let fixed = grids.clone().with("min", -1.3f32).with("max", 2.1f32);
    add("FakeQuantWithMinMaxArgs", fixed.clone(), vec![numbers(DType::F32, &[30])]);
    let both = vec![numbers(DType::F32, &[30]), numbers(DType::F32, &[30])];
    add("FakeQuantWithMinMaxArgsGradient", fixed, both);
    for (channels, ends) in [(1, [-1.25f32, 0.0, 0.5]), (3, [-0.7, 0.0, 0.3])] {
        let high = [2.0f32, 0.0, 1.9];
        let dims: &[usize] = if channels == 1 { &[] } else { &[3] };
        let range = |ends: &[f32]| HostTensor::from_slice(shape(dims), &ends[..channels]).unwrap();
        let (min, max) = (range(&ends), range(&high));
        let x = numbers(DType::F32, &[10, 3]);
        let name = if channels == 1 { "" } else { "PerChannel" };
        let op = |tail: &str| {
            let name = format!("FakeQuantWithMinMaxVars{name}{tail}");
            ferroflow_ir::registry::find(&name).unwrap().name
        };
        let inputs = vec![x.clone(), min.clone(), max.clone()];
        add(op(""), grids.clone(), inputs.clone());
        add(op("Gradient"), grids.clone(), [vec![x], inputs].concat());
    }
    let places = ints(&[1, 0, 2, 3]).reshaped(shape(&[2, 2])).unwrap();
    for values in [numbers(DType::I32, &[2]), numbers(DType::I32, &[])] {
        let inputs = vec![places.clone(), ints(&[3, 4]), values, HostTensor::scalar(-7i32)];
        add("SparseToDense", none().with("validate_indices", false), inputs);
    }
    add("InvertPermutation", none(), vec![ints(&[3, 0, 2, 1])]);
    cases
}

fn colours() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::F16] {
        let values: Vec<f32> = (0..24).map(|i| ((i * 7 + 3) % 10) as f32 / 10.0).collect();
        let pixels = HostTensor::from_slice(shape(&[2, 4, 3]), &values).unwrap();
        let pixels = super::cases::cast(&pixels, dtype);
        for op in ["RGBToHSV", "HSVToRGB"] {
            cases.push(Case { op, attrs: Attrs::new(), inputs: vec![pixels.clone()] });
        }
        let negative: Vec<f32> = values.iter().map(|x| x * 1.3 - 0.9).collect();
        let negative = HostTensor::from_slice(shape(&[2, 4, 3]), &negative).unwrap();
        for pixels in [pixels, super::cases::cast(&negative, dtype)] {
            for op in ["AdjustHue", "AdjustSaturation"] {
                let inputs = vec![pixels.clone(), HostTensor::scalar(0.4f32)];
                cases.push(Case { op, attrs: Attrs::new(), inputs });
            }
        }
    }
    let x = [0.01f32, 0.3, 0.5, 1.0, 1.0001, 1.7, 2.0, 3.5, 7.9, 8.1, 40.0, 1e4, 1e-30, 0.999];
    let more = [-0.5f32, -1.5, -3.2, -7.7, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -3.0, 0.0];
    let x = HostTensor::vector(&[&x[..], &more].concat()).unwrap();
    cases.push(Case { op: "Lgamma", attrs: Attrs::new(), inputs: vec![x.clone()] });
    let a = [0.2f32, 1.0, 2.5, 7.5, 9.0, 30.0, 100.0, 0.0, -1.0, f32::INFINITY];
    let x = [0.0f32, 0.1, 0.9, 1.5, 6.0, 9.0, 35.0, 120.0, f32::INFINITY, -1.0];
    let column = HostTensor::from_slice(shape(&[10, 1]), &a).unwrap();
    for op in ["Igamma", "Igammac"] {
        let inputs = vec![column.clone(), HostTensor::vector(&x).unwrap()];
        cases.push(Case { op, attrs: Attrs::new(), inputs });
    }
    let x = HostTensor::from_slice(shape(&[6, 1]), &[1.0f32, 0.5, 1.5, 2.0, 4.0, 11.0]).unwrap();
    let q = HostTensor::vector(&[0.3f32, 1.0, 2.5, 12.0, 0.0, -2.0]).unwrap();
    cases.push(Case { op: "Zeta", attrs: Attrs::new(), inputs: vec![x, q] });
    cases
}
