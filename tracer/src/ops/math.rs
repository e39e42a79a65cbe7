//! The operations used most, as methods of tensors.

use super::{IntoOperand, NamedOp, one};
use crate::{error::Result, tensor::Tensor};
use ferroflow_ir::{Attrs, DType};
use std::borrow::Borrow;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:literal;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// When the dtype is not one of those of the op.
            #[track_caller]
            pub fn $name(&self) -> Result<Tensor> {
                static OP: NamedOp = NamedOp::new($op);
                one(&OP, Attrs::new(), &[self])
            }
        )*}
    };
}

unary! {
    /// Magnitude.
    abs => "Abs";
    /// Round up.
    ceil => "Ceil";
    /// Cosine.
    cos => "Cos";
    /// Exponential.
    exp => "Exp";
    /// Round down.
    floor => "Floor";
    /// Whether an element is finite.
    is_finite => "IsFinite";
    /// Whether an element is not a number.
    is_nan => "IsNan";
    /// Natural logarithm.
    log => "Log";
    /// Logical not.
    logical_not => "LogicalNot";
    /// The same elements with the other sign.
    neg => "Neg";
    /// The larger of the element and 0.
    relu => "Relu";
    /// Logistic function `1 / (1 + exp(-x))`.
    sigmoid => "Sigmoid";
    /// Sign: -1, 0 or 1.
    sign => "Sign";
    /// Sine.
    sin => "Sin";
    /// Softmax over the last dimension.
    softmax => "Softmax";
    /// Square root.
    sqrt => "Sqrt";
    /// Square.
    square => "Square";
    /// Hyperbolic tangent.
    tanh => "Tanh";
    /// Zeros of the same dtype and shape.
    zeros_like => "ZerosLike";
    /// Ones of the same dtype and shape.
    ones_like => "OnesLike";
    /// The same elements, as a result of their own.
    identity => "Identity";
    /// The same elements, through which no gradient flows.
    stop_gradient => "StopGradient";
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:literal;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// When dtypes or shapes do not fit.
            #[track_caller]
            pub fn $name(&self, other: impl IntoOperand) -> Result<Tensor> {
                static OP: NamedOp = NamedOp::new($op);
                one(&OP, Attrs::new(), &[self, other.into_operand(self.dtype())?.borrow()])
            }
        )*}
    };
}

binary! {
    /// Whether elements are equal.
    equal => "Equal";
    /// Whether elements differ.
    not_equal => "NotEqual";
    /// Whether elements are less.
    less => "Less";
    /// Whether elements are less or equal.
    less_equal => "LessEqual";
    /// Whether elements are greater.
    greater => "Greater";
    /// Whether elements are greater or equal.
    greater_equal => "GreaterEqual";
    /// Whether elements are equal: as `equal`, by the name of Rust's operator.
    eq => "Equal";
    /// Whether elements differ: as `not_equal`, by the name of Rust's operator.
    ne => "NotEqual";
    /// Whether elements are less: as `less`, by the name of Rust's operator.
    lt => "Less";
    /// Whether elements are less or equal: as `less_equal`, by the name of Rust's operator.
    le => "LessEqual";
    /// Whether elements are greater: as `greater`, by the name of Rust's operator.
    gt => "Greater";
    /// Whether elements are greater or equal: as `greater_equal`, by the name of Rust's operator.
    ge => "GreaterEqual";
    /// The larger elements.
    maximum => "Maximum";
    /// The smaller elements.
    minimum => "Minimum";
    /// Power.
    pow => "Pow";
    /// Quotient rounded down.
    floor_div => "FloorDiv";
    /// Remainder with the sign of the divisor.
    floor_mod => "FloorMod";
    /// Logical and.
    logical_and => "LogicalAnd";
    /// Logical or.
    logical_or => "LogicalOr";
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $all:ident => $op:literal;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            /// Over `axes`, of which negative ones count from the end; all of them in
            #[doc = concat!("[`", stringify!($all), "`](Tensor::", stringify!($all), ").")]
            ///
            /// # Errors
            ///
            /// When there is no such axis, or the dtype is not one of those of the op.
            #[track_caller]
            pub fn $name(&self, axes: &[i32]) -> Result<Tensor> {
                static OP: NamedOp = NamedOp::new($op);
                one(&OP, Attrs::new(), &[self, &Tensor::from(axes)])
            }

            $(#[$doc])*
            /// Over all axes.
            ///
            /// # Errors
            ///
            /// When the dtype is not one of those of the op.
            #[track_caller]
            pub fn $all(&self) -> Result<Tensor> {
                static OP: NamedOp = NamedOp::new($op);
                static RANK: NamedOp = NamedOp::new("Rank");
                static RANGE: NamedOp = NamedOp::new("Range");
                let axes = match self.shape().rank() {
                    Some(rank) => Tensor::from((0..rank as i32).collect::<Vec<i32>>()),
                    None => {
                        let rank = one(&RANK, Attrs::new(), &[self])?;
                        one(&RANGE, Attrs::new(), &[&0i32.into(), &rank, &1i32.into()])?
                    }
                };
                one(&OP, Attrs::new(), &[self, &axes])
            }
        )*}
    };
}

reductions! {
    /// Sum.
    sum sum_all => "Sum";
    /// Mean.
    mean mean_all => "Mean";
    /// Product.
    prod prod_all => "Prod";
    /// Largest element.
    max max_all => "Max";
    /// Smallest element.
    min min_all => "Min";
    /// Whether all elements are true.
    all all_true => "All";
    /// Whether any element is true.
    any any_true => "Any";
}

impl Tensor {
    /// Matrix product: `[.., m, k] × [.., k, n] → [.., m, n]`.
    ///
    /// # Errors
    ///
    /// When dtypes or shapes do not fit.
    #[track_caller]
    pub fn matmul(&self, other: impl IntoOperand) -> Result<Tensor> {
        static MATRIX: NamedOp = NamedOp::new("MatMul");
        static BATCH: NamedOp = NamedOp::new("BatchMatMulV2");
        let other = other.into_operand(self.dtype())?;
        let other = other.borrow();
        let is_matrix = |tensor: &Tensor| tensor.shape().rank() == Some(2);
        let op = if is_matrix(self) && is_matrix(other) { &MATRIX } else { &BATCH };
        one(op, Attrs::new(), &[self, other])
    }

    /// The elements in another dtype.
    ///
    /// # Errors
    ///
    /// When there is no such conversion.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("Cast");
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        one(&OP, Attrs::new().with("DstT", dtype), &[self])
    }

    /// The elements under another shape; one size may be -1, which then follows from the others.
    ///
    /// # Errors
    ///
    /// When the numbers of elements differ.
    #[track_caller]
    pub fn reshape(&self, dims: &[i64]) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("Reshape");
        one(&OP, Attrs::new(), &[self, &Tensor::from(dims)])
    }

    /// The dimensions in another order.
    ///
    /// # Errors
    ///
    /// When `order` is not a permutation of the dimensions.
    #[track_caller]
    pub fn transpose(&self, order: &[i32]) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("Transpose");
        one(&OP, Attrs::new(), &[self, &Tensor::from(order)])
    }

    /// A dimension of size 1 put in at `axis`.
    ///
    /// # Errors
    ///
    /// When there is no such place.
    #[track_caller]
    pub fn expand_dims(&self, axis: i32) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("ExpandDims");
        one(&OP, Attrs::new(), &[self, &Tensor::from(axis)])
    }

    /// The rows of numbers `indices`.
    ///
    /// # Errors
    ///
    /// When there is no such row.
    #[track_caller]
    pub fn gather(&self, indices: &Tensor) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("GatherV2");
        one(&OP, Attrs::new(), &[self, indices, &Tensor::from(0i32)])
    }

    /// The position of the largest element along `axis`.
    ///
    /// # Errors
    ///
    /// When there is no such axis.
    #[track_caller]
    pub fn argmax(&self, axis: i32) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("ArgMax");
        one(&OP, Attrs::new(), &[self, &Tensor::from(axis)])
    }

    /// The sizes, as a vector of `int32`.
    ///
    /// # Errors
    ///
    /// None at present.
    #[track_caller]
    pub fn shape_tensor(&self) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("Shape");
        one(&OP, Attrs::new(), &[self])
    }

    /// Elements of `x` where this is true, of `y` elsewhere.
    ///
    /// # Errors
    ///
    /// When this is not of dtype bool, or dtypes or shapes do not fit.
    #[track_caller]
    pub fn select(&self, x: impl IntoOperand, y: impl IntoOperand) -> Result<Tensor> {
        static OP: NamedOp = NamedOp::new("SelectV2");
        let x = x.into_operand(DType::F32)?;
        let x = x.borrow();
        let y = y.into_operand(x.dtype())?;
        one(&OP, Attrs::new(), &[self, x, y.borrow()])
    }
}
