//! Values of kernels and their operators.

use super::{
    super::scalar_type::ScalarType,
    KernelBuilder,
    tree::{BinaryOperator, KernelExprId, KernelExprKind, KernelLiteral, UnaryOperator},
};
use ferroflow_ir::DType;
use std::{
    borrow::Cow,
    ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub},
};

/// A value that a kernel computes: a handle that can be copied, with the operators of its type.
///
/// Operands of an operator have one type; Rust's numbers take the type of the other operand. A value
/// that is used twice is computed twice, unless it is bound to a name first.
#[derive(Debug, Clone, Copy)]
pub struct KernelValue<'k> {
    pub(super) builder: &'k KernelBuilder,
    pub(super) id: KernelExprId,
}

/// Operand of a value: another one, or a number of Rust.
pub trait KernelOperand<'k> {
    /// The value, where a number takes this type.
    fn value(self, builder: &'k KernelBuilder, scalar: ScalarType) -> KernelValue<'k>;
}

impl<'k> KernelOperand<'k> for KernelValue<'k> {
    fn value(self, _: &'k KernelBuilder, _: ScalarType) -> KernelValue<'k> {
        self
    }
}

impl<'k> KernelOperand<'k> for usize {
    fn value(self, builder: &'k KernelBuilder, scalar: ScalarType) -> KernelValue<'k> {
        builder.integer(scalar, self as i128)
    }
}

impl<'k> KernelOperand<'k> for i32 {
    fn value(self, builder: &'k KernelBuilder, scalar: ScalarType) -> KernelValue<'k> {
        builder.integer(scalar, self.into())
    }
}

impl<'k> KernelOperand<'k> for f32 {
    fn value(self, builder: &'k KernelBuilder, scalar: ScalarType) -> KernelValue<'k> {
        if scalar != ScalarType::F32 {
            builder.mismatch(format!("{self} beside {}", scalar.name()));
        }
        builder.float(self)
    }
}

/// The operator of Rust on the left for the operator of kernels on the right.
macro_rules! operators {
    ($($name:ident $method:ident),*) => {
        $(
            impl<'k, R: KernelOperand<'k>> $name<R> for KernelValue<'k> {
                type Output = KernelValue<'k>;
                fn $method(self, right: R) -> KernelValue<'k> {
                    self.binary(BinaryOperator::$name, right)
                }
            }

            impl<'k> $name<KernelValue<'k>> for usize {
                type Output = KernelValue<'k>;
                fn $method(self, right: KernelValue<'k>) -> KernelValue<'k> {
                    self.value(right.builder, right.scalar()).binary(BinaryOperator::$name, right)
                }
            }

            impl<'k> $name<KernelValue<'k>> for f32 {
                type Output = KernelValue<'k>;
                fn $method(self, right: KernelValue<'k>) -> KernelValue<'k> {
                    self.value(right.builder, right.scalar()).binary(BinaryOperator::$name, right)
                }
            }
        )*
    };
}

operators!(
    Add add, Sub sub, Mul mul, Div div, Rem rem,
    BitAnd bitand, BitOr bitor, BitXor bitxor, Shl shl, Shr shr
);

impl<'k> Neg for KernelValue<'k> {
    type Output = KernelValue<'k>;
    fn neg(self) -> KernelValue<'k> {
        self.unary(UnaryOperator::Neg)
    }
}

/// Of a bool the opposite, of an integer all bits.
impl<'k> Not for KernelValue<'k> {
    type Output = KernelValue<'k>;
    fn not(self) -> KernelValue<'k> {
        let is_bool = self.scalar() == ScalarType::Bool;
        self.unary(if is_bool { UnaryOperator::Not } else { UnaryOperator::Complement })
    }
}

/// The methods of comparisons and conditions.
macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident $name:ident),*) => {
        $(
            $(#[$doc])*
            pub fn $method(self, right: impl KernelOperand<'k>) -> KernelValue<'k> {
                self.binary(BinaryOperator::$name, right)
            }
        )*
    };
}

impl<'k> KernelValue<'k> {
    methods!(
        /// Whether the left number is less.
        lt Lt,
        /// Whether the left number is not greater.
        le Le,
        /// Whether the left number is greater.
        gt Gt,
        /// Whether the left number is not less.
        ge Ge,
        /// Whether both values are equal.
        eq Eq,
        /// Whether both values differ.
        ne Ne,
        /// Whether both hold; the right one is not computed where the left one does not.
        and And,
        /// Whether one of both holds.
        or Or
    );

    /// The type.
    pub fn scalar(self) -> ScalarType {
        self.builder.code.borrow().tree.scalar(self.id)
    }

    /// Assigns to a variable or an element.
    pub fn set(self, value: impl KernelOperand<'k>) {
        let value = value.value(self.builder, self.scalar());
        if value.scalar() != self.scalar() {
            let (own, other) = (self.scalar().name(), value.scalar().name());
            self.builder.mismatch(format!("{other} assigned to {own}"));
        }
        self.builder.assign(self.id, value.id);
    }

    /// The value bound to a name, so that it is computed once, here.
    pub fn bound(self, name: &str) -> KernelValue<'k> {
        self.builder.bind(name, self)
    }

    /// Chooses one of two values of a type by this condition. Both are computed.
    pub fn select(self, yes: impl KernelOperand<'k>, no: KernelValue<'k>) -> KernelValue<'k> {
        let yes = yes.value(self.builder, no.scalar());
        if self.scalar() != ScalarType::Bool || yes.scalar() != no.scalar() {
            self.builder.mismatch("select".to_string());
        }
        self.builder.call("select", no.scalar(), [no, yes, self])
    }

    /// A function of one argument, of the same type as that.
    pub fn function(self, name: impl Into<Cow<'static, str>>) -> KernelValue<'k> {
        self.builder.call(name, self.scalar(), [self])
    }

    /// A function of two arguments of one type, which is the result's too.
    pub fn function_with(
        self,
        name: impl Into<Cow<'static, str>>,
        other: impl KernelOperand<'k>,
    ) -> KernelValue<'k> {
        let other = other.value(self.builder, self.scalar());
        if other.scalar() != self.scalar() {
            self.builder.mismatch(format!("a function of a {}", other.scalar().name()));
        }
        self.builder.call(name, self.scalar(), [self, other])
    }

    /// The lesser of two numbers, as the language has it: of floats, no NaN.
    pub fn min(self, other: impl KernelOperand<'k>) -> KernelValue<'k> {
        self.function_with("min", other)
    }

    /// The greater of two numbers, as the language has it: of floats, no NaN.
    pub fn max(self, other: impl KernelOperand<'k>) -> KernelValue<'k> {
        self.function_with("max", other)
    }

    /// The largest whole number that is not larger.
    pub fn floor(self) -> KernelValue<'k> {
        self.function("floor")
    }

    /// The nearest number between two.
    pub fn clamp(
        self,
        low: impl KernelOperand<'k>,
        high: impl KernelOperand<'k>,
    ) -> KernelValue<'k> {
        let scalar = self.scalar();
        let (low, high) = (low.value(self.builder, scalar), high.value(self.builder, scalar));
        if low.scalar() != scalar || high.scalar() != scalar {
            self.builder.mismatch(format!("a {} between other numbers", scalar.name()));
        }
        self.builder.call("clamp", scalar, [self, low, high])
    }

    /// The value converted to a type: to integers towards zero, without wrapping; bools are 0 or 1.
    pub fn to(self, scalar: ScalarType) -> KernelValue<'k> {
        match self.scalar() {
            own if own == scalar => self,
            ScalarType::Bool => {
                self.select(self.builder.number(scalar, 1), self.builder.number(scalar, 0))
            }
            _ => self.builder.call(scalar.name(), scalar, [self]),
        }
    }

    /// An index as a `u32`; numbers below zero become large.
    pub fn as_index(self) -> KernelValue<'k> {
        if !matches!(self.scalar(), ScalarType::I64 | ScalarType::U64) {
            return self.to(ScalarType::U32);
        }
        // Truncation of a number beyond 32 bits could land inside.
        let (wide, largest) = (self.builder.bind("wide", self), 0x7fff_ffff_usize);
        let fits = match wide.scalar() {
            ScalarType::I64 => wide.ge(0usize).and(wide.lt(largest)),
            _ => wide.lt(largest),
        };
        let none = self.builder.integer(ScalarType::U32, u32::MAX.into());
        fits.select(wide.to(ScalarType::U32), none)
    }

    /// A value as comparisons take it: subnormal numbers are zeros, as on the host.
    pub fn compared(self) -> KernelValue<'k> {
        if self.scalar() == ScalarType::F32 { self.function("flush_") } else { self }
    }

    /// A result as an element of a dtype: rounded, or cut to its width.
    pub fn rounded(self, dtype: DType) -> KernelValue<'k> {
        match dtype {
            DType::F16 => self.function("round_f16_"),
            DType::BF16 => self.function("round_bf16_"),
            DType::I8 => (self << 24usize) >> 24usize,
            DType::I16 => (self << 16usize) >> 16usize,
            DType::U8 => self & 0xffusize,
            DType::U16 => self & 0xffffusize,
            _ => self,
        }
    }

    /// The bits of a float.
    pub fn bits(self) -> KernelValue<'k> {
        self.builder.call("to_bits", ScalarType::U32, [self])
    }

    /// Whether a float is neither infinite nor NaN.
    pub fn is_finite(self) -> KernelValue<'k> {
        (self.bits() & 0x7f80_0000_usize).ne(0x7f80_0000_usize)
    }

    /// Whether a float is NaN; other numbers are not.
    pub fn is_nan(self) -> KernelValue<'k> {
        match self.scalar() {
            ScalarType::F32 => self.builder.call("is_nan_", ScalarType::Bool, [self]),
            _ => self.builder.bool(false),
        }
    }

    /// A function of one argument, with the type of its result.
    pub fn function_to(
        self,
        name: impl Into<Cow<'static, str>>,
        result: ScalarType,
    ) -> KernelValue<'k> {
        self.builder.call(name, result, [self])
    }

    /// A number of this value's type.
    pub fn number(self, value: i32) -> KernelValue<'k> {
        self.builder.number(self.scalar(), value)
    }

    /// A float.
    pub fn float(self, value: f32) -> KernelValue<'k> {
        self.builder.float(value)
    }

    /// An index or a size.
    pub fn index(self, value: usize) -> KernelValue<'k> {
        self.builder.index(value)
    }

    /// Whether both are the same expression.
    pub fn is(self, other: KernelValue<'k>) -> bool {
        let tree = &self.builder.code.borrow().tree;
        self.id == other.id || tree.kind(self.id) == tree.kind(other.id)
    }

    fn unary(self, operator: UnaryOperator) -> KernelValue<'k> {
        if let (UnaryOperator::Not, Some(KernelLiteral::Bool(value))) = (operator, self.literal()) {
            return self.builder.bool(!value);
        }
        self.builder.expr(KernelExprKind::Unary(operator, self.id), self.scalar())
    }

    fn binary(self, operator: BinaryOperator, right: impl KernelOperand<'k>) -> KernelValue<'k> {
        use BinaryOperator::{And, BitAnd, BitOr, BitXor, Eq, Ne, Or, Shl, Shr};
        let (builder, scalar) = (self.builder, self.scalar());
        let shifts = matches!(operator, Shl | Shr);
        let right = right.value(builder, if shifts { ScalarType::U32 } else { scalar });
        let expected = if shifts { ScalarType::U32 } else { scalar };
        let takes = match operator {
            And | Or => scalar == ScalarType::Bool,
            Eq | Ne | BitAnd | BitOr | BitXor => true,
            _ => scalar != ScalarType::Bool,
        };
        if right.scalar() != expected || !takes {
            let names = (scalar.name(), operator.symbol(), right.scalar().name());
            builder.mismatch(format!("{} {} {}", names.0, names.1, names.2));
        }
        if let Some(folded) = self.folded(operator, right) {
            return folded;
        }
        let result = if operator.compares() { ScalarType::Bool } else { scalar };
        builder.expr(KernelExprKind::Binary(operator, self.id, right.id), result)
    }

    /// The value of index arithmetic and comparisons of numbers that are known, and of conditions of
    /// which one is. Floats are left as they are.
    fn folded(self, operator: BinaryOperator, right: KernelValue<'k>) -> Option<KernelValue<'k>> {
        use BinaryOperator::{Add, And, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Or, Rem, Sub};
        let literal = |value: KernelValue<'k>| match value.literal() {
            Some(KernelLiteral::Int(value)) if self.scalar() == ScalarType::U32 => Some(value),
            Some(KernelLiteral::Bool(value)) => Some(value.into()),
            _ => None,
        };
        // Numbers wrap as the device's do.
        let wrapped = |value: i128| self.builder.index(value.rem_euclid(1 << 32) as usize);
        let known = |value: bool| self.builder.bool(value);
        Some(match (operator, literal(self), literal(right)) {
            (And, _, Some(1)) | (Or, _, Some(0)) => self,
            (And, Some(1), _) | (Or, Some(0), _) => right,
            (And, Some(0), _) | (Or, Some(1), _) => self,
            (Add | Sub, _, Some(0)) | (Mul | Div, _, Some(1)) => self,
            (Add, Some(0), _) | (Mul, Some(1), _) => right,
            (Mul, Some(0), _) | (Mul, _, Some(0)) | (Rem, _, Some(1)) => wrapped(0),
            (Add, Some(a), Some(b)) => wrapped(a + b),
            (Sub, Some(a), Some(b)) => wrapped(a - b),
            (Mul, Some(a), Some(b)) => wrapped(a * b),
            (Div, Some(a), Some(b)) if b != 0 => wrapped(a / b),
            (Rem, Some(a), Some(b)) if b != 0 => wrapped(a % b),
            (Lt, Some(a), Some(b)) => known(a < b),
            (Le, Some(a), Some(b)) => known(a <= b),
            (Gt, Some(a), Some(b)) => known(a > b),
            (Ge, Some(a), Some(b)) => known(a >= b),
            (Eq, Some(a), Some(b)) => known(a == b),
            (Ne, Some(a), Some(b)) => known(a != b),
            _ => return None,
        })
    }

    fn literal(self) -> Option<KernelLiteral> {
        self.builder.code.borrow().tree.literal(self.id)
    }
}
