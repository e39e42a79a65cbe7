//! Scalar types that shaders compute with.

use ferroflow_ir::DType;

/// Capabilities of a device beyond the least.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caps {
    /// Whether there are 64-bit integers.
    pub int64: bool,
    /// Whether groups of invocations share memory faster than they read it.
    pub tiles: bool,
    /// Whether neighbours of a group can tell each other numbers without memory.
    pub subgroups: bool,
    /// Whether those neighbours are 32, whose numbers each may ask for.
    pub warps: bool,
    /// Whether those multiply matrices of 16-bit floats, which is CUDA C++ alone.
    pub matrices: bool,
    /// Whether 16-bit floats of WebGPU can be stored as such.
    pub halves: bool,
}

/// The type of an element in shaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarType {
    /// Every float of up to 32 bits.
    F32,
    /// Every signed integer of up to 32 bits.
    I32,
    /// Every unsigned integer of up to 32 bits.
    U32,
    /// A bool, stored as a `u32` of 0 or 1.
    Bool,
    /// Signed integers of 64 bits.
    I64,
    /// Unsigned integers of 64 bits.
    U64,
}

impl ScalarType {
    /// The scalar type of a dtype, if the device can hold it.
    pub fn of(dtype: DType, caps: Caps) -> Option<ScalarType> {
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
    pub fn name(self) -> &'static str {
        match self {
            ScalarType::F32 => "f32",
            ScalarType::I32 => "i32",
            ScalarType::U32 => "u32",
            ScalarType::Bool => "bool",
            ScalarType::I64 => "i64",
            ScalarType::U64 => "u64",
        }
    }
}

/// The name of the type that elements of a dtype are read and written as.
pub(super) fn storage(dtype: DType) -> &'static str {
    match ScalarType::of(dtype, Caps { int64: true, ..Caps::default() }) {
        None | Some(ScalarType::Bool) => "u32",
        Some(scalar) => scalar.name(),
    }
}
