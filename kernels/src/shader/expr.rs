//! Scalar expressions as text: the walk.

use super::{
    prim::emit,
    scalar_type::{Caps, ScalarType, literal},
};
use ferroflow_ir::{Expr, expr::ExprKind};
use std::fmt::Write;

/// The statements that compute an expression, and the name of the result. `inputs` are the values
/// of its inputs as text. `None` where a primitive has no spelling.
pub(super) fn print(expr: &Expr, inputs: &[String], caps: Caps) -> Option<(String, String)> {
    let mut lines = String::new();
    let mut names: Vec<String> = Vec::with_capacity(expr.nodes().len());
    for (index, node) in expr.nodes().iter().enumerate() {
        let scalar = ScalarType::of(node.dtype, caps)?;
        let value = match &node.kind {
            ExprKind::Input(position) => inputs.get(*position)?.clone(),
            ExprKind::Const(value) => {
                names.push(literal(*value, scalar)?);
                continue;
            }
            ExprKind::Reduce(..) => return None,
            ExprKind::Apply(prim, args) => {
                let nodes = expr.nodes();
                let dtypes: Vec<_> = args.iter().map(|arg| nodes[arg.index()].dtype).collect();
                let texts: Vec<&str> = args.iter().map(|arg| &*names[arg.index()]).collect();
                let divisor = args.get(1).and_then(|arg| match nodes[arg.index()].kind {
                    ExprKind::Const(value) => Some(value),
                    ExprKind::Input(_) | ExprKind::Apply(..) | ExprKind::Reduce(..) => None,
                });
                emit(*prim, &dtypes, node.dtype, &texts, divisor)?
            }
        };
        let name = format!("v{index}");
        let _ = writeln!(lines, "let {name} = {value};");
        names.push(name);
    }
    Some((lines, names.swap_remove(expr.root().index())))
}
