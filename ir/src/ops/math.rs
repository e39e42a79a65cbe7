//! Elementwise arithmetic: functions, operators, comparisons.
//!
//! Formulas are mathematics; edge cases follow TensorFlow's `cwise_ops`.

use super::sets::*;
use crate::emit::call;
use crate::gradient::{self, Gradient, grads};
use crate::{
    dtype::DType,
    emit::Value,
    error::{Code, Error, Result},
    expr::{Scalar, Scalars},
    host_tensor::HostTensor,
    infer::{self, OpContext},
    op::*,
    shape::{PartialShape, Shape},
    xla::total,
};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2};

/// A function of one argument.
pub(super) const FUNCTION: OpDef = OpDef {
    inputs: &[arg("x", "T")],
    outputs: &[arg("y", "T")],
    attrs: &[ty("T", FLOATS_AND_COMPLEX)],
    infer: infer::unchanged,
    ..OpDef::PURE
};

/// A yes-or-no question about one argument.
const TEST: OpDef =
    OpDef { outputs: &[arg_of("y", DType::Bool)], attrs: &[ty("T", FLOATS)], ..FUNCTION };

/// An operator on two arguments that broadcast.
const OPERATOR: OpDef = OpDef {
    inputs: &[arg("x", "T"), arg("y", "T")],
    outputs: &[arg("z", "T")],
    attrs: &[ty("T", ARITHMETIC)],
    infer: infer::broadcast,
    ..OpDef::PURE
};

/// A yes-or-no question about two arguments.
const COMPARISON: OpDef =
    OpDef { outputs: &[arg_of("z", DType::Bool)], attrs: &[ty("T", REALS)], ..OPERATOR };

/// An operator on bools.
const LOGICAL: OpDef = OpDef {
    inputs: &[arg_of("x", DType::Bool), arg_of("y", DType::Bool)],
    attrs: &[],
    ..COMPARISON
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Abs",
        summary: "Computes the absolute value.",
        attrs: &[ty(
            "T",
            &[
                DType::BF16,
                DType::F16,
                DType::F32,
                DType::F64,
                DType::I8,
                DType::I16,
                DType::I32,
                DType::I64,
            ],
        )],
        lowering: Lowering::Elementwise(|s| s.x(0).abs()),
        gradient: Gradient::Rule(|b| b.times(call("Sign", [b.x(0)]))),
        ..FUNCTION
    },
    OpDef {
        name: "Acos",
        summary: "Computes the inverse cosine.",
        lowering: Lowering::Elementwise(|s| s.x(0).acos()),
        gradient: Gradient::Rule(|b| b.times(-gradient::math::arc_slope(b.x(0)))),
        domain: Some((-0.9, 0.9)),
        ..FUNCTION
    },
    OpDef {
        name: "Acosh",
        summary: "Computes the inverse hyperbolic cosine.",
        lowering: Lowering::Elementwise(|s| s.x(0).acosh()),
        gradient: Gradient::Rule(|b| b.times(call("Reciprocal", [call("Sinh", [b.y(0)])]))),
        domain: Some((1.2, 2.4)),
        ..FUNCTION
    },
    OpDef {
        name: "Angle",
        summary: "Computes the argument of complex numbers, in radians.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "Tout")],
        attrs: &[ty_or("T", COMPLEX, DType::C64), ty_or("Tout", F32_F64, DType::F32)],
        lowering: Lowering::Elementwise(|s| s.x(0).imag().atan2(s.x(0).real())),
        gradient: Gradient::Rule(gradient::math::angle),
        ..FUNCTION
    },
    OpDef {
        name: "Asin",
        summary: "Computes the inverse sine.",
        lowering: Lowering::Elementwise(|s| s.x(0).asin()),
        gradient: Gradient::Rule(|b| b.times(gradient::math::arc_slope(b.x(0)))),
        domain: Some((-0.9, 0.9)),
        ..FUNCTION
    },
    OpDef {
        name: "Asinh",
        summary: "Computes the inverse hyperbolic sine.",
        lowering: Lowering::Elementwise(|s| s.x(0).asinh()),
        gradient: Gradient::Rule(|b| b.times(call("Reciprocal", [call("Cosh", [b.y(0)])]))),
        ..FUNCTION
    },
    OpDef {
        name: "Atan",
        summary: "Computes the inverse tangent.",
        lowering: Lowering::Elementwise(|s| s.x(0).atan()),
        gradient: Gradient::Rule(|b| b.times(call("Reciprocal", [b.x(0).square() + 1.0]))),
        ..FUNCTION
    },
    OpDef {
        name: "Atanh",
        summary: "Computes the inverse hyperbolic tangent.",
        lowering: Lowering::Elementwise(|s| s.x(0).atanh()),
        gradient: Gradient::Rule(|b| b.times(call("Reciprocal", [1.0 - b.x(0).square()]))),
        domain: Some((-0.9, 0.9)),
        ..FUNCTION
    },
    OpDef {
        name: "Bitcast",
        summary: "Reads the bytes of elements as elements of another dtype.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "type")],
        attrs: &[ty("T", NUMBERS), ty("type", NUMBERS)],
        infer: bitcast,
        lowering: Lowering::Alias(AliasKind::Reinterpret),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "Cast",
        summary: "Converts elements to another dtype.",
        inputs: &[arg("x", "SrcT")],
        outputs: &[arg("y", "DstT")],
        attrs: &[any_ty("SrcT"), any_ty("DstT"), flag("Truncate", false)],
        lowering: Lowering::Elementwise(cast),
        gradient: Gradient::Rule(gradient::array::cast),
        compiled: XlaFormula::Of(total::cast),
        ..FUNCTION
    },
    OpDef {
        name: "Ceil",
        summary: "Rounds up to an integer.",
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(|s| s.x(0).ceil()),
        gradient: Gradient::Zero,
        ..FUNCTION
    },
    OpDef {
        name: "CheckNumerics",
        summary: "Passes a tensor on; NaN or infinity in it is an error.",
        inputs: &[arg("tensor", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", FLOATS), string("message")],
        infer: infer::unchanged,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        gradient: Gradient::Rule(|b| grads([b.with_attrs(b.op.name, [b.dy(0)])])),
        compiled: XlaFormula::Of(total::unchecked),
        sharding: Some(ShardingRule::Unchanged),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "CheckNumericsV2",
        summary: "Passes a tensor on; NaN or infinity in it is an error, which tells their signs.",
        inputs: &[arg("tensor", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", FLOATS), string("message")],
        infer: infer::unchanged,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        gradient: Gradient::Rule(|b| grads([b.with_attrs(b.op.name, [b.dy(0)])])),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "Complex",
        summary: "Makes complex numbers of real and imaginary parts.",
        inputs: &[arg("real", "T"), arg("imag", "T")],
        outputs: &[arg("out", "Tout")],
        attrs: &[ty_or("T", F32_F64, DType::F32), ty_or("Tout", COMPLEX, DType::C64)],
        lowering: Lowering::Elementwise(|s| s.complex(s.x(0), s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::parts),
        ..OPERATOR
    },
    OpDef {
        name: "ComplexAbs",
        summary: "Computes the magnitude of complex numbers.",
        outputs: &[arg("y", "Tout")],
        attrs: &[ty_or("T", COMPLEX, DType::C64), ty_or("Tout", F32_F64, DType::F32)],
        lowering: Lowering::Elementwise(|s| s.x(0).abs()),
        gradient: Gradient::Rule(gradient::math::complex_abs),
        ..FUNCTION
    },
    OpDef {
        name: "Conj",
        summary: "Computes the complex conjugate.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty_or("T", &[DType::C64, DType::C128, DType::Variant], DType::C64)],
        lowering: Lowering::Elementwise(|s| s.x(0).conj()),
        gradient: Gradient::Rule(|b| grads([b.dy(0).adjoint()])),
        ..FUNCTION
    },
    OpDef {
        name: "Cos",
        summary: "Computes the cosine of radians.",
        lowering: Lowering::Elementwise(|s| s.x(0).cos()),
        gradient: Gradient::Rule(|b| grads([-b.dy(0) * call("Sin", [b.x(0).adjoint()])])),
        ..FUNCTION
    },
    OpDef {
        name: "Cosh",
        summary: "Computes the hyperbolic cosine.",
        lowering: Lowering::Elementwise(|s| s.x(0).cosh()),
        gradient: Gradient::Rule(|b| b.times(call("Sinh", [b.x(0)]))),
        ..FUNCTION
    },
    OpDef {
        name: "Erf",
        summary: "Computes the error function.",
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(|s| erf(s.x(0))),
        gradient: Gradient::Rule(|b| b.times((-b.x(0).square()).exp() * FRAC_2_SQRT_PI)),
        ..FUNCTION
    },
    OpDef {
        name: "Erfc",
        summary: "Computes the complementary error function, `1 - erf(x)`.",
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(|s| s.x(0).erfc()),
        gradient: Gradient::Rule(|b| b.times((-b.x(0).square()).exp() * -FRAC_2_SQRT_PI)),
        ..FUNCTION
    },
    OpDef {
        name: "Exp",
        summary: "Computes the exponential function.",
        lowering: Lowering::Elementwise(|s| s.x(0).exp()),
        gradient: Gradient::Rule(|b| b.times(b.y(0))),
        ..FUNCTION
    },
    OpDef {
        name: "Expm1",
        summary: "Computes `exp(x) - 1`, exact near 0.",
        lowering: Lowering::Elementwise(|s| s.x(0).expm1()),
        gradient: Gradient::Rule(|b| b.times(b.x(0).exp())),
        ..FUNCTION
    },
    OpDef {
        name: "Floor",
        summary: "Rounds down to an integer.",
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(|s| s.x(0).floor()),
        gradient: Gradient::Zero,
        ..FUNCTION
    },
    OpDef {
        name: "Imag",
        summary: "Takes the imaginary part.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "Tout")],
        attrs: &[ty_or("T", COMPLEX, DType::C64), ty_or("Tout", F32_F64, DType::F32)],
        lowering: Lowering::Elementwise(|s| s.x(0).imag()),
        gradient: Gradient::Rule(gradient::math::from_imag),
        ..FUNCTION
    },
    OpDef {
        name: "Inv",
        summary: "Computes `1 / x`; the older name of `Reciprocal`.",
        attrs: &[ty("T", NEGATABLE)],
        lowering: Lowering::Elementwise(|s| reciprocal(s.x(0))),
        compiled: XlaFormula::Of(total::reciprocal),
        gradient: Gradient::Rule(|b| grads([call("ReciprocalGrad", [b.y(0), b.dy(0)])])),
        domain: Some((0.5, 1.5)),
        ..FUNCTION
    },
    OpDef {
        name: "Invert",
        summary: "Complements the bits.",
        attrs: &[ty("T", INTS)],
        lowering: Lowering::Elementwise(|s| s.x(0).not()),
        ..FUNCTION
    },
    OpDef {
        name: "IsFinite",
        summary: "Tells which elements are neither NaN nor infinite.",
        lowering: Lowering::Elementwise(|s| s.x(0).is_finite()),
        ..TEST
    },
    OpDef {
        name: "IsInf",
        summary: "Tells which elements are infinite.",
        lowering: Lowering::Elementwise(|s| s.x(0).is_inf()),
        ..TEST
    },
    OpDef {
        name: "IsNan",
        summary: "Tells which elements are NaN.",
        lowering: Lowering::Elementwise(|s| s.x(0).is_nan()),
        ..TEST
    },
    OpDef {
        name: "Lgamma",
        summary: "Computes the logarithm of the absolute value of the gamma function.",
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(|s| lgamma(s.x(0))),
        gradient: Gradient::Rule(|b| b.times(call("Digamma", [b.x(0)]))),
        domain: Some((1.2, 2.4)),
        ..FUNCTION
    },
    OpDef {
        name: "Log",
        summary: "Computes the natural logarithm.",
        lowering: Lowering::Elementwise(|s| s.x(0).log()),
        gradient: Gradient::Rule(|b| b.times(call("Reciprocal", [b.x(0)]))),
        domain: Some((0.5, 1.5)),
        ..FUNCTION
    },
    OpDef {
        name: "Log1p",
        summary: "Computes `log(1 + x)`, exact near 0.",
        lowering: Lowering::Elementwise(|s| s.x(0).log1p()),
        gradient: Gradient::Rule(|b| b.times(call("Reciprocal", [b.x(0) + 1.0]))),
        domain: Some((0.5, 1.5)),
        ..FUNCTION
    },
    OpDef {
        name: "LogicalNot",
        summary: "Negates truth values.",
        inputs: &[arg_of("x", DType::Bool)],
        attrs: &[],
        lowering: Lowering::Elementwise(|s| s.x(0).not()),
        ..TEST
    },
    OpDef {
        name: "Neg",
        summary: "Negates.",
        attrs: &[ty("T", NEGATABLE)],
        lowering: Lowering::Elementwise(|s| -s.x(0)),
        gradient: Gradient::Rule(|b| grads([-b.dy(0)])),
        ..FUNCTION
    },
    OpDef {
        name: "OnesLike",
        summary: "Makes a tensor of ones of the shape of another.",
        attrs: &[ty(
            "T",
            &[
                DType::BF16,
                DType::F16,
                DType::F32,
                DType::F64,
                DType::I8,
                DType::U8,
                DType::I16,
                DType::U16,
                DType::I32,
                DType::U32,
                DType::I64,
                DType::U64,
                DType::C64,
                DType::C128,
                DType::Bool,
            ],
        )],
        lowering: Lowering::Composite(|c| {
            let one = c.scalar(1i32).cast(c.dtype(0));
            vec![one.broadcast_to(&c.x(0).shape().to_i64())]
        }),
        gradient: Gradient::Zero,
        ..FUNCTION
    },
    OpDef {
        name: "PopulationCount",
        summary: "Counts the one bits of each element.",
        outputs: &[arg_of("y", DType::U8)],
        attrs: &[ty("T", INTS)],
        lowering: Lowering::Elementwise(|s| s.x(0).pop_count()),
        ..FUNCTION
    },
    OpDef {
        name: "Real",
        summary: "Takes the real part.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "Tout")],
        attrs: &[ty_or("T", COMPLEX, DType::C64), ty_or("Tout", F32_F64, DType::F32)],
        lowering: Lowering::Elementwise(|s| s.x(0).real()),
        gradient: Gradient::Rule(gradient::math::from_real),
        ..FUNCTION
    },
    OpDef {
        name: "Reciprocal",
        summary: "Computes `1 / x`.",
        attrs: &[ty("T", NEGATABLE)],
        lowering: Lowering::Elementwise(|s| reciprocal(s.x(0))),
        compiled: XlaFormula::Of(total::reciprocal),
        gradient: Gradient::Rule(|b| grads([call("ReciprocalGrad", [b.y(0), b.dy(0)])])),
        domain: Some((0.5, 1.5)),
        ..FUNCTION
    },
    OpDef {
        name: "Rint",
        summary: "Rounds to the nearest integer, halves to even.",
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(|s| s.x(0).rint()),
        gradient: Gradient::Zero,
        ..FUNCTION
    },
    OpDef {
        name: "Round",
        summary: "Rounds to the nearest integer, halves to even; integers stay.",
        attrs: &[ty("T", NEGATABLE)],
        lowering: Lowering::Elementwise(|s| round(s.x(0))),
        gradient: Gradient::Zero,
        ..FUNCTION
    },
    OpDef {
        name: "Rsqrt",
        summary: "Computes `1 / sqrt(x)`.",
        lowering: Lowering::Elementwise(|s| s.x(0).rsqrt()),
        compiled: XlaFormula::Of(total::rsqrt),
        gradient: Gradient::Rule(|b| grads([call("RsqrtGrad", [b.y(0), b.dy(0)])])),
        domain: Some((0.5, 1.5)),
        ..FUNCTION
    },
    OpDef {
        name: "Sigmoid",
        summary: "Computes the logistic function `1 / (1 + exp(-x))`.",
        lowering: Lowering::Elementwise(|s| sigmoid(s.x(0))),
        gradient: Gradient::Rule(|b| grads([call("SigmoidGrad", [b.y(0).adjoint(), b.dy(0)])])),
        ..FUNCTION
    },
    OpDef {
        name: "Sign",
        summary: "Computes the sign: -1, 0 or 1, and `x / |x|` for complex numbers.",
        attrs: &[ty("T", NEGATABLE)],
        lowering: Lowering::Elementwise(|s| s.x(0).sign()),
        gradient: Gradient::Rule(gradient::math::sign),
        ..FUNCTION
    },
    OpDef {
        name: "Sin",
        summary: "Computes the sine of radians.",
        lowering: Lowering::Elementwise(|s| s.x(0).sin()),
        gradient: Gradient::Rule(|b| b.times(call("Cos", [b.x(0)]))),
        ..FUNCTION
    },
    OpDef {
        name: "Sinh",
        summary: "Computes the hyperbolic sine.",
        lowering: Lowering::Elementwise(|s| s.x(0).sinh()),
        gradient: Gradient::Rule(|b| b.times(call("Cosh", [b.x(0)]))),
        ..FUNCTION
    },
    OpDef {
        name: "Sqrt",
        summary: "Computes the square root.",
        lowering: Lowering::Elementwise(|s| s.x(0).sqrt()),
        gradient: Gradient::Rule(|b| grads([call("SqrtGrad", [b.y(0), b.dy(0)])])),
        domain: Some((0.5, 1.5)),
        ..FUNCTION
    },
    OpDef {
        name: "Square",
        summary: "Computes `x * x`.",
        attrs: &[ty("T", ARITHMETIC)],
        lowering: Lowering::Elementwise(|s| s.x(0).square()),
        gradient: Gradient::Rule(|b| b.times(2.0 * b.x(0))),
        ..FUNCTION
    },
    OpDef {
        name: "Tan",
        summary: "Computes the tangent of radians.",
        lowering: Lowering::Elementwise(|s| s.x(0).tan()),
        gradient: Gradient::Rule(|b| b.times(call("Reciprocal", [call("Cos", [b.x(0)])]).square())),
        domain: Some((-0.9, 0.9)),
        ..FUNCTION
    },
    OpDef {
        name: "Tanh",
        summary: "Computes the hyperbolic tangent.",
        lowering: Lowering::Elementwise(|s| s.x(0).tanh()),
        gradient: Gradient::Rule(|b| grads([call("TanhGrad", [b.y(0).adjoint(), b.dy(0)])])),
        ..FUNCTION
    },
    OpDef {
        name: "ZerosLike",
        summary: "Makes a tensor of zeros, or of empty strings, of the shape of another.",
        attrs: &[any_ty("T")],
        on_variants: Some("_VariantZerosLike"),
        lowering: Lowering::Composite(|c| {
            let zero = c.constant(HostTensor::zeros(c.dtype(0), Shape::scalar()));
            vec![zero.broadcast_to(&c.x(0).shape().to_i64())]
        }),
        gradient: Gradient::Zero,
        ..FUNCTION
    },
    OpDef {
        name: "Add",
        summary: "Adds; concatenates strings.",
        attrs: &[ty(
            "T",
            &[
                DType::BF16,
                DType::F16,
                DType::F32,
                DType::F64,
                DType::U8,
                DType::I8,
                DType::I16,
                DType::I32,
                DType::I64,
                DType::C64,
                DType::C128,
                DType::String,
            ],
        )],
        lowering: Lowering::Elementwise(|s| s.x(0) + s.x(1)),
        gradient: Gradient::Broadcast(|b| grads([b.dy(0), b.dy(0)])),
        ..OPERATOR
    },
    OpDef {
        name: "AddN",
        summary: "Adds any number of tensors of one shape.",
        inputs: &[args("inputs", "N", "T")],
        outputs: &[arg("sum", "T")],
        attrs: &[
            int("N").at_least(1),
            ty(
                "T",
                &[
                    DType::F32,
                    DType::F64,
                    DType::I32,
                    DType::U8,
                    DType::I16,
                    DType::I8,
                    DType::C64,
                    DType::I64,
                    DType::QI8,
                    DType::QU8,
                    DType::QI32,
                    DType::BF16,
                    DType::QI16,
                    DType::QU16,
                    DType::U16,
                    DType::C128,
                    DType::F16,
                    DType::U32,
                    DType::U64,
                    DType::Variant,
                ],
            ),
        ],
        infer: infer::all_same,
        on_variants: Some("_AddVariants"),
        lowering: Lowering::Elementwise(sum),
        gradient: Gradient::Rule(|b| b.xs().iter().map(|_| Some(b.dy(0).into())).collect()),
        ..OPERATOR
    },
    OpDef {
        name: "AddV2",
        summary: "Adds.",
        lowering: Lowering::Elementwise(|s| s.x(0) + s.x(1)),
        gradient: Gradient::Broadcast(|b| grads([b.dy(0), b.dy(0)])),
        ..OPERATOR
    },
    OpDef {
        name: "ApproximateEqual",
        summary: "Tells where two tensors of one shape differ by no more than `tolerance`.",
        attrs: &[ty("T", NUMBERS), float_or("tolerance", 1e-05)],
        infer: infer::all_same,
        lowering: Lowering::Elementwise(|s| {
            let tolerance = s.float("tolerance");
            let distance = s.x(0).max(s.x(1)) - s.x(0).min(s.x(1));
            distance.le(distance.like(tolerance))
        }),
        ..COMPARISON
    },
    OpDef {
        name: "Atan2",
        summary: "Computes the angle of the point `(x, y)`, in radians.",
        inputs: &[arg("y", "T"), arg("x", "T")],
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(atan2),
        gradient: Gradient::Broadcast(gradient::math::atan2),
        ..OPERATOR
    },
    OpDef {
        name: "BitwiseAnd",
        summary: "Computes the and of bits.",
        attrs: &[ty("T", INTS)],
        lowering: Lowering::Elementwise(|s| s.x(0).and(s.x(1))),
        ..OPERATOR
    },
    OpDef {
        name: "BitwiseOr",
        summary: "Computes the or of bits.",
        attrs: &[ty("T", INTS)],
        lowering: Lowering::Elementwise(|s| s.x(0).or(s.x(1))),
        ..OPERATOR
    },
    OpDef {
        name: "BitwiseXor",
        summary: "Computes the exclusive or of bits.",
        attrs: &[ty("T", INTS)],
        lowering: Lowering::Elementwise(|s| s.x(0).xor(s.x(1))),
        ..OPERATOR
    },
    OpDef {
        name: "ClipByValue",
        summary: "Limits elements to the range from `clip_value_min` to `clip_value_max`.",
        inputs: &[arg("t", "T"), arg("clip_value_min", "T"), arg("clip_value_max", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", NUMBERS)],
        infer: clip,
        lowering: Lowering::Elementwise(|s| s.x(0).min(s.x(2)).max(s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::clip),
        ..OPERATOR
    },
    OpDef {
        name: "Div",
        summary: "Divides; integers round towards zero.",
        lowering: Lowering::Elementwise(|s| divide(s.x(0), s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::quotient),
        compiled: XlaFormula::Of(total::quotient),
        ..OPERATOR
    },
    OpDef {
        name: "DivNoNan",
        summary: "Divides; 0 where the divisor is 0.",
        attrs: &[ty("T", FLOATS_AND_COMPLEX)],
        lowering: Lowering::Elementwise(|s| {
            let (x, y) = (s.x(0), s.x(1));
            y.eq(0.0).select(x.like(0.0), x / y)
        }),
        gradient: Gradient::Broadcast(gradient::math::quotient_no_nan),
        ..OPERATOR
    },
    OpDef {
        name: "Cross",
        summary: "Computes the vector product of vectors of three elements.",
        inputs: &[arg("a", "T"), arg("b", "T")],
        outputs: &[arg("product", "T")],
        attrs: &[ty("T", REALS)],
        infer: cross,
        lowering: Lowering::Composite(|c| vec![cross_product(c.x(0), c.x(1))]),
        gradient: Gradient::Rule(|b| {
            grads([call("Cross", [b.x(1), b.dy(0)]), call("Cross", [b.dy(0), b.x(0)])])
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "Equal",
        summary: "Tells where elements are equal.",
        attrs: &[any_ty("T"), flag("incompatible_shape_error", true)],
        infer: equality,
        lowering: Lowering::Elementwise(|s| s.x(0).eq(s.x(1))),
        ..COMPARISON
    },
    OpDef {
        name: "FloorDiv",
        summary: "Divides and rounds down.",
        lowering: Lowering::Elementwise(floor_div),
        gradient: Gradient::Zero,
        compiled: XlaFormula::Of(total::floor_quotient),
        ..OPERATOR
    },
    OpDef {
        name: "FloorMod",
        summary: "Computes the remainder of division rounded down: it has the sign of the divisor.",
        attrs: &[ty("T", REALS)],
        lowering: Lowering::Elementwise(|s| s.x(0).floor_mod(s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::floor_mod),
        compiled: XlaFormula::Of(total::remainder),
        ..OPERATOR
    },
    OpDef {
        name: "Greater",
        summary: "Tells where `x > y`.",
        lowering: Lowering::Elementwise(|s| s.x(0).gt(s.x(1))),
        ..COMPARISON
    },
    OpDef {
        name: "GreaterEqual",
        summary: "Tells where `x >= y`.",
        lowering: Lowering::Elementwise(|s| s.x(0).ge(s.x(1))),
        ..COMPARISON
    },
    OpDef {
        name: "Igamma",
        summary: "Computes the regularised lower incomplete gamma function `P(a, x)`.",
        inputs: &[arg("a", "T"), arg("x", "T")],
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(|s| s.x(0).igamma(s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::igamma),
        ..OPERATOR
    },
    OpDef {
        name: "IgammaGradA",
        summary: "Computes the derivative of `P(a, x)` by `a`.",
        inputs: &[arg("a", "T"), arg("x", "T")],
        attrs: &[ty("T", F32_F64)],
        lowering: Lowering::Elementwise(|s| s.x(0).igamma_grad_a(s.x(1))),
        ..OPERATOR
    },
    OpDef {
        name: "Igammac",
        summary: "Computes the regularised upper incomplete gamma function `Q(a, x)`.",
        inputs: &[arg("a", "T"), arg("x", "T")],
        attrs: &[ty("T", FLOATS)],
        lowering: Lowering::Elementwise(|s| s.x(0).igammac(s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::igammac),
        ..OPERATOR
    },
    OpDef {
        name: "L2Loss",
        summary: "Computes half the sum of squares.",
        inputs: &[arg("t", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", FLOATS)],
        infer: infer::scalar,
        lowering: Lowering::Composite(|c| {
            vec![c.x(0).reshape(&[-1]).square().sum(&[0], false) * 0.5]
        }),
        gradient: Gradient::Rule(gradient::reduce::half_squares),
        ..OpDef::PURE
    },
    OpDef {
        name: "LeftShift",
        summary: "Shifts bits left.",
        attrs: &[ty("T", INTS)],
        lowering: Lowering::Elementwise(|s| s.x(0).shl(s.x(1))),
        compiled: XlaFormula::Of(total::left_shift),
        ..OPERATOR
    },
    OpDef {
        name: "Less",
        summary: "Tells where `x < y`.",
        lowering: Lowering::Elementwise(|s| s.x(0).lt(s.x(1))),
        ..COMPARISON
    },
    OpDef {
        name: "LessEqual",
        summary: "Tells where `x <= y`.",
        lowering: Lowering::Elementwise(|s| s.x(0).le(s.x(1))),
        ..COMPARISON
    },
    OpDef {
        name: "LogicalAnd",
        summary: "Computes the conjunction of truth values.",
        lowering: Lowering::Elementwise(|s| s.x(0).and(s.x(1))),
        ..LOGICAL
    },
    OpDef {
        name: "LogicalOr",
        summary: "Computes the disjunction of truth values.",
        lowering: Lowering::Elementwise(|s| s.x(0).or(s.x(1))),
        ..LOGICAL
    },
    OpDef {
        name: "Maximum",
        summary: "Takes the larger element.",
        attrs: &[ty("T", REALS)],
        lowering: Lowering::Elementwise(|s| s.x(0).max(s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::maximum),
        ..OPERATOR
    },
    OpDef {
        name: "Minimum",
        summary: "Takes the smaller element.",
        attrs: &[ty("T", REALS)],
        lowering: Lowering::Elementwise(|s| s.x(0).min(s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::minimum),
        ..OPERATOR
    },
    OpDef {
        name: "Mod",
        summary: "Computes the remainder of division rounded towards zero: it has the sign of the dividend.",
        attrs: &[ty(
            "T",
            &[DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64],
        )],
        lowering: Lowering::Elementwise(|s| s.x(0).trunc_mod(s.x(1))),
        compiled: XlaFormula::Of(total::remainder),
        ..OPERATOR
    },
    OpDef {
        name: "Mul",
        summary: "Multiplies.",
        lowering: Lowering::Elementwise(|s| s.x(0) * s.x(1)),
        gradient: Gradient::Broadcast(|b| {
            b.both(|| b.dy(0) * b.x(1).adjoint(), || b.dy(0) * b.x(0).adjoint())
        }),
        ..OPERATOR
    },
    OpDef {
        name: "MulNoNan",
        summary: "Multiplies; 0 where `y` is 0, even if `x` is NaN or infinite.",
        attrs: &[ty("T", FLOATS_AND_COMPLEX)],
        lowering: Lowering::Elementwise(|s| {
            let (x, y) = (s.x(0), s.x(1));
            y.eq(0.0).select(x.like(0.0), x * y)
        }),
        gradient: Gradient::Broadcast(|b| {
            grads([call("MulNoNan", [b.dy(0), b.x(1)]), call("MulNoNan", [b.x(0), b.dy(0)])])
        }),
        ..OPERATOR
    },
    OpDef {
        name: "NextAfter",
        summary: "Computes the next representable value after `x1` in the direction of `x2`.",
        inputs: &[arg("x1", "T"), arg("x2", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty_or("T", F32_F64, DType::F32)],
        lowering: Lowering::Elementwise(|s| s.x(0).next_after(s.x(1))),
        gradient: Gradient::Broadcast(|b| grads([b.dy(0), b.dy(0).zeros_like()])),
        ..OPERATOR
    },
    OpDef {
        name: "NotEqual",
        summary: "Tells where elements differ.",
        attrs: &[any_ty("T"), flag("incompatible_shape_error", true)],
        infer: equality,
        lowering: Lowering::Elementwise(|s| s.x(0).ne(s.x(1))),
        ..COMPARISON
    },
    OpDef {
        name: "Pow",
        summary: "Computes powers.",
        attrs: &[ty("T", NEGATABLE)],
        lowering: Lowering::Elementwise(pow),
        compiled: XlaFormula::Of(total::power),
        gradient: Gradient::Broadcast(gradient::math::pow),
        ..OPERATOR
    },
    OpDef {
        name: "RealDiv",
        summary: "Divides real or complex numbers.",
        lowering: Lowering::Elementwise(|s| divide(s.x(0), s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::quotient),
        ..OPERATOR
    },
    OpDef {
        name: "RightShift",
        summary: "Shifts bits right; the sign of signed integers stays.",
        attrs: &[ty("T", INTS)],
        lowering: Lowering::Elementwise(|s| s.x(0).shr(s.x(1))),
        compiled: XlaFormula::Of(total::right_shift),
        ..OPERATOR
    },
    OpDef {
        name: "SquaredDifference",
        summary: "Computes the square of the difference, its squared magnitude for complex numbers.",
        attrs: &[ty(
            "T",
            &[
                DType::BF16,
                DType::F16,
                DType::F32,
                DType::F64,
                DType::I32,
                DType::I64,
                DType::C64,
                DType::C128,
            ],
        )],
        lowering: Lowering::Elementwise(|s| {
            let difference = s.x(0) - s.x(1);
            difference * conjugate(difference)
        }),
        gradient: Gradient::Broadcast(|b| {
            let slope = b.dy(0) * (b.x(0) - b.x(1)) * 2.0;
            grads([slope, -slope])
        }),
        ..OPERATOR
    },
    OpDef {
        name: "Sub",
        summary: "Subtracts.",
        lowering: Lowering::Elementwise(|s| s.x(0) - s.x(1)),
        gradient: Gradient::Broadcast(|b| b.both(|| b.dy(0), || -b.dy(0))),
        ..OPERATOR
    },
    OpDef {
        name: "TruncateDiv",
        summary: "Divides and rounds towards zero.",
        lowering: Lowering::Elementwise(|s| {
            s.fails_with(Code::Internal);
            let (x, y) = (s.x(0), s.x(1));
            // Of floats the quotient is rounded to their dtype first.
            if x.dtype().is_float() { (x / y).rounded().flush().trunc() } else { x.trunc_div(y) }
        }),
        gradient: Gradient::Zero,
        compiled: XlaFormula::Of(total::quotient),
        ..OPERATOR
    },
    OpDef {
        name: "TruncateMod",
        summary: "Computes the remainder of division rounded towards zero.",
        attrs: &[ty(
            "T",
            &[DType::I32, DType::I64, DType::BF16, DType::F16, DType::F32, DType::F64],
        )],
        lowering: Lowering::Elementwise(|s| {
            s.fails_with(Code::Internal);
            s.x(0).trunc_mod(s.x(1))
        }),
        // TensorFlow has none; programs of JAX are differentiated through it.
        gradient: Gradient::Broadcast(gradient::math::truncate_mod),
        compiled: XlaFormula::Of(total::remainder),
        ..OPERATOR
    },
    OpDef {
        name: "Xdivy",
        summary: "Divides; 0 where the dividend is 0, whatever the divisor.",
        attrs: &[ty("T", FLOATS_AND_COMPLEX)],
        lowering: Lowering::Elementwise(|s| zero_unless(s.x(0), s.x(0) / s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::xdivy),
        ..OPERATOR
    },
    OpDef {
        name: "Xlog1py",
        summary: "Computes `x * log1p(y)`; 0 where `x` is 0.",
        attrs: &[ty("T", FLOATS_AND_COMPLEX)],
        lowering: Lowering::Elementwise(|s| zero_unless(s.x(0), s.x(0) * s.x(1).log1p())),
        gradient: Gradient::Broadcast(gradient::math::xlog1py),
        ..OPERATOR
    },
    OpDef {
        name: "Xlogy",
        summary: "Computes `x * log(y)`; 0 where `x` is 0.",
        attrs: &[ty("T", FLOATS_AND_COMPLEX)],
        lowering: Lowering::Elementwise(|s| zero_unless(s.x(0), s.x(0) * s.x(1).log())),
        gradient: Gradient::Broadcast(gradient::math::xlogy),
        ..OPERATOR
    },
    OpDef {
        name: "Zeta",
        summary: "Computes the Hurwitz zeta function.",
        inputs: &[arg("x", "T"), arg("q", "T")],
        attrs: &[ty("T", F32_F64)],
        lowering: Lowering::Elementwise(|s| s.x(0).zeta(s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::zeta),
        ..OPERATOR
    },
];

/// The angle of a point. To TensorFlow's vectors two subnormal coordinates, or one and a zero, look
/// equal; its 16-bit floats keep them, and give NaN for two.
fn atan2<'s>(s: &'s Scalars<'s>) -> Scalar<'s> {
    let (y, x) = (s.x(0), s.x(1));
    let nothing = y.eq(0.0).and(x.eq(0.0));
    let (some_y, some_x) = (y.exact().ne(0.0), x.exact().ne(0.0));
    if s.output_dtype().compute_type() == s.output_dtype() {
        let angle = y.atan2(x);
        let diagonal = y.atan2(-1.0) * 0.25 + angle * 0.5;
        nothing.and(some_y.or(some_x)).select(diagonal, angle)
    } else {
        let angle = y.exact().atan2(x.exact());
        nothing.and(some_y.and(some_x)).select(y.like(f64::NAN), angle)
    }
}

/// Conversion. Between `f32` and `f64` subnormal numbers become zeros, also on the way from or to
/// the 16-bit floats.
fn cast<'s>(s: &'s Scalars<'s>) -> Scalar<'s> {
    use DType::*;
    let (x, from, to) = (s.raw(0), s.input_dtype(0), s.output_dtype());
    match (from, to) {
        _ if s.flag("Truncate") && chops(from, to) => x.chop(to),
        (F32 | F64, Bool) => x.ne(0.0),
        (BF16 | F32, F64) => x.cast(F32).flush().cast(F64),
        (F64, F16 | BF16 | F32 | C64) => x.cast(F32).flush().cast(to),
        (C64, C128) => s.complex(x.real().flush().cast(F64), x.imag().flush().cast(F64)),
        (C128, C64) => s.complex(x.real().cast(F32).flush(), x.imag().cast(F32).flush()),
        _ => x.cast(to),
    }
}

/// Whether `Truncate` makes a difference between these dtypes.
fn chops(from: DType, to: DType) -> bool {
    use DType::*;
    match to {
        F8E5M2 | F8E4M3FN => from.is_float(),
        F16 => matches!(from, F32 | F64),
        BF16 => from == F32,
        F32 => from == F64,
        _ => false,
    }
}

/// The error function. TensorFlow's for `f64` returns NaN at infinity, by subtracting it from
/// itself.
fn erf(x: Scalar<'_>) -> Scalar<'_> {
    #[expect(clippy::eq_op, reason = "NaN where x is infinite, 0 elsewhere")]
    let nothing = x - x;
    if x.dtype() == DType::F64 { x.erf() + nothing } else { x.erf() }
}

/// The logarithm of the gamma function. That of a subnormal `f32` is finite, as the C library takes
/// it for its least exponent.
fn lgamma(x: Scalar<'_>) -> Scalar<'_> {
    if x.dtype() == DType::F64 {
        return x.lgamma();
    }
    let subnormal = x.eq(0.0).and(x.exact().ne(0.0));
    subnormal.select(x.like(150.0 * LN_2), x.lgamma())
}

/// The quotient, an element of its dtype, rounded down.
fn floor_div<'s>(s: &'s Scalars<'s>) -> Scalar<'s> {
    let (x, y) = (s.x(0), s.x(1));
    if !x.dtype().is_float() {
        return x.floor_div(y);
    }
    (x / y).rounded().flush().floor()
}

/// The power; that of 16-bit floats knows subnormal numbers.
fn pow<'s>(s: &'s Scalars<'s>) -> Scalar<'s> {
    let (x, y) = (s.x(0), s.x(1));
    let is_short = s.output_dtype().compute_type() != s.output_dtype();
    if is_short { x.exact().pow(y.exact()) } else { x.pow(y) }
}

/// `1 / x`, which is 0 for integers other than 1 and -1.
fn reciprocal(x: Scalar<'_>) -> Scalar<'_> {
    divide(x.like(1.0), x)
}

/// True division where there is one, truncating division for integers.
fn divide<'s>(x: Scalar<'s>, y: Scalar<'s>) -> Scalar<'s> {
    if x.dtype().is_integer() { x.trunc_div(y) } else { x / y }
}

/// The nearest integer. TensorFlow's x86 build returns 0 for every 32- and 64-bit integer.
fn round(x: Scalar<'_>) -> Scalar<'_> {
    match x.dtype() {
        DType::I32 | DType::I64 => x.like(0.0),
        dtype if dtype.is_integer() => x,
        _ => x.rint(),
    }
}

fn conjugate(x: Scalar<'_>) -> Scalar<'_> {
    if x.dtype().is_complex() { x.conj() } else { x }
}

fn sigmoid(x: Scalar<'_>) -> Scalar<'_> {
    let power = (-x).exp();
    let quotient = 1.0 / (power + 1.0);
    if !x.dtype().is_complex() {
        return quotient;
    }
    // A part of an infinite number may be NaN.
    [power.real(), power.imag()]
        .into_iter()
        .fold(quotient, |quotient, part| part.abs().eq(f64::INFINITY).select(x.like(0.0), quotient))
}

/// `value`, but 0 where `x` is 0.
fn zero_unless<'s>(x: Scalar<'s>, value: Scalar<'s>) -> Scalar<'s> {
    x.eq(0.0).select(x.like(0.0), value)
}

fn sum<'s>(s: &'s Scalars<'s>) -> Scalar<'s> {
    (1..s.n_inputs()).fold(s.x(0), |sum, index| sum + s.x(index))
}

/// Like `broadcast`, but without `incompatible_shape_error` shapes that do not broadcast are
/// simply unequal: the result is one truth value.
fn equality(context: &mut OpContext<'_>) -> Result<()> {
    match infer::broadcast(context) {
        Err(_) if !context.attrs.bool("incompatible_shape_error")? => {
            context.set(0, PartialShape::scalar());
            Ok(())
        }
        result => result,
    }
}

/// The limits have the shape of the tensor or are scalars.
fn clip(context: &mut OpContext<'_>) -> Result<()> {
    let shape = context.shape(0);
    for limit in 1..3 {
        let found = context.shape(limit);
        if found.rank() != Some(0) && !found.is_compatible_with(shape) {
            let expected = format!("a scalar or of shape {shape}");
            return Err(context.wrong(limit, expected, found));
        }
    }
    context.set(0, shape.clone());
    Ok(())
}

/// Elements of several smaller ones take a last dimension away, elements cut into several add one.
pub(super) fn bitcast(context: &mut OpContext<'_>) -> Result<()> {
    let (from, to) = (context.dtype(0).size().unwrap_or(1), context.output_dtype(0).size());
    let to = to.unwrap_or(1);
    let shape = context.shape(0);
    let Some(dims) = shape.dims() else { return Ok(()) };
    if from == to {
        context.set(0, shape.clone());
    } else if from > to {
        context.set(0, PartialShape::ranked(dims.iter().copied().chain([Some(from / to)])));
    } else {
        let parts = to / from;
        match dims.split_last() {
            Some((last, rest)) if last.is_none_or(|last| last == parts) => {
                context.set(0, PartialShape::ranked(rest.iter().copied()));
            }
            _ => {
                let expected = format!("a tensor whose last dimension is {parts}");
                return Err(context.wrong(0, expected, shape));
            }
        }
    }
    Ok(())
}

fn cross(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let shape = context.merged(0, 1)?;
    if let Some(size) = shape.dims().and_then(|dims| dims.last().copied().flatten())
        && size != 3
    {
        let detail = format!("a last dimension of size 3 is needed, not {size}");
        let code = Code::FailedPrecondition;
        return Err(Error::Status { code, op: context.op.name.into(), detail });
    }
    context.set(0, shape);
    Ok(())
}

fn cross_product<'e>(a: Value<'e>, b: Value<'e>) -> Value<'e> {
    let axis = a.shape().rank().saturating_sub(1);
    let (mut begin, mut size) = (vec![0; axis + 1], vec![-1; axis + 1]);
    size[axis] = 1;
    let mut part = |x: Value<'e>, index: i64| {
        begin[axis] = index;
        x.slice(&begin, &size)
    };
    let [a0, a1, a2] = [0, 1, 2].map(|index| part(a, index));
    let [b0, b1, b2] = [0, 1, 2].map(|index| part(b, index));
    let parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0];
    Value::concat(&parts, axis as i64)
}
