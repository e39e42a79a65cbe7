//! Images of another size: by linear interpolation, or the nearest pixel.
//!
//! Positions are those of `tensorflow/core/util/image_resizer_state.h`, in single precision as there.

use super::{Shader, word::Caps, words};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("ResizeBilinear", bilinear), ("ResizeNearestNeighbor", nearest)];

/// The sizes of images before and after: `[batch, height, width, channels]`.
struct Sizes {
    from: [usize; 2],
    to: [usize; 2],
    channels: usize,
    aligned: bool,
    centred: bool,
}

impl Sizes {
    fn new(call: &OpCall<'_>) -> Result<Sizes> {
        let (from, to) = (call.shape(0), call.output_shape(0)?);
        Ok(Sizes {
            from: [from[1], from[2]],
            to: [to[1], to[2]],
            channels: from[3],
            aligned: call.attrs.bool("align_corners")?,
            centred: call.attrs.bool("half_pixel_centers")?,
        })
    }

    /// The statements that name the place of element `n`.
    fn place(&self) -> String {
        let ([height, width], channels) = (self.to, self.channels.max(1));
        format!(
            "let channel = n % {channels}u;\nlet x = n / {channels}u % {width}u;\n\
             let y = n / {}u % {height}u;\nlet image = n / {}u;\n",
            channels * width,
            channels * width * height
        )
    }

    /// How far positions of the input move with those of the output.
    fn scale(&self, axis: usize) -> String {
        let (from, to) = (self.from[axis], self.to[axis]);
        super::word::float(match self.aligned && to > 1 {
            true => (from - 1) as f32 / (to - 1) as f32,
            false => from as f32 / to as f32,
        })
    }

    fn element(&self, y: &str, x: &str) -> String {
        let ([height, width], channels) = (self.from, self.channels);
        format!("in0[((image * {height}u + {y}) * {width}u + {x}) * {channels}u + channel]")
    }
}

/// Rows are summed before columns.
fn bilinear(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sizes = Sizes::new(call)?;
    let Some((inputs, word)) = words(call, caps, [0]) else { return Ok(None) };
    let mut body = sizes.place();
    for (axis, name) in ["y", "x"].into_iter().enumerate() {
        let (scale, last) = (sizes.scale(axis), sizes.from[axis].max(1) - 1);
        let place = match sizes.centred {
            true => format!("(f32({name}) + 0.5f) * {scale} - 0.5f"),
            false => format!("f32({name}) * {scale}"),
        };
        body += &format!(
            "let p{name} = {place};\nlet f{name} = floor(p{name});\n\
             let h{name} = min(u32(max(ceil(p{name}), 0.0f)), {last}u);\n\
             let l{name} = min(u32(max(f{name}, 0.0f)), h{name});\nlet w{name} = p{name} - f{name};\n"
        );
    }
    for (name, x) in [("left", "lx"), ("right", "hx")] {
        body += &format!(
            "let {name}_low = f32({});\nlet {name}_high = f32({});\n\
             let {name} = select((1.0f - wy) * {name}_low + wy * {name}_high, {name}_low, ly == hy);\n",
            sizes.element("ly", x),
            sizes.element("hy", x),
        );
    }
    body += "out0[n] = select((1.0f - wx) * left + wx * right, left, lx == hx);\n";
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}

/// Corners that are the same have no text: what they round could end on the other side of a half.
fn nearest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sizes = Sizes::new(call)?;
    let Some((inputs, word)) = words(call, caps, [0]).filter(|_| !sizes.aligned || sizes.centred)
    else {
        return Ok(None);
    };
    let mut body = sizes.place();
    for (axis, name) in ["y", "x"].into_iter().enumerate() {
        let (scale, last) = (sizes.scale(axis), sizes.from[axis].max(1) - 1);
        let middle = if sizes.centred { " + 0.5f" } else { "" };
        body +=
            &format!("let p{name} = min(u32(floor((f32({name}){middle}) * {scale})), {last}u);\n");
    }
    body += &format!("out0[n] = {};\n", sizes.element("py", "px"));
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}
