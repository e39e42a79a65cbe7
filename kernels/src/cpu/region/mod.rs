//! Fused regions on the CPU: anchors with an epilogue, rows, and several elementwise results.

mod chain;
mod columns;
pub(super) mod epilogue;
mod expressions;
mod linear;
mod operand;
#[cfg(test)]
mod random;
pub(super) mod rows;
mod stages;

use super::Build;
use crate::{
    device::{OpCall, Support},
    error::Result,
    kernel::Kernel,
};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("_FusedConvolutions", convolution_chain),
    ("_FusedExpressions", fused_expressions),
    ("_Region", region),
];

/// Compiles an anchor with an epilogue.
type Anchored = fn(&OpCall<'_>, epilogue::ExprEpilogue) -> Result<Option<Arc<dyn Kernel>>>;

/// The anchors that apply an epilogue to what they have just computed, by op.
const ANCHORS: &[(&str, Anchored)] = &[
    ("BatchMatMul", super::matmul::with_epilogue),
    ("BatchMatMulV2", super::matmul::with_epilogue),
    ("Conv2D", super::conv::with_epilogue),
    ("Conv3D", super::conv::with_epilogue),
    ("DepthwiseConv2dNative", super::depthwise::with_epilogue),
    ("MatMul", super::matmul::with_epilogue),
];

/// The fewest elements for which setting up a region is not what counts.
const LEAST_ELEMENTS: usize = 1 << 10;

/// As [`LEAST_ELEMENTS`], of the results of an anchor: fewer stay in the nearest cache anyway.
const LEAST_RESULTS: usize = 1 << 12;

/// The fewest columns of an anchor's result for which an epilogue pays that takes rows one by one:
/// shorter ones do not fill the tiles that it is computed in.
const LEAST_COLUMNS: usize = 128;

/// The kernel of a region, and whether it is faster than the nodes it stands for.
pub(super) struct RegionKernel {
    kernel: Arc<dyn Kernel>,
    pays: bool,
}

impl RegionKernel {
    fn new(kernel: impl Kernel + 'static, pays: bool) -> RegionKernel {
        RegionKernel { kernel: Arc::new(kernel), pays }
    }
}

/// The support for a region, which may have a kernel.
pub(super) fn support(call: &OpCall<'_>) -> Result<Support> {
    let compiled = match call.op.name {
        "_FusedConvolutions" => compile_chain(call)?,
        "_FusedExpressions" => expressions::compile(call)?,
        _ => compile(call)?,
    };
    Ok(match compiled {
        Some(RegionKernel { pays: true, .. }) => Support::Pays,
        Some(_) => Support::Runs,
        None => Support::Missing,
    })
}

fn region(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(compile(call)?.map(|region| region.kernel))
}

fn compile(call: &OpCall<'_>) -> Result<Option<RegionKernel>> {
    let Some(expr) = call.expr else { return Ok(None) };
    match &*call.attrs.func("anchor")?.name {
        "" => match rows::compile(call, expr)? {
            Some(kernel) => Ok(Some(kernel)),
            None => by_columns(call, expr),
        },
        _ => anchored(call),
    }
}

fn convolution_chain(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(compile_chain(call)?.map(|chain| chain.kernel))
}

use chain::compile as compile_chain;

fn fused_expressions(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(expressions::compile(call)?.map(|expressions| expressions.kernel))
}

fn anchored(call: &OpCall<'_>) -> Result<Option<RegionKernel>> {
    use ferroflow_ir::{DType, registry};
    let anchor = call.attrs.func("anchor")?;
    let known = ANCHORS.iter().find(|(name, _)| *name == &*anchor.name);
    let (Some((_, build)), Some(op), Some(expr)) = (known, registry::find(&anchor.name), call.expr)
    else {
        return Ok(None);
    };
    let n = op.input_dtypes(&anchor.attrs)?.len();
    let own = call.part(op, &anchor.attrs, &call.inputs[..n], None)?;
    let space = own.output_shape(0)?;
    if own.outputs[0].dtype != DType::F32 || space.num_elements() == 0 {
        return Ok(None);
    }
    let Some(epilogue) = epilogue::ExprEpilogue::new(expr, &space, 1, &call.inputs[n..]) else {
        return Ok(None);
    };
    let pays = space.num_elements() >= LEAST_RESULTS
        && (epilogue.flattens() || space.last() >= Some(&LEAST_COLUMNS));
    Ok(build(&own, epilogue)?.map(|kernel| RegionKernel { kernel, pays }))
}

use columns::compile as by_columns;
