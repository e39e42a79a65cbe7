//! Estimates of what calls cost: floating-point operations, and bytes of operands and results.

use crate::device::OpCall;
use ferroflow_ir::{
    DType, Expr, Lowering, Shape, expr::ExprKind, host_tensor::byte_len, ops::names,
};

/// An estimate of what a call costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpCost {
    /// Multiplications, additions and other arithmetic on elements, a multiplication with an addition being two;
    /// 0 where nothing is known of it.
    pub flops: u64,
    /// Bytes of the operands and results of known size, each once.
    pub bytes: u64,
}

impl OpCost {
    /// The cost of a call.
    ///
    /// ```
    /// use ferroflow_kernels::{OpCall, OperandSpec, cost::OpCost};
    /// use ferroflow_ir::{Attrs, DType, Shape, registry};
    ///
    /// let op = registry::find("MatMul").expect("a built-in op");
    /// let attrs = op.complete_attrs(Attrs::new().with("T", DType::F32))?;
    /// let shapes = [Shape::new([2, 3])?, Shape::new([3, 5])?];
    /// let inputs = shapes.map(|shape| OperandSpec::new(DType::F32, shape));
    /// let cost = OpCost::of(&OpCall::new(op, &attrs, &inputs, None)?);
    /// assert_eq!(cost, OpCost { flops: 2 * 30, bytes: 4 * (6 + 15 + 10) });
    /// # Ok::<(), ferroflow_kernels::Error>(())
    /// ```
    pub fn of(call: &OpCall<'_>) -> OpCost {
        if let Ok(Some(cost)) = call.with_rows(|own, _| Ok(Some(OpCost::of(own)))) {
            return cost;
        }
        let bytes = |dtype: DType, shape: &Shape| byte_len(dtype, shape).unwrap_or(0) as u64;
        let read = call.inputs.iter().map(|input| bytes(input.dtype, &input.shape));
        let written =
            call.outputs.iter().filter_map(|ty| Some(bytes(ty.dtype, &ty.shape.known()?)));
        let bytes = read.chain(written).fold(0, u64::saturating_add);
        OpCost { flops: flops(call).unwrap_or(0), bytes }
    }
}

/// The arithmetic of a call; `None` where nothing is known of it.
fn flops(call: &OpCall<'_>) -> Option<u64> {
    match call.op.name {
        names::REGION => return region(call),
        names::FUSED_CONVOLUTIONS => return convolutions(call),
        names::FUSED_EXPRESSIONS => return Some(of_expr(call.expr, results(call)?)),
        _ => {}
    }
    if let Some(count) = call.op.multiply_adds {
        let products = call.with_context(|context| Ok(count(context))).ok()??;
        return Some(products.saturating_mul(2));
    }
    match call.op.lowering {
        Lowering::Elementwise(_) => results(call),
        Lowering::Fused => Some(of_expr(call.expr, results(call)?)),
        Lowering::Reduce(_) => Some(largest_operand(call)),
        _ => None,
    }
}

/// Elements of the first result.
fn results(call: &OpCall<'_>) -> Option<u64> {
    Some(call.outputs.first()?.shape.known()?.num_elements() as u64)
}

fn largest_operand(call: &OpCall<'_>) -> u64 {
    call.inputs.iter().map(|input| input.shape.num_elements() as u64).max().unwrap_or(0)
}

/// Operations of an expression on so many elements.
fn of_expr(expr: Option<&Expr>, elements: u64) -> u64 {
    let operations = expr.map_or(0, |expr| {
        let is_operation =
            |kind: &ExprKind| matches!(kind, ExprKind::Apply(..) | ExprKind::Reduce(..));
        expr.nodes().iter().filter(|node| is_operation(&node.kind)).count()
    });
    elements.saturating_mul(operations as u64)
}

/// An anchor and the expression on its results; without one, rows, whose expression works on all elements.
fn region(call: &OpCall<'_>) -> Option<u64> {
    let anchored = call.with_anchor(|anchor, then| {
        let on_results = of_expr(Some(then.expr), results(anchor).unwrap_or(0));
        Ok(flops(anchor).map(|flops| flops.saturating_add(on_results)))
    });
    let rows = || Some(of_expr(call.expr, largest_operand(call).max(results(call)?)));
    anchored.ok()?.or_else(rows)
}

/// Convolutions of which each reads the result of the one before.
fn convolutions(call: &OpCall<'_>) -> Option<u64> {
    let mut sum = 0u64;
    let members = call
        .with_members(|member, _| Ok(flops(member).map(|flops| sum = sum.saturating_add(flops))));
    members.ok()?.map(|()| sum)
}
