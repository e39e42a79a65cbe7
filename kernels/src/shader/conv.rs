//! Convolutions over two and three spatial dimensions and their gradients, depthwise ones too.
//!
//! An invocation computes a window of up to four filters, or one element of a gradient; where groups
//! pay, large convolutions are products by tiles.

use super::{
    Shader,
    conv_product::Convolution,
    finish::EpilogueWriter,
    window::{apart, for_each_cover, for_each_tap, inputs, outputs, together},
    word::{Caps, Word},
    words,
};
use crate::{
    device::OpCall,
    error::Result,
    plan::{sliding, window::Sweep},
};
use ferroflow_ir::{Shape, window::Slide};

pub(super) const SHADERS: &[(&str, super::BuildProduct)] = &[
    ("Conv2D", |call, caps, finish| convolution(call, caps, Kind::Dense, finish)),
    ("Conv2DBackpropFilter", |call, caps, finish| backprop_filter(call, caps, Kind::Dense, finish)),
    ("Conv2DBackpropFilterV2", |call, caps, finish| {
        backprop_filter(call, caps, Kind::Dense, finish)
    }),
    ("Conv2DBackpropInput", |call, caps, finish| backprop_input(call, caps, Kind::Dense, finish)),
    ("Conv2DBackpropInputV2", |call, caps, finish| backprop_input(call, caps, Kind::Dense, finish)),
    ("Conv3D", |call, caps, finish| convolution(call, caps, Kind::Dense, finish)),
    ("Conv3DBackpropFilterV2", |call, caps, finish| {
        backprop_filter(call, caps, Kind::Dense, finish)
    }),
    ("Conv3DBackpropInputV2", |call, caps, finish| backprop_input(call, caps, Kind::Dense, finish)),
    ("DepthwiseConv2dNative", |call, caps, finish| {
        convolution(call, caps, Kind::Depthwise, finish)
    }),
    ("DepthwiseConv2dNativeBackpropFilter", |call, caps, finish| {
        backprop_filter(call, caps, Kind::Depthwise, finish)
    }),
    ("DepthwiseConv2dNativeBackpropInput", |call, caps, finish| {
        backprop_input(call, caps, Kind::Depthwise, finish)
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

    /// The position of a weight: `[taps, channels of a group, filters]`, which is also how depthwise
    /// filters lie.
    fn weight(&self, tap: &str, channel: &str, filter: &str) -> String {
        format!("({tap} * {}u + {channel}) * {}u + {filter}", self.width(), self.filters)
    }

    /// Convolution that workgroups may compute as an implicit GEMM.
    fn whole(&self, caps: Caps, word: Word) -> Option<Convolution<'_>> {
        let fits = caps.tiles && word == Word::F32 && self.groups == 1;
        fits.then_some(Convolution { sweep: &self.sweep, filters: self.filters })
    }

    fn is_empty(&self) -> bool {
        self.filters == 0 || self.sweep.channels == 0
    }
}

fn convolution(
    call: &OpCall<'_>,
    caps: Caps,
    kind: Kind,
    finish: &EpilogueWriter,
) -> Result<Option<Shader>> {
    let (input, filter) = (call.shape(0), call.shape(1));
    let Some(g) = Geometry::new(call, kind, input, filter)? else { return Ok(None) };
    let Some((bound, word)) = words(call, caps, [0, 1]) else { return Ok(None) };
    if g.is_empty() || (word != Word::F32 && word != Word::I32) {
        return Ok(None);
    }
    if let Some(whole) = g.whole(caps, word)
        && let Some(product) = whole.forward(bound.clone(), finish)
    {
        return Ok(Some(product));
    }
    let block = if g.own() % BLOCK == 0 { BLOCK } else { 1 };
    let (blocks, width) = (g.filters / block, g.width());
    let mut sums = String::new();
    let mut inner = format!(
        "let at = {} * {}u + group * {width}u;\nlet first = {};\n\
         for (var c = 0u; c < {width}u; c++) {{\nlet value = in0[at + c];\n",
        together("p", inputs(&g.sweep)),
        g.sweep.channels,
        g.weight("tap", "0u", "feature"),
    );
    let mut stores = String::new();
    for lane in 0..block {
        sums += &format!("var sum{lane} = {};\n", word.zero());
        inner += &format!(
            "sum{lane} = sum{lane} + value * in1[first + c * {}u + {lane}u];\n",
            g.filters
        );
        let at = format!("window * {}u + feature + {lane}u", g.filters);
        stores += &finish.store(&at, &format!("sum{lane}"));
    }
    inner += "}\n";
    let body = format!(
        "let window = n / {blocks}u;\nlet feature = n % {blocks}u * {block}u;\nlet group = feature / {}u;\n{}{sums}{}{stores}",
        g.own(),
        apart("window", "w", outputs(&g.sweep)),
        for_each_tap(&g.sweep, &inner),
    );
    let count = g.sweep.n_windows() * blocks;
    Ok(Some(finish.shader(bound, word, body, count)))
}

fn backprop_input(
    call: &OpCall<'_>,
    caps: Caps,
    kind: Kind,
    finish: &EpilogueWriter,
) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let Some(g) = Geometry::new(call, kind, &shape, call.shape(1))? else { return Ok(None) };
    let Some((bound, word)) = words(call, caps, [1, 2]) else { return Ok(None) };
    if g.is_empty() || (word != Word::F32 && word != Word::I32) {
        return Ok(None);
    }
    if let Some(whole) = g.whole(caps, word)
        && let Some(product) = whole.of_images(bound.clone(), finish)
    {
        return Ok(Some(product));
    }
    let (own, width) = (g.own(), g.width());
    let inner = format!(
        "let window = {};\nlet first = {};\n\
         for (var f = 0u; f < {own}u; f++) {{\n\
         sum = sum + in0[first + f] * in1[window * {}u + group * {own}u + f];\n}}\n",
        together("w", outputs(&g.sweep)),
        g.weight("tap", &format!("channel % {width}u"), &format!("group * {own}u")),
        g.filters,
    );
    let body = format!(
        "let channel = n % {channels}u;\nlet group = channel / {width}u;\nlet place = n / {channels}u;\n{}var sum = {};\n{}{}",
        apart("place", "p", inputs(&g.sweep)),
        word.zero(),
        for_each_cover(&g.sweep, &inner),
        finish.store("n", "sum"),
        channels = g.sweep.channels,
    );
    Ok(Some(finish.shader(bound, word, body, shape.num_elements())))
}

fn backprop_filter(
    call: &OpCall<'_>,
    caps: Caps,
    kind: Kind,
    finish: &EpilogueWriter,
) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let Some(g) = Geometry::new(call, kind, call.shape(0), &shape)? else { return Ok(None) };
    let Some((bound, word)) = words(call, caps, [0, 2]) else { return Ok(None) };
    if g.is_empty() || (word != Word::F32 && word != Word::I32) {
        return Ok(None);
    }
    if let Some(whole) = g.whole(caps, word)
        && let Some(product) = whole.of_filters(bound.clone(), finish)
    {
        return Ok(Some(product));
    }
    let (own, width) = (g.own(), g.width());
    let [_, b, c] = g.sweep.slides.map(|slide| slide.size);
    let mut body = format!(
        "let feature = n % {}u;\nlet channel = feature / {own}u * {width}u + n / {}u % {width}u;\n\
         let tap = n / {}u;\nlet tz = tap % {c}u;\nlet ty = tap / {c}u % {b}u;\nlet tx = tap / {}u;\n\
         var sum = {};\nfor (var image = 0u; image < {}u; image++) {{\n",
        g.filters,
        g.filters,
        g.filters * width,
        b * c,
        word.zero(),
        g.sweep.batch,
    );
    for (axis, slide) in ["x", "y", "z"].iter().zip(&g.sweep.slides) {
        let Slide { input, output, stride, dilation, before, .. } = slide;
        body += &format!(
            "for (var w{axis} = 0u; w{axis} < {output}u; w{axis}++) {{\n\
             let p{axis} = w{axis} * {stride}u + t{axis} * {dilation}u - u32(i32({before}));\n\
             if (p{axis} >= {input}u) {{ continue; }}\n"
        );
    }
    body += &format!(
        "sum = sum + in0[{} * {}u + channel] * in1[{} * {}u + feature];\n}}\n}}\n}}\n}}\n{}",
        together("p", inputs(&g.sweep)),
        g.sweep.channels,
        together("w", outputs(&g.sweep)),
        g.filters,
        finish.store("n", "sum"),
    );
    Ok(Some(finish.shader(bound, word, body, shape.num_elements())))
}
