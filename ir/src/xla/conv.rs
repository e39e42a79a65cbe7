//! `convolution`: windows of any layout, stride, dilation, padding and grouping.
//!
//! The tensors are laid out as `Conv2D` and `Conv3D` have theirs, which then do the work.

use super::{
    bits::{Shift, same_bits, shift, unsigned, width},
    dot::sum_type,
    pad::{AxisPadding, pad},
    size::{Size, broadcast, reshape, sizes_of_rank, transpose},
    slice::reverse,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with},
};

/// The axes of image, kernel and result.
#[derive(Debug, Clone, Default)]
pub struct ConvAxes {
    /// Batch and features of the image.
    pub input: [usize; 2],
    /// The spatial axes of the image.
    pub input_spatial: Vec<usize>,
    /// Input features and output features of the kernel.
    pub kernel: [usize; 2],
    /// The spatial axes of the kernel.
    pub kernel_spatial: Vec<usize>,
    /// Batch and features of the result.
    pub output: [usize; 2],
    /// The spatial axes of the result.
    pub output_spatial: Vec<usize>,
}

impl ConvAxes {
    /// Whether the axes are those of tensors of this rank.
    pub fn fits(&self, rank: usize) -> bool {
        let all = |pair: [usize; 2], spatial: &[usize]| {
            let mut axes: Vec<usize> = pair.into_iter().chain(spatial.iter().copied()).collect();
            axes.sort_unstable();
            axes.iter().copied().eq(0..rank)
        };
        all(self.input, &self.input_spatial)
            && all(self.kernel, &self.kernel_spatial)
            && all(self.output, &self.output_spatial)
    }
}

/// The movement of a window.
#[derive(Debug, Clone)]
pub struct ConvWindow<'e> {
    /// The steps from window to window.
    pub stride: Vec<i64>,
    /// Zeros before and after each axis; negative to cut off.
    pub padding: Vec<(Size<'e>, Size<'e>)>,
    /// The steps that the image is spread to.
    pub lhs_dilation: Vec<i64>,
    /// The steps that the kernel is spread to.
    pub rhs_dilation: Vec<i64>,
    /// Whether the kernel is turned round along an axis.
    pub reversal: Vec<bool>,
    /// The number of groups that features are in.
    pub feature_groups: i64,
    /// The number of groups that batches are in.
    pub batch_groups: i64,
}

impl ConvWindow<'_> {
    /// Whether there is one of everything for each of `n` axes, and none is too small.
    pub fn fits(&self, n: usize) -> bool {
        let steps = [&self.stride, &self.lhs_dilation, &self.rhs_dilation];
        let groups = [self.feature_groups, self.batch_groups];
        self.padding.len() == n
            && self.reversal.len() == n
            && steps.iter().all(|list| list.len() == n && list.iter().all(|&step| step >= 1))
            && groups.iter().all(|&count| count >= 1)
            && groups.contains(&1)
    }
}

/// The most groups of features or batches.
pub const MOST_GROUPS: i64 = 1 << 16;

/// The convolution, as elements of `result`; `None` for more than three spatial axes, or too many
/// groups.
pub fn convolution<'e>(
    lhs: Value<'e>,
    rhs: Value<'e>,
    axes: &ConvAxes,
    window: &ConvWindow<'e>,
    result: DType,
) -> Option<Value<'e>> {
    let groups = window.feature_groups.max(window.batch_groups);
    if axes.input_spatial.len() > 3 || groups > MOST_GROUPS {
        return None;
    }
    let sizes = result_sizes(lhs, rhs, axes, window);
    if sizes.iter().any(|size| size.known() == Some(0)) {
        return Some(broadcast(lhs.like(0.0).cast(result), &sizes));
    }
    let of = |lhs: Value<'e>, rhs: Value<'e>, sum: DType| {
        let image = image(lhs.cast(sum), axes, window);
        let kernel = kernel(rhs.cast(sum), axes, window);
        arranged(convolved(image, kernel, window), axes)
    };
    match sum_type(result, [lhs.dtype(), rhs.dtype()]) {
        DType::C64 | DType::C128 => complex(lhs, rhs, axes, window, result),
        dtype if dtype.is_float() => Some(of(lhs, rhs, dtype).cast(result)),
        _ => Some(integers(lhs, rhs, result, &|lhs, rhs| of(lhs, rhs, DType::F64))),
    }
}

/// The sizes of the result; 0 along an axis whose windows are longer than the image with its padding.
fn result_sizes<'e>(
    lhs: Value<'e>,
    rhs: Value<'e>,
    axes: &ConvAxes,
    window: &ConvWindow<'e>,
) -> Vec<Size<'e>> {
    let n = axes.output_spatial.len();
    let (image, kernel) = (sizes_of_rank(lhs, n + 2), sizes_of_rank(rhs, n + 2));
    let mut sizes = vec![Size::Known(0); n + 2];
    sizes[axes.output[0]] = image[axes.input[0]].divided(window.batch_groups);
    sizes[axes.output[1]] = kernel[axes.kernel[1]];
    for (axis, &output) in axes.output_spatial.iter().enumerate() {
        let spread = |size: Size<'e>, step: i64| size.minus(1).times(step).plus(1).at_least(0);
        let own = spread(image[axes.input_spatial[axis]], window.lhs_dilation[axis]);
        let reach = spread(kernel[axes.kernel_spatial[axis]], window.rhs_dilation[axis]);
        let (low, high) = window.padding[axis];
        let stride = window.stride[axis];
        let beyond = own.plus(low).plus(high).minus(reach);
        sizes[output] = beyond.plus(stride).divided(stride).at_least(0);
    }
    sizes
}

/// A sum of products of integers, modulo the range of `result`, from sums of products of their parts
/// of up to 16 bits, of which doubles have 2^21 without loss.
fn integers<'e>(
    lhs: Value<'e>,
    rhs: Value<'e>,
    result: DType,
    sums: &dyn Fn(Value<'e>, Value<'e>) -> Value<'e>,
) -> Value<'e> {
    const BITS: i64 = 16;
    let parts = |x: Value<'e>| -> Vec<Value<'e>> {
        let n = width(x.dtype()) / BITS;
        if n <= 1 {
            return vec![x];
        }
        let bits = same_bits(x, unsigned(x.dtype()));
        let part = |at: i64| {
            let lowered = shift(bits, bits.like((at * BITS) as f64), Shift::RightLogical);
            call("BitwiseAnd", [lowered, bits.like(f64::from(u16::MAX))])
        };
        (0..n).map(part).collect()
    };
    let (lhs, rhs) = (parts(lhs), parts(rhs));
    let mut total: Option<Value<'e>> = None;
    for (i, &a) in lhs.iter().enumerate() {
        for (j, &b) in rhs.iter().enumerate() {
            let above = (i + j) as i64 * BITS;
            if above >= width(result) {
                continue;
            }
            let sum = sums(a, b).cast(DType::I64);
            let sum = match above {
                0 => sum,
                _ => shift(sum, sum.like(above as f64), Shift::Left),
            };
            total = Some(total.map_or(sum, |total| total + sum));
        }
    }
    total.unwrap_or_else(|| sums(lhs[0], rhs[0])).cast(result)
}

/// Complex numbers by four convolutions of real ones.
fn complex<'e>(
    lhs: Value<'e>,
    rhs: Value<'e>,
    axes: &ConvAxes,
    window: &ConvWindow<'e>,
    result: DType,
) -> Option<Value<'e>> {
    let real = result.real_type();
    let part = |x: Value<'e>, op: &str| {
        let attrs = Attrs::new().with("Tout", real);
        call_with(op, attrs, [x.cast(result)])
    };
    let product = |a: &str, b: &str| convolution(part(lhs, a), part(rhs, b), axes, window, real);
    let re = product("Real", "Real")? - product("Imag", "Imag")?;
    let im = product("Real", "Imag")? + product("Imag", "Real")?;
    Some(call_with("Complex", Attrs::new().with("Tout", result), [re, im]))
}

/// The image as `[batch, spatial…, features]`, batch groups as groups of features.
fn image<'e>(lhs: Value<'e>, axes: &ConvAxes, window: &ConvWindow<'e>) -> Value<'e> {
    let [batch, features] = axes.input;
    let order: Vec<usize> =
        [batch].into_iter().chain(axes.input_spatial.iter().copied()).chain([features]).collect();
    let image = transpose(lhs, &order);
    let groups = window.batch_groups;
    if groups == 1 {
        return image;
    }
    let n = axes.input_spatial.len() + 2;
    let whole = sizes_of_rank(image, n);
    let mut split = vec![Size::Known(groups), whole[0].divided(groups)];
    split.extend(&whole[1..]);
    let order: Vec<usize> = (1..n).chain([0, n]).collect();
    let mut merged = whole.clone();
    merged[0] = whole[0].divided(groups);
    merged[n - 1] = whole[n - 1].times(groups);
    reshape(transpose(reshape(image, &split), &order), &merged)
}

/// The kernel as `[spatial…, input features, output features]`.
fn kernel<'e>(rhs: Value<'e>, axes: &ConvAxes, window: &ConvWindow<'e>) -> Value<'e> {
    let turned = axes.kernel_spatial.iter().zip(&window.reversal).filter(|(_, turned)| **turned);
    let turned: Vec<usize> = turned.map(|(&axis, _)| axis).collect();
    let order: Vec<usize> = axes.kernel_spatial.iter().copied().chain(axes.kernel).collect();
    transpose(reverse(rhs, &turned), &order)
}

/// The result of `[batch, spatial…, features]` in its own layout.
fn arranged<'e>(result: Value<'e>, axes: &ConvAxes) -> Value<'e> {
    let n = axes.output_spatial.len();
    let mut order = vec![0; n + 2];
    order[axes.output[0]] = 0;
    order[axes.output[1]] = n + 1;
    for (position, &axis) in axes.output_spatial.iter().enumerate() {
        order[axis] = position + 1;
    }
    transpose(result, &order)
}

fn convolved<'e>(image: Value<'e>, kernel: Value<'e>, window: &ConvWindow<'e>) -> Value<'e> {
    let n = window.stride.len();
    let padded = padded(image, window);
    let missing = 2usize.saturating_sub(n);
    let widened = |x: Value<'e>, at: usize| {
        let mut shape = sizes_of_rank(x, n + 2);
        for _ in 0..missing {
            shape.insert(at, Size::Known(1));
        }
        reshape(x, &shape)
    };
    let steps = |list: &[i64]| -> Vec<i64> {
        let ones = std::iter::repeat_n(1, missing + 1);
        ones.chain(list.iter().copied()).chain([1]).collect()
    };
    let attrs = Attrs::new()
        .with("strides", steps(&window.stride))
        .with("dilations", steps(&window.rhs_dilation))
        .with("padding", "VALID");
    let op = if n == 3 { "Conv3D" } else { "Conv2D" };
    let groups = window.feature_groups.max(window.batch_groups);
    let (image, kernel) = (widened(padded, 1), widened(kernel, 0));
    let result = match op == "Conv3D" && groups > 1 {
        false => call_with(op, attrs, [image, kernel]),
        true => {
            let part = |x: Value<'e>, axis: usize, index: i64| {
                let mut begin = vec![Size::Known(0); 5];
                let mut size = sizes_of_rank(x, 5);
                size[axis] = size[axis].divided(groups);
                begin[axis] = size[axis].times(index);
                super::size::window(x, &begin, &size)
            };
            let n = usize::try_from(groups).unwrap_or(0);
            let one = |index: usize| {
                let index = index as i64;
                let inputs = [part(image, 4, index), part(kernel, 4, index)];
                call_with(op, attrs.clone(), inputs)
            };
            image.concat_parts(n, one, 4)
        }
    };
    let mut shape = sizes_of_rank(result, n + 2 + missing);
    shape.drain(1..1 + missing);
    if missing == 0 { result } else { reshape(result, &shape) }
}

/// The image with zeros around and between its elements.
fn padded<'e>(image: Value<'e>, window: &ConvWindow<'e>) -> Value<'e> {
    let none = Size::Known(0);
    let around = |sizes: Vec<Size<'e>>| [vec![none], sizes, vec![none]].concat();
    let (low, high): (Vec<_>, Vec<_>) = window.padding.iter().copied().unzip();
    let interior = window.lhs_dilation.iter().map(|&step| Size::Known(step - 1)).collect();
    let padding = AxisPadding { low: around(low), high: around(high), interior: around(interior) };
    pad(image, image.like(0.0), &padding)
}
