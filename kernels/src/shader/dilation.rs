//! Grey-scale dilation: `Dilation2D` and its gradients. The gradient of each output goes to the
//! first tap that gave the largest sum.

use super::{
    Shader,
    pool::element,
    reduce::bound,
    scalar_type::{Caps, cut},
    scalar_types,
    window::{apart, for_each_cover, for_each_offset, inputs, outputs, together},
};
use crate::{
    device::OpCall,
    error::Result,
    plan::{sliding::dilation as sweep, window::Sweep},
};
use ferroflow_ir::DType;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("Dilation2D", dilation),
    ("Dilation2DBackpropFilter", by_filter),
    ("Dilation2DBackpropInput", by_input),
];

/// The statements that find, of window `wx`, `wy`, `wz`, the `largest` sum and its kernel offset
/// (`best`). NaN is passed over.
fn search(sweep: &Sweep, dtype: DType) -> Option<String> {
    let sum =
        cut(dtype, &format!("in0[{}] + in1[tap * {}u + channel]", element(sweep), sweep.channels));
    let inner = format!(
        "let sum = {sum};\nif (sum > largest || best == 0xffffffffu) {{\n\
         if (sum > largest) {{ largest = sum; best = tap; }}\n\
         else if (best == 0xffffffffu) {{ best = tap; }}\n}}\n"
    );
    Some(format!(
        "var largest = {};\nvar best = 0xffffffffu;\n{}",
        bound(dtype, true)?,
        for_each_offset(sweep, &inner)
    ))
}

fn dilation(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sweep = sweep(call)?;
    let Some((bound, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let Some(search) = search(&sweep, call.dtype(0)) else { return Ok(None) };
    let channels = sweep.channels.max(1);
    let body = format!(
        "let channel = n % {channels}u;\nlet window = n / {channels}u;\n{}{search}out0[n] = largest;\n",
        apart("window", "w", outputs(&sweep)),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(bound, vec![word], body, count)))
}

/// An invocation per position asks of each window that covers it whether it is its best kernel
/// offset.
fn by_input(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sweep = sweep(call)?;
    let Some((bound, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let Some(search) = search(&sweep, call.dtype(0)) else { return Ok(None) };
    let channels = sweep.channels.max(1);
    // The names of the search are those of the cover: it goes into a block of its own.
    let inner = format!(
        "let own = tap;\n{{\n{search}if (best == own) {{ total = total + in2[{} * {channels}u + channel]; }}\n}}\n",
        together("w", outputs(&sweep)),
    );
    let body = format!(
        "let channel = n % {channels}u;\nlet place = n / {channels}u;\n{}var total = {};\n{}out0[n] = {};\n",
        apart("place", "p", inputs(&sweep)),
        word.zero(),
        for_each_cover(&sweep, &inner),
        cut(call.dtype(0), "total"),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(bound, vec![word], body, count)))
}

/// An invocation per kernel offset and channel asks every window.
fn by_filter(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sweep = sweep(call)?;
    let Some((bound, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let Some(search) = search(&sweep, call.dtype(0)) else { return Ok(None) };
    let channels = sweep.channels.max(1);
    let body = format!(
        "let channel = n % {channels}u;\nlet own = n / {channels}u;\nvar total = {};\n\
         for (var window = 0u; window < {}u; window++) {{\n{}{search}\
         if (best == own) {{ total = total + in2[window * {channels}u + channel]; }}\n}}\nout0[n] = {};\n",
        word.zero(),
        sweep.n_windows(),
        apart("window", "w", outputs(&sweep)),
        cut(call.dtype(0), "total"),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(bound, vec![word], body, count)))
}
