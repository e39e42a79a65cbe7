//! Counting and binning: `Bincount`, `DenseBincount`, `HistogramFixedWidth`.
//!
//! An invocation per bin looks for what belongs there.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("Bincount", bincount), ("DenseBincount", bincount), ("HistogramFixedWidth", histogram)];

/// Integers, in rows if the result has them, and their weights if there are any.
fn bincount(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((mut inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let shape = call.output_shape(0)?;
    let size = shape.last().copied().unwrap_or(0).max(1);
    let n = call.shape(0).num_elements();
    let columns = if shape.rank() == 2 { call.shape(0)[1] } else { n };
    let one = format!("{}(1)", word.name());
    let step =
        match (call.attrs.bool("binary_output").unwrap_or(false), call.shape(2).num_elements()) {
            (true, _) => one,
            (false, 0) => format!("acc + {one}"),
            (false, _) => {
                inputs.push((2, word));
                "acc + in1[at]".into()
            }
        };
    let body = format!(
        "let bin = n % {size}u;\nlet first = n / {size}u * {columns}u;\nvar acc = {};\n\
         for (var i = 0u; i < {columns}u; i++) {{\nlet at = first + i;\nlet value = in0[at];\n\
         if ({} == bin) {{ acc = {}; }}\n}}\nout0[n] = acc;\n",
        word.zero(),
        inputs[0].1.as_index("value"),
        cut(call.outputs[0].dtype, &step),
    );
    let count = shape.num_elements();
    Ok((word != ScalarType::Bool).then(|| Shader::plain(inputs, vec![word], body, count)))
}

/// Bins of one width between two ends; what is outside counts to the outermost ones.
fn histogram(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let bins = call.output_shape(0)?.num_elements();
    if inputs[0].1 != ScalarType::F32 || word == ScalarType::Bool {
        return Ok(None);
    }
    let body = format!(
        "let low = in1[0];\nlet width = (in1[1] - low) / {bins}.0f;\nvar acc = {name}(0);\n\
         for (var i = 0u; i < {}u; i++) {{\nlet value = in0[i];\n\
         let place = select(0.0f, (value - low) / width, value > low);\n\
         if (u32(clamp(place, 0.0f, {}.0f)) == n) {{ acc = acc + {name}(1); }}\n}}\nout0[n] = acc;\n",
        call.shape(0).num_elements(),
        bins.max(1) - 1,
        name = word.name(),
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, bins)))
}
