//! Choosing the Rust type of a dtype.
//!
//! Each macro takes a dtype and an expression over the name of a type, and gives the expression's
//! value for the type of the dtype as `Some`, or `None` where the dtype has no such type.

/// By size alone: plain elements and strings.
macro_rules! with_stored {
    ($dtype:expr, $T:ident => $body:expr) => {
        match ($dtype, $dtype.size()) {
            (ferroflow_ir::DType::String, _) => {
                type $T = bytes::Bytes;
                Some($body)
            }
            (_, Some(1)) => {
                type $T = u8;
                Some($body)
            }
            (_, Some(2)) => {
                type $T = u16;
                Some($body)
            }
            (_, Some(4)) => {
                type $T = u32;
                Some($body)
            }
            (_, Some(8)) => {
                type $T = u64;
                Some($body)
            }
            (_, Some(16)) => {
                type $T = [u64; 2];
                Some($body)
            }
            (_, _) => None,
        }
    };
}

/// As [`with_stored`], for kernels that only move elements: handles too.
macro_rules! with_cell {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            ferroflow_ir::DType::Resource | ferroflow_ir::DType::Variant => {
                type $T = std::sync::Arc<dyn ferroflow_ir::Handle>;
                Some($body)
            }
            dtype => $crate::cpu::dispatch::with_stored!(dtype, $T => $body),
        }
    };
}

/// The real types: floats and integers (quantised ones as the integers that store them).
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype.unquantized() {
            ferroflow_ir::DType::I8 => {
                type $T = i8;
                Some($body)
            }
            ferroflow_ir::DType::I16 => {
                type $T = i16;
                Some($body)
            }
            ferroflow_ir::DType::I32 => {
                type $T = i32;
                Some($body)
            }
            ferroflow_ir::DType::I64 => {
                type $T = i64;
                Some($body)
            }
            ferroflow_ir::DType::U8 => {
                type $T = u8;
                Some($body)
            }
            ferroflow_ir::DType::U16 => {
                type $T = u16;
                Some($body)
            }
            ferroflow_ir::DType::U32 => {
                type $T = u32;
                Some($body)
            }
            ferroflow_ir::DType::U64 => {
                type $T = u64;
                Some($body)
            }
            dtype => $crate::cpu::dispatch::with_float!(dtype, $T => $body),
        }
    };
}

/// The real floating types.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            ferroflow_ir::DType::F16 => {
                type $T = half::f16;
                Some($body)
            }
            ferroflow_ir::DType::BF16 => {
                type $T = half::bf16;
                Some($body)
            }
            ferroflow_ir::DType::F32 => {
                type $T = f32;
                Some($body)
            }
            ferroflow_ir::DType::F64 => {
                type $T = f64;
                Some($body)
            }
            _ => None,
        }
    };
}

/// The complex types.
macro_rules! with_complex {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            ferroflow_ir::DType::C64 => {
                type $T = num_complex::Complex<f32>;
                Some($body)
            }
            ferroflow_ir::DType::C128 => {
                type $T = num_complex::Complex<f64>;
                Some($body)
            }
            _ => None,
        }
    };
}

/// Every type with arithmetic: the real and the complex ones.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            dtype if dtype.is_complex() => {
                $crate::cpu::dispatch::with_complex!(dtype, $T => $body)
            }
            dtype => $crate::cpu::dispatch::with_real!(dtype, $T => $body),
        }
    };
}

/// The types of indices.
macro_rules! with_index {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            ferroflow_ir::DType::I32 => {
                type $T = i32;
                Some($body)
            }
            ferroflow_ir::DType::I64 => {
                type $T = i64;
                Some($body)
            }
            ferroflow_ir::DType::I16 => {
                type $T = i16;
                Some($body)
            }
            ferroflow_ir::DType::U16 => {
                type $T = u16;
                Some($body)
            }
            ferroflow_ir::DType::I8 => {
                type $T = i8;
                Some($body)
            }
            ferroflow_ir::DType::U8 => {
                type $T = u8;
                Some($body)
            }
            _ => None,
        }
    };
}

pub(crate) use {
    with_cell, with_complex, with_float, with_index, with_number, with_real, with_stored,
};
