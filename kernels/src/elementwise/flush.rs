//! Operands that are flushed once, before all elements that read them again and again.

use ferroflow_ir::{
    DType, Expr, Prim,
    expr::{ExprId, ExprKind, ExprNode},
};
use std::borrow::Cow;

/// The expression of operands that are flushed before, and which those are: of the ones that `is_repeated`
/// chooses, those of which it only reads the flushed elements.
pub(crate) fn flushed_before<'a>(
    expr: &'a Expr,
    dtypes: &[DType],
    is_repeated: impl Fn(usize) -> bool,
) -> (Cow<'a, Expr>, Vec<usize>) {
    let input = |id: ExprId| match expr.nodes()[id.index()].kind {
        ExprKind::Input(position) => Some(position),
        _ => None,
    };
    let flushed_input = |node: &ExprNode| match &node.kind {
        ExprKind::Apply(Prim::Flush, args) => input(args[0]),
        _ => None,
    };
    let is_read = |position: usize| {
        let reads =
            |node: &ExprNode| node.kind.args().iter().any(|&arg| input(arg) == Some(position));
        let mut others = expr.nodes().iter().filter(|node| flushed_input(node).is_none());
        others.any(reads) || input(expr.root()) == Some(position)
    };
    let mut flushed: Vec<usize> = expr.nodes().iter().filter_map(flushed_input).collect();
    flushed.retain(|&position| {
        dtypes[position] == DType::F32 && is_repeated(position) && !is_read(position)
    });
    if flushed.is_empty() {
        return (Cow::Borrowed(expr), flushed);
    }
    let cut = |id: ExprId| {
        flushed_input(&expr.nodes()[id.index()]).filter(|position| flushed.contains(position))
    };
    (Cow::Owned(expr.part(expr.root(), cut)), flushed)
}

/// Puts zeros of the same sign for numbers that are not normal, in the bytes of floats.
pub(crate) fn flush(bytes: &mut [u8]) {
    for cell in bytes.as_chunks_mut().0 {
        let x = f32::from_ne_bytes(*cell);
        let flushed = if x.is_subnormal() { 0f32.copysign(x) } else { x };
        *cell = flushed.to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::Attrs;

    #[test]
    fn only_operands_that_are_read_flushed_alone_are_flushed_before() {
        let dtypes = [DType::F32; 3];
        // A choice reads its operands as they are.
        let expr = Expr::build(&Attrs::new(), &dtypes, DType::F32, |s| {
            s.x(0).lt(0.0).select((s.x(0) - s.x(1)) * s.x(2), s.x(2))
        });
        let expr = expr.expect("an expression");
        let flushes = |expr: &Expr| {
            let is_flush = |node: &&ExprNode| matches!(node.kind, ExprKind::Apply(Prim::Flush, _));
            expr.nodes().iter().filter(is_flush).count()
        };
        let (without, flushed) = flushed_before(&expr, &dtypes, |position| position != 0);
        assert_eq!((flushed, flushes(&expr) - flushes(&without)), (vec![1], 1));
        assert!(flushed_before(&expr, &dtypes, |_| false).1.is_empty());
    }

    #[test]
    fn zeros_keep_their_sign() {
        let mut numbers = [1e-40f32, -1e-40, f32::MIN_POSITIVE, -0.0, f32::NAN, f32::NEG_INFINITY];
        flush(bytemuck::cast_slice_mut(&mut numbers));
        let expected = [0.0, -0.0, f32::MIN_POSITIVE, -0.0, f32::NAN, f32::NEG_INFINITY];
        assert_eq!(numbers.map(f32::to_bits), expected.map(f32::to_bits));
    }
}
