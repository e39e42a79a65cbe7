//! Images of another size, and their gradients: each dimension is a weighted sum of positions, or
//! the nearest one.
//!
//! Linear interpolation computes its positions; others read them from tables, made by
//! [`crate::plan::taps`], which CPU kernels use too.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
};
use crate::{
    device::OpCall,
    error::Result,
    plan::interpolation::{self, InterpolationWeights, Scaling, of_each, scalings},
};
use ferroflow_ir::Shape;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("ResizeArea", |call, caps| weighted(call, caps, interpolation::area)),
    ("ResizeBicubic", |call, caps| weighted(call, caps, interpolation::bicubic)),
    ("ResizeBicubicGrad", |call, caps| spread(call, caps, interpolation::bicubic)),
    ("ResizeBilinear", bilinear),
    ("ResizeBilinearGrad", |call, caps| spread(call, caps, interpolation::bilinear)),
    ("ResizeNearestNeighbor", nearest),
    ("ResizeNearestNeighborGrad", |call, caps| spread(call, caps, interpolation::nearest)),
];

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

    /// The statements that name the position of element `n`.
    fn image_position(&self) -> String {
        let ([height, width], channels) = (self.to, self.channels.max(1));
        format!(
            "let channel = n % {channels}u;\nlet x = n / {channels}u % {width}u;\n\
             let y = n / {}u % {height}u;\nlet image = n / {}u;\n",
            channels * width,
            channels * width * height
        )
    }

    /// Source of the ratio between positions of the input and those of the output.
    fn scale(&self, axis: usize) -> String {
        let (from, to) = (self.from[axis], self.to[axis]);
        super::scalar_type::float(match self.aligned && to > 1 {
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
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let mut body = sizes.image_position();
    for (axis, name) in ["y", "x"].into_iter().enumerate() {
        let (scale, last) = (sizes.scale(axis), sizes.from[axis].max(1) - 1);
        let image_position = match sizes.centred {
            true => format!("(f32({name}) + 0.5f) * {scale} - 0.5f"),
            false => format!("f32({name}) * {scale}"),
        };
        body += &format!(
            "let p{name} = {image_position};\nlet f{name} = floor(p{name});\n\
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

fn nearest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let (from, shape) = (call.shape(0), call.output_shape(0)?);
    let positions = |scaling: Scaling| {
        (0..scaling.output).map(|index| scaling.nearest(index) as u32).collect::<Vec<u32>>()
    };
    let tables = scalings(call, from, &shape)?.map(positions).to_vec();
    let body = format!(
        "{}out0[n] = in0[((image * {}u + table0[y]) * {}u + table1[x]) * {}u + channel];\n",
        image_position(&shape),
        from[1],
        from[2],
        from[3],
    );
    let shader = Shader::plain(inputs, vec![word], body, shape.num_elements());
    Ok(Some(Shader { tables, ..shader }))
}

/// The statements that name the position of element `n` of images.
pub(super) fn image_position(shape: &Shape) -> String {
    let [_, height, width, channels] = [0, 1, 2, 3].map(|axis| shape[axis].max(1));
    format!(
        "let channel = n % {channels}u;\nlet x = n / {channels}u % {width}u;\n\
         let y = n / {}u % {height}u;\nlet image = n / {}u;\n",
        channels * width,
        channels * width * height
    )
}

/// Interpolation weights as `u32`: where those of each position end, and then position and weight
/// of each.
fn weight_table<'a>(rows: impl Iterator<Item = &'a [(usize, f32)]>) -> Vec<u32> {
    let (mut ends, mut list) = (Vec::new(), Vec::new());
    for row in rows {
        list.extend(row.iter().flat_map(|&(position, weight)| [position as u32, weight.to_bits()]));
        ends.push(list.len() as u32 / 2);
    }
    ends.extend(list);
    ends
}

/// A loop over the weights of a position: `p` and the axis is where, `w` and the axis the weight.
fn for_each_weight(axis: &str, table: usize, count: usize, body: &str) -> String {
    format!(
        "for (var i{axis} = select(0u, table{table}[max({axis}, 1u) - 1u], {axis} > 0u); \
         i{axis} < table{table}[{axis}]; i{axis}++) {{\n\
         let p{axis} = table{table}[{count}u + 2u * i{axis}];\n\
         let w{axis} = of_bits(table{table}[{count}u + 2u * i{axis} + 1u]);\n{body}}}\n"
    )
}

/// Rows are summed before columns.
fn weighted(
    call: &OpCall<'_>,
    caps: Caps,
    rule: fn(Scaling) -> Result<InterpolationWeights>,
) -> Result<Option<Shader>> {
    let (from, shape) = (call.shape(0), call.output_shape(0)?);
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let [rows, columns] = of_each(scalings(call, from, &shape)?, rule)?;
    let (height, width, channels) = (from[1], from[2], from[3]);
    let element =
        format!("f32(in0[((image * {height}u + py) * {width}u + px) * {channels}u + channel])");
    let sum = format!("part = part + wy * {element};\n");
    let sum = format!(
        "var part = 0.0f;\n{}sum = sum + wx * part;\n",
        for_each_weight("y", 0, shape[1], &sum)
    );
    let body = format!(
        "{}var sum = 0.0f;\n{}out0[n] = sum;\n",
        image_position(&shape),
        for_each_weight("x", 1, shape[2], &sum)
    );
    let shader = Shader::plain(inputs, vec![word], body, shape.num_elements());
    Ok(Some(Shader {
        tables: vec![weight_table(rows.iter()), weight_table(columns.iter())],
        ..shader
    }))
}

/// The transposed: each position of the images before adds up what it was part of.
fn spread(
    call: &OpCall<'_>,
    caps: Caps,
    rule: fn(Scaling) -> Result<InterpolationWeights>,
) -> Result<Option<Shader>> {
    let (from, shape) = (call.shape(0), call.output_shape(0)?);
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let found = scalings(call, &shape, from)?;
    let sizes = [shape[1], shape[2]];
    let (height, width, channels) = (from[1], from[2], from[3]);
    let element =
        format!("in0[((image * {height}u + py) * {width}u + px) * {channels}u + channel]");
    // Elements of integers have weight 1.
    let times = |weight: &str, value: &str| match inputs[0].1 {
        ScalarType::F32 => format!("{weight} * {value}"),
        _ => value.to_string(),
    };
    let zero = inputs[0].1.zero();
    let sum = format!("part = part + {};\n", times("wx", &element));
    let sum = format!(
        "var part = {zero};\n{}sum = sum + {};\n",
        for_each_weight("x", 1, shape[2], &sum),
        times("wy", "part"),
    );
    let body = format!(
        "{}var sum = {zero};\n{}out0[n] = {};\n",
        image_position(&shape),
        for_each_weight("y", 0, shape[1], &sum),
        cut(call.outputs[0].dtype, "sum"),
    );
    let tables = found.iter().zip(sizes).map(|(&scaling, size)| {
        let transposed = rule(scaling)?.transposed(size);
        Ok(weight_table(transposed.iter().map(Vec::as_slice)))
    });
    let tables: Result<_> = tables.collect();
    let shader = Shader::plain(inputs, vec![word], body, shape.num_elements());
    Ok(Some(Shader { tables: tables?, ..shader }))
}
