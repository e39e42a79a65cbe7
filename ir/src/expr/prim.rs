//! The functions and constants that expressions are made of.

use crate::dtype::DType;

/// A scalar function that every device implements itself.
///
/// Unless said otherwise arguments and result have one dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "most variants are the mathematical function of that name")]
pub enum Prim {
    Neg,
    Abs,
    /// -1, 0 or 1; NaN for NaN, the absolute value of a subnormal number; `x / |x|` for complex
    /// values.
    Sign,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Erf,
    Erfc,
    /// Natural logarithm of the absolute value of the gamma function.
    Lgamma,
    Floor,
    Ceil,
    Trunc,
    /// To the nearest integer, halves to even.
    Rint,
    /// Complement of the bits; of a bool, the other bool.
    Not,
    /// The number of one bits, as `u8`.
    PopCount,
    Add,
    Sub,
    Mul,
    /// Division of floats and complex values.
    Div,
    /// Quotient rounded towards minus infinity; integer division by zero is an error.
    FloorDiv,
    /// Quotient rounded towards zero; integer division by zero is an error.
    TruncDiv,
    /// Remainder with the sign of the divisor; integer division by zero is an error. A subnormal
    /// dividend is a number like others, a subnormal divisor is zero.
    FloorMod,
    /// Remainder with the sign of the dividend; otherwise like `FloorMod`.
    TruncMod,
    /// Power; a negative integer exponent is an error.
    Pow,
    Atan2,
    /// The next representable value after the first argument in the direction of the second.
    NextAfter,
    /// The larger; NaN if either is.
    Max,
    /// The smaller; NaN if either is.
    Min,
    And,
    Or,
    Xor,
    /// Shift left; the amount is clamped to the width less one.
    Shl,
    /// Shift right, arithmetic for signed types; the amount is clamped to the width less one.
    Shr,
    /// The regularised lower incomplete gamma function `P(a, x)`.
    Igamma,
    /// The regularised upper incomplete gamma function `Q(a, x)`.
    Igammac,
    /// The derivative of `P(a, x)` by `a`.
    IgammaGradA,
    /// The Hurwitz zeta function.
    Zeta,
    /// Comparisons return a bool.
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Tests return a bool.
    IsNan,
    IsInf,
    IsFinite,
    /// The second argument where the first, a bool, is true, else the third.
    Select,
    /// Conversion to the dtype of the result.
    Cast,
    /// Conversion to the dtype of the result, a narrower float, after dropping the bits of the
    /// fraction that it has no room for.
    Chop,
    /// The real part.
    Real,
    /// The imaginary part.
    Imag,
    /// A complex number of two reals.
    Complex,
    Conj,
    /// The same value, but a zero of the same sign for subnormal numbers.
    Flush,
}

impl Prim {
    /// The number of arguments.
    pub fn arity(self) -> usize {
        use Prim::*;
        match self {
            Neg | Abs | Sign | Exp | Expm1 | Log | Log1p | Sqrt | Rsqrt | Sin | Cos | Tan
            | Asin | Acos | Atan | Sinh | Cosh | Tanh | Asinh | Acosh | Atanh | Erf | Erfc
            | Lgamma | Floor | Ceil | Trunc | Rint | Not | PopCount | IsNan | IsInf | IsFinite
            | Cast | Chop | Real | Imag | Conj | Flush => 1,
            Add | Sub | Mul | Div | FloorDiv | TruncDiv | FloorMod | TruncMod | Pow | Atan2
            | NextAfter | Max | Min | And | Or | Xor | Shl | Shr | Igamma | Igammac
            | IgammaGradA | Zeta | Eq | Ne | Lt | Le | Gt | Ge | Complex => 2,
            Select => 3,
        }
    }

    /// Whether integer arguments can make it fail.
    pub fn is_fallible(self) -> bool {
        use Prim::*;
        matches!(self, FloorDiv | TruncDiv | FloorMod | TruncMod | Pow)
    }

    /// Whether it only moves or looks at bits, so that subnormal numbers are numbers like others.
    pub(super) fn keeps_bits(self) -> bool {
        use Prim::*;
        matches!(
            self,
            Neg | Abs
                | Sign
                | Select
                | Cast
                | Chop
                | Real
                | Imag
                | Complex
                | Conj
                | Flush
                | IsNan
                | IsInf
                | IsFinite
                | Not
                | And
                | Or
                | Xor
                | NextAfter
                | FloorMod
                | TruncMod
        )
    }

    /// Whether a subnormal argument has another result than zero has, by more than about a subnormal number;
    /// `from` is the dtype of the first argument.
    pub(super) fn distinguishes_subnormals(self, from: DType, to: DType) -> bool {
        use Prim::*;
        match self {
            Cast | Chop => from == DType::F32 && [DType::Bool, DType::F64].contains(&to),
            Div | TruncDiv | FloorDiv | FloorMod | TruncMod => from.is_float(),
            Log | Sqrt | Rsqrt | Lgamma | Floor | Ceil | Pow | Atan2 | NextAfter | Igamma
            | Igammac | IgammaGradA | Zeta | Eq | Ne | Lt | Le | Gt | Ge => true,
            _ => false,
        }
    }

    /// Whether its result is nearly zero where an argument is, whatever the others are, and not flushed.
    pub(super) fn keeps_subnormals(self) -> bool {
        use Prim::*;
        let is_nearly_linear = matches!(
            self,
            Mul | Max
                | Min
                | Expm1
                | Log1p
                | Sin
                | Tan
                | Asin
                | Atan
                | Sinh
                | Tanh
                | Asinh
                | Atanh
                | Erf
        );
        is_nearly_linear || self.keeps_bits() && self != Flush
    }

    /// The dtype of the result for first arguments of these dtypes; `Cast` and `Chop` have none of
    /// their own.
    pub(super) fn result(self, args: &[DType]) -> DType {
        use Prim::*;
        match self {
            Eq | Ne | Lt | Le | Gt | Ge | IsNan | IsInf | IsFinite => DType::Bool,
            PopCount => DType::U8,
            Real | Imag | Abs => args[0].real_type(),
            Complex if args[0] == DType::F64 => DType::C128,
            Complex => DType::C64,
            Select => args[1],
            _ => args[0],
        }
    }
}

/// A scalar constant of an expression.
#[derive(Debug, Clone, Copy)]
pub enum Constant {
    /// A value of an integer or bool dtype.
    Int(i128),
    /// A value of a float dtype, and the real part of a complex one.
    Float(f64),
}

impl Constant {
    /// The value as a float.
    pub fn to_f64(self) -> f64 {
        match self {
            Constant::Int(value) => value as f64,
            Constant::Float(value) => value,
        }
    }

    fn key(self) -> (bool, u128) {
        match self {
            Constant::Int(value) => (true, value as u128),
            Constant::Float(value) => (false, u128::from(value.to_bits())),
        }
    }
}

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Constant {}

impl std::hash::Hash for Constant {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
