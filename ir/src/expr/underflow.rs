//! Where an expression distinguishes subnormal numbers from zeros.
//!
//! Results of arithmetic that would be subnormal are zeros, but flushing each of them costs more than
//! the arithmetic. Ops put into each other flush those alone for which it shows: `x * y > 0` is false
//! for a product that underflows, and `x * y + 1` is the same either way. Products that underflow and are
//! multiplied on by something large, or summed by the thousand, are left as they are: `x * y * 1e30` is not zero.

use super::{ExprKind, ExprNode, prim::Prim};
use crate::dtype::DType;
use smallvec::{SmallVec, smallvec};

/// Whether each value is an argument of an op that distinguishes subnormal numbers from zeros, directly or
/// through ops that keep them, up to the next [`Prim::Flush`]; empty if none is.
pub(super) fn distinguished(nodes: &[ExprNode]) -> SmallVec<[bool; 32]> {
    let distinguishes = |node: &ExprNode| match &node.kind {
        ExprKind::Apply(prim, args) => {
            prim.distinguishes_subnormals(nodes[args[0].index()].dtype, node.dtype)
        }
        ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Reduce(..) => false,
    };
    let Some(last) = nodes.iter().rposition(distinguishes) else { return SmallVec::new() };
    let mut distinguished: SmallVec<[bool; 32]> = smallvec![false; nodes.len()];
    for (index, node) in nodes[..=last].iter().enumerate().rev() {
        if distinguishes(node) || distinguished[index] && keeps_subnormals(nodes, node) {
            let args = node.kind.args().iter().map(|arg| arg.index());
            args.filter(|&arg| nodes[arg].dtype != DType::Bool)
                .for_each(|arg| distinguished[arg] = true);
        }
    }
    distinguished
}

/// Whether a value is nearly zero where an argument is, and not flushed.
fn keeps_subnormals(nodes: &[ExprNode], node: &ExprNode) -> bool {
    match &node.kind {
        ExprKind::Apply(Prim::Add | Prim::Sub, args) => {
            !args.iter().any(|arg| is_far(&nodes[arg.index()]))
        }
        ExprKind::Apply(prim, _) => prim.keeps_subnormals(),
        ExprKind::Reduce(..) => true,
        ExprKind::Input(_) | ExprKind::Const(_) => false,
    }
}

/// Whether a value is a constant beside which subnormal numbers do not show.
fn is_far(node: &ExprNode) -> bool {
    matches!(node.kind, ExprKind::Const(constant) if constant.to_f64().abs() > 1e-12)
}

#[cfg(test)]
mod tests {
    use crate::{
        attr::Attrs,
        dtype::DType,
        expr::{Expr, ExprKind, Prim, Replacement, Scalar, Scalars},
    };

    type Formula = for<'s> fn(&'s Scalars<'s>) -> Scalar<'s>;

    fn expr(n_inputs: usize, formula: Formula) -> Expr {
        let inputs = vec![DType::F32; n_inputs];
        let dtype = |output| Expr::build(&Attrs::new(), &inputs, output, formula);
        dtype(DType::F32).expect("a formula of floats")
    }

    /// The values that are flushed inside an op around a product: of arithmetic, not of inputs.
    fn n_flushed(outer: Formula) -> usize {
        let product = expr(2, |s| s.x(0) * s.x(1));
        let fused = expr(1, outer).substitute(&[Replacement::Expr(&product)]);
        let again = Expr::joined(&fused, &[]);
        assert_eq!(fused, again, "copies are the same");
        let inside = fused.iter().filter(|(id, node)| match &node.kind {
            ExprKind::Apply(Prim::Flush, args) => {
                let arg = &fused.nodes()[args[0].index()].kind;
                *id != fused.root() && matches!(arg, ExprKind::Apply(..))
            }
            _ => false,
        });
        inside.count()
    }

    #[test]
    fn products_that_underflow_are_zeros_where_it_shows() {
        let shows: [Formula; 6] = [
            |s| s.x(0).gt(0.0).select(s.x(0).like(1.0), 0.0),
            |s| s.x(0).ceil(),
            |s| s.x(0).log(),
            |s| 1.0 / s.x(0),
            |s| (s.x(0) * 3.0).tanh().sqrt(),
            |s| s.x(0).lt(s.x(0).like(2.0)).select(s.x(0), 0.0),
        ];
        for formula in shows {
            assert_eq!(n_flushed(formula), 1);
        }
        let hides: [Formula; 6] = [
            |s| s.x(0) + 1.0,
            |s| (s.x(0) + 1.0).sqrt(),
            |s| 1.0 / (1.0 + (-s.x(0)).exp()),
            |s| s.x(0).max(0.0) * 2.0,
            |s| s.x(0).tanh(),
            |s| (s.x(0) * s.x(0) + 1e-5).rsqrt(),
        ];
        for formula in hides {
            assert_eq!(n_flushed(formula), 0);
        }
    }
}
