//! Projections of images: `ImageProjectiveTransformV2`, `ImageProjectiveTransformV3`.
//!
//! The rules are those of `tensorflow/core/kernels/image/image_ops.h`.

use super::{
    Shader,
    resize::image_position,
    scalar_type::{Caps, ScalarType, cut, float},
    scalar_types,
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("ImageProjectiveTransformV2", project), ("ImageProjectiveTransformV3", project)];

/// The statements that move coordinate `p` into a dimension of some size; `None` for a way to fill
/// that there is not.
fn inside(p: &str, size: usize, mode: &str) -> Option<String> {
    let (len, last) = (float(size as f32), float(size as f32 - 1.0));
    let twice = float(2.0 * size as f32);
    let clamped = format!("{p} = clamp({p}, 0.0f, {last});\n");
    Some(match mode {
        "CONSTANT" => String::new(),
        "NEAREST" => clamped,
        "REFLECT" | "WRAP" if size <= 1 => format!("{p} = 0.0f;\n"),
        "REFLECT" => format!(
            "if ({p} < 0.0f) {{\nlet q = {twice} * trunc(-{p} / {twice}) + {p};\n\
             if (q < -{len}) {{ {p} = q + {twice}; }} else {{ {p} = -q - 1.0f; }}\n\
             }} else if ({p} > {last}) {{\nlet q = {p} - {twice} * trunc({p} / {twice});\n\
             if (q >= {len}) {{ {p} = {twice} - q - 1.0f; }} else {{ {p} = q; }}\n}}\n{clamped}"
        ),
        "WRAP" => format!(
            "if ({p} < 0.0f) {{ {p} = {p} + {len} * (trunc(-{p} / {last}) + 1.0f); }}\n\
             else if ({p} > {last}) {{ {p} = {p} - {len} * trunc({p} / {last}); }}\n{clamped}"
        ),
        _ => return None,
    })
}

/// Every element of the result looks where its transform, or that of all images, puts it.
fn project(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((mut inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let (from, shape) = (call.shape(0), call.output_shape(0)?);
    let (height, width, channels) = (from[1], from[2], from[3]);
    let mode = call.attrs.string("fill_mode")?;
    let (Some(column), Some(row)) = (inside("column", width, mode), inside("row", height, mode))
    else {
        return Ok(None);
    };
    let mut fill = "0.0f";
    if call.inputs.len() > 3 {
        inputs.push((3, ScalarType::F32));
        fill = "in2[0]";
    }
    let first = if call.shape(1)[0] == 1 { "0u" } else { "image * 8u" };
    // What is read there, or the fill.
    let at = |name: &str, row: &str, column: &str| {
        format!(
            "var {name} = {fill};\n\
             if ({row} >= 0.0f && {row} < {} && {column} >= 0.0f && {column} < {}) {{\n\
             {name} = f32(in0[((image * {height}u + u32({row})) * {width}u + u32({column})) * {channels}u + channel]);\n}}\n",
            float(height as f32),
            float(width as f32),
        )
    };
    let read = match call.attrs.string("interpolation")? {
        "NEAREST" => {
            // Halves are rounded away from zero.
            let round = |name: &str| {
                format!(
                    "let near_{name} = select(floor({name} + 0.5f), -floor(0.5f - {name}), {name} < 0.0f);\n"
                )
            };
            let value = at("here", "near_row", "near_column");
            format!("{}{}{value}value = here;\n", round("row"), round("column"))
        }
        // What a rounding moves below a whole number would be cut to another one.
        "BILINEAR" if word != ScalarType::F32 => return Ok(None),
        "BILINEAR" => {
            let corners = [
                at("a", "top", "left"),
                at("b", "top", "right"),
                at("c", "bottom", "left"),
                at("d", "bottom", "right"),
            ];
            format!(
                "let top = floor(row);\nlet left = floor(column);\nlet bottom = top + 1.0f;\n\
                 let right = left + 1.0f;\n{}\
                 let upper = (right - column) * a + (column - left) * b;\n\
                 let lower = (right - column) * c + (column - left) * d;\n\
                 value = (bottom - row) * upper + (row - top) * lower;\n",
                corners.concat()
            )
        }
        _ => return Ok(None),
    };
    let result = match word {
        ScalarType::F32 => cut(call.dtype(0), "value"),
        _ => format!("{}(value)", word.name()),
    };
    let body = format!(
        "{}let t = {first};\nlet u = f32(x);\nlet v = f32(y);\n\
         let projection = in1[t + 6u] * u + in1[t + 7u] * v + 1.0f;\nvar value = {fill};\n\
         if (projection != 0.0f) {{\n\
         var column = (in1[t] * u + in1[t + 1u] * v + in1[t + 2u]) / projection;\n\
         var row = (in1[t + 3u] * u + in1[t + 4u] * v + in1[t + 5u]) / projection;\n\
         {column}{row}{read}}}\nout0[n] = {result};\n",
        image_position(&shape),
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}
