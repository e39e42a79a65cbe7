//! Boxes cut out of images: `CropAndResize` and its gradients.
//!
//! The rules are those of `tensorflow/core/kernels/image/crop_and_resize_op.cc`. Boxes of images
//! that there are not are taken as outside.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut, float},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::Shape;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("CropAndResize", crop),
    ("CropAndResizeGradBoxes", by_boxes),
    ("CropAndResizeGradImage", by_image),
];

/// The sizes of images and of what is cut out of them.
struct Sizes {
    batch: usize,
    image: [usize; 2],
    crop: [usize; 2],
    channels: usize,
    boxes: usize,
    nearest: bool,
}

impl Sizes {
    fn new(call: &OpCall<'_>, images: &Shape, crops: &Shape) -> Result<Sizes> {
        Ok(Sizes {
            batch: images[0],
            image: [images[1], images[2]],
            crop: [crops[1], crops[2]],
            channels: images[3].max(1),
            boxes: crops[0],
            nearest: call.attrs.string("method")? == "nearest",
        })
    }

    /// The statements that map position `y`, `x` of box `which` in its image: `inside`, and of
    /// rows and columns the positions `low_` and `high_` around, and how far it is (`part_`).
    fn sample_position(&self, boxes: &str) -> String {
        let mut text = "var inside = true;\n".to_string();
        for (axis, name) in ["y", "x"].into_iter().enumerate() {
            let (last, count) = (self.image[axis].max(1) as f32 - 1.0, self.crop[axis]);
            let (start, end) = (
                format!("{boxes}[which * 4u + {axis}u]"),
                format!("{boxes}[which * 4u + {}u]", axis + 2),
            );
            let last = float(last);
            let at = match count > 1 {
                true => format!(
                    "{start} * {last} + f32({name}) * (({end} - {start}) * {last} / {})",
                    float((count - 1) as f32)
                ),
                false => format!("0.5f * ({start} + {end}) * {last}"),
            };
            let (low, high, part) = match self.nearest {
                true => ("floor(PLACE + 0.5f)", "floor(PLACE + 0.5f)", "0.0f"),
                false => ("floor(PLACE)", "ceil(PLACE)", "PLACE - floor(PLACE)"),
            };
            let [low, high, part] =
                [low, high, part].map(|text| text.replace("PLACE", &format!("at_{name}")));
            text += &format!(
                "let at_{name} = {at};\ninside = inside && at_{name} >= 0.0f && at_{name} <= {last};\n\
                 let low_{name} = u32(clamp({low}, 0.0f, {last}));\n\
                 let high_{name} = u32(clamp({high}, 0.0f, {last}));\nlet part_{name} = {part};\n"
            );
        }
        text
    }

    fn element(&self, source: &str, y: &str, x: &str) -> String {
        let [height, width] = self.image;
        format!(
            "f32({source}[((image * {height}u + {y}) * {width}u + {x}) * {}u + channel])",
            self.channels
        )
    }

    /// The statements that name the four pixels around a position.
    fn corners(&self, source: &str) -> String {
        let mut text = String::new();
        for (name, y, x) in [
            ("a", "low_y", "low_x"),
            ("b", "low_y", "high_x"),
            ("c", "high_y", "low_x"),
            ("d", "high_y", "high_x"),
        ] {
            text += &format!("let {name} = {};\n", self.element(source, y, x));
        }
        text
    }
}

fn crop(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sizes = Sizes::new(call, call.shape(0), &call.output_shape(0)?)?;
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let outside = float(call.attrs.float("extrapolation_value")?);
    let ([height, width], channels) = (sizes.crop, sizes.channels);
    let body = format!(
        "let channel = n % {channels}u;\nlet x = n / {channels}u % {width}u;\nlet y = n / {}u % {height}u;\n\
         let which = n / {}u;\nlet image = u32(in2[which]);\n{}var value = {outside};\n\
         if (inside && image < {}u) {{\n{}let top = a + (b - a) * part_x;\n\
         let bottom = c + (d - c) * part_x;\nvalue = top + (bottom - top) * part_y;\n}}\nout0[n] = value;\n",
        channels * width,
        channels * width * height,
        sizes.sample_position("in1"),
        sizes.batch,
        sizes.corners("in0"),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}

/// An invocation per element of the images adds up what the boxes send there.
fn by_image(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let sizes = Sizes::new(call, &shape, call.shape(0))?;
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let ([height, width], [down, across], channels) = (sizes.image, sizes.crop, sizes.channels);
    let near = |name: &str, own: &str| {
        format!(
            "var share_{name} = 0.0f;\nif (low_{name} == {own}) {{ share_{name} = 1.0f - part_{name}; }}\n\
             if (high_{name} == {own}) {{ share_{name} = share_{name} + part_{name}; }}\n"
        )
    };
    let body = format!(
        "let channel = n % {channels}u;\nlet column = n / {channels}u % {width}u;\n\
         let row = n / {}u % {height}u;\nlet image = n / {}u;\nvar sum = 0.0f;\n\
         for (var which = 0u; which < {}u; which++) {{\nif (u32(in2[which]) != image) {{ continue; }}\n\
         for (var y = 0u; y < {down}u; y++) {{\nfor (var x = 0u; x < {across}u; x++) {{\n{}\
         if (!inside) {{ continue; }}\n{}{}\
         sum = sum + share_y * share_x * in0[((which * {down}u + y) * {across}u + x) * {channels}u + channel];\n\
         }}\n}}\n}}\nout0[n] = {};\n",
        channels * width,
        channels * width * height,
        sizes.boxes,
        sizes.sample_position("in1"),
        near("y", "row"),
        near("x", "column"),
        cut(call.outputs[0].dtype, "sum"),
    );
    Ok((word == ScalarType::F32)
        .then(|| Shader::plain(inputs, vec![word], body, shape.num_elements())))
}

/// An invocation per corner of a box.
fn by_boxes(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sizes = Sizes::new(call, call.shape(1), call.shape(0))?;
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1, 2, 3]) else { return Ok(None) };
    let ([down, across], channels) = (sizes.crop, sizes.channels);
    let step = |axis: usize| {
        let (last, count) = (sizes.image[axis].max(1) as f32 - 1.0, sizes.crop[axis]);
        let name = ["y", "x"][axis];
        match count > 1 {
            true => {
                let step = float(last / (count - 1) as f32);
                format!(
                    "select({} - f32({name}) * {step}, f32({name}) * {step}, corner >= 2u)",
                    float(last)
                )
            }
            false => float(0.5 * last),
        }
    };
    let body = format!(
        "let which = n / 4u;\nlet corner = n % 4u;\nlet image = u32(in3[which]);\nvar sum = 0.0f;\n\
         if (image < {}u) {{\nfor (var y = 0u; y < {down}u; y++) {{\nfor (var x = 0u; x < {across}u; x++) {{\n{}\
         if (!inside) {{ continue; }}\nvar slope = 0.0f;\n\
         for (var channel = 0u; channel < {channels}u; channel++) {{\n{}\
         let dy = in0[((which * {down}u + y) * {across}u + x) * {channels}u + channel];\n\
         if (corner % 2u == 0u) {{ slope = slope + dy * ((1.0f - part_x) * (c - a) + part_x * (d - b)); }}\n\
         else {{ slope = slope + dy * ((1.0f - part_y) * (b - a) + part_y * (d - c)); }}\n}}\n\
         sum = sum + slope * select({}, {}, corner % 2u == 1u);\n}}\n}}\n}}\nout0[n] = sum;\n",
        sizes.batch,
        sizes.sample_position("in2"),
        sizes.corners("in1"),
        step(0),
        step(1),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}
