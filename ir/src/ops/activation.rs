//! Activation functions, and the gradients that TensorFlow has ops for.

use super::sets::*;
use crate::emit::call;
use crate::gradient::{self, Gradient, grads};
use crate::{dtype::DType, expr::Scalar, infer, op::*};

/// `scale · alpha` and `scale` of the scaled exponential linear unit (Klambauer et al. 2017).
const SELU_SCALE_ALPHA: f64 = 1.758_099_340_847_376_8;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

const ACTIVATION: OpDef = OpDef {
    inputs: &[arg("features", "T")],
    outputs: &[arg("activations", "T")],
    attrs: &[ty("T", FLOATS)],
    infer: infer::unchanged,
    ..OpDef::PURE
};

/// A gradient computed from the function's output `y` and the incoming gradient `dy`.
const OF_OUTPUT: OpDef = OpDef {
    inputs: &[arg("y", "T"), arg("dy", "T")],
    outputs: &[arg("z", "T")],
    attrs: &[ty("T", FLOATS_AND_COMPLEX)],
    infer: infer::all_same,
    ..OpDef::PURE
};

/// A gradient computed from the incoming gradient and the activation's input.
const OF_FEATURES: OpDef = OpDef {
    inputs: &[arg("gradients", "T"), arg("features", "T")],
    outputs: &[arg("backprops", "T")],
    attrs: &[ty("T", FLOATS)],
    infer: infer::all_same,
    ..OpDef::PURE
};

/// A gradient computed from the incoming gradient and the activation's output.
const OF_ACTIVATIONS: OpDef =
    OpDef { inputs: &[arg("gradients", "T"), arg("outputs", "T")], ..OF_FEATURES };

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Elu",
        summary: "Exponential linear unit: `x` where positive, else `exp(x) - 1`.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            x.lt(0.0).select(x.expm1(), x)
        }),
        gradient: Gradient::Rule(|b| grads([call("EluGrad", [b.dy(0), b.y(0)])])),
        ..ACTIVATION
    },
    OpDef {
        name: "LeakyRelu",
        summary: "`x` where positive, else `alpha * x`.",
        attrs: &[float_or("alpha", 0.2), ty_or("T", FLOATS, DType::F32)],
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            x.gt(0.0).select(x, x * s.float("alpha"))
        }),
        gradient: Gradient::Rule(|b| grads([b.with_attrs("LeakyReluGrad", [b.dy(0), b.x(0)])])),
        ..ACTIVATION
    },
    OpDef {
        name: "Relu",
        summary: "Rectified linear unit: `max(x, 0)`.",
        attrs: &[ty(
            "T",
            &[
                DType::F32,
                DType::F64,
                DType::I32,
                DType::U8,
                DType::I16,
                DType::I8,
                DType::I64,
                DType::BF16,
                DType::U16,
                DType::F16,
                DType::U32,
                DType::U64,
                DType::QI8,
            ],
        )],
        lowering: Lowering::Elementwise(|s| s.x(0).max(0.0)),
        gradient: Gradient::Rule(|b| grads([call("ReluGrad", [b.dy(0), b.y(0)])])),
        ..ACTIVATION
    },
    OpDef {
        name: "Relu6",
        summary: "`min(max(x, 0), 6)`.",
        attrs: &[ty("T", REALS)],
        lowering: Lowering::Elementwise(|s| s.x(0).max(0.0).min(6.0)),
        gradient: Gradient::Rule(|b| grads([call("Relu6Grad", [b.dy(0), b.y(0)])])),
        ..ACTIVATION
    },
    OpDef {
        name: "Selu",
        summary: "Scaled exponential linear unit (Klambauer et al. 2017).",
        lowering: Lowering::Elementwise(|s| {
            // The gradient asks whether the result is below zero, so that `exp` is rounded as TensorFlow does.
            let x = s.x(0);
            let below = (x.exp().rounded() - 1.0) * x.like(SELU_SCALE_ALPHA).rounded();
            x.lt(0.0).select(below, x * x.like(SELU_SCALE).rounded())
        }),
        gradient: Gradient::Rule(|b| grads([call("SeluGrad", [b.dy(0), b.y(0)])])),
        ..ACTIVATION
    },
    OpDef {
        name: "Softplus",
        summary: "`log(exp(x) + 1)`, without overflow.",
        lowering: Lowering::Elementwise(|s| softplus(s.x(0))),
        gradient: Gradient::Rule(|b| grads([b.dy(0) * b.x(0).sigmoid()])),
        ..ACTIVATION
    },
    OpDef {
        name: "Softsign",
        summary: "`x / (1 + |x|)`.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            x / (x.abs() + 1.0)
        }),
        gradient: Gradient::Rule(|b| grads([call("SoftsignGrad", [b.dy(0), b.x(0)])])),
        ..ACTIVATION
    },
    OpDef {
        name: "EluGrad",
        summary: "Gradient of `Elu` from its output.",
        lowering: Lowering::Elementwise(|s| {
            let (dy, y) = (s.x(0), s.x(1));
            y.lt(0.0).select(dy * (y + 1.0), dy)
        }),
        gradient: Gradient::Rule(gradient::math::elu_grad),
        ..OF_ACTIVATIONS
    },
    OpDef {
        name: "InvGrad",
        summary: "Gradient of `Inv` from its output.",
        lowering: Lowering::Elementwise(|s| {
            let (y, dy) = (conjugate(s.x(0)), s.x(1));
            unless_zero(dy, -(dy * (y * y).rounded()))
        }),
        gradient: Gradient::Rule(gradient::math::reciprocal_grad),
        ..OF_OUTPUT
    },
    OpDef {
        name: "LeakyReluGrad",
        summary: "Gradient of `LeakyRelu` from its input.",
        attrs: &[float_or("alpha", 0.2), ty_or("T", FLOATS, DType::F32)],
        lowering: Lowering::Elementwise(|s| {
            let (dy, x) = (s.x(0), s.x(1));
            x.gt(0.0).select(dy, dy * s.float("alpha"))
        }),
        gradient: Gradient::Rule(gradient::math::piecewise_grad),
        ..OF_FEATURES
    },
    OpDef {
        name: "ReciprocalGrad",
        summary: "Gradient of `Reciprocal` from its output.",
        lowering: Lowering::Elementwise(|s| {
            let (y, dy) = (conjugate(s.x(0)), s.x(1));
            unless_zero(dy, -(dy * (y * y).rounded()))
        }),
        gradient: Gradient::Rule(gradient::math::reciprocal_grad),
        ..OF_OUTPUT
    },
    OpDef {
        name: "Relu6Grad",
        summary: "Gradient of `Relu6` from its input or output.",
        attrs: &[ty("T", REALS)],
        lowering: Lowering::Elementwise(|s| {
            let (dy, x) = (s.x(0), s.x(1));
            dy * x.gt(0.0).and(x.lt(6.0)).cast(dy.dtype())
        }),
        gradient: Gradient::Rule(gradient::math::piecewise_grad),
        ..OF_FEATURES
    },
    OpDef {
        name: "ReluGrad",
        summary: "Gradient of `Relu` from its input or output.",
        attrs: &[ty("T", REALS)],
        lowering: Lowering::Elementwise(|s| s.x(0) * s.x(1).gt(0.0).cast(s.x(0).dtype())),
        gradient: Gradient::Rule(gradient::math::piecewise_grad),
        ..OF_FEATURES
    },
    OpDef {
        name: "RsqrtGrad",
        summary: "Gradient of `Rsqrt` from its output.",
        lowering: Lowering::Elementwise(|s| {
            let (y, dy) = (conjugate(s.x(0)), s.x(1));
            // In this order products overflow, and are not numbers, where they are in TensorFlow.
            let slope = match y.dtype().is_complex() {
                true => y * -0.5 * dy,
                false => (dy * y).rounded() * -0.5,
            };
            unless_zero(dy, slope * (y * y).rounded())
        }),
        gradient: Gradient::Rule(gradient::math::rsqrt_grad),
        ..OF_OUTPUT
    },
    OpDef {
        name: "SeluGrad",
        summary: "Gradient of `Selu` from its output.",
        lowering: Lowering::Elementwise(|s| {
            let (dy, y) = (s.x(0), s.x(1));
            let below = dy * (y + y.like(SELU_SCALE_ALPHA).rounded());
            y.lt(0.0).select(below, dy * y.like(SELU_SCALE).rounded())
        }),
        gradient: Gradient::Rule(gradient::math::selu_grad),
        ..OF_ACTIVATIONS
    },
    OpDef {
        name: "SigmoidGrad",
        summary: "Gradient of `Sigmoid` from its output.",
        lowering: Lowering::Elementwise(|s| {
            let (y, dy) = (s.x(0), s.x(1));
            let gradient = dy * (y * (1.0 - y)).rounded();
            if !y.dtype().is_complex() {
                return gradient;
            }
            // A gradient that is infinite in one part and NaN in the other stays infinite in this
            // order only.
            dy.ne(dy).select(dy * y * (1.0 - y), gradient)
        }),
        gradient: Gradient::Rule(gradient::math::sigmoid_grad),
        ..OF_OUTPUT
    },
    OpDef {
        name: "SoftplusGrad",
        summary: "Gradient of `Softplus` from its input.",
        lowering: Lowering::Elementwise(|s| s.x(0) / ((-s.x(1)).exp() + 1.0)),
        gradient: Gradient::Rule(gradient::math::softplus_grad),
        ..OF_FEATURES
    },
    OpDef {
        name: "SoftsignGrad",
        summary: "Gradient of `Softsign` from its input.",
        lowering: Lowering::Elementwise(|s| s.x(0) / (s.x(1).abs() + 1.0).square()),
        gradient: Gradient::Rule(|b| {
            let (dy, x, ddy) = b.binary();
            let size = x.abs() + 1.0;
            let by_x = call("Sign", [x]) * dy * -2.0 / (size * size.square());
            grads([ddy / size.square(), ddy * by_x])
        }),
        ..OF_FEATURES
    },
    OpDef {
        name: "SqrtGrad",
        summary: "Gradient of `Sqrt` from its output.",
        lowering: Lowering::Elementwise(|s| {
            let (y, dy) = (conjugate(s.x(0)), s.x(1));
            unless_zero(dy, dy.scaled(0.5).rounded() / y)
        }),
        gradient: Gradient::Rule(gradient::math::sqrt_grad),
        ..OF_OUTPUT
    },
    OpDef {
        name: "TanhGrad",
        summary: "Gradient of `Tanh` from its output.",
        lowering: Lowering::Elementwise(|s| s.x(1) * (1.0 - s.x(0).square().rounded())),
        gradient: Gradient::Rule(gradient::math::tanh_grad),
        ..OF_OUTPUT
    },
];

/// A product with a cotangent: 0 where that is 0, even if the other factor is infinite or not a number
/// (TensorFlow's functors of these gradients, `cwise_ops.h`, say so).
fn unless_zero<'s>(dy: Scalar<'s>, product: Scalar<'s>) -> Scalar<'s> {
    dy.eq(0.0).select(dy.like(0.0), product)
}

fn conjugate(x: Scalar<'_>) -> Scalar<'_> {
    if x.dtype().is_complex() { x.conj() } else { x }
}

/// `log(exp(x) + 1)`: beyond the threshold at which adding 1 no longer changes the exponential it
/// is `x` itself, and below its negative the exponential itself.
fn softplus(x: Scalar<'_>) -> Scalar<'_> {
    let epsilon = if x.dtype() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let threshold = epsilon.ln() + 2.0;
    let tail = x.lt(threshold).select(x.exp(), x.exp().log1p());
    x.gt(-threshold).select(x, tail)
}
