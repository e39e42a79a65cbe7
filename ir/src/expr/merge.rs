//! Expressions put into each other.

use super::{
    Expr, ExprId, ExprKind, ExprNode, add,
    prim::{Constant, Prim},
};
use crate::dtype::DType;
use smallvec::SmallVec;
use std::collections::HashMap;

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

/// Copies expressions into one list of nodes without repetitions.
pub(super) struct ExprMerge {
    pub(super) nodes: Vec<ExprNode>,
    pub(super) known: HashMap<ExprNode, ExprId>,
}

impl ExprMerge {
    pub(super) fn copy(
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
                ExprKind::Reduce(kind, arg) => {
                    let kind = ExprKind::Reduce(*kind, ids[arg.index()]);
                    self.add(ExprNode { kind, dtype: node.dtype })
                }
                ExprKind::Apply(prim, args) => {
                    let args: SmallVec<[ExprId; 3]> =
                        args.iter().map(|arg| ids[arg.index()]).collect();
                    let inside = *prim == Prim::Flush
                        && ids.len() != expr.root.index()
                        && (!self.is_border(args[0]) || self.is_normal(args[0]));
                    if inside {
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
        ids[expr.root.index()]
    }

    /// Copies an expression that becomes part of another: what flushes its result is left out.
    pub(super) fn copy_inner(&mut self, expr: &Expr) -> ExprId {
        let root = &expr.nodes[expr.root.index()];
        match &root.kind {
            ExprKind::Apply(Prim::Flush, args) => {
                let inner = Expr::of_one(expr.nodes.clone(), args[0], None);
                self.copy(&inner, |_| None)
            }
            _ => self.copy(expr, |_| None),
        }
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

    /// Whether a value is a constant that flushing leaves as it is.
    fn is_normal(&self, id: ExprId) -> bool {
        let node = &self.nodes[id.index()];
        let least = match node.dtype {
            DType::F32 => f64::from(f32::MIN_POSITIVE),
            DType::F64 => f64::MIN_POSITIVE,
            _ => return false,
        };
        match node.kind {
            ExprKind::Const(Constant::Float(value)) => value == 0.0 || value.abs() >= least,
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
