//! Where windows are largest: `MaxPoolWithArgmax`, `MaxPool3DGrad`, `MaxPool…GradGrad`.

use super::{
    Shader,
    pool::{element, windows},
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
    window::{apart, for_each_cover, for_each_offset, inputs, outputs, together},
};
use crate::{
    device::OpCall,
    error::Result,
    plan::window::{NEAR_LARGEST, Sweep},
};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("MaxPool3DGrad", all_largest),
    ("MaxPool3DGradGrad", forward),
    ("MaxPoolGradGrad", forward),
    ("MaxPoolGradGradV2", forward),
    ("MaxPoolWithArgmax", argmax),
];

/// The statements that tell of result `n` its channel and its window.
fn of_window(sweep: &Sweep) -> String {
    let channels = sweep.channels.max(1);
    format!(
        "let channel = n % {channels}u;\nlet window = n / {channels}u;\n{}",
        apart("window", "w", outputs(sweep))
    )
}

/// The element of input 2 where the window is first as large as input 1 says; 0 if nowhere.
fn forward(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let Some((bound, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let inner = format!(
        "let at = {};\nif (!found && in0[at] == own) {{\nfound = true;\nvalue = in2[at];\n}}\n",
        element(&sweep)
    );
    let body = format!(
        "{}let own = in1[n];\nvar found = false;\nvar value = {};\n{}out0[n] = value;\n",
        of_window(&sweep),
        word.zero(),
        for_each_offset(&sweep, &inner),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok((word != ScalarType::Bool).then(|| Shader::plain(bound, vec![word], body, count)))
}

/// Every element that is as large as its window gets the window's gradient; those nearer than
/// [`NEAR_LARGEST`] are.
fn all_largest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let Some((bound, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let channels = sweep.channels.max(1);
    let inner = format!(
        "let at = {} * {channels}u + channel;\nlet apart = in1[at] - own;\n\
         if (apart < {NEAR_LARGEST:e}f && -apart < {NEAR_LARGEST:e}f) {{ sum = sum + in2[at]; }}\n",
        together("w", outputs(&sweep)),
    );
    let body = format!(
        "let channel = n % {channels}u;\nlet place = n / {channels}u;\n{}let own = in0[n];\nvar sum = {};\n{}out0[n] = {};\n",
        apart("place", "p", inputs(&sweep)),
        word.zero(),
        for_each_cover(&sweep, &inner),
        cut(call.dtype(0), "sum"),
    );
    let count = call.shape(0).num_elements();
    Ok((word != ScalarType::Bool).then(|| Shader::plain(bound, vec![word], body, count)))
}

/// The first largest element and its position within its image, or from the first image on. NaN
/// stays if it comes first and is passed over otherwise.
fn argmax(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let Some((bound, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let Some(index) = ScalarType::of(call.outputs[1].dtype, caps) else { return Ok(None) };
    let image = call.shape(0)[1..].iter().product::<usize>();
    let position = match call.attrs.bool("include_batch_in_index")? {
        true => "place".to_string(),
        false => format!("place - image * {image}u"),
    };
    let inner = format!(
        "let at = {};\nlet x = in0[at];\n\
         if (!found || x > largest) {{\nfound = true;\nlargest = x;\nplace = at;\n}}\n",
        element(&sweep)
    );
    let body = format!(
        "{}var found = false;\nvar largest = {};\nvar place = image * {image}u;\n{}\
         out0[n] = largest;\nout1[n] = {}({position});\n",
        of_window(&sweep),
        word.zero(),
        for_each_offset(&sweep, &inner),
        index.name(),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok((word != ScalarType::Bool).then(|| Shader::plain(bound, vec![word, index], body, count)))
}
