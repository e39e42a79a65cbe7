//! The matrix: calls of every op that has shaders, on every dtype that devices hold.

use crate::{CpuDevice, Device, Io, OpCall, Operand, OperandSpec, Target, Threads};
use ferroflow_ir::{Attrs, DType, HostTensor, Lowering, OpRegistry, Shape, registry};

/// A call with the values of its inputs.
pub(crate) struct Case {
    pub(super) op: &'static str,
    pub(super) attrs: Attrs,
    pub(super) inputs: Vec<HostTensor>,
}

impl Case {
    pub(crate) fn name(&self) -> String {
        let types = self.inputs.iter().map(|x| format!("{}{}", x.dtype(), x.shape()));
        format!("{}({})", self.op, types.collect::<Vec<_>>().join(", "))
    }

    /// Looks at the call as devices see it; `None` where it does not fit the op.
    pub(crate) fn with_call<R>(&self, look: impl FnOnce(&OpCall<'_>) -> R) -> Option<R> {
        let op = registry::find(self.op).unwrap();
        let dtypes: Vec<DType> = self.inputs.iter().map(HostTensor::dtype).collect();
        let attrs = ferroflow_ir::build::infer_attrs(op, self.attrs.clone(), &dtypes);
        let attrs = op.complete_attrs(attrs).ok()?;
        let host = op.host_inputs(&attrs).ok()?;
        // The algorithm of random numbers is the only scalar `int32` that must be known.
        let is_known = |input: &HostTensor| {
            self.op.starts_with("Stateless") && *input == HostTensor::scalar(1i32)
        };
        let spec = |(input, &host): (&HostTensor, &bool)| match host || is_known(input) {
            true => OperandSpec::known(input.clone()),
            false => OperandSpec::new(input.dtype(), input.shape().clone()),
        };
        let specs: Vec<OperandSpec> = self.inputs.iter().zip(&host).map(spec).collect();
        let expr = super::attention::expr(self);
        Some(look(&OpCall::new(op, &attrs, &specs, expr.as_ref()).ok()?))
    }
}

pub(super) fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims.iter().copied()).unwrap()
}

/// Numbers of both signs, some whole, some large.
pub(super) fn numbers(dtype: DType, dims: &[usize]) -> HostTensor {
    let shape = shape(dims);
    let n = shape.num_elements();
    let ints: Vec<i64> = (0..n as i64).map(|i| (i * 7 + 3) % 23 - 6).collect();
    if dtype == DType::Bool {
        return HostTensor::from_bools(shape, &ints.iter().map(|i| i % 3 == 0).collect::<Vec<_>>())
            .unwrap();
    }
    let source = if dtype.is_float() {
        let floats: Vec<f32> = ints.iter().map(|&i| i as f32 * 0.37).collect();
        HostTensor::from_slice(shape, &floats).unwrap()
    } else {
        HostTensor::from_slice(shape, &ints).unwrap()
    };
    if source.dtype() == dtype { source } else { cast(&source, dtype) }
}

pub(super) fn cast(source: &HostTensor, dtype: DType) -> HostTensor {
    let attrs = Attrs::new().with("SrcT", source.dtype()).with("DstT", dtype);
    let case = Case { op: "Cast", attrs, inputs: vec![source.clone()] };
    on_cpu(&case).unwrap().remove(0)
}

pub(super) fn ints(values: &[i32]) -> HostTensor {
    HostTensor::vector(values).unwrap()
}

const DTYPES: &[DType] = &[
    DType::F32,
    DType::I32,
    DType::U32,
    DType::Bool,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::U8,
    DType::I16,
    DType::I8,
    DType::U16,
];

/// A call of every elementwise op on every dtype that it and devices know, with broadcasting where
/// it has two inputs.
fn elementwise() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut ops = OpRegistry::default().implemented();
    ops.sort_by_key(|op| op.name);
    for op in ops {
        if !matches!(op.lowering, Lowering::Elementwise(_)) || op.name.starts_with('_') {
            continue;
        }
        for &dtype in DTYPES {
            let dims: [&[usize]; 3] = [&[3, 1, 5], &[4, 5], &[1]];
            let of = |index: usize, dtype| numbers(dtype, dims[index % 3]);
            let inputs: Vec<HostTensor> = (0..op.inputs.len()).map(|i| of(i, dtype)).collect();
            let attrs = || match op.name {
                "Cast" => Attrs::new().with("DstT", DType::F32),
                "Bitcast" => Attrs::new().with("type", DType::I32),
                _ => Attrs::new(),
            };
            cases.push(Case { op: op.name, attrs: attrs(), inputs: inputs.clone() });
            if let [first, rest @ ..] = &inputs[..]
                && rest.len() == 2
            {
                let first = numbers(DType::Bool, first.shape().dims());
                let inputs = std::iter::once(first).chain(rest.iter().cloned()).collect();
                cases.push(Case { op: op.name, attrs: attrs(), inputs });
            }
        }
    }
    let odd = [f32::NAN, f32::INFINITY, -0.0, 0.0, 1e-40, -1e-45, 3.0, -2.5e9];
    let odd = HostTensor::vector(&odd).unwrap();
    let attrs = Attrs::new().with("DstT", DType::Bool);
    cases.push(Case { op: "Cast", attrs, inputs: vec![odd] });
    let beyond = [-4.1f32, -0.5, 300.7, -300.0, 32768.0, 70000.0, -70000.0, 1e10, -1e10, f32::NAN];
    for &to in DTYPES.iter().filter(|to| to.is_integer()) {
        let attrs = Attrs::new().with("DstT", to);
        cases.push(Case { op: "Cast", attrs, inputs: vec![HostTensor::vector(&beyond).unwrap()] });
    }
    for &from in DTYPES {
        for &to in DTYPES {
            let attrs = Attrs::new().with("DstT", to);
            cases.push(Case { op: "Cast", attrs, inputs: vec![numbers(from, &[2, 20])] });
        }
        let attrs = Attrs::new().with("DstT", DType::U64);
        cases.push(Case { op: "Cast", attrs, inputs: vec![numbers(from, &[7])] });
    }
    cases
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm"] {
        for &dtype in DTYPES {
            for axes in [&[0][..], &[1], &[0, 2], &[0, 1, 2], &[]] {
                let inputs = vec![numbers(dtype, &[2, 3, 4]), ints(axes)];
                cases.push(Case { op, attrs: Attrs::new().with("keep_dims", false), inputs });
            }
        }
        let inputs = vec![numbers(DType::F32, &[3, 333]), ints(&[1])];
        cases.push(Case { op, attrs: Attrs::new(), inputs });
        for (dtype, axes) in [(DType::F32, &[1][..]), (DType::Bool, &[1, 2])] {
            let inputs = vec![numbers(dtype, &[3, 0, 2]), ints(axes)];
            cases.push(Case { op, attrs: Attrs::new(), inputs });
        }
    }
    cases
}

fn others() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |op, attrs: Attrs, inputs: Vec<HostTensor>| {
        cases.push(Case { op, attrs, inputs });
    };
    for &dtype in DTYPES {
        let x = |dims: &[usize]| numbers(dtype, dims);
        let none = Attrs::new;
        add("Transpose", none(), vec![x(&[2, 3, 4]), ints(&[2, 0, 1])]);
        add("Slice", none(), vec![x(&[4, 5]), ints(&[1, 2]), ints(&[2, -1])]);
        let begins = vec![x(&[6, 5]), ints(&[5, 0]), ints(&[0, 5]), ints(&[-2, 2])];
        add("StridedSlice", none(), begins);
        let ends = [ints(&[6, 5]), ints(&[5, 0]), ints(&[0, 5]), ints(&[-2, 2])];
        add("StridedSliceGrad", none(), [&ends[..], &[x(&[3, 3])]].concat());
        let one = none().with("shrink_axis_mask", 1i64).with("begin_mask", 4i64);
        let ends = [ints(&[3, 4, 5]), ints(&[1, 1, 0]), ints(&[2, 3, 5]), ints(&[1, 1, 2])];
        add("StridedSliceGrad", one.clone(), [&ends[..], &[x(&[2, 3])]].concat());
        let update = [&[x(&[3, 4, 5])], &ends[1..], &[x(&[2, 3])]].concat();
        add("TensorStridedSliceUpdate", one, update);
        for (lower, upper) in [(0, -1), (1, 0), (-1, 1)] {
            let inputs = vec![x(&[2, 3, 4]), HostTensor::scalar(lower), HostTensor::scalar(upper)];
            add("MatrixBandPart", none(), inputs);
        }
        add("Split", none().with("num_split", 2i64), vec![HostTensor::scalar(1i32), x(&[3, 4])]);
        add("Tile", none(), vec![x(&[2, 3]), ints(&[2, 2])]);
        add("BroadcastTo", none(), vec![x(&[3, 1]), ints(&[2, 3, 4])]);
        add("ReverseV2", none(), vec![x(&[3, 4]), ints(&[0])]);
        add("ConcatV2", none(), vec![x(&[2, 3]), x(&[2, 1]), HostTensor::scalar(1i32)]);
        add("Pack", none().with("axis", 1i64), vec![x(&[2, 3]), x(&[2, 3])]);
        add("Unpack", none().with("num", 3i64).with("axis", 1i64), vec![x(&[2, 3, 2])]);
        let pads = HostTensor::from_slice(shape(&[2, 2]), &[1i32, 2, 0, 1]).unwrap();
        add("Pad", none(), vec![x(&[2, 3]), pads.clone()]);
        add("PadV2", none(), vec![x(&[2, 3]), pads, x(&[])]);
        add("Fill", none(), vec![ints(&[2, 3]), x(&[])]);
        let indices = HostTensor::from_slice(shape(&[2, 2]), &[2i32, 0, 1, 1]).unwrap();
        add("GatherV2", none(), vec![x(&[3, 4]), indices.clone(), HostTensor::scalar(0i32)]);
        add("GatherV2", none(), vec![x(&[2, 3]), indices.clone(), HostTensor::scalar(1i32)]);
        let batched = none().with("batch_dims", 1i64);
        add("GatherV2", batched, vec![x(&[2, 3, 2]), indices.clone(), HostTensor::scalar(1i32)]);
        add("GatherNd", none(), vec![x(&[3, 2, 2]), indices.clone()]);
        add("OneHot", none(), vec![indices, HostTensor::scalar(3i32), x(&[]), x(&[])]);
        add("ArgMax", none(), vec![x(&[3, 4]), HostTensor::scalar(1i32)]);
        add("ArgMin", none(), vec![x(&[3, 4]), HostTensor::scalar(0i32)]);
        for (a, b, ta, tb) in [
            ([5, 7], [7, 6], false, false),
            ([7, 5], [7, 6], true, false),
            ([5, 7], [6, 7], false, true),
            ([3, 2], [9, 3], true, true),
        ] {
            let attrs = none().with("transpose_a", ta).with("transpose_b", tb);
            add("MatMul", attrs, vec![x(&a), x(&b)]);
        }
        add("BatchMatMulV2", none(), vec![x(&[2, 1, 3, 4]), x(&[3, 4, 5])]);
        add("BatchMatMulV2", none().with("adj_y", true), vec![x(&[2, 3, 4]), x(&[2, 5, 4])]);
        add("Softmax", none(), vec![x(&[3, 7])]);
        add("LogSoftmax", none(), vec![x(&[3, 7])]);
        add("SoftmaxCrossEntropyWithLogits", none(), vec![x(&[3, 4]), x(&[3, 4])]);
        add("SparseSoftmaxCrossEntropyWithLogits", none(), vec![x(&[3, 4]), ints(&[1, 3, 0])]);
    }
    cases
}

/// Convolutions and pools with strides, dilations, groups and paddings.
fn windows() -> Vec<Case> {
    let mut cases = Vec::new();
    for (&dtype, padding) in
        [DType::F32, DType::F16].iter().flat_map(|d| [(d, "SAME"), (d, "VALID")])
    {
        let x = |dims: &[usize]| numbers(dtype, dims);
        let attrs = |strides: [i64; 4], dilations: [i64; 4]| {
            let attrs = Attrs::new().with("padding", padding).with("strides", strides.to_vec());
            attrs.with("dilations", dilations.to_vec())
        };
        for (strides, dilations) in [([1, 1, 1, 1], [1, 1, 1, 1]), ([1, 2, 1, 1], [1, 1, 2, 1])] {
            let kept =
                |op, inputs: Vec<HostTensor>| Case { op, attrs: attrs(strides, dilations), inputs };
            let (image, filter) = ([2, 6, 5, 4], [3, 2, 4, 8]);
            let conv = kept("Conv2D", vec![x(&image), x(&filter)]);
            let dy = on_cpu(&conv).unwrap().remove(0);
            cases.push(conv);
            cases.push(kept("Conv2D", vec![x(&image), x(&[3, 2, 2, 6])]));
            let sizes = |dims: &[usize; 4]| ints(&dims.map(|dim| dim as i32));
            cases.push(kept("Conv2DBackpropInput", vec![sizes(&image), x(&filter), dy.clone()]));
            cases.push(kept("Conv2DBackpropFilter", vec![x(&image), sizes(&filter), dy]));
            let same = [strides[0], strides[1], strides[1], 1];
            let kept = |op, inputs| Case { op, attrs: attrs(same, dilations), inputs };
            let filter = [3, 2, 4, 2];
            let conv = kept("DepthwiseConv2dNative", vec![x(&image), x(&filter)]);
            let dy = on_cpu(&conv).unwrap().remove(0);
            cases.push(conv);
            let name = "DepthwiseConv2dNativeBackpropInput";
            cases.push(kept(name, vec![sizes(&image), x(&filter), dy.clone()]));
            let name = "DepthwiseConv2dNativeBackpropFilter";
            cases.push(kept(name, vec![x(&image), sizes(&filter), dy]));
        }
        let pool = || {
            let attrs = Attrs::new().with("padding", padding).with("strides", vec![1i64, 2, 1, 1]);
            attrs.with("ksize", vec![1i64, 3, 2, 1])
        };
        let image = x(&[2, 6, 5, 3]);
        for op in ["MaxPool", "AvgPool"] {
            cases.push(Case { op, attrs: pool(), inputs: vec![image.clone()] });
        }
        let mut values = vec![1.5f32; 180];
        values.iter_mut().step_by(7).for_each(|x| *x = f32::NAN);
        values[30..120].fill(f32::NAN);
        let odd = cast(&HostTensor::from_slice(shape(&[2, 6, 5, 3]), &values).unwrap(), dtype);
        cases.push(Case { op: "MaxPool", attrs: pool(), inputs: vec![odd] });
        let largest = Case { op: "MaxPool", attrs: pool(), inputs: vec![image.clone()] };
        let y = on_cpu(&largest).unwrap().remove(0);
        let inputs = vec![image.clone(), y.clone(), y.clone()];
        cases.push(Case { op: "MaxPoolGrad", attrs: pool(), inputs });
        let inputs = vec![ints(&[2, 6, 5, 3]), y];
        cases.push(Case { op: "AvgPoolGrad", attrs: pool(), inputs });
    }
    cases
}

/// Scans, sorting, and writing by index.
fn places() -> Vec<Case> {
    let mut cases = Vec::new();
    for &dtype in DTYPES {
        let x = |dims: &[usize]| numbers(dtype, dims);
        let mut add = |op, attrs: Attrs, inputs: Vec<HostTensor>| {
            cases.push(Case { op, attrs, inputs });
        };
        for (exclusive, reverse) in [(false, false), (true, false), (true, true)] {
            let attrs = || Attrs::new().with("exclusive", exclusive).with("reverse", reverse);
            add("Cumsum", attrs(), vec![x(&[3, 4, 2]), HostTensor::scalar(1i32)]);
            add("Cumprod", attrs(), vec![x(&[3, 4]), HostTensor::scalar(-1i32)]);
        }
        for (sorted, k) in [(true, 4), (false, 4), (false, 1), (false, 9)] {
            let attrs = Attrs::new().with("sorted", sorted);
            add("TopKV2", attrs, vec![x(&[2, 9]), HostTensor::scalar(k)]);
        }
        let indices = HostTensor::from_slice(shape(&[3, 1]), &[4i32, 1, 4]).unwrap();
        add("ScatterNd", Attrs::new(), vec![indices.clone(), x(&[3, 2]), ints(&[5, 2])]);
        let none = HostTensor::from_slice(shape(&[0, 1]), &[0i32; 0]).unwrap();
        add("ScatterNd", Attrs::new(), vec![none, x(&[0, 2]), ints(&[5, 2])]);
        let whole = HostTensor::from_slice(shape(&[2, 0]), &[0i32; 0]).unwrap();
        add("ScatterNd", Attrs::new(), vec![whole, x(&[2, 3]), ints(&[3])]);
        for op in ["Update", "Add", "Sub", "Max", "Min"] {
            let op = registry::find(&format!("TensorScatter{op}")).unwrap().name;
            add(op, Attrs::new(), vec![x(&[5, 2]), indices.clone(), x(&[3, 2])]);
        }
        for op in ["Sum", "Prod", "Max", "Min"] {
            let op = registry::find(&format!("UnsortedSegment{op}")).unwrap().name;
            add(op, Attrs::new(), vec![x(&[4, 3]), ints(&[2, -1, 0, 2]), HostTensor::scalar(4i32)]);
        }
    }
    cases
}

/// Numbers of blocks before and after the lower half of the counter overflows.
fn random() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |op, dtype: DType| {
        let key = HostTensor::vector(&[0x1234_5678_9abc_def0u64]).unwrap();
        let counter = HostTensor::vector(&[u64::MAX - 2, 7u64]).unwrap();
        let inputs = vec![ints(&[3, 11]), key, counter, HostTensor::scalar(1i32)];
        cases.push(Case { op, attrs: Attrs::new().with("dtype", dtype), inputs });
    };
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        add("StatelessRandomUniformV2", dtype);
        add("StatelessRandomNormalV2", dtype);
    }
    for dtype in [DType::I32, DType::U32, DType::I64, DType::U64] {
        add("StatelessRandomUniformFullIntV2", dtype);
    }
    for seed in [ints(&[-7, 3]), HostTensor::vector(&[1i64 << 40, -9]).unwrap()] {
        let op = "StatelessRandomGetKeyCounter";
        cases.push(Case { op, attrs: Attrs::new(), inputs: vec![seed] });
    }
    cases
}

/// Images made larger and smaller, in every way that positions correspond.
fn resized() -> Vec<Case> {
    let mut cases = Vec::new();
    for (aligned, centred) in [(false, false), (true, false), (false, true)] {
        for (dtype, size) in [(DType::F32, [7, 3]), (DType::F32, [2, 1]), (DType::U8, [5, 9])] {
            for op in ["ResizeBilinear", "ResizeNearestNeighbor"] {
                let attrs = Attrs::new().with("align_corners", aligned);
                let attrs = attrs.with("half_pixel_centers", centred);
                let inputs = vec![numbers(dtype, &[2, 4, 5, 3]), ints(&size)];
                cases.push(Case { op, attrs, inputs });
            }
        }
    }
    cases
}

pub(super) fn cases() -> Vec<Case> {
    [
        resized(),
        super::attention::small(),
        super::groups::tiled(),
        super::groups::many_and_none(),
        random(),
        elementwise(),
        reductions(),
        others(),
        windows(),
        places(),
        super::moved::cases(),
        super::images::cases(),
        super::sought::cases(),
        super::twins::cases(),
        super::halves::cases(),
        super::products::products(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Result of the CPU's kernel; `None` where it has none, or fails.
pub(super) fn on_cpu(case: &Case) -> Option<Vec<HostTensor>> {
    case.with_call(|call| run_on_cpu(call, &case.inputs))?
}

/// The same of a call and the values of its inputs.
pub(super) fn run_on_cpu(call: &OpCall<'_>, inputs: &[HostTensor]) -> Option<Vec<HostTensor>> {
    let kernel = CpuDevice::new(0).kernel(call).ok()??;
    let zeros = |index: usize| {
        HostTensor::zeros(call.outputs[index].dtype, call.output_shape(index).ok()?).ok()
    };
    let mut outputs: Vec<HostTensor> = (0..call.outputs.len()).map(zeros).collect::<Option<_>>()?;
    let threads = Threads::single();
    let targets = outputs.iter_mut().map(|output| Target::Plain(output.bytes_mut()));
    let operands = inputs.iter().map(Operand::Tensor);
    kernel.run(&mut Io::new(operands, targets, &threads, usize::MAX)).ok()?;
    Some(outputs)
}
