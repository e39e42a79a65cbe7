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
//! of the whole, and inside where an op distinguishes subnormal numbers from zeros: see `underflow`.

mod merge;
mod part;
mod prim;
mod print;
mod scalar;
mod scalars;
mod underflow;

use crate::{
    attr::Attrs,
    dtype::DType,
    error::{Code, Error, Result},
    hash::FastMap,
    op::{Lowering, OpDef, ReduceKind},
};
use merge::ExprMerge;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

pub use merge::{Composition, ExprOperand, Replacement};
pub use prim::{Constant, Prim};
pub use scalar::{IntoScalar, Scalar};
pub use scalars::Scalars;

/// A position in [`Expr::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);

impl ExprId {
    /// The position as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Operation of a node of an expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// An input, by position.
    Input(usize),
    /// A constant.
    Const(Constant),
    /// A scalar function of earlier nodes.
    Apply(Prim, SmallVec<[ExprId; 3]>),
    /// The reduction of an earlier node over the reduced axes of a region: see
    /// [`regions`](crate::pass::region). Expressions of single elements have none.
    Reduce(ReduceKind, ExprId),
}

impl ExprKind {
    /// The nodes that it is computed from.
    pub fn args(&self) -> &[ExprId] {
        match self {
            ExprKind::Input(_) | ExprKind::Const(_) => &[],
            ExprKind::Apply(_, args) => args,
            ExprKind::Reduce(_, arg) => std::slice::from_ref(arg),
        }
    }

    fn args_mut(&mut self) -> &mut [ExprId] {
        match self {
            ExprKind::Input(_) | ExprKind::Const(_) => &mut [],
            ExprKind::Apply(_, args) => args,
            ExprKind::Reduce(_, arg) => std::slice::from_mut(arg),
        }
    }
}

/// A value of an expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExprNode {
    /// Operation that computes it.
    pub kind: ExprKind,
    /// Its dtype.
    pub dtype: DType,
}

/// A scalar expression: nodes in order of evaluation, without repetitions. [Joined](Expr::joined) ones
/// have several results.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expr {
    nodes: Vec<ExprNode>,
    root: ExprId,
    /// The results besides the root.
    others: Vec<ExprId>,
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
                Ok(Expr::of_one(nodes, root, fault).without_dead_nodes())
            }
        }
    }

    /// The nodes, each after the nodes it uses.
    pub fn nodes(&self) -> &[ExprNode] {
        &self.nodes
    }

    /// The node that is the result; of several, the first.
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// The nodes that are results, the root first.
    pub fn results(&self) -> impl Iterator<Item = ExprId> {
        std::iter::once(self.root).chain(self.others.iter().copied())
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

    /// End of the input positions used.
    pub fn n_inputs(&self) -> usize {
        let used = self.nodes.iter().filter_map(|node| match node.kind {
            ExprKind::Input(position) => Some(position + 1),
            ExprKind::Const(_) | ExprKind::Apply(..) | ExprKind::Reduce(..) => None,
        });
        used.max().unwrap_or(0)
    }

    /// Whether integer division or powers in it can fail.
    pub fn is_fallible(&self) -> bool {
        self.nodes.iter().any(|node| match &node.kind {
            ExprKind::Apply(prim, _) => prim.is_fallible() && !node.dtype.is_float(),
            ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Reduce(..) => false,
        })
    }

    /// Whether it has reductions.
    pub fn reduces(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.kind, ExprKind::Reduce(..)))
    }

    /// The expression that has the results of several, over the same inputs: that of the first, which is
    /// computed last, and those of `others`. What they have in common is computed once.
    ///
    /// ```
    /// use ferroflow_ir::{Attrs, DType, Expr};
    ///
    /// let f32 = DType::F32;
    /// let sum = Expr::build(&Attrs::new(), &[f32; 2], f32, |s| s.x(0) + s.x(1))?;
    /// let ratio = Expr::build(&Attrs::new(), &[f32; 2], f32, |s| (s.x(0) + s.x(1)) / s.x(1))?;
    /// let both = Expr::joined(&ratio, &[sum]);
    /// assert_eq!(both.results().count(), 2);
    /// assert_eq!(both.nodes().len(), ratio.nodes().len() + 1);
    /// # Ok::<(), ferroflow_ir::Error>(())
    /// ```
    #[must_use]
    pub fn joined(first: &Expr, others: &[Expr]) -> Expr {
        let n_nodes = others.iter().chain([first]).map(|expr| expr.nodes.len()).sum();
        let mut merge = ExprMerge::with_capacity(n_nodes);
        let others = others.iter().map(|other| merge.copy(other, |_| None)).collect();
        let root = merge.copy(first, |_| None);
        Expr { nodes: merge.nodes, root, others, fault: first.fault }.without_dead_nodes()
    }

    /// This expression with each input replaced: by another input, a constant, or an expression
    /// over the new inputs.
    ///
    /// # Panics
    ///
    /// When `replacements` has no entry for an input that is used, or one of another dtype.
    #[must_use]
    pub fn substitute(&self, replacements: &[Replacement<'_>]) -> Expr {
        let size = |replacement: &Replacement<'_>| match replacement {
            Replacement::Expr(expr) => expr.nodes.len(),
            Replacement::Input(..) | Replacement::Const(..) => 0,
        };
        let n_inner: usize = replacements.iter().map(size).sum();
        let mut builder = ExprMerge::with_capacity(self.nodes.len() + n_inner);
        let new: SmallVec<[Option<ExprId>; 8]> = replacements
            .iter()
            .map(|replacement| match replacement {
                Replacement::Expr(expr) => Some(builder.copy_inner(expr, |_| None)),
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
        Expr::of_one(builder.nodes, root, self.fault).without_dead_nodes()
    }

    /// An expression of one result.
    fn of_one(nodes: Vec<ExprNode>, root: ExprId, fault: Option<Code>) -> Expr {
        Expr { nodes, root, others: Vec::new(), fault }
    }

    fn without_dead_nodes(self) -> Expr {
        let mut live = vec![false; self.nodes.len()];
        self.results().for_each(|result| live[result.index()] = true);
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if live[index] {
                node.kind.args().iter().for_each(|arg| live[arg.index()] = true);
            }
        }
        if live.iter().all(|&live| live) {
            return self;
        }
        let mut new_ids = vec![ExprId(0); self.nodes.len()];
        let mut nodes = Vec::new();
        for (index, mut node) in
            self.nodes.into_iter().enumerate().filter(|(index, _)| live[*index])
        {
            node.kind.args_mut().iter_mut().for_each(|arg| *arg = new_ids[arg.index()]);
            new_ids[index] = ExprId(nodes.len() as u32);
            nodes.push(node);
        }
        let others = self.others.iter().map(|other| new_ids[other.index()]).collect();
        Expr { nodes, root: new_ids[self.root.index()], others, fault: self.fault }
    }
}

fn add(nodes: &mut Vec<ExprNode>, known: &mut FastMap<ExprNode, ExprId>, node: ExprNode) -> ExprId {
    *known.entry(node).or_insert_with_key(|node| {
        nodes.push(node.clone());
        ExprId(nodes.len() as u32 - 1)
    })
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
    fn squares_and_cubes_are_products() {
        let power = build(&[DType::F32; 2], DType::F32, |s| s.x(0).pow(s.x(1)));
        let of = |exponent: f64| {
            let exponent = Replacement::Const(Constant::Float(exponent), DType::F32);
            power.substitute(&[Replacement::Input(0, DType::F32), exponent]).to_string()
        };
        assert_eq!(of(2.0), "Mul($0, $0)");
        assert_eq!(of(3.0), "Mul(Mul($0, $0), $0)");
        assert_eq!(of(2.5), "Pow($0, 2.5)");
    }

    #[test]
    fn an_absent_attribute_is_an_error() {
        let attrs = Attrs::new();
        let result = Expr::build(&attrs, &[DType::F32], DType::F32, |s| s.x(0) * s.float("alpha"));
        assert!(result.is_err());
    }
}
