//! Convolutions and pools.

use super::{
    super::module::Attr,
    block::{Block, Typed, attrs, int, ints, pairs},
    kernel::precision,
    lower::{LoweredNode, bound},
    scalar::element,
};
use bytes::Bytes;
use ferroflow_ir::{
    DType, Result,
    expr::Constant,
    window::{ImageLayout, Slide, convolution_steps, pool as pool_of},
};

/// The padding that makes as many windows as there are.
fn padding(slide: &Slide) -> [i64; 2] {
    let reach = (slide.output as i64 - 1) * slide.stride as i64
        + (slide.size as i64 - 1) * slide.dilation as i64
        + 1;
    [slide.before as i64, reach - slide.input as i64 - slide.before as i64]
}

/// Description of a convolution over spatial dimensions.
struct Convolution {
    layout: ImageLayout,
    strides: Vec<usize>,
    padding: Vec<[i64; 2]>,
    lhs_dilation: Vec<usize>,
    rhs_dilation: Vec<usize>,
    reversed: bool,
    groups: usize,
    /// Where filters have the channels of the input and of the output.
    filter_channels: [usize; 2],
}

impl Convolution {
    fn add(
        &self,
        block: &mut Block<'_>,
        x: &Typed,
        filter: &Typed,
        result: (DType, &[usize]),
    ) -> Typed {
        let spatial: Vec<usize> = (0..self.layout.spatial).map(|i| self.layout.at(i)).collect();
        let filters: Vec<usize> = (0..self.layout.spatial).collect();
        let reversal = vec![u8::from(self.reversed); self.layout.spatial];
        let flags = super::block::tensor_type(DType::Bool, &[self.layout.spatial]);
        let attrs = attrs([
            ("batch_group_count", int(1)),
            ("feature_group_count", int(self.groups)),
            ("input_batch_dimension", int(0)),
            ("input_feature_dimension", int(self.layout.channels())),
            ("input_spatial_dimensions", ints(&spatial)),
            ("kernel_input_feature_dimension", int(self.filter_channels[0])),
            ("kernel_output_feature_dimension", int(self.filter_channels[1])),
            ("kernel_spatial_dimensions", ints(&filters)),
            ("lhs_dilation", ints(&self.lhs_dilation)),
            ("output_batch_dimension", int(0)),
            ("output_feature_dimension", int(self.layout.channels())),
            ("output_spatial_dimensions", ints(&spatial)),
            ("padding", pairs(&self.padding)),
            ("precision_config", precision()),
            ("rhs_dilation", ints(&self.rhs_dilation)),
            ("window_reversal", Attr::Tensor(flags, Bytes::from(reversal))),
            ("window_strides", ints(&self.strides)),
        ]);
        block.op("convolution", attrs, &[x, filter], result)
    }
}

/// A convolution of images or volumes; depthwise with filters of their own for each channel.
pub(super) fn convolution(
    block: &mut Block<'_>,
    node: &LoweredNode<'_>,
    depthwise: bool,
) -> Result<Vec<Typed>> {
    let (x, mut filter) = (node.x(0)?.clone(), node.x(1)?.clone());
    let (dtype, dims) = node.result(0)?;
    let layout = ImageLayout::read(&node.node.attrs, x.rank() - 2)?;
    let steps = convolution_steps(node.op.name, &node.node.attrs, layout)?;
    let slides: Vec<Slide> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| step.slide(x.dims[layout.at(index)], filter.dims[index]))
        .collect::<Result<_>>()?;
    let (spatial, channels) = (layout.spatial, x.dims[layout.channels()]);
    let groups = if depthwise {
        let n = filter.dims[spatial] * filter.dims[spatial + 1];
        let shape = [&filter.dims[..spatial], &[1, n]].concat();
        filter = block.reshape(&filter, &shape);
        channels
    } else {
        channels / filter.dims[spatial].max(1)
    };
    let convolution = Convolution {
        layout,
        strides: steps.iter().map(|step| step.stride).collect(),
        padding: slides.iter().map(padding).collect(),
        lhs_dilation: vec![1; spatial],
        rhs_dilation: steps.iter().map(|step| step.dilation).collect(),
        reversed: false,
        groups,
        filter_channels: [spatial, spatial + 1],
    };
    Ok(vec![convolution.add(block, &x, &filter, (dtype, &dims))])
}

/// The gradient of a convolution by its input, which is the transposed convolution: over the gradient
/// spread out by the strides, with reversed filters.
pub(super) fn transposed(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let (filter, dy) = (node.x(1)?.clone(), node.x(2)?.clone());
    let (dtype, dims) = node.result(0)?;
    let layout = ImageLayout::read(&node.node.attrs, dims.len() - 2)?;
    let steps = convolution_steps(node.op.name, &node.node.attrs, layout)?;
    let slides: Vec<Slide> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| step.slide(dims[layout.at(index)], filter.dims[index]))
        .collect::<Result<_>>()?;
    let spatial = layout.spatial;
    if dims[layout.channels()] != filter.dims[spatial] {
        return Err(node.refused("groups of channels"));
    }
    let edges = slides.iter().map(|slide| {
        let reach = (slide.size as i64 - 1) * slide.dilation as i64;
        let before = reach - slide.before as i64;
        let spread = (slide.output as i64 - 1) * slide.stride as i64 + 1;
        [before, slide.input as i64 + reach - spread - before]
    });
    let convolution = Convolution {
        layout,
        strides: vec![1; spatial],
        padding: edges.collect(),
        lhs_dilation: steps.iter().map(|step| step.stride).collect(),
        rhs_dilation: steps.iter().map(|step| step.dilation).collect(),
        reversed: true,
        groups: 1,
        filter_channels: [spatial + 1, spatial],
    };
    Ok(vec![convolution.add(block, &dy, &filter, (dtype, &dims))])
}

/// Windows over dimensions, of the largest elements or of means.
pub(super) fn pool(
    block: &mut Block<'_>,
    node: &LoweredNode<'_>,
    largest: bool,
) -> Result<Vec<Typed>> {
    let x = node.x(0)?.clone();
    let (dtype, dims) = node.result(0)?;
    let list = |name: &str| node.node.attrs.ints(name).map(<[i64]>::to_vec);
    let pool = pool_of(node.op.name, &node.node.attrs, &list("ksize")?, &list("strides")?)?;
    let mut windows = Windows::over(x.rank());
    let channels = pool.layout.channels();
    (windows.sizes[channels], windows.strides[channels]) = (pool.depth, pool.depth);
    for (index, (step, &size)) in pool.steps.iter().zip(&pool.sizes).enumerate() {
        let axis = pool.layout.at(index);
        let slide = step.slide(x.dims[axis], size)?;
        (windows.sizes[axis], windows.strides[axis]) = (size, step.stride);
        windows.padding[axis] = padding(&slide);
    }
    if largest {
        let initial = block.constant(&element(bound(dtype, false), dtype)?);
        return Ok(vec![windows.reduce(block, &x, &initial, "maximum", &dims)]);
    }
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let x = block.convert(&x, wide);
    let zero = block.constant(&element(Constant::Int(0), wide)?);
    let sum = windows.reduce(block, &x, &zero, "add", &dims);
    // WindowPadding does not count.
    let ones = block.splat(wide, element(Constant::Int(1), wide)?.bytes(), &x.dims);
    let count = windows.reduce(block, &ones, &zero, "add", &dims);
    let mean = block.same("divide", &[&sum, &count]);
    Ok(vec![block.convert(&mean, dtype)])
}

/// Sums of windows of `size` elements along an axis.
pub(super) fn summed(
    block: &mut Block<'_>,
    x: &Typed,
    initial: &Typed,
    axis: usize,
    size: usize,
    padding: [i64; 2],
) -> Result<Typed> {
    if x.dims.contains(&0) {
        return Ok(x.clone());
    }
    let mut windows = Windows::over(x.rank());
    (windows.sizes[axis], windows.padding[axis]) = (size, padding);
    Ok(windows.reduce(block, x, initial, "add", &x.dims.clone()))
}

struct Windows {
    sizes: Vec<usize>,
    strides: Vec<usize>,
    padding: Vec<[i64; 2]>,
}

impl Windows {
    fn over(rank: usize) -> Windows {
        Windows { sizes: vec![1; rank], strides: vec![1; rank], padding: vec![[0; 2]; rank] }
    }

    fn reduce(
        &self,
        block: &mut Block<'_>,
        x: &Typed,
        initial: &Typed,
        by: &str,
        dims: &[usize],
    ) -> Typed {
        let ones = || ints(&vec![1; x.rank()]);
        let attrs = attrs([
            ("base_dilations", ones()),
            ("padding", pairs(&self.padding)),
            ("window_dilations", ones()),
            ("window_dimensions", ints(&self.sizes)),
            ("window_strides", ints(&self.strides)),
        ]);
        let region = block.pairwise(x.dtype, by);
        let results = [(x.dtype, dims)];
        block.op_with("reduce_window", attrs, &[x, initial], vec![region], &results).remove(0)
    }
}
