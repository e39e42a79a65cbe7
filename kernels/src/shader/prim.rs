//! Source of each primitive: the table of spellings.

use super::scalar_type::{ScalarType, cut};
use ferroflow_ir::{DType, Prim, expr::Constant};

/// A primitive on values of these dtypes, written as text; `second` is the second argument where
/// that is a constant. `None` where it has no spelling.
pub(super) fn emit(
    prim: Prim,
    args: &[DType],
    result: DType,
    texts: &[&str],
    second: Option<Constant>,
) -> Option<String> {
    let dtype = args[0];
    match prim {
        Prim::Cast => return cast(dtype, result, texts[0]),
        Prim::Select => {
            return Some(format!("select({}, {}, {})", texts[2], texts[1], texts[0]));
        }
        _ => {}
    }
    let found = match dtype {
        DType::F32 | DType::F16 | DType::BF16 => float(prim, dtype, texts)?,
        DType::Bool => emit_bool(prim, texts)?,
        dtype if dtype.is_integer() => integer(prim, dtype, texts, second)?,
        _ => return None,
    };
    Some(found)
}

fn float(prim: Prim, dtype: DType, texts: &[&str]) -> Option<String> {
    use Prim::*;
    let a = texts[0];
    let b = texts.get(1).copied().unwrap_or("");
    let named = |name: &str| match texts {
        [a] => format!("{name}({a})"),
        _ => format!("{name}({a}, {b})"),
    };
    Some(match prim {
        Neg => format!("-{a}"),
        Abs => named("abs"),
        Sign => named("sign_"),
        Exp => named("exp_"),
        Expm1 => named("expm1_"),
        Log => named("log_"),
        Log1p => named("log1p_"),
        Sqrt => named("sqrt"),
        Rsqrt => format!("1.0f / sqrt({a})"),
        Sin => named("sin_"),
        Cos => named("cos_"),
        Tan => format!("sin_({a}) / cos_({a})"),
        Asin => named("asin_"),
        Acos => named("acos_"),
        Atan => named("atan_"),
        Sinh => named("sinh_"),
        Cosh => named("cosh_"),
        Tanh => named("tanh_"),
        Asinh => named("asinh_"),
        Acosh => named("acosh_"),
        Atanh => named("atanh_"),
        Erf => named("erf_"),
        Erfc => named("erfc_"),
        Floor => named("floor"),
        Ceil => named("ceil"),
        Trunc => named("trunc"),
        Rint => named("round"),
        Add => format!("{a} + {b}"),
        Sub => format!("{a} - {b}"),
        Mul => format!("{a} * {b}"),
        Div => format!("{a} / {b}"),
        FloorDiv => format!("floor({})", named("divide_")),
        TruncDiv => format!("trunc({})", named("divide_")),
        FloorMod => named("floor_mod_"),
        TruncMod => named("trunc_mod_"),
        Pow => named("pow_"),
        Atan2 => named("atan2_"),
        NextAfter if dtype == DType::F32 => named("next_after_"),
        Max => named("max_"),
        Min => named("min_"),
        // Drivers may take it that there is no NaN, and a number to be equal to itself.
        Eq if a == b => format!("!is_nan_({a})"),
        Ne if a == b => format!("is_nan_({a})"),
        Eq => format!("{a} == {b}"),
        // naga's `!=` is false of NaN.
        Ne => format!("!({a} == {b})"),
        Lt => format!("{a} < {b}"),
        Le => format!("{a} <= {b}"),
        Gt => format!("{a} > {b}"),
        Ge => format!("{a} >= {b}"),
        IsNan => named("is_nan_"),
        IsInf => format!("(to_bits({a}) & 0x7fffffffu) == 0x7f800000u"),
        IsFinite => format!("(to_bits({a}) & 0x7f800000u) != 0x7f800000u"),
        Flush => named("flush_"),
        Real | Conj => a.into(),
        Imag => "0.0f".into(),
        Lgamma => named("lgamma_"),
        Igamma => named("igamma_"),
        Igammac => named("igammac_"),
        Zeta => named("zeta_"),
        NextAfter | IgammaGradA | Not | PopCount | And | Or | Xor | Shl | Shr | Select | Cast
        | Chop | Complex => return None,
    })
}

fn integer(prim: Prim, dtype: DType, texts: &[&str], second: Option<Constant>) -> Option<String> {
    use Prim::*;
    let a = texts[0];
    let b = texts.get(1).copied().unwrap_or("");
    let scalar = scalar(dtype);
    let bits = dtype.size()? * 8;
    let (zero, name) = (scalar.zero(), scalar.name());
    let signed = dtype.is_signed_integer();
    let divides = matches!(second, Some(Constant::Int(divisor)) if divisor > 0);
    let whole = |function: &str| format!("{function}_{name}_({a}, {b})");
    // Compilers refuse to convert 64-bit constants.
    let amount = || match second {
        Some(Constant::Int(amount)) => format!("{}u", amount.clamp(0, bits as i128 - 1)),
        _ => format!("u32(clamp({b}, {zero}, {name}({})))", bits - 1),
    };
    let text = match prim {
        Neg if signed => format!("-{a}"),
        Neg => format!("{zero} - {a}"),
        Abs if signed => format!("abs({a})"),
        Abs => a.into(),
        Sign if signed => {
            format!("select(select({zero}, {name}(-1), {a} < {zero}), {name}(1), {a} > {zero})")
        }
        Sign => format!("select({zero}, {name}(1), {a} != {zero})"),
        Not => format!("~{a}"),
        PopCount if bits <= 32 => {
            return Some(format!("countOneBits(u32({a}) & {}u)", u32::MAX >> (32 - bits)));
        }
        PopCount => {
            let half =
                |shift| format!("countOneBits(u32((u64({a}) >> {shift}u) & u64(0xffffffffu)))");
            return Some(format!("{} + {}", half(0), half(32)));
        }
        Add => format!("{a} + {b}"),
        Sub => format!("{a} - {b}"),
        Mul => format!("{a} * {b}"),
        TruncDiv if divides => format!("{a} / {b}"),
        TruncMod if divides => format!("{a} % {b}"),
        FloorDiv if divides && signed => {
            format!("({a} / {b}) - select({zero}, {name}(1), {a} % {b} < {zero})")
        }
        FloorDiv if divides => format!("{a} / {b}"),
        FloorMod if divides && signed => {
            format!("(({a} % {b}) + {b}) % {b}")
        }
        FloorMod if divides => format!("{a} % {b}"),
        Max => format!("max({a}, {b})"),
        Min => format!("min({a}, {b})"),
        And => format!("{a} & {b}"),
        Or => format!("{a} | {b}"),
        Xor => format!("{a} ^ {b}"),
        TruncDiv => whole("div"),
        TruncMod => whole("rem"),
        FloorDiv => whole("floor_div"),
        FloorMod => whole("floor_mod"),
        Pow => whole("power"),
        Shl => format!("{a} << {}", amount()),
        Shr => format!("{a} >> {}", amount()),
        Eq => return Some(format!("{a} == {b}")),
        Ne => return Some(format!("{a} != {b}")),
        Lt => return Some(format!("{a} < {b}")),
        Le => return Some(format!("{a} <= {b}")),
        Gt => return Some(format!("{a} > {b}")),
        Ge => return Some(format!("{a} >= {b}")),
        Floor | Ceil | Trunc | Rint | Real | Conj => a.into(),
        Exp | Expm1 | Log | Log1p | Sqrt | Rsqrt | Sin | Cos | Tan | Asin | Acos | Atan | Sinh
        | Cosh | Tanh | Asinh | Acosh | Atanh | Erf | Erfc | Lgamma | Div | Atan2 | NextAfter
        | Igamma | Igammac | IgammaGradA | Zeta | IsNan | IsInf | IsFinite | Imag | Select
        | Cast | Chop | Complex | Flush => return None,
    };
    Some(cut(dtype, &text))
}

fn emit_bool(prim: Prim, texts: &[&str]) -> Option<String> {
    let a = texts[0];
    let b = texts.get(1).copied().unwrap_or("");
    Some(match prim {
        Prim::Not => format!("!{a}"),
        Prim::And | Prim::Min => format!("{a} && {b}"),
        Prim::Or | Prim::Max => format!("{a} || {b}"),
        Prim::Xor | Prim::Ne => format!("{a} != {b}"),
        Prim::Eq => format!("{a} == {b}"),
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

fn cast(from: DType, to: DType, a: &str) -> Option<String> {
    let is_small_float = |dtype| matches!(dtype, DType::F32 | DType::F16 | DType::BF16);
    let known = |dtype: DType| is_small_float(dtype) || dtype == DType::Bool || dtype.is_integer();
    if !known(from) || !known(to) {
        return None;
    }
    let value = match (from, to) {
        (DType::Bool, to) if is_small_float(to) => format!("select(0.0f, 1.0f, {a})"),
        (DType::Bool, DType::Bool) => a.into(),
        (DType::Bool, to) => {
            let scalar = scalar(to);
            format!("select({}, {}(1), {a})", scalar.zero(), scalar.name())
        }
        // Comparing takes subnormal numbers for zeros.
        (from, DType::Bool) if is_small_float(from) => {
            format!("(to_bits({a}) & 0x7fffffffu) != 0u")
        }
        (from, DType::Bool) => format!("{a} != {}", scalar(from).zero()),
        (from, to) if is_small_float(from) && is_small_float(to) => a.into(),
        (_, to) if is_small_float(to) => format!("f32({a})"),
        (from, to) if is_small_float(from) => match scalar(to) {
            // Narrow integers are the nearest ones.
            ScalarType::I32 if to == DType::I8 => format!("clamp(to_int_({a}), -128, 127)"),
            ScalarType::I32 if to == DType::I16 => format!("clamp(to_int_({a}), -32768, 32767)"),
            ScalarType::U32 if to == DType::U8 => format!("u32(clamp(to_int_({a}), 0, 255))"),
            ScalarType::U32 if to == DType::U16 => format!("u32(clamp(to_int_({a}), 0, 65535))"),
            ScalarType::I32 => format!("to_int_({a})"),
            ScalarType::U32 if to == DType::U32 => format!("to_unsigned_({a})"),
            ScalarType::U32 => format!("u32(to_int_({a}))"),
            ScalarType::I64 => format!("to_long_({a})"),
            ScalarType::U64 => format!("to_unsigned_long_({a})"),
            ScalarType::F32 | ScalarType::Bool => return None,
        },
        // Drivers are known to extend the sign otherwise.
        (from, DType::I64) if scalar(from) == ScalarType::U32 => format!("i64(u64({a}))"),
        // Where a comparison follows, llvmpipe takes the sign for all bits.
        (from, DType::I64) if scalar(from) == ScalarType::I32 => format!("i64({})", extended(a)),
        (from, DType::U64) if scalar(from) == ScalarType::I32 => extended(a),
        (_, to) => format!("{}({a})", scalar(to).name()),
    };
    Some(if from == to { value } else { cut(to, &value) })
}

/// The bits of a 32-bit integer with its sign in the 32 bits above.
fn extended(a: &str) -> String {
    format!("((u64(u32(({a}) >> 31u)) << 32u) | u64(u32({a})))")
}
