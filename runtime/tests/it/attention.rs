//! Attention: what is recognised, and that it computes the same as the calls it stands for.

use crate::{devices::device, support::*};
use ferroflow_ir::{
    Attrs, DType, HostTensor, Outlet, Result, Shape, ValueType, build::GraphBuilder,
};
use ferroflow_runtime::{CallableFunction, Context, EagerTensor, execute};

/// Layout of heads.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Layout {
    /// `[batch, heads, positions, depth]`.
    Heads,
    /// `[batch, positions, heads, depth]`, which is transposed.
    Positions,
    /// As `Positions`, with scores computed by columns.
    Columns,
}

/// Mask of the scores, besides their scale.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mask {
    None,
    /// A bias of this shape is added.
    Bias(&'static [usize]),
    /// Where a mask of this shape is false, scores are replaced by so much.
    Select(&'static [usize], f32),
    /// As `Select`, and weights there are zeros.
    Keep(&'static [usize], f32),
}

#[derive(Debug, Clone, Copy)]
struct Case {
    layout: Layout,
    mask: Mask,
    dtype: DType,
    batch: usize,
    heads: usize,
    queries: usize,
    keys: usize,
    depth: usize,
    width: usize,
}

/// As small as is still worth a call of its own.
const CASE: Case = Case {
    layout: Layout::Positions,
    mask: Mask::None,
    dtype: DType::F32,
    batch: 2,
    heads: 4,
    queries: 5,
    keys: 7,
    depth: 128,
    width: 6,
};

/// Numbers of no pattern, between -2 and 2.
fn numbers(dims: &[usize], seed: usize) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let n = shape.num_elements();
    let values: Vec<f32> =
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 252.0 - 2.0).collect();
    HostTensor::from_slice(shape, &values).unwrap()
}

/// True for no pattern.
fn truths(dims: &[usize]) -> HostTensor {
    let shape = Shape::new(dims.iter().copied()).unwrap();
    let values: Vec<bool> = (0..shape.num_elements()).map(|i| i * 7 % 5 < 3).collect();
    HostTensor::from_bools(shape, &values).unwrap()
}

impl Case {
    fn dims(&self, positions: usize, depth: usize) -> Vec<usize> {
        match self.layout {
            Layout::Heads => vec![self.batch, self.heads, positions, depth],
            Layout::Positions | Layout::Columns => vec![self.batch, positions, self.heads, depth],
        }
    }

    fn inputs(&self) -> Vec<EagerTensor> {
        let of = |dims: Vec<usize>, seed| cast(&numbers(&dims, seed).into(), self.dtype);
        let mut inputs = vec![
            of(self.dims(self.queries, self.depth), 1),
            of(self.dims(self.keys, self.depth), 2),
            of(self.dims(self.keys, self.width), 3),
        ];
        match self.mask {
            Mask::None => {}
            Mask::Bias(dims) => inputs.push(of(dims.to_vec(), 4)),
            Mask::Select(dims, _) | Mask::Keep(dims, _) => inputs.push(truths(dims).into()),
        }
        inputs
    }

    /// The function; it gives the weights too where these are asked for.
    fn function(&self, with_weights: bool) -> CallableFunction {
        self.function_in(&context(), with_weights)
    }

    fn function_in(&self, context: &Context, with_weights: bool) -> CallableFunction {
        let types: Vec<ValueType> =
            self.inputs().iter().map(|x| ValueType::new(x.dtype(), x.shape())).collect();
        let names = ["query", "key", "value", "mask"];
        let args: Vec<(&str, ValueType)> = names.into_iter().zip(types).collect();
        let def = function("attend", &args, |b, args| {
            let (weights, result) = self.body(b, args)?;
            Ok(if with_weights { vec![result, weights] } else { vec![result] })
        });
        CallableFunction::new(context, def).unwrap()
    }

    fn body(&self, b: &mut GraphBuilder, args: &[Outlet]) -> Result<(Outlet, Outlet)> {
        let transposed = |b: &mut GraphBuilder, x, name: &str, order: [i32; 4]| {
            let order = b.constant(&format!("{name}_order"), HostTensor::vector(&order)?)?;
            Ok::<Outlet, ferroflow_ir::Error>(b.call("Transpose", name, &[x, order])?[0])
        };
        let rows = |b: &mut GraphBuilder, x, name| match self.layout {
            Layout::Heads => Ok(x),
            Layout::Positions | Layout::Columns => transposed(b, x, name, [0, 2, 1, 3]),
        };
        let (query, key) = (rows(b, args[0], "queries")?, rows(b, args[1], "keys")?);
        let value = rows(b, args[2], "values")?;
        let adjoint = Attrs::new().with("adj_y", true);
        let mut scores = match self.layout {
            Layout::Columns => {
                let columns = b.call_with("BatchMatMulV2", "scores", adjoint, &[key, query])?[0];
                transposed(b, columns, "rows", [0, 1, 3, 2])?
            }
            _ => b.call_with("BatchMatMulV2", "scores", adjoint, &[query, key])?[0],
        };
        let number = |b: &mut GraphBuilder, name: &str, value: f32| {
            let one = b.constant(name, HostTensor::scalar(value))?;
            if self.dtype == DType::F32 {
                return Ok(one);
            }
            let attrs = Attrs::new().with("DstT", self.dtype);
            Ok::<Outlet, ferroflow_ir::Error>(
                b.call_with("Cast", &format!("{name}_"), attrs, &[one])?[0],
            )
        };
        let scale = number(b, "scale", 0.5)?;
        scores = b.call("Mul", "scaled", &[scores, scale])?[0];
        scores = match self.mask {
            Mask::None => scores,
            Mask::Bias(_) => b.call("AddV2", "biased", &[scores, args[3]])?[0],
            Mask::Select(_, low) | Mask::Keep(_, low) => {
                let low = number(b, "low", low)?;
                b.call("SelectV2", "masked", &[args[3], scores, low])?[0]
            }
        };
        let weights = b.call("Softmax", "weights", &[scores])?[0];
        let mut used = weights;
        if let Mask::Keep(..) = self.mask {
            let zero = number(b, "zero", 0.0)?;
            used = b.call("SelectV2", "kept", &[args[3], weights, zero])?[0];
        }
        let result = b.call("BatchMatMulV2", "averages", &[used, value])?[0];
        Ok((weights, rows(b, result, "result")?))
    }

    fn check(&self) {
        let inputs = self.inputs();
        let types: Vec<ValueType> =
            inputs.iter().map(|x| ValueType::new(x.dtype(), x.shape())).collect();
        let (fused, plain) = (self.function(false), self.function(true));
        let text = fused.optimized_text(&types).unwrap();
        assert!(text.contains("_FusedAttention"), "{self:?}\n{text}");
        for gone in ["Softmax", "BatchMatMul", "Transpose"] {
            assert!(!text.contains(gone), "{self:?}\n{text}");
        }
        let text = plain.optimized_text(&types).unwrap();
        assert!(text.contains("BatchMatMul") && !text.contains("_FusedAttention"), "{text}");
        let (found, expected) = (call(&fused, &inputs).unwrap(), call(&plain, &inputs).unwrap());
        self.compare(&found[0], &expected[0]);
    }

    fn compare(&self, found: &EagerTensor, expected: &EagerTensor) {
        assert_eq!(found.shape(), expected.shape());
        let tolerance = match self.dtype {
            DType::F32 => 1e-5,
            DType::F16 => 4e-3,
            DType::BF16 => 3e-2,
            _ => 1e-12,
        };
        for (index, (a, b)) in as_f64(found).iter().zip(as_f64(expected)).enumerate() {
            let same = a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (1.0 + b.abs());
            assert!(same, "{self:?}: {a} instead of {b} at {index}");
        }
    }
}

fn cast(x: &EagerTensor, to: DType) -> EagerTensor {
    let attrs = Attrs::new().with("SrcT", x.dtype()).with("DstT", to);
    execute(&context(), "Cast", attrs, std::slice::from_ref(x)).unwrap()[0].clone()
}

fn as_f64(x: &EagerTensor) -> Vec<f64> {
    cast(x, DType::F64).host().unwrap().as_slice::<f64>().unwrap().to_vec()
}

#[test]
fn operands_may_lie_in_any_of_the_usual_orders() {
    for layout in [Layout::Positions, Layout::Columns] {
        Case { layout, ..CASE }.check();
    }
    // Without transpositions there must be more to gain.
    let case = Case { layout: Layout::Heads, queries: 260, keys: 513, depth: 3, width: 2, ..CASE };
    case.check();
    Case { mask: Mask::Keep(&[2, 1, 1, 513], f32::NEG_INFINITY), ..case }.check();
}

#[test]
fn masks_broadcast() {
    let low = f32::NEG_INFINITY;
    for layout in [Layout::Positions, Layout::Columns] {
        for dims in [&[2, 4, 5, 7][..], &[2, 1, 1, 7], &[5, 7], &[7], &[2, 1, 5, 1], &[1], &[]] {
            Case { layout, mask: Mask::Bias(dims), ..CASE }.check();
            Case { layout, mask: Mask::Select(dims, -1e9), ..CASE }.check();
            Case { layout, mask: Mask::Select(dims, low), ..CASE }.check();
            Case { layout, mask: Mask::Keep(dims, -1e9), ..CASE }.check();
            Case { layout, mask: Mask::Keep(dims, low), ..CASE }.check();
        }
    }
}

#[test]
fn blocks_need_not_come_out_even() {
    let sizes =
        [(1, 40, 128), (130, 3, 16), (3, 1100, 5), (129, 513, 5), (300, 100, 5), (128, 512, 3)];
    for (queries, keys, depth) in sizes {
        let case = Case { depth, width: 3, ..CASE };
        for layout in [Layout::Positions, Layout::Columns] {
            Case { layout, queries, keys, ..case }.check();
            // All keys of a half of the batch are masked.
            let mask = Mask::Select(&[2, 1, 1, 1], f32::NEG_INFINITY);
            Case { layout, queries, keys, mask, ..case }.check();
        }
    }
}

#[test]
fn each_dtype_keeps_sums_in_its_own() {
    // Scores are rounded, so they should be small.
    let case = Case { queries: 131, keys: 37, depth: 8, ..CASE };
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        for layout in [Layout::Positions, Layout::Columns] {
            for mask in [
                Mask::None,
                Mask::Keep(&[2, 1, 131, 37], -1e4),
                Mask::Bias(&[2, 1, 1, 37]),
                Mask::Select(&[37], f32::NEG_INFINITY),
            ] {
                Case { dtype, layout, mask, ..case }.check();
            }
        }
    }
}

#[test]
fn devices_decide_for_themselves() {
    let context = context();
    let Some(device) = device(&context) else { return };
    let cases = [
        Case { layout: Layout::Heads, ..CASE },
        Case { mask: Mask::Keep(&[2, 1, 5, 7], -1e9), ..CASE },
        Case {
            layout: Layout::Columns,
            mask: Mask::Bias(&[5, 7]),
            dtype: DType::BF16,
            depth: 8,
            ..CASE
        },
    ];
    for case in cases {
        let (inputs, attend) = (case.inputs(), case.function_in(&context, false));
        let inputs: Vec<&EagerTensor> = inputs.iter().collect();
        let placement = attend.placement(Some(&device), &inputs).unwrap();
        let ops: Vec<&str> = placement.calls.iter().map(|call| &*call.op).collect();
        assert_eq!(ops, ["_FusedAttention"], "{placement}");
        assert!(placement.calls.iter().all(|call| call.device == device.name()), "{placement}");
        let found = attend.call_on(&device, &inputs).unwrap();
        let expected = case.function_in(&context, true).call_refs(&inputs).unwrap();
        case.compare(&found[0], &expected[0]);
    }
    // There is no program for `float64`: the host runs it.
    let case = Case { dtype: DType::F64, ..CASE };
    let inputs = case.inputs();
    let inputs: Vec<&EagerTensor> = inputs.iter().collect();
    let attend = case.function_in(&context, false);
    let placement = attend.placement(Some(&device), &inputs).unwrap();
    assert!(placement.calls.iter().all(|call| call.device != device.name()), "{placement}");
}
