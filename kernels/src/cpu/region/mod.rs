//! Fused regions on the CPU: anchors with an epilogue, and rows.

#[cfg(target_arch = "x86_64")]
mod chain;
#[cfg(target_arch = "x86_64")]
mod columns;
#[cfg(target_arch = "x86_64")]
pub(super) mod epilogue;
#[cfg(target_arch = "x86_64")]
mod linear;
mod operand;
pub(super) mod rows;
mod stages;

use super::Build;
use crate::{device::OpCall, error::Result, kernel::Kernel};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("_FusedConvolutions", convolution_chain), ("_Region", region)];

/// Compiles an anchor with an epilogue.
#[cfg(target_arch = "x86_64")]
type Anchored = fn(&OpCall<'_>, epilogue::ExprEpilogue) -> Result<Option<Arc<dyn Kernel>>>;

/// The anchors that apply an epilogue to what they have just computed, by op.
#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
const LEAST_RESULTS: usize = 1 << 12;

/// As [`LEAST_RESULTS`], where the epilogue is linear steps: those need nothing to be set up.
#[cfg(target_arch = "x86_64")]
const LEAST_LINEAR_RESULTS: usize = 1 << 7;

/// The fewest columns of an anchor's result for which an epilogue pays that takes rows one by one:
/// shorter ones do not fill the tiles that it is computed in.
#[cfg(target_arch = "x86_64")]
const LEAST_COLUMNS: usize = 128;

fn region(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let Some(expr) = call.expr else { return Ok(None) };
    match &*call.attrs.func("anchor")?.name {
        "" => match rows::compile(call, expr)? {
            Some(kernel) => Ok(Some(kernel)),
            None => by_columns(call, expr),
        },
        _ => anchored(call),
    }
}

/// Compiles convolutions one after the other.
fn convolution_chain(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    #[cfg(target_arch = "x86_64")]
    return chain::compile(call);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = call;
        Ok(None)
    }
}

/// Whether a chain of convolutions is faster than its members.
pub(super) fn chain_pays(call: &OpCall<'_>) -> Result<bool> {
    Ok(convolution_chain(call)?.is_some())
}

/// Whether a region is faster than the nodes it stands for.
pub(super) fn pays(call: &OpCall<'_>) -> Result<bool> {
    Ok(region(call)?.is_some())
}

#[cfg(target_arch = "x86_64")]
fn anchored(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    use ferroflow_ir::{DType, registry};
    let anchor = call.attrs.func("anchor")?;
    let known = ANCHORS.iter().find(|(name, _)| *name == &*anchor.name);
    let (Some((_, build)), Some(op), Some(expr)) = (known, registry::find(&anchor.name), call.expr)
    else {
        return Ok(None);
    };
    let n = op.input_dtypes(&anchor.attrs)?.len();
    let own = OpCall::new(op, &anchor.attrs, &call.inputs[..n], None)?;
    let space = own.output_shape(0)?;
    if own.outputs[0].dtype != DType::F32 || space.num_elements() < LEAST_LINEAR_RESULTS {
        return Ok(None);
    }
    match epilogue::ExprEpilogue::new(expr, &space, 1, &call.inputs[n..]) {
        Some(epilogue) if !epilogue.is_linear() && space.num_elements() < LEAST_RESULTS => Ok(None),
        Some(epilogue) if epilogue.flattens() || space.last() >= Some(&LEAST_COLUMNS) => {
            build(&own, epilogue)
        }
        _ => Ok(None),
    }
}

#[cfg(target_arch = "x86_64")]
use columns::compile as by_columns;

#[cfg(not(target_arch = "x86_64"))]
fn by_columns(_: &OpCall<'_>, _: &ferroflow_ir::Expr) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(None)
}

#[cfg(not(target_arch = "x86_64"))]
fn anchored(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(None)
}
