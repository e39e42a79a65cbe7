//! Views: each output is a strided window of input 0.

use super::{Shader, builder::KernelBuilder, index::position, scalar_type::Caps};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{StridedView, infer::OpContext};

/// The shader of a view.
///
/// # Errors
///
/// Those of the view's rule.
pub(super) fn shader(
    call: &OpCall<'_>,
    caps: Caps,
    rule: fn(&OpContext<'_>) -> ferroflow_ir::Result<Vec<StridedView>>,
) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([data], n) = (k.inputs(call, [0]), k.element());
    let views = call.with_context(rule)?;
    let len = call.shape(0).num_elements();
    k.requires(views.iter().all(|view| view.fits(len)));
    let count = views.iter().map(StridedView::num_elements).max().unwrap_or(0);
    for view in &views {
        let (out, size) = (k.output(call.dtype(0)), view.num_elements());
        let inside = if size == count { k.bool(true) } else { n.lt(size) };
        if size > 0 {
            k.when(inside, || out.set(n, data.at(position(&k, view, n))));
        }
    }
    k.finish(count)
}
