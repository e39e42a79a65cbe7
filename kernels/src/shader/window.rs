//! Loops over windows as text.
//!
//! Spatial dimensions are called `x`, `y` and `z`, the last one innermost; those that are missing
//! have size 1.

use crate::plan::window::Sweep;
use ferroflow_ir::window::Slide;
use std::fmt::Write;

const AXES: [&str; 3] = ["x", "y", "z"];

/// The statements that take a number apart into positions along the dimensions, of these sizes, and
/// `image`; the positions are called `prefix` and the axis.
pub(super) fn apart(number: &str, prefix: &str, sizes: [usize; 3]) -> String {
    let (mut text, mut inner) = (String::new(), 1);
    for (axis, size) in AXES.iter().zip(sizes).rev() {
        let _ = writeln!(text, "let {prefix}{axis} = {number} / {inner}u % {}u;", size.max(1));
        inner *= size.max(1);
    }
    let _ = writeln!(text, "let image = {number} / {inner}u;");
    text
}

/// The number of a position: the reverse of [`apart`].
pub(super) fn together(prefix: &str, sizes: [usize; 3]) -> String {
    let [a, b, c] = sizes;
    format!("(((image * {a}u + {prefix}x) * {b}u + {prefix}y) * {c}u + {prefix}z)")
}

/// Runs `body` for every kernel offset of window `wx`, `wy`, `wz` that is inside: the kernel offset
/// is `tap`, its position `px`, `py`, `pz`.
pub(super) fn for_each_offset(sweep: &Sweep, body: &str) -> String {
    let mut text = String::new();
    for (axis, slide) in AXES.iter().zip(&sweep.slides) {
        let Slide { input, size, stride, dilation, before, .. } = slide;
        let _ = write!(
            text,
            "for (var t{axis} = 0u; t{axis} < {size}u; t{axis}++) {{\n\
             let p{axis} = w{axis} * {stride}u + t{axis} * {dilation}u - u32(i32({before}));\n\
             if (p{axis} >= {input}u) {{ continue; }}\n"
        );
    }
    close(text, sweep, body)
}

/// Runs `body` for every kernel offset that is at position `px`, `py`, `pz` of a window there is:
/// the kernel offset is `tap`, the window `wx`, `wy`, `wz`.
pub(super) fn for_each_cover(sweep: &Sweep, body: &str) -> String {
    let mut text = String::new();
    for (axis, slide) in AXES.iter().zip(&sweep.slides) {
        let Slide { output, size, stride, dilation, before, .. } = slide;
        let _ = write!(
            text,
            "for (var t{axis} = 0u; t{axis} < {size}u; t{axis}++) {{\n\
             let f{axis} = p{axis} + u32(i32({before})) - t{axis} * {dilation}u;\n\
             if (f{axis} >= {}u || f{axis} % {stride}u != 0u) {{ continue; }}\n\
             let w{axis} = f{axis} / {stride}u;\n",
            output * stride
        );
    }
    close(text, sweep, body)
}

fn close(mut text: String, sweep: &Sweep, body: &str) -> String {
    let [_, b, c] = sweep.slides.map(|slide| slide.size);
    let _ = write!(text, "let tap = (tx * {b}u + ty) * {c}u + tz;\n{body}}}\n}}\n}}\n");
    text
}

/// Positions of the input along each dimension.
pub(super) fn inputs(sweep: &Sweep) -> [usize; 3] {
    sweep.slides.map(|slide| slide.input)
}

/// Windows along each dimension.
pub(super) fn outputs(sweep: &Sweep) -> [usize; 3] {
    sweep.slides.map(|slide| slide.output)
}
