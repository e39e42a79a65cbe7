//! Views: each output is a strided window of input 0.

use super::{
    Shader,
    index::position,
    scalar_type::{Caps, ScalarType},
};
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
    let Some(word) = ScalarType::of(call.dtype(0), caps) else { return Ok(None) };
    let views = call.with_context(rule)?;
    let len = call.shape(0).num_elements();
    if !views.iter().all(|view| view.fits(len)) {
        return Ok(None);
    }
    let count = views.iter().map(StridedView::num_elements).max().unwrap_or(0);
    let mut body = String::new();
    for (index, view) in views.iter().enumerate() {
        let n = view.num_elements();
        if n == 0 {
            continue;
        }
        let copy = format!("out{index}[n] = in0[{}];\n", position(view, "n"));
        body += &if n == count { copy } else { format!("if (n < {n}u) {{ {copy} }}\n") };
    }
    Ok(Some(Shader::plain(vec![(0, word)], vec![word; views.len()], body, count)))
}
