//! Scalar expressions as text: the walk.

use super::{
    prim::emit,
    scalar_type::{Caps, ScalarType, literal},
};
use ferroflow_ir::{
    DType, Expr,
    expr::{ExprId, ExprKind},
};
use std::fmt::Write;

/// The statements that compute an expression, and the name of the result. `inputs` are the values
/// of its inputs as text. `None` where a primitive has no spelling.
pub(super) fn print(expr: &Expr, inputs: &[String], caps: Caps) -> Option<(String, String)> {
    let mut lines = String::new();
    let mut names: Vec<String> = Vec::with_capacity(expr.nodes().len());
    for (id, node) in expr.iter() {
        let scalar = ScalarType::of(node.dtype, caps)?;
        let value = match &node.kind {
            ExprKind::Input(position) => inputs.get(*position)?.clone(),
            ExprKind::Const(value) => {
                names.push(literal(*value, scalar)?);
                continue;
            }
            ExprKind::Reduce(..) => return None,
            ExprKind::Apply(..) => applied(expr, id, |arg| names.get(arg.index()).cloned())?,
        };
        let name = format!("v{}", id.index());
        let _ = writeln!(lines, "let {name} = {value};");
        names.push(name);
    }
    Some((lines, names.swap_remove(expr.root().index())))
}

/// The value of a primitive of an expression, whose arguments have names. `None` where it has no
/// spelling.
pub(super) fn applied(
    expr: &Expr,
    id: ExprId,
    name: impl Fn(ExprId) -> Option<String>,
) -> Option<String> {
    let nodes = expr.nodes();
    let ExprKind::Apply(prim, args) = &nodes[id.index()].kind else { return None };
    let dtypes: Vec<DType> = args.iter().map(|arg| nodes[arg.index()].dtype).collect();
    let names: Vec<String> = args.iter().map(|&arg| name(arg)).collect::<Option<_>>()?;
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let divisor = args.get(1).and_then(|arg| match nodes[arg.index()].kind {
        ExprKind::Const(value) => Some(value),
        ExprKind::Input(_) | ExprKind::Apply(..) | ExprKind::Reduce(..) => None,
    });
    emit(*prim, &dtypes, nodes[id.index()].dtype, &texts, divisor)
}
