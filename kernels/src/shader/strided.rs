//! Elements put among zeros, or over others: `StridedSliceGrad`, `TensorStridedSliceUpdate`, and
//! what is kept around diagonals: `MatrixBandPart`.

use super::{
    Shader,
    gather::zero,
    scalar_type::{Caps, ScalarType},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{Shape, StridedView, strided_slice::strided_slice};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("MatrixBandPart", band),
    ("StridedSliceGrad", |call, caps| put(call, caps, None)),
    ("TensorStridedSliceUpdate", |call, caps| put(call, caps, Some(0))),
];

/// The position of the input that is put into the window.
const ELEMENTS: usize = 4;

/// Every element of the result asks whether the window covers it.
fn put(call: &OpCall<'_>, caps: Caps, before: Option<usize>) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let (view, _) = call.with_context(|context| strided_slice(context, &shape))?;
    let Some(word) = ScalarType::of(call.dtype(ELEMENTS), caps) else { return Ok(None) };
    let mut inputs: Vec<(usize, ScalarType)> =
        before.map(|before| (before, word)).into_iter().collect();
    let other = if before.is_some() { "in0[n]" } else { zero(word) };
    let body = match view.num_elements() {
        0 => format!("out0[n] = {other};\n"),
        _ => {
            let elements = inputs.len();
            inputs.push((ELEMENTS, word));
            format!(
                "{}if (inside) {{ out0[n] = in{elements}[at]; }} else {{ out0[n] = {other}; }}\n",
                inverse(&view, &shape)
            )
        }
    };
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}

/// The statements that tell of element `n` of a shape whether a view of it has it (`inside`), and
/// at which place (`at`).
fn inverse(view: &StridedView, shape: &Shape) -> String {
    let mut text = "var inside = true;\nvar at = 0u;\n".to_string();
    let own: Vec<usize> = view.dims.iter().map(|dim| dim.size).collect();
    for (axis, (&size, &stride)) in shape.iter().zip(&shape.strides()).enumerate() {
        if size <= 1 {
            continue;
        }
        // An axis is walked by the one dimension whose step is that of the axis, times less than its
        // size.
        let begin = view.offset as usize / stride % size;
        let walks =
            |step: usize| step >= stride && step < stride * size && step.is_multiple_of(stride);
        let walker =
            view.dims.iter().position(|dim| dim.size > 1 && walks(dim.stride.unsigned_abs()));
        text += &format!("let c{axis} = n / {stride}u % {size}u;\n");
        let Some(dim) = walker else {
            text += &format!("inside = inside && c{axis} == {begin}u;\n");
            continue;
        };
        let step = view.dims[dim].stride.unsigned_abs() / stride;
        let inner: usize = own[dim + 1..].iter().product();
        // Positions before the beginning become large.
        let far = match view.dims[dim].stride > 0 {
            true => format!("c{axis} - {begin}u"),
            false => format!("{begin}u - c{axis}"),
        };
        text += &format!(
            "let d{axis} = {far};\n\
             inside = inside && d{axis} % {step}u == 0u && d{axis} / {step}u < {}u;\n\
             at = at + d{axis} / {step}u * {inner}u;\n",
            own[dim]
        );
    }
    text
}

/// Negative numbers of diagonals keep all of them.
fn band(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let [.., rows, columns] = call.shape(0)[..] else { return Ok(None) };
    let (rows, columns) = (rows.max(1), columns.max(1));
    let body = format!(
        "let below = i32(n / {columns}u % {rows}u) - i32(n % {columns}u);\n\
         let lower = i32(in1[0]);\nlet upper = i32(in2[0]);\n\
         if ((lower < 0 || below <= lower) && (upper < 0 || -below <= upper)) {{ out0[n] = in0[n]; }}\n\
         else {{ out0[n] = {}; }}\n",
        zero(word)
    );
    let count = call.shape(0).num_elements();
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}
