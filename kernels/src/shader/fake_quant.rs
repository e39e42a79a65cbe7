//! `FakeQuant…`: rounding reals to what a quantised type could hold (Jacob et al. 2018).

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("FakeQuantWithMinMaxArgs", |call, caps| fixed(call, caps, false)),
    ("FakeQuantWithMinMaxArgsGradient", |call, caps| fixed(call, caps, true)),
    ("FakeQuantWithMinMaxVars", |call, caps| vars(call, caps, true)),
    ("FakeQuantWithMinMaxVarsGradient", vars_gradient),
    ("FakeQuantWithMinMaxVarsPerChannel", |call, caps| vars(call, caps, false)),
    ("FakeQuantWithMinMaxVarsPerChannelGradient", vars_gradient),
];

/// A range that was moved so that 0 is one of its values.
struct Grid<'k> {
    low: KernelValue<'k>,
    high: KernelValue<'k>,
    scale: KernelValue<'k>,
    inverse: KernelValue<'k>,
    /// Whether the range was 0 alone.
    unset: KernelValue<'k>,
}

impl<'k> Grid<'k> {
    /// The grid of a range. A number of bits that there is not makes the kernel none.
    fn new(
        k: &'k KernelBuilder,
        call: &OpCall<'_>,
        [first, last]: [KernelValue<'k>; 2],
        unset: KernelValue<'k>,
    ) -> Result<Grid<'k>> {
        let bits = call.attrs.int("num_bits")?;
        k.requires((2..=16).contains(&bits));
        let least = if call.attrs.bool("narrow_range")? { 1.0f32 } else { 0.0 };
        let most = ((1i64 << bits.clamp(2, 16)) - 1) as f32;
        let scale = k.bind("scale", (last - first) / (most - least));
        let inverse = k.bind("inverse", (most - least) / (last - first));
        let exact = k.bind("exact", least - first / scale);
        // Halves are rounded away from zero.
        let zero = k.variable("zero", (exact + 0.5).floor());
        k.when(exact.lt(least), || zero.set(least));
        k.when(exact.gt(most), || zero.set(most));
        let low = k.bind("low", (least - zero) * scale);
        let high = k.bind("high", (most - zero) * scale);
        Ok(Grid { low, high, scale, inverse, unset })
    }

    /// The nearest value of the grid; the step of a value is found by division, or by the inverse.
    fn round(&self, k: &'k KernelBuilder, x: KernelValue<'k>, divides: bool) -> KernelValue<'k> {
        let &Grid { low, high, scale, inverse, unset } = self;
        let inside = x.function_with("min_", high).function_with("max_", low) - low;
        let step = if divides { inside / scale } else { inside * inverse };
        let first = (-low * inverse + 0.5).floor();
        let nearest = (step - first + 0.5).floor() * scale;
        unset.select(0.0, k.bind("nearest", nearest))
    }

    /// 1 where a value is inside the range, and 0 elsewhere.
    fn slope(&self, x: KernelValue<'k>) -> KernelValue<'k> {
        let inside = self.low.le(x).and(x.le(self.high));
        self.unset.or(inside).to(ScalarType::F32)
    }
}

/// A range that the call tells; the gradient is that of input 0, by input 1.
fn fixed(call: &OpCall<'_>, caps: Caps, is_gradient: bool) -> Result<Option<Shader>> {
    let (min, max) = (call.attrs.float("min")?, call.attrs.float("max")?);
    let k = KernelBuilder::new(caps);
    k.requires(min < max);
    let ([input], n) = (k.inputs(call, [0]), k.element());
    let x = if is_gradient { k.input(1, call.dtype(1)) } else { input };
    let ends = [("first", min), ("last", max)].map(|(name, end)| k.variable(name, k.float(end)));
    let grid = Grid::new(&k, call, ends, k.bool(false))?;
    let x = k.bind("x", x.at(n));
    k.result(call).set(
        n,
        match is_gradient {
            true => input.at(n) * grid.slope(x),
            false => grid.round(&k, x, false),
        },
    );
    k.finish(call.shape(0).num_elements())
}

/// The grid of this invocation's slice, of so many whose ranges are in two inputs.
fn grid_of<'k>(
    k: &'k KernelBuilder,
    call: &OpCall<'_>,
    ranges: [KernelBuffer<'k>; 2],
    slices: usize,
) -> Result<Grid<'k>> {
    let slice = k.bind("slice", k.element() % slices);
    let [first, last] = ranges.map(|range| k.bind("end", range.at(slice)));
    let unset = k.bind("unset", first.eq(0.0).and(last.eq(0.0)));
    Grid::new(k, call, [first, last], unset)
}

/// A single range, or a range per element of the last dimension.
fn vars(call: &OpCall<'_>, caps: Caps, divides: bool) -> Result<Option<Shader>> {
    let slices = call.shape(1).num_elements().max(1);
    let k = KernelBuilder::new(caps);
    let ([input, min, max], n) = (k.inputs(call, [0, 1, 2]), k.element());
    let grid = grid_of(&k, call, [min, max], slices)?;
    let x = k.bind("x", input.at(n));
    k.result(call).set(n, grid.round(&k, x, divides));
    k.finish(call.shape(0).num_elements())
}

/// Inside the range the gradient is that of the input, outside it is that of the nearest end: the
/// first invocations add those up.
fn vars_gradient(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (slices, count) = (call.shape(2).num_elements().max(1), call.shape(0).num_elements());
    let k = KernelBuilder::new(caps);
    k.requires(count > 0);
    let ([gradients, input, min, max], n) = (k.inputs(call, [0, 1, 2, 3]), k.element());
    let outputs = [0, 1, 2].map(|output| k.output(call.outputs[output].dtype));
    let grid = grid_of(&k, call, [min, max], slices)?;
    let slope = grid.slope(k.bind("x", input.at(n)));
    outputs[0].set(n, gradients.at(n) * slope);
    k.when(n.lt(slices), || {
        let [below, above] = ["below", "above"].map(|name| k.variable(name, k.float(0.0)));
        k.for_range("i", (n, count, slices), |i| {
            let (gradient, x) = (k.bind("gradient", gradients.at(i)), k.bind("x", input.at(i)));
            for (sum, is_outside) in [(below, x.lt(grid.low)), (above, x.gt(grid.high))] {
                let share = (!grid.unset).and(is_outside).to(ScalarType::F32);
                sum.set(sum + gradient * share);
            }
        });
        outputs[1].set(n, below);
        outputs[2].set(n, above);
    });
    k.finish(count)
}
