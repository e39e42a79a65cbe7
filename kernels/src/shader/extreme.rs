//! Where extreme elements are: `ArgMax`, `ArgMin`. NaN is never extreme.

use super::{Shader, builder::KernelBuilder, index::around, reduce::extreme, scalar_type::Caps};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::infer::normalize_axis;

pub(super) const SHADERS: &[(&str, super::Build)] = &[("ArgMax", largest), ("ArgMin", smallest)];

fn largest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    argument_of_extreme(call, caps, true)
}

fn smallest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    argument_of_extreme(call, caps, false)
}

fn argument_of_extreme(call: &OpCall<'_>, caps: Caps, largest: bool) -> Result<Option<Shader>> {
    let axis = normalize_axis(call.ints(1)?[0], call.shape(0).rank())?;
    let dims = around(call.shape(0), axis);
    let (size, inner) = (dims.size, dims.inner.max(1));
    let k = KernelBuilder::new(caps);
    let ([input], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    let start = extreme(&k, call.dtype(0), largest);
    let base = k.bind("base", n / inner * (size * inner) + n % inner);
    let (best, position) = (k.variable("best", start), k.variable("position", k.index(0)));
    k.for_below("i", size, |i| {
        let x = k.bind("x", input.at(base + i * inner).compared());
        k.when(if largest { x.gt(best) } else { x.lt(best) }, || {
            best.set(x);
            position.set(i);
        });
    });
    out.set(n, position.to(out.scalar));
    k.finish(dims.outer * dims.inner)
}
