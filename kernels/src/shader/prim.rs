//! Each primitive as values of kernels: the table of spellings.

use super::{builder::KernelValue, scalar_type::ScalarType};
use ferroflow_ir::{DType, Prim, expr::Constant};

/// A primitive of values of these dtypes; `second` is the second argument where that is a constant.
/// `None` where it has no spelling.
pub(super) fn emit<'k>(
    prim: Prim,
    dtypes: &[DType],
    result: DType,
    args: &[KernelValue<'k>],
    second: Option<Constant>,
) -> Option<KernelValue<'k>> {
    let (dtype, a, b) = (dtypes[0], args[0], args.get(1).copied().unwrap_or(args[0]));
    match (prim, dtype) {
        (Prim::Cast, _) => cast(dtype, result, a),
        (Prim::Select, _) => Some(a.select(b, args[2])),
        (_, DType::F32 | DType::F16 | DType::BF16) => float(prim, dtype, a, b),
        (_, DType::Bool) => bool(prim, a, b),
        (_, dtype) if dtype.is_integer() => integer(prim, dtype, a, b, second),
        _ => None,
    }
}

fn float<'k>(
    prim: Prim,
    dtype: DType,
    a: KernelValue<'k>,
    b: KernelValue<'k>,
) -> Option<KernelValue<'k>> {
    use Prim::*;
    let one = |name: &'static str| a.function(name);
    let two = |name: &'static str| a.function_with(name, b);
    Some(match prim {
        Neg => -a,
        Abs => one("abs"),
        Sign => one("sign_"),
        Exp => one("exp_"),
        Expm1 => one("expm1_"),
        Log => one("log_"),
        Log1p => one("log1p_"),
        Sqrt => one("sqrt"),
        Rsqrt => 1.0 / one("sqrt"),
        Sin => one("sin_"),
        Cos => one("cos_"),
        Tan => one("sin_") / one("cos_"),
        Asin => one("asin_"),
        Acos => one("acos_"),
        Atan => one("atan_"),
        Sinh => one("sinh_"),
        Cosh => one("cosh_"),
        Tanh => one("tanh_"),
        Asinh => one("asinh_"),
        Acosh => one("acosh_"),
        Atanh => one("atanh_"),
        Erf => one("erf_"),
        Erfc => one("erfc_"),
        Floor => one("floor"),
        Ceil => one("ceil"),
        Trunc => one("trunc"),
        Rint => one("round"),
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        Div => a / b,
        FloorDiv => two("divide_").floor(),
        TruncDiv => two("divide_").function("trunc"),
        FloorMod => two("floor_mod_"),
        TruncMod => two("trunc_mod_"),
        Pow => two("pow_"),
        Atan2 => two("atan2_"),
        NextAfter if dtype == DType::F32 => two("next_after_"),
        Max => two("max_"),
        Min => two("min_"),
        // Drivers may take it that there is no NaN, and a number to be equal to itself.
        Eq if a.is(b) => !a.is_nan(),
        Ne if a.is(b) => a.is_nan(),
        Eq => a.eq(b),
        // naga's `!=` is false of NaN.
        Ne => !a.eq(b),
        Lt => a.lt(b),
        Le => a.le(b),
        Gt => a.gt(b),
        Ge => a.ge(b),
        IsNan => a.is_nan(),
        IsInf => (a.bits() & 0x7fff_ffff_usize).eq(0x7f80_0000_usize),
        IsFinite => a.is_finite(),
        Flush => one("flush_"),
        Real | Conj => a,
        Imag => a.number(0),
        Lgamma => one("lgamma_"),
        Igamma => two("igamma_"),
        Igammac => two("igammac_"),
        Zeta => two("zeta_"),
        NextAfter | IgammaGradA | Not | PopCount | And | Or | Xor | Shl | Shr | Select | Cast
        | Chop | Complex => return None,
    })
}

fn integer<'k>(
    prim: Prim,
    dtype: DType,
    a: KernelValue<'k>,
    b: KernelValue<'k>,
    second: Option<Constant>,
) -> Option<KernelValue<'k>> {
    use Prim::*;
    let scalar = a.scalar();
    let bits = dtype.size()? * 8;
    let signed = dtype.is_signed_integer();
    let divides = matches!(second, Some(Constant::Int(divisor)) if divisor > 0);
    let whole = |name: &str| a.function_with(format!("{name}_{}_", scalar.name()), b);
    // Compilers refuse to convert 64-bit constants.
    let amount = || match second {
        Some(Constant::Int(amount)) => a.index(amount.clamp(0, bits as i128 - 1) as usize),
        _ => b.clamp(0, bits - 1).to(ScalarType::U32),
    };
    let value = match prim {
        Neg if signed => -a,
        Neg => a.number(0) - a,
        Abs if signed => a.function("abs"),
        Abs => a,
        Sign if signed => a.gt(0).select(1, a.lt(0).select(-1, a.number(0))),
        Sign => a.ne(0).select(1, a.number(0)),
        Not => !a,
        PopCount if bits <= 32 => {
            let own = a.to(ScalarType::U32) & (u32::MAX >> (32 - bits)) as usize;
            return Some(own.function("countOneBits"));
        }
        PopCount => {
            let half = |shift: usize| {
                let half = (a.to(ScalarType::U64) >> shift) & u32::MAX as usize;
                half.to(ScalarType::U32).function("countOneBits")
            };
            return Some(half(0) + half(32));
        }
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        TruncDiv if divides => a / b,
        TruncMod if divides => a % b,
        FloorDiv if divides && signed => a / b - (a % b).lt(0).select(1, a.number(0)),
        FloorDiv if divides => a / b,
        FloorMod if divides && signed => (a % b + b) % b,
        FloorMod if divides => a % b,
        Max => a.max(b),
        Min => a.min(b),
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        TruncDiv => whole("div"),
        TruncMod => whole("rem"),
        FloorDiv => whole("floor_div"),
        FloorMod => whole("floor_mod"),
        Pow => whole("power"),
        Shl => a << amount(),
        Shr => a >> amount(),
        Eq => return Some(a.eq(b)),
        Ne => return Some(a.ne(b)),
        Lt => return Some(a.lt(b)),
        Le => return Some(a.le(b)),
        Gt => return Some(a.gt(b)),
        Ge => return Some(a.ge(b)),
        Floor | Ceil | Trunc | Rint | Real | Conj => a,
        Exp | Expm1 | Log | Log1p | Sqrt | Rsqrt | Sin | Cos | Tan | Asin | Acos | Atan | Sinh
        | Cosh | Tanh | Asinh | Acosh | Atanh | Erf | Erfc | Lgamma | Div | Atan2 | NextAfter
        | Igamma | Igammac | IgammaGradA | Zeta | IsNan | IsInf | IsFinite | Imag | Select
        | Cast | Chop | Complex | Flush => return None,
    };
    Some(value.rounded(dtype))
}

fn bool<'k>(prim: Prim, a: KernelValue<'k>, b: KernelValue<'k>) -> Option<KernelValue<'k>> {
    Some(match prim {
        Prim::Not => !a,
        Prim::And | Prim::Min => a.and(b),
        Prim::Or | Prim::Max => a.or(b),
        Prim::Xor | Prim::Ne => a.ne(b),
        Prim::Eq => a.eq(b),
        _ => return None,
    })
}

/// The scalar type of an integer dtype.
fn scalar(dtype: DType) -> ScalarType {
    match (dtype.size(), dtype.is_signed_integer()) {
        (Some(8), true) => ScalarType::I64,
        (Some(8), false) => ScalarType::U64,
        (_, true) => ScalarType::I32,
        (_, false) => ScalarType::U32,
    }
}

fn cast(from: DType, to: DType, a: KernelValue<'_>) -> Option<KernelValue<'_>> {
    let is_small_float = |dtype| matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
    let known = |dtype: DType| is_small_float(dtype) || dtype == DType::Bool || dtype.is_integer();
    if !known(from) || !known(to) {
        return None;
    }
    let value = match (from, to) {
        (from, to) if from == to => return Some(a),
        (DType::Bool, to) if is_small_float(to) => a.to(ScalarType::F32),
        (DType::Bool, to) => a.to(scalar(to)),
        // Comparing takes subnormal numbers for zeros.
        (from, DType::Bool) if is_small_float(from) => (a.bits() & 0x7fff_ffff_usize).ne(0),
        (_, DType::Bool) => a.ne(0),
        (from, to) if is_small_float(from) && is_small_float(to) => a,
        (_, to) if is_small_float(to) => a.to(ScalarType::F32),
        (from, to) if is_small_float(from) => whole(a, to),
        // Drivers are known to extend the sign otherwise.
        (from, DType::I64) if scalar(from) == ScalarType::U32 => {
            a.to(ScalarType::U64).to(ScalarType::I64)
        }
        // Where a comparison follows, llvmpipe takes the sign for all bits.
        (from, DType::I64) if scalar(from) == ScalarType::I32 => extended(a).to(ScalarType::I64),
        (from, DType::U64) if scalar(from) == ScalarType::I32 => extended(a),
        (_, to) => a.to(scalar(to)),
    };
    Some(value.rounded(to))
}

/// A float as an integer of a dtype, towards zero; narrow integers are the nearest ones.
fn whole(a: KernelValue<'_>, to: DType) -> KernelValue<'_> {
    let function = |name: &'static str, scalar| a.function_to(name, scalar);
    let int = || function("to_int_", ScalarType::I32);
    match to {
        DType::I8 => int().clamp(-128, 127),
        DType::I16 => int().clamp(-32768, 32767),
        DType::U8 => int().clamp(0, 255).to(ScalarType::U32),
        DType::U16 => int().clamp(0, 65535).to(ScalarType::U32),
        DType::U32 => function("to_unsigned_", ScalarType::U32),
        DType::I64 => function("to_long_", ScalarType::I64),
        DType::U64 => function("to_unsigned_long_", ScalarType::U64),
        _ => int(),
    }
}

/// The bits of a 32-bit integer with its sign in the 32 bits above.
fn extended(a: KernelValue<'_>) -> KernelValue<'_> {
    let [high, low] = [a >> 31, a].map(|part| part.to(ScalarType::U32).to(ScalarType::U64));
    (high << 32) | low
}
