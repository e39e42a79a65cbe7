//! Scalar types that shaders compute with.

use ferroflow_ir::DType;

/// Capabilities of a device beyond the least.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Caps {
    /// Whether there are 64-bit integers.
    pub(crate) int64: bool,
    /// Whether groups of invocations share memory faster than they read it.
    pub(crate) tiles: bool,
    /// Whether neighbours of a group can tell each other numbers without memory.
    pub(crate) subgroups: bool,
    /// Whether those neighbours are 32, whose numbers each may ask for.
    pub(crate) warps: bool,
    /// Whether those multiply matrices of 16-bit floats, which is CUDA C++ alone.
    pub(crate) matrices: bool,
    /// Whether 16-bit floats of WebGPU can be stored as such.
    pub(crate) halves: bool,
}

/// The type of an element in shaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ScalarType {
    /// Every float of up to 32 bits.
    F32,
    /// Every signed integer of up to 32 bits.
    I32,
    /// Every unsigned integer of up to 32 bits.
    U32,
    /// A bool, stored as a `u32` of 0 or 1.
    Bool,
    I64,
    U64,
}

impl ScalarType {
    /// A value as comparisons take it: subnormal numbers are zeros, as on the host.
    pub(crate) fn compared(self, value: &str) -> String {
        if self == ScalarType::F32 { format!("flush_({value})") } else { value.to_string() }
    }

    /// The scalar type of a dtype, if the device can hold it.
    pub(crate) fn of(dtype: DType, caps: Caps) -> Option<ScalarType> {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Some(ScalarType::F32),
            DType::I32 | DType::I16 | DType::I8 => Some(ScalarType::I32),
            DType::U32 | DType::U16 | DType::U8 => Some(ScalarType::U32),
            DType::Bool => Some(ScalarType::Bool),
            DType::I64 if caps.int64 => Some(ScalarType::I64),
            DType::U64 if caps.int64 => Some(ScalarType::U64),
            _ => None,
        }
    }

    /// The name of the type of values.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ScalarType::F32 => "f32",
            ScalarType::I32 => "i32",
            ScalarType::U32 => "u32",
            ScalarType::Bool => "bool",
            ScalarType::I64 => "i64",
            ScalarType::U64 => "u64",
        }
    }

    /// The name of the type that is read and written.
    pub(crate) fn storage(self) -> &'static str {
        match self {
            ScalarType::Bool => "u32",
            ScalarType::F32
            | ScalarType::I32
            | ScalarType::U32
            | ScalarType::I64
            | ScalarType::U64 => self.name(),
        }
    }

    /// Element `at` of a buffer.
    pub(crate) fn load(self, buffer: &str, at: &str) -> String {
        match self {
            ScalarType::Bool => format!("({buffer}[{at}] != 0u)"),
            ScalarType::F32
            | ScalarType::I32
            | ScalarType::U32
            | ScalarType::I64
            | ScalarType::U64 => format!("{buffer}[{at}]"),
        }
    }

    /// The statement that sets element `at` of a buffer.
    pub(crate) fn store(self, buffer: &str, at: &str, value: &str) -> String {
        match self {
            ScalarType::Bool => format!("{buffer}[{at}] = select(0u, 1u, {value});\n"),
            ScalarType::F32
            | ScalarType::I32
            | ScalarType::U32
            | ScalarType::I64
            | ScalarType::U64 => {
                format!("{buffer}[{at}] = {value};\n")
            }
        }
    }

    /// A value of an index as a `u32`; numbers below zero become large.
    pub(crate) fn as_index(self, value: &str) -> String {
        match self {
            ScalarType::U32 => value.into(),
            ScalarType::F32 | ScalarType::I32 | ScalarType::Bool => format!("u32({value})"),
            // Truncation of a number beyond 32 bits could land inside.
            ScalarType::I64 => format!(
                "select(0xffffffffu, u32({value}), {value} >= i64(0) && {value} < i64(0x7fffffff))"
            ),
            ScalarType::U64 => {
                format!("select(0xffffffffu, u32({value}), {value} < u64(0x7fffffffu))")
            }
        }
    }

    /// Zero.
    pub(crate) fn zero(self) -> &'static str {
        match self {
            ScalarType::F32 => "0.0f",
            ScalarType::I32 => "0",
            ScalarType::U32 => "0u",
            ScalarType::Bool => "false",
            ScalarType::I64 => "i64(0)",
            ScalarType::U64 => "u64(0)",
        }
    }
}

/// A result that was kept in a scalar, as an element of a dtype: rounded, or cut to its width.
pub(super) fn cut(dtype: DType, value: &str) -> String {
    match dtype {
        DType::F16 => format!("round_f16_({value})"),
        DType::BF16 => format!("round_bf16_({value})"),
        DType::I8 => format!("(({value}) << 24u) >> 24u"),
        DType::I16 => format!("(({value}) << 16u) >> 16u"),
        DType::U8 => format!("({value}) & 0xffu"),
        DType::U16 => format!("({value}) & 0xffffu"),
        _ => value.into(),
    }
}

/// A number of a dtype as text; `None` where the scalar type cannot hold it.
pub(crate) fn literal(value: ferroflow_ir::expr::Constant, word: ScalarType) -> Option<String> {
    use ferroflow_ir::expr::Constant;
    let Constant::Int(whole) = value else {
        return (word == ScalarType::F32).then(|| float(value.to_f64() as f32));
    };
    let fits = match word {
        ScalarType::F32 => return Some(float(value.to_f64() as f32)),
        ScalarType::Bool => return Some((whole != 0).to_string()),
        ScalarType::I32 => i32::try_from(whole).is_ok(),
        ScalarType::U32 => u32::try_from(whole).is_ok(),
        ScalarType::I64 => i64::try_from(whole).is_ok(),
        ScalarType::U64 => u64::try_from(whole).is_ok(),
    };
    fits.then(|| integer(whole, word))
}

/// A whole number, which the type has, as text.
pub(super) fn integer(value: i128, word: ScalarType) -> String {
    let halves = |bits: u64| format!("(u64({}u) << 32u) | u64({}u)", bits >> 32, bits as u32);
    match word {
        ScalarType::F32 => float(value as f32),
        ScalarType::Bool => (value != 0).to_string(),
        // The lowest number has no literal of its own.
        ScalarType::I32 if value == i32::MIN.into() => "(-2147483647 - 1)".into(),
        ScalarType::I32 if value < 0 => format!("({value})"),
        ScalarType::I32 => format!("{value}"),
        ScalarType::U32 => format!("{value}u"),
        ScalarType::I64 if value.unsigned_abs() < 1 << 31 => format!("i64({value})"),
        ScalarType::I64 => format!("i64({})", halves(value as i64 as u64)),
        ScalarType::U64 if value < 1 << 32 => format!("u64({value}u)"),
        ScalarType::U64 => format!("({})", halves(value as u64)),
    }
}

/// A float as text. Infinities and NaN are made of bits at run time, as constants may not be such.
pub(crate) fn float(value: f32) -> String {
    if !value.is_finite() {
        return format!("of_bits({}u)", value.to_bits());
    }
    if value != 0.0 && !value.is_normal() {
        return format!("of_bits({}u)", value.to_bits());
    }
    // The shortest decimal of the largest number is beyond it, and browsers refuse it.
    let text = match value.abs() == f32::MAX {
        true => format!("{:e}f", f64::from(value)),
        false => format!("{value:?}f"),
    };
    if value.is_sign_negative() { format!("({text})") } else { text }
}
