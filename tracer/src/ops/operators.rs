//! Operators of Rust on tensors.
//!
//! Operators give a `Result`: shapes and dtypes may not fit. Numbers on one side take the dtype of the
//! tensor on the other; on the left they are `f64` or `i32`, which a plain `2.0` or `2` then is.
//!
//! What an operator gives is a `Result`, which the next operator takes as its operand: `x * w + b`
//! needs one `?`, behind it. Rust's rules on foreign types leave two cases out, a number or another
//! result after an operator (`x * 2.0 + 1.0`, `x * w + y * v`): they take `(x * 2.0)? + 1.0`, but in
//! functions that are traced, whose macro writes the `?` itself. Operators that assign cannot tell an error: the tensor that they leave
//! tells it where it is used.

use super::{IntoOperand, NamedOp, named};
use crate::{error::Result, tensor::Tensor, variable::Variable};
use ferroflow_ir::{Attrs, DType};
use std::{borrow::Borrow, ops};

/// An operator of tensors, variables and what other operators gave, and of numbers with those.
macro_rules! operators {
    ($($trait:ident $method:ident, $assigning:ident $assign:ident => $apply:ident;)*) => {$(
        impl<O: IntoOperand> ops::$trait<O> for &Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: O) -> Result<Tensor> {
                self.$apply(other.into_operand(self.dtype())?.borrow())
            }
        }

        impl<O: IntoOperand> ops::$trait<O> for Tensor {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: O) -> Result<Tensor> {
                self.$apply(other.into_operand(self.dtype())?.borrow())
            }
        }

        impl<O: IntoOperand> ops::$trait<O> for &Variable {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: O) -> Result<Tensor> {
                self.read()?.$apply(other.into_operand(self.dtype())?.borrow())
            }
        }

        after_operators!($trait $method: &Tensor, Tensor, &Variable);
        numbers_first!($trait $method $apply: f64 i32);

        impl<O: IntoOperand> ops::$assigning<O> for Tensor {
            /// An error is that of whatever uses the tensor next.
            #[track_caller]
            fn $assign(&mut self, other: O) {
                let found = ops::$trait::$method(&*self, other);
                *self = found.unwrap_or_else(|error| self.failed(error));
            }
        }
    )*};
}

/// Operators after another.
macro_rules! after_operators {
    ($trait:ident $method:ident: $($operand:ty),*) => {$(
        impl ops::$trait<$operand> for Result<Tensor> {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: $operand) -> Result<Tensor> {
                ops::$trait::$method(self?, other)
            }
        }
    )*};
}

macro_rules! numbers_first {
    ($trait:ident $method:ident $apply:ident: $($number:ty)*) => {$(
        impl ops::$trait<&Tensor> for $number {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: &Tensor) -> Result<Tensor> {
                self.into_operand(other.dtype())?.$apply(other)
            }
        }

        impl ops::$trait<Tensor> for $number {
            type Output = Result<Tensor>;

            #[track_caller]
            fn $method(self, other: Tensor) -> Result<Tensor> {
                self.into_operand(other.dtype())?.$apply(&other)
            }
        }
    )*};
}

operators! {
    Add add, AddAssign add_assign => add_to;
    Sub sub, SubAssign sub_assign => subtract;
    Mul mul, MulAssign mul_assign => multiply;
    Div div, DivAssign div_assign => divide_by;
    Rem rem, RemAssign rem_assign => modulo;
    BitAnd bitand, BitAndAssign bitand_assign => conjunction;
    BitOr bitor, BitOrAssign bitor_assign => disjunction;
}

impl Tensor {
    #[track_caller]
    fn add_to(&self, other: &Tensor) -> Result<Tensor> {
        static NUMBERS: NamedOp = NamedOp::new("AddV2");
        static STRINGS: NamedOp = NamedOp::new("Add");
        let op = if self.dtype() == DType::String { &STRINGS } else { &NUMBERS };
        named(op, "add", Attrs::new(), &[self, other])
    }

    /// True division: integers become floats first.
    #[track_caller]
    fn divide_by(&self, other: &Tensor) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("RealDiv");
        let float = match self.dtype() {
            DType::I8 | DType::U8 | DType::I16 | DType::U16 => Some(DType::F32),
            DType::I32 | DType::U32 | DType::I64 | DType::U64 => Some(DType::F64),
            _ => None,
        };
        match float {
            Some(float) => {
                named(&OP, "truediv", Attrs::new(), &[&self.cast(float)?, &other.cast(float)?])
            }
            None => named(&OP, "truediv", Attrs::new(), &[self, other]),
        }
    }

    #[track_caller]
    fn subtract(&self, other: &Tensor) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("Sub");
        named(&OP, "sub", Attrs::new(), &[self, other])
    }

    #[track_caller]
    fn multiply(&self, other: &Tensor) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("Mul");
        named(&OP, "mul", Attrs::new(), &[self, other])
    }

    #[track_caller]
    fn modulo(&self, other: &Tensor) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("FloorMod");
        named(&OP, "mod", Attrs::new(), &[self, other])
    }
}

impl Tensor {
    #[track_caller]
    fn conjunction(&self, other: &Tensor) -> Result<Tensor> {
        static FLAGS: NamedOp = NamedOp::new("LogicalAnd");
        static BITS: NamedOp = NamedOp::new("BitwiseAnd");
        let op = if self.dtype() == DType::Bool { &FLAGS } else { &BITS };
        named(op, "and", Attrs::new(), &[self, other])
    }

    #[track_caller]
    fn disjunction(&self, other: &Tensor) -> Result<Tensor> {
        static FLAGS: NamedOp = NamedOp::new("LogicalOr");
        static BITS: NamedOp = NamedOp::new("BitwiseOr");
        let op = if self.dtype() == DType::Bool { &FLAGS } else { &BITS };
        named(op, "or", Attrs::new(), &[self, other])
    }
}

impl ops::Neg for &Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(self)
    }
}

impl ops::Neg for Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn neg(self) -> Result<Tensor> {
        Tensor::neg(&self)
    }
}

impl ops::Not for &Tensor {
    type Output = Result<Tensor>;

    #[track_caller]
    fn not(self) -> Result<Tensor> {
        self.logical_not()
    }
}
