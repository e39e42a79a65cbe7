//! Element types, numbered and named as TensorFlow's `types.proto` does.

use std::{fmt, str::FromStr};

macro_rules! dtypes {
    ($($variant:ident = $number:literal, $name:literal, $size:expr, $doc:literal;)*) => {
        /// The type of a tensor's elements.
        ///
        /// Discriminants are the wire numbers of TensorFlow's `DataType`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DType { $(#[doc = $doc] $variant = $number,)* }

        impl DType {
            /// Every dtype, in the order of the wire numbers.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// TensorFlow's short name, such as `float32`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name),* }
            }

            /// Bytes one element takes in memory and on disk, `None` where elements are not plain
            /// bytes (string, resource, variant). Types below eight bits take one byte each.
            pub const fn size(self) -> Option<usize> {
                match self { $(DType::$variant => $size),* }
            }

            /// The dtype with this wire number.
            pub const fn from_number(number: i32) -> Option<DType> {
                match number { $($number => Some(DType::$variant),)* _ => None }
            }
        }
    };
}

dtypes! {
    F32 = 1, "float32", Some(4), "IEEE single precision.";
    F64 = 2, "float64", Some(8), "IEEE double precision.";
    I32 = 3, "int32", Some(4), "Signed 32-bit integer.";
    U8 = 4, "uint8", Some(1), "Unsigned 8-bit integer.";
    I16 = 5, "int16", Some(2), "Signed 16-bit integer.";
    I8 = 6, "int8", Some(1), "Signed 8-bit integer.";
    String = 7, "string", None, "Byte string of any length.";
    C64 = 8, "complex64", Some(8), "Complex number of two `f32`.";
    I64 = 9, "int64", Some(8), "Signed 64-bit integer.";
    Bool = 10, "bool", Some(1), "Truth value, stored as one byte of 0 or 1.";
    QI8 = 11, "qint8", Some(1), "Quantised `i8`.";
    QU8 = 12, "quint8", Some(1), "Quantised `u8`.";
    QI32 = 13, "qint32", Some(4), "Quantised `i32`.";
    BF16 = 14, "bfloat16", Some(2), "The upper half of an `f32`.";
    QI16 = 15, "qint16", Some(2), "Quantised `i16`.";
    QU16 = 16, "quint16", Some(2), "Quantised `u16`.";
    U16 = 17, "uint16", Some(2), "Unsigned 16-bit integer.";
    C128 = 18, "complex128", Some(16), "Complex number of two `f64`.";
    F16 = 19, "float16", Some(2), "IEEE half precision.";
    Resource = 20, "resource", None, "Handle of a variable, table or other state.";
    Variant = 21, "variant", None, "Handle of a value such as a tensor list.";
    U32 = 22, "uint32", Some(4), "Unsigned 32-bit integer.";
    U64 = 23, "uint64", Some(8), "Unsigned 64-bit integer.";
    F8E5M2 = 24, "float8_e5m2", Some(1), "8-bit float, 5 exponent bits.";
    F8E4M3FN = 25, "float8_e4m3fn", Some(1), "8-bit float, 4 exponent bits, no infinities.";
    F8E4M3FNUZ = 26, "float8_e4m3fnuz", Some(1), "8-bit float, 4 exponent bits, no negative zero.";
    F8E4M3B11FNUZ = 27, "float8_e4m3b11fnuz", Some(1), "8-bit float, 4 exponent bits of bias 11.";
    F8E5M2FNUZ = 28, "float8_e5m2fnuz", Some(1), "8-bit float, 5 exponent bits, no negative zero.";
    I4 = 29, "int4", Some(1), "Signed 4-bit integer.";
    U4 = 30, "uint4", Some(1), "Unsigned 4-bit integer.";
    I2 = 31, "int2", Some(1), "Signed 2-bit integer.";
    U2 = 32, "uint2", Some(1), "Unsigned 2-bit integer.";
    F4E2M1FN = 33, "float4_e2m1fn", Some(1), "4-bit float, 2 exponent bits, finite.";
}

impl DType {
    /// The wire number.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Whether this is a real floating type of 16 bits or more.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// Whether this is a complex type.
    pub const fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// Whether this is a plain integer type (`bool` and quantised types are not).
    pub const fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }

    /// Whether this is a plain signed integer type.
    pub const fn is_signed_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::I4 | DType::I2)
    }

    /// Whether this is a plain unsigned integer type.
    pub const fn is_unsigned_integer(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::U4 | DType::U2)
    }

    /// The bits of an integer that is narrower than the byte it is stored in; `None` for others.
    pub const fn narrow_bits(self) -> Option<u32> {
        match self {
            DType::I4 | DType::U4 => Some(4),
            DType::I2 | DType::U2 => Some(2),
            _ => None,
        }
    }

    /// Brings bytes of elements from outside into the form that kernels read. A bool is 0 or 1. An
    /// integer narrower than a byte has its sign in the bits above its own, where it has one, and
    /// zeros otherwise; files of TensorFlow and XLA have zeros there in both cases.
    pub fn normalize(self, elements: &mut [u8]) {
        match self.narrow_bits() {
            Some(bits) if self.is_signed_integer() => {
                let above = 8 - bits;
                elements.iter_mut().for_each(|x| *x = ((*x << above) as i8 >> above) as u8);
            }
            Some(bits) => elements.iter_mut().for_each(|x| *x &= (1 << bits) - 1),
            None if self == DType::Bool => {
                elements.iter_mut().for_each(|x| *x = u8::from(*x != 0));
            }
            None => {}
        }
    }

    /// Whether this is a quantised type: an integer with a scale kept elsewhere.
    pub const fn is_quantized(self) -> bool {
        matches!(self, DType::QI8 | DType::QU8 | DType::QI16 | DType::QU16 | DType::QI32)
    }

    /// The plain integer type that stores a quantised type; any other dtype is its own.
    pub const fn unquantized(self) -> DType {
        match self {
            DType::QI8 => DType::I8,
            DType::QU8 => DType::U8,
            DType::QI16 => DType::I16,
            DType::QU16 => DType::U16,
            DType::QI32 => DType::I32,
            other => other,
        }
    }

    /// The type in which scalar functions of this type are computed: 16-bit floats compute in
    /// `f32`, everything else in itself.
    pub const fn compute_type(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }

    /// The type of the real and imaginary parts; real types are their own.
    pub const fn real_type(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A dtype name that TensorFlow does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dtype `{0}`")]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;

    /// Accepts `float32` and the short forms `half`, `float`, `double`.
    fn from_str(name: &str) -> Result<DType, UnknownDType> {
        let name = match name {
            "half" => "float16",
            "float" => "float32",
            "double" => "float64",
            other => other,
        };
        let found = DType::ALL.iter().copied().find(|dtype| dtype.name() == name);
        found.ok_or_else(|| UnknownDType(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for &dtype in DType::ALL {
            assert_eq!(DType::from_number(dtype.number()), Some(dtype));
            assert_eq!(dtype.name().parse(), Ok(dtype));
        }
        assert_eq!(DType::from_number(0), None);
        assert_eq!(DType::from_number(101), None);
        assert_eq!("double".parse(), Ok(DType::F64));
    }

    /// Both forms that -3 and 13 have in files, and bools of any bits.
    #[test]
    fn bytes_from_outside_have_one_form() {
        let normalized = |dtype: DType, mut bytes: [u8; 4]| {
            dtype.normalize(&mut bytes);
            bytes
        };
        assert_eq!(normalized(DType::I4, [0x0d, 0xfd, 5, 0x15]), [0xfd, 0xfd, 5, 5]);
        assert_eq!(normalized(DType::U4, [0x0d, 0xfd, 5, 0x15]), [13, 13, 5, 5]);
        assert_eq!(normalized(DType::I2, [2, 3, 1, 0xfe]), [0xfe, 0xff, 1, 0xfe]);
        assert_eq!(normalized(DType::Bool, [0, 1, 2, 0xff]), [0, 1, 1, 1]);
        assert_eq!(normalized(DType::I8, [0x0d, 0xfd, 5, 0x15]), [0x0d, 0xfd, 5, 0x15]);
    }
}
