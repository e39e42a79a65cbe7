//! Values of expressions under construction: the arithmetic of formulas.

use super::{ExprId, ExprKind, Prim, Scalars};
use crate::dtype::DType;
use smallvec::SmallVec;
use std::ops;

/// A value of an expression under construction. Arithmetic works on it as on numbers; literals
/// take the dtype of the other operand.
#[derive(Debug, Clone, Copy)]
pub struct Scalar<'s> {
    pub(super) scalars: &'s Scalars<'s>,
    pub(super) id: ExprId,
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $prim:ident;)*) => {
        $($(#[$doc])* #[must_use]
        #[allow(clippy::should_implement_trait, reason = "methods chain as in formulas")]
        pub fn $name(self) -> Scalar<'s> {
            self.scalars.apply(Prim::$prim, &[self])
        })*
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $prim:ident;)*) => {
        $($(#[$doc])* #[must_use]
        #[allow(clippy::should_implement_trait, reason = "methods chain as in formulas")]
        pub fn $name(self, rhs: impl IntoScalar<'s>) -> Scalar<'s> {
            self.scalars.apply(Prim::$prim, &[self, rhs.into_scalar(self)])
        })*
    };
}

impl<'s> Scalar<'s> {
    /// The dtype.
    pub fn dtype(self) -> DType {
        self.scalars.nodes.borrow()[self.id.index()].dtype
    }

    /// A float constant of the same dtype.
    #[must_use]
    pub fn like(self, value: f64) -> Scalar<'s> {
        self.scalars.value(value, self.dtype())
    }

    /// This value converted to a dtype.
    #[must_use]
    pub fn cast(self, dtype: DType) -> Scalar<'s> {
        if dtype == self.dtype() {
            return self;
        }
        let args = SmallVec::from_slice(&[self.id]);
        self.scalars.add(ExprKind::Apply(Prim::Cast, args), dtype)
    }

    /// This value converted to a narrower float by [`Prim::Chop`].
    #[must_use]
    pub fn chop(self, dtype: DType) -> Scalar<'s> {
        let args = SmallVec::from_slice(&[self.id]);
        self.scalars.add(ExprKind::Apply(Prim::Chop, args), dtype)
    }

    /// The same value without subnormal numbers.
    pub(crate) fn flush(self) -> Scalar<'s> {
        if !matches!(self.dtype(), DType::F32 | DType::F64) {
            return self;
        }
        let args = SmallVec::from_slice(&[self.id]);
        self.scalars.add(ExprKind::Apply(Prim::Flush, args), self.dtype())
    }

    /// Whether it is an input, possibly widened.
    pub(super) fn is_bare(self) -> bool {
        let nodes = self.scalars.nodes.borrow();
        match &nodes[self.id.index()].kind {
            ExprKind::Input(_) => true,
            ExprKind::Apply(Prim::Cast, args) => {
                let from = &nodes[args[0].index()];
                from.dtype.is_float() && matches!(from.kind, ExprKind::Input(_))
            }
            ExprKind::Apply(..) | ExprKind::Const(_) | ExprKind::Reduce(..) => false,
        }
    }

    /// The result of arithmetic without subnormal numbers; anything else as it is.
    pub(super) fn flushed(self) -> Scalar<'s> {
        let arithmetic = match &self.scalars.nodes.borrow()[self.id.index()].kind {
            ExprKind::Apply(prim, _) => !prim.keeps_bits(),
            ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Reduce(..) => false,
        };
        if arithmetic { self.flush() } else { self }
    }

    /// `then` where this bool is true, else `otherwise`.
    #[must_use]
    pub fn select(self, then: Scalar<'s>, otherwise: impl IntoScalar<'s>) -> Scalar<'s> {
        self.scalars.select(self, then, otherwise.into_scalar(then))
    }

    /// `1 / x`.
    #[must_use]
    pub fn recip(self) -> Scalar<'s> {
        self.like(1.0) / self
    }

    /// The product with a real number: of each part of a complex value, so that infinite parts
    /// stay apart.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Scalar<'s> {
        if self.dtype().is_complex() {
            self.scalars.complex(self.real() * factor, self.imag() * factor)
        } else {
            self * factor
        }
    }

    /// This value as an element of the output holds it. A formula that rounds its 16-bit floats
    /// more than once says so.
    #[must_use]
    pub fn rounded(self) -> Scalar<'s> {
        self.cast(self.scalars.output).cast(self.dtype())
    }

    /// The same value, whose subnormal numbers arithmetic does not take for zeros.
    #[must_use]
    pub fn exact(self) -> Scalar<'s> {
        self.real()
    }

    /// `x * x`.
    #[must_use]
    pub fn square(self) -> Scalar<'s> {
        self * self
    }

    /// The polynomial with these coefficients, highest power first, by Horner's rule.
    #[must_use]
    pub fn polynomial(self, coefficients: &[f64]) -> Scalar<'s> {
        let mut terms = coefficients.iter();
        let first = self.like(terms.next().copied().unwrap_or(0.0));
        terms.fold(first, |sum, &coefficient| sum * self + coefficient)
    }

    /// The sum of Chebyshev polynomials `T0, T1, …` with these coefficients, by Clenshaw's
    /// recurrence. Coefficients that `f32` cannot see are left out for it.
    #[must_use]
    pub fn chebyshev(self, coefficients: &[f64]) -> Scalar<'s> {
        let epsilon = if self.dtype() == DType::F64 { 0.0 } else { f64::from(f32::EPSILON) };
        let largest = coefficients.iter().fold(0.0f64, |largest, c| largest.max(c.abs()));
        let seen = coefficients.iter().rposition(|c| c.abs() > largest * epsilon / 16.0);
        let (&constant, terms) = match (coefficients.split_first(), seen) {
            (Some((constant, terms)), Some(last)) => (constant, &terms[..last]),
            _ => return self.like(0.0),
        };
        let twice = self + self;
        let start = (self.like(0.0), self.like(0.0));
        let (first, second) = terms
            .iter()
            .rev()
            .fold(start, |(first, second), &term| (twice * first - second + term, first));
        self * first - second + constant
    }

    unary! {
        /// The absolute value; real for complex values.
        abs => Abs;
        /// The sign.
        sign => Sign;
        /// The exponential function.
        exp => Exp;
        /// `exp(x) - 1`, exact near 0.
        expm1 => Expm1;
        /// The natural logarithm.
        log => Log;
        /// `log(1 + x)`, exact near 0.
        log1p => Log1p;
        /// The square root.
        sqrt => Sqrt;
        /// `1 / sqrt(x)`.
        rsqrt => Rsqrt;
        /// Sine of radians.
        sin => Sin;
        /// Cosine of radians.
        cos => Cos;
        /// Tangent of radians.
        tan => Tan;
        /// Inverse sine.
        asin => Asin;
        /// Inverse cosine.
        acos => Acos;
        /// Inverse tangent.
        atan => Atan;
        /// Hyperbolic sine.
        sinh => Sinh;
        /// Hyperbolic cosine.
        cosh => Cosh;
        /// Hyperbolic tangent.
        tanh => Tanh;
        /// Inverse hyperbolic sine.
        asinh => Asinh;
        /// Inverse hyperbolic cosine.
        acosh => Acosh;
        /// Inverse hyperbolic tangent.
        atanh => Atanh;
        /// The error function.
        erf => Erf;
        /// `1 - erf(x)`, exact for large x.
        erfc => Erfc;
        /// Logarithm of the absolute value of the gamma function.
        lgamma => Lgamma;
        /// The largest integer not above.
        floor => Floor;
        /// The smallest integer not below.
        ceil => Ceil;
        /// The integer part.
        trunc => Trunc;
        /// The nearest integer, halves to even.
        rint => Rint;
        /// The other bool, or the complement of the bits.
        not => Not;
        /// The number of one bits.
        pop_count => PopCount;
        /// Whether it is NaN.
        is_nan => IsNan;
        /// Whether it is infinite.
        is_inf => IsInf;
        /// Whether it is neither NaN nor infinite.
        is_finite => IsFinite;
        /// The real part.
        real => Real;
        /// The imaginary part.
        imag => Imag;
        /// The complex conjugate.
        conj => Conj;
    }

    binary! {
        /// The quotient, rounded towards minus infinity.
        floor_div => FloorDiv;
        /// The quotient, rounded towards zero.
        trunc_div => TruncDiv;
        /// The remainder with the divisor's sign.
        floor_mod => FloorMod;
        /// The remainder with the dividend's sign.
        trunc_mod => TruncMod;
        /// The power.
        pow => Pow;
        /// The angle of the point `(rhs, self)`.
        atan2 => Atan2;
        /// The next representable value towards `rhs`.
        next_after => NextAfter;
        /// The larger.
        max => Max;
        /// The smaller.
        min => Min;
        /// Conjunction, of bools or bits.
        and => And;
        /// Disjunction, of bools or bits.
        or => Or;
        /// Exclusive or, of bools or bits.
        xor => Xor;
        /// Shifted left.
        shl => Shl;
        /// Shifted right.
        shr => Shr;
        /// Regularised lower incomplete gamma function.
        igamma => Igamma;
        /// Regularised upper incomplete gamma function.
        igammac => Igammac;
        /// Derivative of `igamma` by its first argument.
        igamma_grad_a => IgammaGradA;
        /// Hurwitz zeta function.
        zeta => Zeta;
        /// Equal.
        eq => Eq;
        /// Not equal.
        ne => Ne;
        /// Less.
        lt => Lt;
        /// Less or equal.
        le => Le;
        /// Greater.
        gt => Gt;
        /// Greater or equal.
        ge => Ge;
    }
}

/// A scalar, or a literal that becomes one of the other operand's dtype.
pub trait IntoScalar<'s> {
    /// The scalar, for the other operand.
    fn into_scalar(self, other: Scalar<'s>) -> Scalar<'s>;
}

impl<'s> IntoScalar<'s> for Scalar<'s> {
    fn into_scalar(self, _: Scalar<'s>) -> Scalar<'s> {
        self
    }
}

impl<'s> IntoScalar<'s> for f64 {
    fn into_scalar(self, other: Scalar<'s>) -> Scalar<'s> {
        other.like(self)
    }
}

macro_rules! operators {
    ($($trait:ident, $method:ident, $prim:ident;)*) => {
        $(
            impl<'s, R: IntoScalar<'s>> ops::$trait<R> for Scalar<'s> {
                type Output = Scalar<'s>;
                fn $method(self, rhs: R) -> Scalar<'s> {
                    self.scalars.apply(Prim::$prim, &[self, rhs.into_scalar(self)])
                }
            }
            impl<'s> ops::$trait<Scalar<'s>> for f64 {
                type Output = Scalar<'s>;
                fn $method(self, rhs: Scalar<'s>) -> Scalar<'s> {
                    rhs.scalars.apply(Prim::$prim, &[rhs.like(self), rhs])
                }
            }
        )*
    };
}

operators! {
    Add, add, Add;
    Sub, sub, Sub;
    Mul, mul, Mul;
    Div, div, Div;
}

impl<'s> ops::Neg for Scalar<'s> {
    type Output = Scalar<'s>;

    fn neg(self) -> Scalar<'s> {
        self.scalars.apply(Prim::Neg, &[self])
    }
}
