//! Limits of the reference run: finite numbers of moderate size, and no decision on rounded ones.

use super::program::Head;
use ferroflow::ir::{Attrs, DType, HostTensor};

/// A value may have so many elements.
const MAX_ELEMENTS: usize = 600;

/// Ops whose results are rounded.
const INEXACT: &[&str] = &[
    "AvgPool",
    "Cos",
    "DivNoNan",
    "Elu",
    "Erf",
    "Exp",
    "Expm1",
    "FusedBatchNormV3",
    "L2Loss",
    "Log1p",
    "LogSoftmax",
    "Mean",
    "RealDiv",
    "Reciprocal",
    "Rsqrt",
    "Sigmoid",
    "Sin",
    "Softmax",
    "Softplus",
    "Sqrt",
    "Tanh",
];

/// Ops whose results jump: they take exact numbers only, as rounding would decide otherwise.
const DISCRETE: &[&str] = &[
    "ArgMax",
    "ArgMin",
    "AsString",
    "Equal",
    "Floor",
    "FloorDiv",
    "FloorMod",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "MaxPool",
    "NotEqual",
    "Round",
    "Sign",
    "TopKV2",
    "Unique",
    "UniqueWithCounts",
    "Where",
];

/// Ops whose gradients jump.
const KINKED: &[&str] = &[
    "Abs",
    "ClipByValue",
    "Max",
    "Maximum",
    "Min",
    "Minimum",
    "Relu",
    "Relu6",
    "LeakyRelu",
    "UnsortedSegmentMax",
    "SegmentMax",
    "MirrorPad",
];

/// Whether an op rounds.
pub(super) fn is_inexact(head: &Head) -> bool {
    matches!(head, Head::Op(name, _) if INEXACT.contains(name))
}

/// Whether a statement may not take rounded numbers.
pub(super) fn is_discrete(head: &Head, in_gradient: bool) -> bool {
    let Head::Op(name, attrs) = head else { return matches!(head, Head::Custom(_)) };
    DISCRETE.contains(name)
        || in_gradient && KINKED.contains(name)
        || *name == "Cast" && !to(attrs).is_some_and(DType::is_float)
}

/// The size beyond which the slope of a function, computed from its value, is made of the rounding of
/// this value: the value is nearly 1.
pub(super) fn saturation(head: &Head) -> Option<f64> {
    match head {
        Head::Op("Tanh", _) => Some(5.0),
        Head::Op("Sigmoid", _) => Some(10.0),
        _ => None,
    }
}

/// Whether some element is larger than this, with either sign.
pub(super) fn exceeds(value: &HostTensor, most: f64) -> bool {
    match value.dtype() {
        DType::F32 => {
            value.as_slice::<f32>().is_ok_and(|v| v.iter().any(|x| f64::from(x.abs()) > most))
        }
        DType::F64 => value.as_slice::<f64>().is_ok_and(|v| v.iter().any(|x| x.abs() > most)),
        _ => false,
    }
}

fn to(attrs: &Attrs) -> Option<DType> {
    attrs.dtype("DstT").ok()
}

/// Whether all numbers are multiples of 1/8 of small size, so that sums of products are exact.
/// `None` if the value is out of bounds.
pub(super) fn exactness(value: &HostTensor) -> Option<bool> {
    if value.len() > MAX_ELEMENTS || value.shape().rank() > 6 {
        return None;
    }
    match value.dtype() {
        DType::F32 => floats(value.as_slice::<f32>().ok()?.iter().map(|&x| f64::from(x))),
        DType::F64 => floats(value.as_slice::<f64>().ok()?.iter().copied()),
        DType::I32 => {
            let all = value.as_slice::<i32>().ok()?;
            all.iter().all(|x| x.unsigned_abs() <= 1_000_000).then_some(true)
        }
        DType::I64 => {
            let all = value.as_slice::<i64>().ok()?;
            all.iter().all(|x| x.unsigned_abs() <= 1_000_000).then_some(true)
        }
        DType::String => value.strings().ok()?.iter().all(|s| s.len() <= 60).then_some(true),
        _ => Some(true),
    }
}

fn floats(values: impl Iterator<Item = f64>) -> Option<bool> {
    let mut is_exact = true;
    for value in values {
        if !value.is_finite() || value.abs() > 1000.0 {
            return None;
        }
        is_exact &= value.abs() <= 128.0 && (value * 8.0).fract() == 0.0;
    }
    Some(is_exact)
}
