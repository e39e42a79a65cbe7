//! Scalar expressions as operations on whole tensors.

use super::block::{Block, Typed, case::Direction};
use ferroflow_ir::{
    DType, Error, Expr, HostTensor, Result, Shape,
    expr::{Constant, ExprKind, Prim},
};

/// Adds the operations of an expression of these inputs; its result has `dims`.
pub(super) fn expression(
    block: &mut Block<'_>,
    expr: &Expr,
    inputs: &[Typed],
    dims: &[usize],
) -> Result<Typed> {
    let mut values: Vec<Typed> = Vec::with_capacity(expr.nodes().len());
    for node in expr.nodes() {
        let value = match &node.kind {
            ExprKind::Input(index) => block.broadcast_last(&inputs[*index], dims),
            ExprKind::Const(constant) => {
                let element = element(*constant, node.dtype)?;
                block.splat(node.dtype, element.bytes(), dims)
            }
            ExprKind::Apply(prim, args) => {
                let args: Vec<&Typed> = args.iter().map(|arg| &values[arg.index()]).collect();
                primitive(block, *prim, &args, node.dtype)?
            }
            ExprKind::Reduce(..) => return Err(no_form("a reduction inside an expression")),
        };
        values.push(value);
    }
    Ok(values.swap_remove(expr.root().index()))
}

fn no_form(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::Unsupported { op: "StableHLO".into(), what: what.into() }
}

/// A constant as a scalar of a dtype.
pub(super) fn element(constant: Constant, dtype: DType) -> Result<HostTensor> {
    let float = constant.to_f64();
    let integer = || match constant {
        Constant::Int(value) => value,
        Constant::Float(value) => value as i128,
    };
    let bytes = match dtype {
        DType::F64 => float.to_le_bytes().to_vec(),
        DType::F32 => (float as f32).to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(float).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(float).to_le_bytes().to_vec(),
        DType::C64 => [(float as f32).to_le_bytes(), [0; 4]].concat(),
        DType::C128 => [float.to_le_bytes(), [0; 8]].concat(),
        _ => {
            let size = dtype.size().ok_or_else(|| no_form(format!("constants of {dtype}")))?;
            integer().to_le_bytes()[..size].to_vec()
        }
    };
    HostTensor::from_bytes(dtype, Shape::scalar(), &bytes)
}

/// A primitive whose operation has one name and one type.
fn name_of(prim: Prim) -> Option<&'static str> {
    Some(match prim {
        Prim::Neg => "negate",
        Prim::Exp => "exponential",
        Prim::Expm1 => "exponential_minus_one",
        Prim::Log => "log",
        Prim::Log1p => "log_plus_one",
        Prim::Sqrt => "sqrt",
        Prim::Rsqrt => "rsqrt",
        Prim::Sin => "sine",
        Prim::Cos => "cosine",
        Prim::Tanh => "tanh",
        Prim::Floor => "floor",
        Prim::Ceil => "ceil",
        Prim::Rint => "round_nearest_even",
        Prim::Not => "not",
        Prim::Add => "add",
        Prim::Sub => "subtract",
        Prim::Mul => "multiply",
        Prim::Div | Prim::TruncDiv => "divide",
        Prim::TruncMod => "remainder",
        Prim::Pow => "power",
        Prim::Atan2 => "atan2",
        Prim::Max => "maximum",
        Prim::Min => "minimum",
        Prim::And => "and",
        Prim::Or => "or",
        Prim::Xor => "xor",
        _ => return None,
    })
}

/// The name by which XLA knows a function that StableHLO has no operation for.
fn target_of(prim: Prim) -> Option<&'static str> {
    Some(match prim {
        Prim::Asin => "mhlo.asin",
        Prim::Acos => "mhlo.acos",
        Prim::Atan => "mhlo.atan",
        Prim::Sinh => "mhlo.sinh",
        Prim::Cosh => "mhlo.cosh",
        Prim::Asinh => "mhlo.asinh",
        Prim::Acosh => "mhlo.acosh",
        Prim::Atanh => "mhlo.atanh",
        Prim::Tan => "mhlo.tan",
        Prim::Erf => "mhlo.erf",
        _ => return None,
    })
}

fn direction_of(prim: Prim) -> Option<Direction> {
    Some(match prim {
        Prim::Eq => Direction::Eq,
        Prim::Ne => Direction::Ne,
        Prim::Lt => Direction::Lt,
        Prim::Le => Direction::Le,
        Prim::Gt => Direction::Gt,
        Prim::Ge => Direction::Ge,
        _ => return None,
    })
}

fn primitive(block: &mut Block<'_>, prim: Prim, x: &[&Typed], dtype: DType) -> Result<Typed> {
    let is_float = x[0].dtype.is_float();
    if prim == Prim::TruncDiv && is_float {
        let quotient = block.same("divide", x);
        return primitive(block, Prim::Trunc, &[&quotient], dtype);
    }
    if let Some(name) = name_of(prim) {
        return Ok(block.same(name, x));
    }
    if let Some(target) = target_of(prim) {
        return Ok(block.custom_call(target, x[0]));
    }
    if let Some(direction) = direction_of(prim) {
        return Ok(block.compare(direction, x[0], x[1]));
    }
    let dims = x[0].dims.clone();
    let number = |block: &mut Block<'_>, value: f64| -> Result<Typed> {
        let constant = match x[0].dtype.is_integer() {
            true => Constant::Int(value as i128),
            false => Constant::Float(value),
        };
        Ok(block.splat(x[0].dtype, element(constant, x[0].dtype)?.bytes(), &dims))
    };
    Ok(match prim {
        Prim::Flush => x[0].clone(),
        // Converts drop the fraction as casts do; `Chop` rounds there.
        Prim::Cast | Prim::Chop => cast(block, x[0], dtype)?,
        Prim::Abs => block.op("abs", Vec::new(), &[x[0]], (dtype, &dims)),
        Prim::Real => block.op("real", Vec::new(), &[x[0]], (dtype, &dims)),
        Prim::Imag => block.op("imag", Vec::new(), &[x[0]], (dtype, &dims)),
        Prim::Complex => block.op("complex", Vec::new(), x, (dtype, &dims)),
        Prim::PopCount => {
            let count = block.same("popcnt", x);
            block.convert(&count, dtype)
        }
        Prim::Sign if x[0].dtype.is_integer() && !x[0].dtype.is_signed_integer() => {
            let one = number(block, 1.0)?;
            block.same("minimum", &[x[0], &one])
        }
        Prim::Sign => block.same("sign", x),
        Prim::Select => block.select(x[0], x[1], x[2]),
        Prim::Erfc => {
            let (one, erf) = (number(block, 1.0)?, block.custom_call("mhlo.erf", x[0]));
            block.same("subtract", &[&one, &erf])
        }
        Prim::Trunc => {
            let (zero, floor, ceil) =
                (number(block, 0.0)?, block.same("floor", x), block.same("ceil", x));
            let is_negative = block.compare(Direction::Lt, x[0], &zero);
            block.select(&is_negative, &ceil, &floor)
        }
        Prim::FloorDiv if is_float => {
            let quotient = block.same("divide", x);
            block.same("floor", &[&quotient])
        }
        Prim::FloorMod | Prim::FloorDiv => {
            let (zero, one) = (number(block, 0.0)?, number(block, 1.0)?);
            floored(block, prim, x, &zero, &one)
        }
        Prim::Shl | Prim::Shr => {
            let bits = x[0].dtype.size().unwrap_or(8) * 8;
            let most = number(block, (bits - 1) as f64)?;
            let amount = block.same("minimum", &[x[1], &most]);
            let name = match (prim, x[0].dtype.is_signed_integer()) {
                (Prim::Shl, _) => "shift_left",
                (_, true) => "shift_right_arithmetic",
                (_, false) => "shift_right_logical",
            };
            block.same(name, &[x[0], &amount])
        }
        Prim::IsNan => block.compare(Direction::Ne, x[0], x[0]),
        Prim::IsFinite => block.op("is_finite", Vec::new(), &[x[0]], (DType::Bool, &dims)),
        Prim::IsInf => {
            let (abs, infinity) = (block.same("abs", x), number(block, f64::INFINITY)?);
            block.compare(Direction::Eq, &abs, &infinity)
        }
        Prim::Conj => {
            let part = dtype.real_type();
            let real = block.op("real", Vec::new(), &[x[0]], (part, &dims));
            let imag = block.op("imag", Vec::new(), &[x[0]], (part, &dims));
            let negative = block.same("negate", &[&imag]);
            block.op("complex", Vec::new(), &[&real, &negative], (dtype, &dims))
        }
        other => return Err(no_form(format!("the function {other:?}"))),
    })
}

/// Remainders with the sign of the divisor, and the quotients that belong to them.
fn floored(block: &mut Block<'_>, prim: Prim, x: &[&Typed], zero: &Typed, one: &Typed) -> Typed {
    let remainder = block.same("remainder", x);
    let (is_left, left_sign, right_sign) = (
        block.compare(Direction::Ne, &remainder, zero),
        block.compare(Direction::Lt, &remainder, zero),
        block.compare(Direction::Lt, x[1], zero),
    );
    let differs = block.compare(Direction::Ne, &left_sign, &right_sign);
    let is_below = block.same("and", &[&is_left, &differs]);
    if prim == Prim::FloorMod {
        let moved = block.same("add", &[&remainder, x[1]]);
        return block.select(&is_below, &moved, &remainder);
    }
    let quotient = block.same("divide", x);
    let less = block.same("subtract", &[&quotient, one]);
    block.select(&is_below, &less, &quotient)
}

/// A conversion as casts have it: to a bool, whether it is not zero.
fn cast(block: &mut Block<'_>, x: &Typed, dtype: DType) -> Result<Typed> {
    if dtype == DType::Bool && x.dtype != DType::Bool {
        let zero = element(Constant::Int(0), x.dtype)?;
        let zero = block.splat(x.dtype, zero.bytes(), &x.dims);
        return Ok(block.compare(Direction::Ne, x, &zero));
    }
    if x.dtype.is_complex() && !dtype.is_complex() {
        let part = x.dtype.real_type();
        let real = block.op("real", Vec::new(), &[x], (part, &x.dims));
        return Ok(block.convert(&real, dtype));
    }
    Ok(block.convert(x, dtype))
}
