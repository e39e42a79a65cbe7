//! Images of another size, and their gradients: each dimension is a weighted sum of positions, or
//! the nearest one.
//!
//! Linear interpolation computes its positions; others read them from tables, made by
//! [`crate::plan::taps`], which CPU kernels use too.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    pixel::PixelPosition,
    scalar_type::{Caps, ScalarType},
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

/// Rows are summed before columns.
fn bilinear(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (from, shape) = (call.shape(0), call.output_shape(0)?);
    let aligned = call.attrs.bool("align_corners")?;
    let centred = call.attrs.bool("half_pixel_centers")?;
    let k = KernelBuilder::new(caps);
    let ([images], out) = (k.inputs(call, [0]), k.result(call));
    let pixel = PixelPosition::of(&k, &shape);
    // The lower and the higher neighbour of a position, and how far it is from the lower one.
    let [y, x] = [(1, pixel.y), (2, pixel.x)].map(|(axis, step)| {
        let scale = match aligned && shape[axis] > 1 {
            true => (from[axis] - 1) as f32 / (shape[axis] - 1) as f32,
            false => from[axis] as f32 / shape[axis] as f32,
        };
        let step = step.to(ScalarType::F32);
        let position = if centred { (step + 0.5) * scale - 0.5 } else { step * scale };
        let position = k.bind("position", position);
        let first = k.bind("first", position.floor());
        let [high, low] = [position.function("ceil"), first];
        let [high, low] = [high, low].map(|at| at.max(0.0).to(ScalarType::U32));
        let high = k.bind("high", high.min(from[axis].max(1) - 1));
        let low = k.bind("low", low.min(high));
        (low, high, k.bind("weight", position - first))
    });
    let [left, right] = [x.0, x.1].map(|column| {
        let [low, high] = [y.0, y.1]
            .map(|row| k.bind("value", images.at(pixel.at(from, row, column)).to(ScalarType::F32)));
        k.bind("side", mixed(low, high, y))
    });
    out.set(k.element(), mixed(left, right, x));
    k.finish(shape.num_elements())
}

/// The value between two neighbours; both are one at an edge.
fn mixed<'k>(
    low: KernelValue<'k>,
    high: KernelValue<'k>,
    (low_at, high_at, weight): (KernelValue<'k>, KernelValue<'k>, KernelValue<'k>),
) -> KernelValue<'k> {
    low_at.eq(high_at).select(low, (1.0 - weight) * low + weight * high)
}

fn nearest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (from, shape) = (call.shape(0), call.output_shape(0)?);
    let k = KernelBuilder::new(caps);
    let ([images], out) = (k.inputs(call, [0]), k.result(call));
    let [rows, columns] = scalings(call, from, &shape)?.map(|scaling: Scaling| {
        k.table((0..scaling.output).map(|index| scaling.nearest(index) as u32).collect())
    });
    let pixel = PixelPosition::of(&k, &shape);
    let source = pixel.at(from, rows.at(pixel.y), columns.at(pixel.x));
    out.set(k.element(), images.at(source));
    k.finish(shape.num_elements())
}

/// Interpolation weights of so many positions, in a table: where those of each position end, and then
/// position and weight of each.
struct WeightTable<'k> {
    table: KernelBuffer<'k>,
    count: usize,
}

impl<'k> WeightTable<'k> {
    fn new<'a>(
        k: &'k KernelBuilder,
        rows: impl Iterator<Item = &'a [(usize, f32)]>,
    ) -> WeightTable<'k> {
        let (mut ends, mut list) = (Vec::new(), Vec::new());
        for row in rows {
            list.extend(
                row.iter().flat_map(|&(position, weight)| [position as u32, weight.to_bits()]),
            );
            ends.push(list.len() as u32 / 2);
        }
        let count = ends.len();
        ends.extend(list);
        WeightTable { table: k.table(ends), count }
    }

    /// Runs statements for the positions that one is made of, with their weights.
    fn for_each(
        &self,
        k: &'k KernelBuilder,
        at: KernelValue<'k>,
        body: impl FnOnce(KernelValue<'k>, KernelValue<'k>),
    ) {
        let table = self.table;
        let first = at.gt(0).select(table.at(at.max(1) - 1), k.index(0));
        k.for_range("i", (first, table.at(at), 1), |i| {
            let position = k.bind("position", table.at(self.count + 2 * i));
            let weight = table.at(self.count + 2 * i + 1);
            let weight = weight.function_to("of_bits", ScalarType::F32);
            body(position, k.bind("weight", weight));
        });
    }
}

/// Rows are summed before columns.
fn weighted(
    call: &OpCall<'_>,
    caps: Caps,
    rule: fn(Scaling) -> Result<InterpolationWeights>,
) -> Result<Option<Shader>> {
    let (from, shape) = (call.shape(0), call.output_shape(0)?);
    let weights = of_each(scalings(call, from, &shape)?, rule)?;
    let k = KernelBuilder::new(caps);
    let ([images], out) = (k.inputs(call, [0]), k.result(call));
    let [rows, columns] = [0, 1].map(|axis: usize| WeightTable::new(&k, weights[axis].iter()));
    let pixel = PixelPosition::of(&k, &shape);
    let sum = k.variable("sum", k.float(0.0));
    columns.for_each(&k, pixel.x, |x, across| {
        let part = k.variable("part", k.float(0.0));
        rows.for_each(&k, pixel.y, |y, down| {
            let value = images.at(pixel.at(from, y, x)).to(ScalarType::F32);
            part.set(part + down * value);
        });
        sum.set(sum + across * part);
    });
    out.set(k.element(), sum);
    k.finish(shape.num_elements())
}

/// The transposed: each position of the images before adds up what it was part of.
fn spread(
    call: &OpCall<'_>,
    caps: Caps,
    rule: fn(Scaling) -> Result<InterpolationWeights>,
) -> Result<Option<Shader>> {
    let (from, shape): (&Shape, Shape) = (call.shape(0), call.output_shape(0)?);
    let [by_row, by_column] = scalings(call, &shape, from)?;
    let k = KernelBuilder::new(caps);
    let ([gradients], out) = (k.inputs(call, [0]), k.result(call));
    let table = |scaling: Scaling, size: usize| -> Result<WeightTable<'_>> {
        let transposed = rule(scaling)?.transposed(size);
        Ok(WeightTable::new(&k, transposed.iter().map(Vec::as_slice)))
    };
    let (rows, columns) = (table(by_row, shape[1])?, table(by_column, shape[2])?);
    let pixel = PixelPosition::of(&k, &shape);
    let sum = k.variable("sum", gradients.zero());
    rows.for_each(&k, pixel.y, |y, down| {
        let part = k.variable("part", gradients.zero());
        columns.for_each(&k, pixel.x, |x, across| {
            part.set(part + weighed(across, gradients.at(pixel.at(from, y, x))));
        });
        sum.set(sum + weighed(down, part));
    });
    out.set(k.element(), sum.rounded(call.outputs[0].dtype));
    k.finish(shape.num_elements())
}

/// A value with a weight; that of integers is 1.
fn weighed<'k>(weight: KernelValue<'k>, value: KernelValue<'k>) -> KernelValue<'k> {
    if value.scalar() == ScalarType::F32 { weight * value } else { value }
}
