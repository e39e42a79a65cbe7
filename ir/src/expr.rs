//! Scalar expressions: the meaning of elementwise ops, independent of any device.
//!
//! A record's formula builds an [`Expr`] through [`Scalars`]; devices interpret it or print it.
//! Fusion is substitution of one expression into another.
//!
//! 16-bit floats compute in `f32`: [`Scalars::x`] widens them and [`Expr::of`] rounds the result,
//! so one op rounds once, and fusing two ops changes no bit.
//!
//! As in TensorFlow, arithmetic knows no subnormal numbers: arguments of arithmetic pass through
//! [`Prim::Flush`], and so does its result. When expressions are fused this happens at the borders
//! of the whole only.

use crate::{
    attr::Attrs,
    dtype::DType,
    error::{Code, Error, Result},
    op::{Lowering, OpDef},
};
use smallvec::SmallVec;
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    ops,
};

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
    /// Complement of the bits; of a bool, the other truth value.
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
    /// Comparisons give a bool.
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Tests give a bool.
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
    fn keeps_bits(self) -> bool {
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

    /// The dtype of the result for first arguments of these dtypes; `Cast` and `Chop` have none of
    /// their own.
    fn result(self, args: &[DType]) -> DType {
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

/// A position in [`Expr::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);

impl ExprId {
    /// The position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node of an expression computes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// An input, by position.
    Input(usize),
    /// A constant.
    Const(Constant),
    /// A scalar function of earlier nodes.
    Apply(Prim, SmallVec<[ExprId; 3]>),
}

/// One value of an expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExprNode {
    /// How it is computed.
    pub kind: ExprKind,
    /// Its dtype.
    pub dtype: DType,
}

/// A scalar expression: nodes in order of evaluation, without repetitions, the result last.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expr {
    nodes: Vec<ExprNode>,
    root: ExprId,
    /// The status of integer arithmetic that fails, where it is not that of a wrong argument.
    fault: Option<Code>,
}

impl Expr {
    /// The expression of a call of an elementwise op.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] when the op is not elementwise, [`Error::Argument`] when an
    /// attribute that the formula reads is absent.
    pub fn of(op: &'static OpDef, attrs: &Attrs, inputs: &[DType], output: DType) -> Result<Expr> {
        let Lowering::Elementwise(formula) = op.lowering else {
            let what = "it has no scalar formula".into();
            return Err(Error::Unsupported { op: op.name.into(), what });
        };
        Expr::build(attrs, inputs, output, formula)
    }

    /// The expression that `formula` builds.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when an attribute that the formula reads is absent.
    pub fn build(
        attrs: &Attrs,
        inputs: &[DType],
        output: DType,
        formula: impl for<'s> FnOnce(&'s Scalars<'s>) -> Scalar<'s>,
    ) -> Result<Expr> {
        let scalars = Scalars {
            attrs,
            inputs,
            output,
            nodes: RefCell::default(),
            known: RefCell::default(),
            error: RefCell::default(),
            fault: Cell::default(),
        };
        let root = formula(&scalars).flushed();
        let root = if root.dtype() == output { root } else { root.cast(output) }.id;
        match scalars.error.into_inner() {
            Some(error) => Err(error),
            None => {
                let (nodes, fault) = (scalars.nodes.into_inner(), scalars.fault.get());
                Ok(Expr { nodes, root, fault }.without_dead_nodes())
            }
        }
    }

    /// The nodes, each after the nodes it uses.
    pub fn nodes(&self) -> &[ExprNode] {
        &self.nodes
    }

    /// The node that is the result.
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// The dtype of the result.
    pub fn dtype(&self) -> DType {
        self.nodes[self.root.index()].dtype
    }

    /// The error when integer arithmetic `prim` of this expression fails.
    pub fn fault(&self, prim: Prim) -> Error {
        let error = if prim == Prim::Pow { Error::NegativePower } else { Error::DivisionByZero };
        match self.fault {
            Some(code) => {
                let detail = error.to_string();
                Error::Status { code, op: "integer arithmetic".into(), detail }
            }
            None => error,
        }
    }

    /// One more than the largest input position used.
    pub fn n_inputs(&self) -> usize {
        let used = self.nodes.iter().filter_map(|node| match node.kind {
            ExprKind::Input(position) => Some(position + 1),
            ExprKind::Const(_) | ExprKind::Apply(..) => None,
        });
        used.max().unwrap_or(0)
    }

    /// Whether integer division or powers in it can fail.
    pub fn is_fallible(&self) -> bool {
        self.nodes.iter().any(|node| match &node.kind {
            ExprKind::Apply(prim, _) => prim.is_fallible() && !node.dtype.is_float(),
            ExprKind::Input(_) | ExprKind::Const(_) => false,
        })
    }

    /// This expression with each input replaced: by another input, a constant, or an expression
    /// over the new inputs.
    ///
    /// # Panics
    ///
    /// When `replacements` has no entry for an input that is used, or one of another dtype.
    #[must_use]
    pub fn substitute(&self, replacements: &[Replacement<'_>]) -> Expr {
        let mut builder = Merge { nodes: Vec::new(), known: HashMap::new() };
        let new: Vec<Option<ExprId>> = replacements
            .iter()
            .map(|replacement| match replacement {
                Replacement::Expr(expr) => Some(builder.copy_inner(expr)),
                Replacement::Input(..) | Replacement::Const(..) => None,
            })
            .collect();
        let root = builder.copy(self, |position| {
            Some(match replacements[position] {
                Replacement::Input(position, dtype) => {
                    Err(ExprNode { kind: ExprKind::Input(position), dtype })
                }
                Replacement::Const(constant, dtype) => {
                    Err(ExprNode { kind: ExprKind::Const(constant), dtype })
                }
                Replacement::Expr(_) => Ok(new[position].expect("copied above")),
            })
        });
        Expr { nodes: builder.nodes, root, fault: self.fault }.without_dead_nodes()
    }

    fn without_dead_nodes(self) -> Expr {
        let mut live = vec![false; self.nodes.len()];
        live[self.root.index()] = true;
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if let (true, ExprKind::Apply(_, args)) = (live[index], &node.kind) {
                args.iter().for_each(|arg| live[arg.index()] = true);
            }
        }
        let mut new_ids = vec![ExprId(0); self.nodes.len()];
        let mut nodes = Vec::new();
        for (index, mut node) in
            self.nodes.into_iter().enumerate().filter(|(index, _)| live[*index])
        {
            if let ExprKind::Apply(_, args) = &mut node.kind {
                args.iter_mut().for_each(|arg| *arg = new_ids[arg.index()]);
            }
            new_ids[index] = ExprId(nodes.len() as u32);
            nodes.push(node);
        }
        Expr { nodes, root: new_ids[self.root.index()], fault: self.fault }
    }
}

/// What takes the place of an input in [`Expr::substitute`].
#[derive(Debug, Clone, Copy)]
pub enum Replacement<'a> {
    /// An input of the new expression.
    Input(usize, DType),
    /// A constant.
    Const(Constant, DType),
    /// An expression, already in terms of the new inputs.
    Expr(&'a Expr),
}

/// Copies expressions into one list of nodes without repetitions.
struct Merge {
    nodes: Vec<ExprNode>,
    known: HashMap<ExprNode, ExprId>,
}

impl Merge {
    fn copy(
        &mut self,
        expr: &Expr,
        input: impl Fn(usize) -> Option<Result<ExprId, ExprNode>>,
    ) -> ExprId {
        let mut ids: Vec<ExprId> = Vec::with_capacity(expr.nodes.len());
        for node in &expr.nodes {
            let id = match &node.kind {
                ExprKind::Input(position) => match input(*position) {
                    Some(Ok(id)) => id,
                    Some(Err(node)) => self.add(node),
                    None => self.add(node.clone()),
                },
                ExprKind::Const(_) => self.add(node.clone()),
                ExprKind::Apply(prim, args) => {
                    let args: SmallVec<[ExprId; 3]> =
                        args.iter().map(|arg| ids[arg.index()]).collect();
                    let inside = *prim == Prim::Flush
                        && ids.len() != expr.root.index()
                        && !self.is_border(args[0]);
                    if inside {
                        args[0]
                    } else {
                        let kind = ExprKind::Apply(*prim, args);
                        self.add(ExprNode { kind, dtype: node.dtype })
                    }
                }
            };
            ids.push(id);
        }
        ids[expr.root.index()]
    }

    /// Copies an expression that becomes part of another: what flushes its result is left out.
    fn copy_inner(&mut self, expr: &Expr) -> ExprId {
        let root = &expr.nodes[expr.root.index()];
        match &root.kind {
            ExprKind::Apply(Prim::Flush, args) => {
                let inner = Expr { nodes: expr.nodes.clone(), root: args[0], fault: None };
                self.copy(&inner, |_| None)
            }
            _ => self.copy(expr, |_| None),
        }
    }

    fn add(&mut self, node: ExprNode) -> ExprId {
        add(&mut self.nodes, &mut self.known, node)
    }

    /// Whether a value comes from outside the expression, or leaves it.
    fn is_border(&self, id: ExprId) -> bool {
        match &self.nodes[id.index()].kind {
            ExprKind::Input(_) | ExprKind::Const(_) => true,
            ExprKind::Apply(Prim::Cast, args) => self.nodes[args[0].index()].dtype.is_float(),
            ExprKind::Apply(..) => false,
        }
    }
}

fn add(nodes: &mut Vec<ExprNode>, known: &mut HashMap<ExprNode, ExprId>, node: ExprNode) -> ExprId {
    *known.entry(node).or_insert_with_key(|node| {
        nodes.push(node.clone());
        ExprId(nodes.len() as u32 - 1)
    })
}

/// What a formula builds its expression with.
#[derive(Debug)]
pub struct Scalars<'a> {
    attrs: &'a Attrs,
    inputs: &'a [DType],
    output: DType,
    nodes: RefCell<Vec<ExprNode>>,
    known: RefCell<HashMap<ExprNode, ExprId>>,
    error: RefCell<Option<Error>>,
    fault: Cell<Option<Code>>,
}

impl Scalars<'_> {
    /// Input `position`, in its compute type: 16-bit floats arrive as `f32`.
    pub fn x(&self, position: usize) -> Scalar<'_> {
        let raw = self.raw(position);
        let compute = raw.dtype().compute_type();
        if compute == raw.dtype() { raw } else { raw.cast(compute) }
    }

    /// Input `position` in its own dtype.
    pub fn raw(&self, position: usize) -> Scalar<'_> {
        let dtype = self.inputs[position];
        self.add(ExprKind::Input(position), dtype)
    }

    /// The dtype of input `position`.
    pub fn input_dtype(&self, position: usize) -> DType {
        self.inputs[position]
    }

    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The dtype of the output.
    pub fn output_dtype(&self) -> DType {
        self.output
    }

    /// A float constant of a dtype.
    pub fn value(&self, value: f64, dtype: DType) -> Scalar<'_> {
        let constant = if dtype.is_float() || dtype.is_complex() {
            Constant::Float(value)
        } else {
            Constant::Int(value as i128)
        };
        self.add(ExprKind::Const(constant), dtype)
    }

    /// An integer constant of a dtype.
    pub fn int(&self, value: i128, dtype: DType) -> Scalar<'_> {
        let constant = if dtype.is_float() || dtype.is_complex() {
            Constant::Float(value as f64)
        } else {
            Constant::Int(value)
        };
        self.add(ExprKind::Const(constant), dtype)
    }

    /// The float attribute `name`.
    pub fn float(&self, name: &str) -> f64 {
        self.attrs.float(name).map_or_else(|error| self.fail(error, 0.0), f64::from)
    }

    /// The integer attribute `name`.
    pub fn int_attr(&self, name: &str) -> i64 {
        self.attrs.int(name).unwrap_or_else(|error| self.fail(error, 0))
    }

    /// The flag `name`.
    pub fn flag(&self, name: &str) -> bool {
        self.attrs.bool(name).unwrap_or_else(|error| self.fail(error, false))
    }

    /// Gives integer arithmetic that fails this status.
    pub fn fails_with(&self, code: Code) {
        self.fault.set(Some(code));
    }

    fn fail<T>(&self, error: Error, instead: T) -> T {
        self.error.borrow_mut().get_or_insert(error);
        instead
    }

    /// `then` where `condition`, a bool, is true, else `otherwise`.
    pub fn select<'s>(
        &'s self,
        condition: Scalar<'s>,
        then: Scalar<'s>,
        otherwise: Scalar<'s>,
    ) -> Scalar<'s> {
        self.apply(Prim::Select, &[condition, then, otherwise])
    }

    /// The complex number of a real and an imaginary part.
    pub fn complex<'s>(&'s self, real: Scalar<'s>, imag: Scalar<'s>) -> Scalar<'s> {
        self.apply(Prim::Complex, &[real, imag])
    }

    fn apply<'s>(&'s self, prim: Prim, args: &[Scalar<'s>]) -> Scalar<'s> {
        debug_assert_eq!(prim.arity(), args.len());
        let dtypes: SmallVec<[DType; 3]> = args.iter().map(|arg| arg.dtype()).collect();
        let flush = |arg: &Scalar<'s>| if arg.is_bare() { arg.flush() } else { *arg };
        let ids = match prim.keeps_bits() {
            true => args.iter().map(|arg| arg.id).collect(),
            false => args.iter().map(|arg| flush(arg).id).collect(),
        };
        self.add(ExprKind::Apply(prim, ids), prim.result(&dtypes))
    }

    fn add(&self, kind: ExprKind, dtype: DType) -> Scalar<'_> {
        let (mut nodes, mut known) = (self.nodes.borrow_mut(), self.known.borrow_mut());
        Scalar { scalars: self, id: add(&mut nodes, &mut known, ExprNode { kind, dtype }) }
    }
}

/// A value of an expression under construction. Arithmetic works on it as on numbers; literals
/// take the dtype of the other operand.
#[derive(Debug, Clone, Copy)]
pub struct Scalar<'s> {
    scalars: &'s Scalars<'s>,
    id: ExprId,
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
    fn is_bare(self) -> bool {
        let nodes = self.scalars.nodes.borrow();
        match &nodes[self.id.index()].kind {
            ExprKind::Input(_) => true,
            ExprKind::Apply(Prim::Cast, args) => {
                let from = &nodes[args[0].index()];
                from.dtype.is_float() && matches!(from.kind, ExprKind::Input(_))
            }
            ExprKind::Apply(..) | ExprKind::Const(_) => false,
        }
    }

    /// The result of arithmetic without subnormal numbers; anything else as it is.
    fn flushed(self) -> Scalar<'s> {
        let arithmetic = match &self.scalars.nodes.borrow()[self.id.index()].kind {
            ExprKind::Apply(prim, _) => !prim.keeps_bits(),
            ExprKind::Input(_) | ExprKind::Const(_) => false,
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
        /// The other truth value, or the complement of the bits.
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
    /// The scalar, given the other operand.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn build(
        inputs: &[DType],
        output: DType,
        formula: impl for<'s> FnOnce(&'s Scalars<'s>) -> Scalar<'s>,
    ) -> Expr {
        Expr::build(&Attrs::new(), inputs, output, formula).unwrap()
    }

    #[test]
    fn common_subexpressions_are_shared_and_dead_ones_dropped() {
        let expr = build(&[DType::F32], DType::F32, |s| {
            let _unused = s.x(0).sin();
            s.x(0).tanh() * s.x(0).tanh()
        });
        assert_eq!(expr.nodes().len(), 5);
        assert_eq!(expr.n_inputs(), 1);
    }

    #[test]
    fn sixteen_bit_floats_compute_in_f32() {
        let expr = build(&[DType::BF16], DType::BF16, |s| s.x(0) + 1.0);
        let dtypes: Vec<DType> = expr.nodes().iter().map(|node| node.dtype).collect();
        let f32 = DType::F32;
        assert_eq!(dtypes, [DType::BF16, f32, f32, f32, f32, f32, DType::BF16]);
    }

    #[test]
    fn substitution_merges_expressions() {
        let inner = build(&[DType::F32, DType::F32], DType::F32, |s| s.x(0) + s.x(1));
        let outer = build(&[DType::F32, DType::F32], DType::F32, |s| s.x(0) * s.x(1));
        let fused =
            outer.substitute(&[Replacement::Expr(&inner), Replacement::Input(1, DType::F32)]);
        let expected = build(&[DType::F32, DType::F32], DType::F32, |s| (s.x(0) + s.x(1)) * s.x(1));
        assert_eq!(fused, expected);
    }

    #[test]
    fn an_absent_attribute_is_an_error() {
        let attrs = Attrs::new();
        let result = Expr::build(&attrs, &[DType::F32], DType::F32, |s| s.x(0) * s.float("alpha"));
        assert!(result.is_err());
    }
}
