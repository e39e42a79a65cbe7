//! MobileNetV2 (Sandler et al. 2018), in inference, with weights of seeds.

use super::{batch, measure::MeasuredRow, place::BenchDevice, sizes, weights::DeviceWeights};
use anyhow::{Context as _, Result};
use ferroflow::{
    Tensor, Variable, function,
    ops::{self, Conv2DAttrs, DepthwiseConv2dNativeAttrs, FusedBatchNormV3Attrs},
    tracer,
};

/// Expansion of the channels of each stage, their number, the number of blocks and the stride of
/// the first.
const BLOCKS: [[usize; 4]; 7] = [
    [1, 16, 1, 1],
    [6, 24, 2, 2],
    [6, 32, 3, 2],
    [6, 64, 4, 2],
    [6, 96, 3, 1],
    [6, 160, 3, 2],
    [6, 320, 1, 1],
];

/// A convolution with its normalisation.
struct Conv {
    filter: Variable,
    /// Scale, shift, mean and variance.
    norm: [Variable; 4],
    kind: Kind,
    stride: usize,
    is_clipped: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Over neighbours and channels.
    Full,
    /// Over neighbours, each channel on its own.
    Depthwise,
    /// Over channels.
    Pointwise,
}

struct Block {
    convs: Vec<Conv>,
    adds_input: bool,
}

pub(super) fn infer(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let (model, batch) = batch(rest)?;
    let [side] = sizes(model.strip_prefix("mobilenetv2_").context("a MobileNetV2")?)?;
    let x = place.floats(31, &[batch, side, side, 3], -1.0, 1.0)?;
    let mut weights = DeviceWeights::on(place);
    let blocks = blocks(&mut weights)?;
    let dense = weights.scaled(&[1280, 1000], 1280, 1.0)?;
    let bias = weights.between(&[1000], -0.5, 0.5)?;
    let f = function(move |x: Tensor| {
        let mut x = x;
        for block in &blocks {
            let y = block.convs.iter().try_fold(x.clone(), |x, conv| conv.apply(&x))?;
            x = if block.adds_input { (x + y)? } else { y };
        }
        x.mean(&[1, 2])?.matmul(&dense)? + &bias
    });
    let weights = weights.made;
    Ok(MeasuredRow::new(move || {
        std::hint::black_box(&weights);
        Ok(f.call((&x,))?)
    }))
}

fn blocks(weights: &mut DeviceWeights<'_>) -> Result<Vec<Block>> {
    let single = |conv| Block { convs: vec![conv], adds_input: false };
    let mut blocks = vec![single(Conv::new(weights, Kind::Full, [3, 32], 2, true)?)];
    let mut channels = 32;
    for [widen, out, count, first_stride] in BLOCKS {
        for number in 0..count {
            let stride = if number == 0 { first_stride } else { 1 };
            let wide = widen * channels;
            let mut convs = Vec::new();
            if widen > 1 {
                convs.push(Conv::new(weights, Kind::Pointwise, [channels, wide], 1, true)?);
            }
            convs.push(Conv::new(weights, Kind::Depthwise, [wide, wide], stride, true)?);
            convs.push(Conv::new(weights, Kind::Pointwise, [wide, out], 1, false)?);
            blocks.push(Block { convs, adds_input: stride == 1 && channels == out });
            channels = out;
        }
    }
    blocks.push(single(Conv::new(weights, Kind::Pointwise, [channels, 1280], 1, true)?));
    Ok(blocks)
}

impl Conv {
    fn new(
        weights: &mut DeviceWeights<'_>,
        kind: Kind,
        [channels, out]: [usize; 2],
        stride: usize,
        is_clipped: bool,
    ) -> Result<Conv> {
        let (dims, fan_in) = match kind {
            Kind::Full => ([3, 3, channels, out], 9 * channels),
            Kind::Depthwise => ([3, 3, channels, 1], 9),
            Kind::Pointwise => ([1, 1, channels, out], channels),
        };
        let filter = weights.scaled(&dims, fan_in, 2.0)?;
        let bounds = [(0.8, 1.2), (-0.2, 0.2), (-0.2, 0.2), (0.8, 1.2)];
        let [scale, shift, mean, variance] =
            bounds.map(|(low, high)| weights.between(&[out], low, high));
        let norm = [scale?, shift?, mean?, variance?];
        Ok(Conv { filter, norm, kind, stride, is_clipped })
    }

    fn apply(&self, x: &Tensor) -> tracer::Result<Tensor> {
        let stride = self.stride as i64;
        let strides = [1, stride, stride, 1];
        // The same on both sides, as PyTorch pads; TensorFlow's `SAME` would not.
        let explicit_paddings = vec![0, 0, 1, 1, 1, 1, 0, 0];
        let filter = self.filter.read()?;
        let y = match self.kind {
            Kind::Full => {
                let attrs = Conv2DAttrs { explicit_paddings, ..Default::default() };
                ops::conv2d_with(x, &filter, &strides, "EXPLICIT", &attrs)
            }
            Kind::Depthwise => {
                let attrs = DepthwiseConv2dNativeAttrs { explicit_paddings, ..Default::default() };
                ops::depthwise_conv2d_native_with(x, &filter, &strides, "EXPLICIT", &attrs)
            }
            Kind::Pointwise => ops::conv2d(x, &filter, &strides, "VALID"),
        }?;
        let [scale, shift, mean, variance] = self.norm.each_ref().map(Variable::read);
        let attrs =
            FusedBatchNormV3Attrs { epsilon: 1e-3, is_training: false, ..Default::default() };
        let [y, ..] =
            ops::fused_batch_norm_v3_with(&y, &scale?, &shift?, &mean?, &variance?, &attrs)?;
        if self.is_clipped { ops::relu6(&y) } else { Ok(y) }
    }
}
