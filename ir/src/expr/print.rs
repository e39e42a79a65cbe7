//! The text form of expressions.

use super::{Constant, Expr, ExprId, ExprKind};
use std::fmt;

/// Expressions that would be written with more calls than this are told by their size.
const MOST_CALLS: usize = 64;

impl fmt::Display for Expr {
    /// Nested calls of primitives, for each result; `$0` is input 0. What only rounds subnormal numbers is left
    /// out:
    ///
    /// ```text
    /// Mul(Exp(Sub($0, Row.Max($0))), $1)
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut calls: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let args = node.kind.args().iter().map(|arg| calls[arg.index()]);
            calls.push(args.fold(1, usize::saturating_add));
        }
        let written =
            self.results().fold(0, |all: usize, id| all.saturating_add(calls[id.index()]));
        if written > MOST_CALLS {
            return write!(f, "({} scalars)", self.nodes.len());
        }
        for (index, result) in self.results().enumerate() {
            f.write_str(if index > 0 { "; " } else { "" })?;
            self.write(f, result)?;
        }
        Ok(())
    }
}

impl Expr {
    fn write(&self, f: &mut fmt::Formatter<'_>, id: ExprId) -> fmt::Result {
        let node = &self.nodes[id.index()];
        match &node.kind {
            ExprKind::Input(position) => return write!(f, "${position}"),
            ExprKind::Const(Constant::Int(value)) => return write!(f, "{value}"),
            ExprKind::Const(Constant::Float(value)) => return write!(f, "{value}"),
            ExprKind::Apply(super::Prim::Flush, args) => return self.write(f, args[0]),
            ExprKind::Apply(super::Prim::Cast, _) => write!(f, "{}(", node.dtype)?,
            ExprKind::Apply(prim, _) => write!(f, "{prim:?}(")?,
            ExprKind::Reduce(kind, _) => write!(f, "Row.{kind:?}(")?,
        }
        for (index, &arg) in node.kind.args().iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            self.write(f, arg)?;
        }
        f.write_str(")")
    }
}
