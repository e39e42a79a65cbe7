//! Convolutions over two and three spatial dimensions and their gradients, depthwise ones too.
//!
//! An invocation computes a window of up to four filters, or one element of a gradient; where
//! groups pay, large convolutions are products by tiles.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    epilogue::Epilogue,
    implicit_gemm::Convolution,
    scalar_type::{Caps, ScalarType},
    sweep::{
        ImagePosition, apart, for_each_cover, for_each_offset, for_each_window, inputs, outputs,
        sizes,
    },
};
use crate::{
    device::OpCall,
    error::Result,
    plan::{sliding, window::Sweep},
};
use ferroflow_ir::Shape;

pub(super) const SHADERS: &[(&str, super::BuildMatmul)] = &[
    ("Conv2D", |call, caps, epilogue| convolution(call, caps, Kind::Dense, epilogue)),
    ("Conv2DBackpropFilter", |call, caps, epilogue| {
        backprop_filter(call, caps, Kind::Dense, epilogue)
    }),
    ("Conv2DBackpropFilterV2", |call, caps, epilogue| {
        backprop_filter(call, caps, Kind::Dense, epilogue)
    }),
    ("Conv2DBackpropInput", |call, caps, epilogue| {
        backprop_input(call, caps, Kind::Dense, epilogue)
    }),
    ("Conv2DBackpropInputV2", |call, caps, epilogue| {
        backprop_input(call, caps, Kind::Dense, epilogue)
    }),
    ("Conv3D", |call, caps, epilogue| convolution(call, caps, Kind::Dense, epilogue)),
    ("Conv3DBackpropFilterV2", |call, caps, epilogue| {
        backprop_filter(call, caps, Kind::Dense, epilogue)
    }),
    ("Conv3DBackpropInputV2", |call, caps, epilogue| {
        backprop_input(call, caps, Kind::Dense, epilogue)
    }),
    ("DepthwiseConv2dNative", |call, caps, epilogue| {
        convolution(call, caps, Kind::Depthwise, epilogue)
    }),
    ("DepthwiseConv2dNativeBackpropFilter", |call, caps, epilogue| {
        backprop_filter(call, caps, Kind::Depthwise, epilogue)
    }),
    ("DepthwiseConv2dNativeBackpropInput", |call, caps, epilogue| {
        backprop_input(call, caps, Kind::Depthwise, epilogue)
    }),
];

/// Relation of filters to channels.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Every filter takes all channels of its group.
    Dense,
    /// Every channel is a group.
    Depthwise,
}

/// Filters that one invocation applies.
const BLOCK: usize = 4;

/// A convolution, group by group. A depthwise one has a group for each channel.
struct Geometry {
    sweep: Sweep,
    groups: usize,
    filters: usize,
}

impl Geometry {
    /// `None` where channels come before the spatial dimensions.
    fn new(
        call: &OpCall<'_>,
        kind: Kind,
        input: &Shape,
        filter: &Shape,
    ) -> Result<Option<Geometry>> {
        let Some(sweep) = sliding::convolution(call, input, filter)? else { return Ok(None) };
        let channels = sweep.channels;
        let (own, last) = (filter[filter.rank() - 2], filter[filter.rank() - 1]);
        let (groups, filters) = match kind {
            Kind::Depthwise => (channels, channels * last),
            Kind::Dense => (channels.checked_div(own).unwrap_or(1).max(1), last),
        };
        Ok(Some(Geometry { sweep, groups, filters }))
    }

    /// Channels of a group.
    fn width(&self) -> usize {
        (self.sweep.channels / self.groups).max(1)
    }

    /// Filters of a group.
    fn own(&self) -> usize {
        (self.filters / self.groups).max(1)
    }

    /// The position of a weight: `[kernel offsets, channels of a group, filters]`, which is also how
    /// depthwise filters lie.
    fn weight<'k>(
        &self,
        offset: KernelValue<'k>,
        channel: KernelValue<'k>,
        filter: KernelValue<'k>,
    ) -> KernelValue<'k> {
        (offset * self.width() + channel) * self.filters + filter
    }

    /// Convolution that workgroups may compute as an implicit GEMM.
    fn whole(&self, caps: Caps, scalar: ScalarType) -> Option<Convolution<'_>> {
        let fits = caps.tiles && scalar == ScalarType::F32 && self.groups == 1;
        fits.then_some(Convolution { sweep: &self.sweep, filters: self.filters })
    }

    /// Leaves the kernel out where there is nothing to compute with.
    fn require(&self, k: &KernelBuilder, data: KernelBuffer<'_>) {
        k.requires(self.filters > 0 && self.sweep.channels > 0);
        k.requires(matches!(data.scalar, ScalarType::F32 | ScalarType::I32));
    }
}

fn convolution(
    call: &OpCall<'_>,
    caps: Caps,
    kind: Kind,
    epilogue: &Epilogue<'_>,
) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let Some(g) = Geometry::new(call, kind, call.shape(0), call.shape(1))? else { return Ok(None) };
    let k = KernelBuilder::new(caps);
    let [images, weights] = k.inputs(call, [0, 1]);
    g.require(&k, images);
    let out = epilogue.output(&k, &shape);
    if let Some(whole) = g.whole(caps, images.scalar)
        && let Some(kernel) = whole.forward(&k, [images, weights], &out)
    {
        return kernel;
    }
    let block = if g.own() % BLOCK == 0 { BLOCK } else { 1 };
    let (blocks, width, n) = ((g.filters / block).max(1), g.width(), k.element());
    let number = k.bind("number", n / blocks);
    let feature = k.bind("feature", n % blocks * block);
    let group = k.bind("group", feature / g.own());
    let window = ImagePosition::of(&k, number, outputs(&g.sweep));
    let sums: Vec<KernelValue<'_>> = (0..block).map(|_| k.variable("sum", images.zero())).collect();
    for_each_offset(&k, &g.sweep, window, |offset, position| {
        let start = position.number(inputs(&g.sweep)) * g.sweep.channels + group * width;
        let start = k.bind("start", start);
        let first = k.bind("first", g.weight(offset, k.index(0), feature));
        k.for_below("channel", width, |channel| {
            let value = k.bind("value", images.at(start + channel));
            for (filter, sum) in sums.iter().enumerate() {
                sum.set(*sum + value * weights.at(first + channel * g.filters + filter));
            }
        });
    });
    for (filter, &sum) in sums.iter().enumerate() {
        out.set(number * g.filters + feature + filter, sum);
    }
    k.finish(g.sweep.n_windows() * blocks)
}

fn backprop_input(
    call: &OpCall<'_>,
    caps: Caps,
    kind: Kind,
    epilogue: &Epilogue<'_>,
) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let Some(g) = Geometry::new(call, kind, &shape, call.shape(1))? else { return Ok(None) };
    let k = KernelBuilder::new(caps);
    let [weights, gradients] = k.inputs(call, [1, 2]);
    g.require(&k, weights);
    let out = epilogue.output(&k, &shape);
    if let Some(whole) = g.whole(caps, weights.scalar)
        && let Some(kernel) = whole.of_images(&k, [weights, gradients], &out)
    {
        return kernel;
    }
    let (own, width, n) = (g.own(), g.width(), k.element());
    let channels = g.sweep.channels.max(1);
    let channel = k.bind("channel", n % channels);
    let group = k.bind("group", channel / width);
    let position = ImagePosition::of(&k, n / channels, inputs(&g.sweep));
    let sum = k.variable("sum", weights.zero());
    for_each_cover(&k, &g.sweep, position, |offset, window| {
        let number = k.bind("number", window.number(outputs(&g.sweep)));
        let first = k.bind("first", g.weight(offset, channel % width, group * own));
        k.for_below("feature", own, |feature| {
            let gradient = gradients.at(number * g.filters + group * own + feature);
            sum.set(sum + weights.at(first + feature) * gradient);
        });
    });
    out.set(n, sum);
    k.finish(shape.num_elements())
}

fn backprop_filter(
    call: &OpCall<'_>,
    caps: Caps,
    kind: Kind,
    epilogue: &Epilogue<'_>,
) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let Some(g) = Geometry::new(call, kind, call.shape(0), &shape)? else { return Ok(None) };
    let k = KernelBuilder::new(caps);
    let [images, gradients] = k.inputs(call, [0, 2]);
    g.require(&k, images);
    let out = epilogue.output(&k, &shape);
    if let Some(whole) = g.whole(caps, images.scalar)
        && let Some(kernel) = whole.of_filters(&k, [images, gradients], &out)
    {
        return kernel;
    }
    let (own, width, filters, n) = (g.own(), g.width(), g.filters.max(1), k.element());
    let feature = k.bind("feature", n % filters);
    let channel = k.bind("channel", feature / own * width + n / filters % width);
    let offset = apart(&k, n / (filters * width), sizes(&g.sweep));
    let sum = k.variable("sum", images.zero());
    k.for_below("image", g.sweep.batch, |image| {
        for_each_window(&k, &g.sweep, offset, |window, position| {
            let [window, position] = [window, position].map(|at| ImagePosition { image, at });
            let value = images.at(position.number(inputs(&g.sweep)) * g.sweep.channels + channel);
            let gradient = gradients.at(window.number(outputs(&g.sweep)) * g.filters + feature);
            sum.set(sum + value * gradient);
        });
    });
    out.set(n, sum);
    k.finish(shape.num_elements())
}
