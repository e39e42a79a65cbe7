//! Fused regions on the CPU.

mod operand;
pub(super) mod rows;
mod stages;

use super::Build;
use crate::{device::OpCall, error::Result, kernel::Kernel};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("_Region", region)];

fn region(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let Some(expr) = call.expr else { return Ok(None) };
    let anchor = call.attrs.func("anchor")?;
    match &*anchor.name {
        "" => rows::compile(call, expr),
        _ => Ok(None),
    }
}

/// Whether a region is faster than the nodes it stands for.
pub(super) fn gains(call: &OpCall<'_>) -> Result<bool> {
    Ok(region(call)?.is_some())
}
