//! Loops and branches.
//!
//! Regions of branches take nothing: they use the values around them. Those of loops take the
//! variables.

use super::{
    block::{Block, Typed, case::Direction},
    lower::{LoweredNode, body},
    scalar::element,
};
use ferroflow_ir::{DType, Result, expr::Constant, op::CallKind, pass::specialize::Specialized};

/// Adds the operation of a loop or a branch.
pub(super) fn lower(
    block: &mut Block<'_>,
    node: &LoweredNode<'_>,
    function: &Specialized,
) -> Result<Vec<Typed>> {
    let bodies = function.nested.get(&node.id).map_or(&[][..], Vec::as_slice);
    match (node.op.call, bodies) {
        (CallKind::While, [condition, repeated]) => repeat(block, node, condition, repeated),
        (CallKind::If, [yes, no]) => {
            let chosen = boolean(block, node)?;
            branch(block, node, "if", &chosen, &[yes, no])
        }
        (CallKind::Case, arms) if !arms.is_empty() => {
            let index = block.convert(node.x(0)?, DType::I32);
            branch(block, node, "case", &index, &arms.iter().collect::<Vec<_>>())
        }
        _ => Err(node.refused("calls other than loops and branches have no form in StableHLO")),
    }
}

/// The condition of a branch as a bool.
fn boolean(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Typed> {
    let x = node.x(0)?;
    if x.dtype == DType::Bool && x.dims.is_empty() {
        return Ok(x.clone());
    }
    if !x.dims.is_empty() {
        return Err(node.refused("a condition that is no scalar"));
    }
    let zero = block.constant(&element(Constant::Int(0), x.dtype)?);
    Ok(block.compare(Direction::Ne, x, &zero))
}

fn branch(
    block: &mut Block<'_>,
    node: &LoweredNode<'_>,
    name: &str,
    chosen: &Typed,
    arms: &[&Specialized],
) -> Result<Vec<Typed>> {
    let inputs: Vec<Typed> =
        (1..node.node.inputs().len()).map(|index| node.x(index).cloned()).collect::<Result<_>>()?;
    let (mut regions, mut types) = (Vec::new(), None::<Vec<(DType, Vec<usize>)>>);
    for arm in arms {
        let mut inner = Block::new(block.numbers);
        let results = body(&mut inner, arm, &inputs)?;
        let found: Vec<_> =
            results.iter().map(|result| (result.dtype, result.dims.clone())).collect();
        if types.as_ref().is_some_and(|types| *types != found) {
            return Err(node.refused("branches whose results differ in shape"));
        }
        types = Some(found);
        regions.push(inner.region(&[], &results.iter().collect::<Vec<_>>()));
    }
    let types = types.unwrap_or_default();
    let types: Vec<(DType, &[usize])> =
        types.iter().map(|(dtype, dims)| (*dtype, &dims[..])).collect();
    Ok(block.op_with(name, Vec::new(), &[chosen], regions, &types))
}

fn repeat(
    block: &mut Block<'_>,
    node: &LoweredNode<'_>,
    condition: &Specialized,
    repeated: &Specialized,
) -> Result<Vec<Typed>> {
    let inputs = node.xs()?;
    let variables = || -> Vec<Typed> {
        inputs.iter().map(|input| block.numbers.value(input.dtype, &input.dims)).collect()
    };
    let (tested, changed) = (variables(), variables());
    let mut test = Block::new(block.numbers);
    let found = body(&mut test, condition, &tested)?;
    let holds = found.first().filter(|found| found.dtype == DType::Bool && found.dims.is_empty());
    let holds = holds.ok_or_else(|| node.refused("a condition that is no bool"))?;
    let condition = test.region(&tested, &[holds]);
    let mut round = Block::new(block.numbers);
    let results = body(&mut round, repeated, &changed)?;
    let is_kept = |(result, input): (&Typed, &&Typed)| {
        (result.dtype, &result.dims) == (input.dtype, &input.dims)
    };
    if !results.iter().zip(&inputs).all(is_kept) {
        return Err(node.refused("a loop whose variables change their shapes"));
    }
    let repeated = round.region(&changed, &results.iter().collect::<Vec<_>>());
    let types: Vec<(DType, &[usize])> =
        inputs.iter().map(|input| (input.dtype, &input.dims[..])).collect();
    Ok(block.op_with("while", Vec::new(), &inputs, vec![condition, repeated], &types))
}
