//! Expressions put into each other.

use super::{
    Expr, ExprId, ExprKind, ExprNode, add,
    prim::{Constant, Prim},
    underflow::distinguished,
};
use crate::{dtype::DType, hash::FastMap};
use smallvec::SmallVec;

/// Replacement of an input in [`Expr::substitute`].
#[derive(Debug, Clone, Copy)]
pub enum Replacement<'a> {
    /// An input of the new expression.
    Input(usize, DType),
    /// A constant.
    Const(Constant, DType),
    /// An expression, already in terms of the new inputs.
    Expr(&'a Expr),
}

/// The replacement of an input in a [`Composition`].
#[derive(Debug, Clone, Copy)]
pub enum ExprOperand {
    /// An input of the whole, by position.
    Input(usize, DType),
    /// The value of an inner expression that was added before.
    Value(ExprId),
}

/// An expression that is put together from the inside out: expressions are added over the inputs of
/// the whole and over values added before, and [`Composition::finish`] adds the outermost. It takes
/// as long as there are nodes, whereas substituting each in what is around it copies all of that.
///
/// ```
/// use ferroflow_ir::{
///     Attrs, DType, Expr,
///     expr::{Composition, ExprOperand},
/// };
///
/// let f32 = DType::F32;
/// let square = Expr::build(&Attrs::new(), &[f32], f32, |s| s.x(0) * s.x(0))?;
/// let sum = Expr::build(&Attrs::new(), &[f32; 2], f32, |s| s.x(0) + s.x(1))?;
/// let mut composition = Composition::default();
/// let inner = composition.add(&square, &[ExprOperand::Input(0, f32)]);
/// let whole = composition.finish(&sum, &[ExprOperand::Value(inner), ExprOperand::Input(1, f32)]);
/// let same = Expr::build(&Attrs::new(), &[f32; 2], f32, |s| s.x(0) * s.x(0) + s.x(1))?;
/// assert_eq!(whole, same);
/// # Ok::<(), ferroflow_ir::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Composition(ExprMerge);

impl Composition {
    /// Adds an inner expression; `operands` are its inputs, by position.
    ///
    /// # Panics
    ///
    /// When `operands` has no entry for an input that is used.
    pub fn add(&mut self, expr: &Expr, operands: &[ExprOperand]) -> ExprId {
        self.0.copy_inner(expr, |position| Some(operands[position].resolved()))
    }

    /// The outermost expression with all that was added inside.
    ///
    /// # Panics
    ///
    /// When `operands` has no entry for an input that is used.
    #[must_use]
    pub fn finish(mut self, expr: &Expr, operands: &[ExprOperand]) -> Expr {
        let root = self.0.copy(expr, |position| Some(operands[position].resolved()));
        Expr::of_one(self.0.nodes, root, expr.fault).without_dead_nodes()
    }
}

impl ExprOperand {
    fn resolved(self) -> Result<ExprId, ExprNode> {
        match self {
            ExprOperand::Value(id) => Ok(id),
            ExprOperand::Input(position, dtype) => {
                Err(ExprNode { kind: ExprKind::Input(position), dtype })
            }
        }
    }
}

/// Copies expressions into one list of nodes without repetitions.
#[derive(Debug, Default)]
pub(super) struct ExprMerge {
    pub(super) nodes: Vec<ExprNode>,
    known: FastMap<ExprNode, ExprId>,
    /// Whether each of the first values has results of arithmetic in it that were not flushed.
    computed: Vec<bool>,
}

impl ExprMerge {
    /// For expressions of so many nodes together.
    pub(super) fn with_capacity(n_nodes: usize) -> ExprMerge {
        let known = FastMap::with_capacity_and_hasher(n_nodes, Default::default());
        ExprMerge { nodes: Vec::with_capacity(n_nodes), known, computed: Vec::new() }
    }

    /// Copies an expression: `input` tells what its inputs are, where they do not stay.
    pub(super) fn copy(
        &mut self,
        expr: &Expr,
        input: impl Fn(usize) -> Option<Result<ExprId, ExprNode>>,
    ) -> ExprId {
        self.copy_to(expr, expr.root, input)
    }

    fn copy_to(
        &mut self,
        expr: &Expr,
        root: ExprId,
        input: impl Fn(usize) -> Option<Result<ExprId, ExprNode>>,
    ) -> ExprId {
        let nodes = &expr.nodes[..=root.index()];
        let distinguished = distinguished(nodes);
        let shows = |index: usize| distinguished.get(index) == Some(&true);
        let mut ids: Vec<ExprId> = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let id = match &node.kind {
                ExprKind::Input(position) => match input(*position) {
                    Some(Ok(id)) if shows(index) => self.flushed(id),
                    Some(Ok(id)) => id,
                    Some(Err(node)) => self.add(node),
                    None => self.add(node.clone()),
                },
                ExprKind::Const(_) => self.add(node.clone()),
                ExprKind::Reduce(kind, arg) => {
                    let kind = ExprKind::Reduce(*kind, ids[arg.index()]);
                    self.add(ExprNode { kind, dtype: node.dtype })
                }
                ExprKind::Apply(prim, args) => {
                    let args: SmallVec<[ExprId; 3]> =
                        args.iter().map(|arg| ids[arg.index()]).collect();
                    let is_needed = || {
                        let is_read = self.is_border(args[0]) || shows(index);
                        index == root.index() || is_read && !self.is_flushed(args[0])
                    };
                    if *prim == Prim::Flush && !is_needed() {
                        args[0]
                    } else if let Some(product) = self.power(*prim, &args, node.dtype) {
                        product
                    } else {
                        let kind = ExprKind::Apply(*prim, args);
                        self.add(ExprNode { kind, dtype: node.dtype })
                    }
                }
            };
            ids.push(id);
        }
        ids[root.index()]
    }

    /// Copies an expression that becomes part of another: what flushes its result is left out.
    pub(super) fn copy_inner(
        &mut self,
        expr: &Expr,
        input: impl Fn(usize) -> Option<Result<ExprId, ExprNode>>,
    ) -> ExprId {
        let root = match &expr.nodes[expr.root.index()].kind {
            ExprKind::Apply(Prim::Flush, args) => args[0],
            _ => expr.root,
        };
        self.copy_to(expr, root, input)
    }

    /// The square or the cube of a float as products, as TensorFlow's optimiser has it
    /// (`tensorflow/core/grappler/optimizers/arithmetic_optimizer.cc`, `ConvertPowStage`).
    fn power(&mut self, prim: Prim, args: &[ExprId], dtype: DType) -> Option<ExprId> {
        let &[base, exponent] = args else { return None };
        let ExprKind::Const(exponent) = self.nodes[exponent.index()].kind else { return None };
        let exponent = Some(exponent.to_f64()).filter(|n| [2.0, 3.0].contains(n))?;
        if prim != Prim::Pow || !dtype.is_float() {
            return None;
        }
        let mut product = |x: ExprId| {
            let kind = ExprKind::Apply(Prim::Mul, [x, base].into_iter().collect());
            self.add(ExprNode { kind, dtype })
        };
        let square = product(base);
        Some(if exponent == 2.0 { square } else { product(square) })
    }

    pub(super) fn add(&mut self, node: ExprNode) -> ExprId {
        add(&mut self.nodes, &mut self.known, node)
    }

    /// A value as the op that computes it by itself returns it.
    fn flushed(&mut self, id: ExprId) -> ExprId {
        for index in self.computed.len()..self.nodes.len() {
            self.computed.push(self.is_computed(index));
        }
        let dtype = self.nodes[id.index()].dtype;
        if !self.computed[id.index()] {
            return id;
        }
        let mut apply = |prim, arg, dtype| {
            let kind = ExprKind::Apply(prim, SmallVec::from_slice(&[arg]));
            self.add(ExprNode { kind, dtype })
        };
        match dtype {
            DType::F32 | DType::F64 => apply(Prim::Flush, id, dtype),
            // Of the range of `f32`.
            DType::BF16 => {
                let wide = apply(Prim::Cast, id, DType::F32);
                let flushed = apply(Prim::Flush, wide, DType::F32);
                apply(Prim::Cast, flushed, dtype)
            }
            _ => id,
        }
    }

    /// Whether a value has results of arithmetic in it that were not flushed, where this is known of all
    /// before it.
    fn is_computed(&self, index: usize) -> bool {
        match &self.nodes[index].kind {
            ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Apply(Prim::Flush, _) => false,
            ExprKind::Apply(prim, args) => {
                !prim.keeps_bits() || args.iter().any(|arg| self.computed[arg.index()])
            }
            ExprKind::Reduce(..) => true,
        }
    }

    /// Whether flushing leaves a value as it is.
    fn is_flushed(&self, id: ExprId) -> bool {
        let node = &self.nodes[id.index()];
        let least = match node.dtype {
            DType::F32 => f64::from(f32::MIN_POSITIVE),
            DType::F64 => f64::MIN_POSITIVE,
            _ => return false,
        };
        match node.kind {
            ExprKind::Const(Constant::Float(value)) => value == 0.0 || value.abs() >= least,
            ExprKind::Apply(Prim::Flush, _) => true,
            ExprKind::Const(Constant::Int(_))
            | ExprKind::Input(_)
            | ExprKind::Apply(..)
            | ExprKind::Reduce(..) => false,
        }
    }

    /// Whether a value comes from outside the expression, or leaves it.
    fn is_border(&self, id: ExprId) -> bool {
        match &self.nodes[id.index()].kind {
            ExprKind::Input(_) | ExprKind::Const(_) => true,
            ExprKind::Apply(Prim::Cast, args) => self.nodes[args[0].index()].dtype.is_float(),
            ExprKind::Apply(..) | ExprKind::Reduce(..) => false,
        }
    }
}
