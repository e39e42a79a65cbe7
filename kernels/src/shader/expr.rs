//! Scalar expressions as values of kernels: the walk.

use super::{
    builder::{KernelBuilder, KernelValue},
    prim::emit,
    scalar_type::ScalarType,
};
use ferroflow_ir::{
    DType, Expr,
    expr::{ExprId, ExprKind},
};

/// The value of an expression of inputs, each node of which is bound to a name. `None` where a
/// primitive has no spelling.
pub(super) fn value<'k>(
    k: &'k KernelBuilder,
    expr: &Expr,
    inputs: &[KernelValue<'k>],
) -> Option<KernelValue<'k>> {
    let mut values: Vec<KernelValue<'k>> = Vec::with_capacity(expr.nodes().len());
    for (id, node) in expr.iter() {
        let value = match &node.kind {
            ExprKind::Input(position) => *inputs.get(*position)?,
            ExprKind::Const(value) => k.constant(ScalarType::of(node.dtype, k.caps())?, *value),
            ExprKind::Reduce(..) => return None,
            ExprKind::Apply(..) => applied(expr, id, |arg| values.get(arg.index()).copied())?,
        };
        values.push(k.bind("v", value));
    }
    Some(values.swap_remove(expr.root().index()))
}

/// The value of a primitive of an expression, whose arguments have values. `None` where it has no
/// spelling.
pub(super) fn applied<'k>(
    expr: &Expr,
    id: ExprId,
    value: impl Fn(ExprId) -> Option<KernelValue<'k>>,
) -> Option<KernelValue<'k>> {
    let nodes = expr.nodes();
    let ExprKind::Apply(prim, args) = &nodes[id.index()].kind else { return None };
    let dtypes: Vec<DType> = args.iter().map(|arg| nodes[arg.index()].dtype).collect();
    let values: Vec<KernelValue<'k>> = args.iter().map(|&arg| value(arg)).collect::<Option<_>>()?;
    let divisor = args.get(1).and_then(|arg| match nodes[arg.index()].kind {
        ExprKind::Const(value) => Some(value),
        ExprKind::Input(_) | ExprKind::Apply(..) | ExprKind::Reduce(..) => None,
    });
    emit(*prim, &dtypes, nodes[id.index()].dtype, &values, divisor)
}
