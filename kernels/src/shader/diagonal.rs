//! Diagonals of matrices: `MatrixDiag…`, `MatrixDiagPart…`, `MatrixSetDiag…`, `Diag`, `DiagPart`.
//!
//! Where the diagonals of a band lie is told by [`Band`]; each element of a result looks for its
//! own.

use super::{
    Shader,
    gather::zero,
    scalar_type::{Caps, ScalarType},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::diagonal::Band;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("Diag", diag),
    ("DiagPart", diag_part),
    ("MatrixDiag", matrix_diag),
    ("MatrixDiagPart", matrix_diag_part),
    ("MatrixDiagPartV2", matrix_diag_part),
    ("MatrixDiagPartV3", matrix_diag_part),
    ("MatrixDiagV2", matrix_diag),
    ("MatrixDiagV3", matrix_diag),
    ("MatrixSetDiag", matrix_set_diag),
    ("MatrixSetDiagV2", matrix_set_diag),
    ("MatrixSetDiagV3", matrix_set_diag),
];

fn diag(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let n = call.shape(0).num_elements();
    put(call, caps, &Band::main(n, n), None, None)
}

fn diag_part(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let n = call.output_shape(0)?.num_elements();
    take(call, caps, &Band::main(n, n), None)
}

fn matrix_diag(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let diagonal = call.shape(0);
    let (band, _) = call.with_context(|context| Band::of_diagonals(context, diagonal))?;
    put(call, caps, &band, None, (call.inputs.len() > 4).then_some(4))
}

fn matrix_set_diag(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let matrix = call.shape(0);
    let band = call.with_context(|context| Band::of_matrix(context, matrix, 2))?;
    put(call, caps, &band, Some(0), None)
}

fn matrix_diag_part(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let matrix = call.shape(0);
    let band = call.with_context(|context| Band::of_matrix(context, matrix, 1))?;
    take(call, caps, &band, (call.inputs.len() > 2).then_some(2))
}

/// The statements that tell of diagonal `d` the first element's `row` and `column`, how many
/// elements it has (`len`), and where they begin in the compact form (`start`).
fn of_diagonal(band: &Band) -> String {
    let side = |d: i64| if band.begins_left(d) { "0u" } else { "gap" };
    format!(
        "let row = u32(max(-d, 0));\nlet column = u32(max(d, 0));\n\
         let len = u32(clamp(min({} - i32(row), {} - i32(column)), 0, {longest}));\n\
         let gap = {longest}u - len;\nlet start = select({}, {}, d > 0);\n",
        band.rows,
        band.columns,
        side(-1),
        side(1),
        longest = band.longest,
    )
}

fn take(
    call: &OpCall<'_>,
    caps: Caps,
    band: &Band,
    padding: Option<usize>,
) -> Result<Option<Shader>> {
    let Some((mut inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let outside = other(&mut inputs, word, padding);
    let (longest, count) = (band.longest.max(1), band.count());
    let body = format!(
        "let d = {} - i32(n / {longest}u % {count}u);\n{}let k = n % {longest}u - start;\n\
         let matrix = n / {}u;\n\
         if (k < len) {{ out0[n] = in0[matrix * {}u + (row + k) * {columns}u + column + k]; }}\n\
         else {{ out0[n] = {outside}; }}\n",
        band.upper,
        of_diagonal(band),
        longest * count,
        band.rows * band.columns,
        columns = band.columns,
    );
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}

/// Puts diagonals into the matrices of input `before`, or among what is in input `padding`.
fn put(
    call: &OpCall<'_>,
    caps: Caps,
    band: &Band,
    before: Option<usize>,
    padding: Option<usize>,
) -> Result<Option<Shader>> {
    let Some(word) = ScalarType::of(call.dtype(0), caps) else { return Ok(None) };
    let mut inputs = vec![(usize::from(before.is_some()), word)];
    let outside = match before {
        Some(before) => {
            inputs.push((before, word));
            "in1[n]".to_string()
        }
        None => other(&mut inputs, word, padding),
    };
    let (rows, columns) = (band.rows.max(1), band.columns.max(1));
    let body = format!(
        "let r = n / {columns}u % {rows}u;\nlet c = n % {columns}u;\nlet d = i32(c) - i32(r);\n{}\
         let k = min(r, c);\nlet matrix = n / {}u;\n\
         if (d >= {} && d <= {upper} && k < len) {{\n\
         out0[n] = in0[(matrix * {}u + u32({upper} - d)) * {longest}u + start + k];\n\
         }} else {{ out0[n] = {outside}; }}\n",
        of_diagonal(band),
        rows * columns,
        band.lower,
        band.count(),
        upper = band.upper,
        longest = band.longest,
    );
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}

/// Value outside the diagonals: the only element of an input, or zero.
fn other(
    inputs: &mut Vec<(usize, ScalarType)>,
    word: ScalarType,
    padding: Option<usize>,
) -> String {
    match padding {
        Some(padding) => {
            inputs.push((padding, word));
            format!("in{}[0]", inputs.len() - 1)
        }
        None => zero(word).into(),
    }
}
