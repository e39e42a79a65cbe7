//! Gradients of layers of networks, of losses, and of images.

use super::{Backprop, Grad, Grads, grads, shapes};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call, call_with, calls_with},
};

pub(crate) fn softmax<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (_, y, dy) = b.unary();
    grads([(dy - (dy * y).sum(&[-1], true)) * y])
}

pub(crate) fn log_softmax<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (_, y, dy) = b.unary();
    grads([dy - dy.sum(&[-1], true) * y.exp()])
}

fn column(x: Value<'_>) -> Value<'_> {
    call("ExpandDims", [x, x.literal(-1i64)])
}

/// The gradient by the logits: of the loss, and of the gradient that the op returns beside it.
fn cross_entropy_by_logits<'e>(b: &Backprop<'e>) -> Option<Value<'e>> {
    let by_loss = b.present_dy(0).map(|dy| column(dy) * b.y(1));
    let by_gradient = b.present_dy(1).map(|dy| {
        let softmax = call("Softmax", [b.x(0)]);
        (dy - (dy * softmax).sum(&[-1], true)) * softmax
    });
    match (by_loss, by_gradient) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

pub(crate) fn cross_entropy<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let by_labels = |dy: Value<'e>| column(dy) * -call("LogSoftmax", [b.x(0)]);
    let by_loss = b.present_dy(0).filter(|_| b.needs(1)).map(by_labels);
    // TensorFlow leaves this out: its second derivative by logits and labels is 0.
    let by_gradient = b.present_dy(1).filter(|_| b.needs(1)).map(|dy| -dy);
    let by_labels = match (by_loss, by_gradient) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    vec![cross_entropy_by_logits(b).map(Grad::Dense), by_labels.map(Grad::Dense)]
}

pub(crate) fn sparse_cross_entropy<'e>(b: &Backprop<'e>) -> Grads<'e> {
    vec![cross_entropy_by_logits(b).map(Grad::Dense)]
}

pub(crate) fn lrn<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("LRNGrad", [b.dy(0), b.x(0), b.y(0)])])
}

/// Batch normalisation: with the statistics of the batch, or with those that were passed.
fn batch_norm<'e>(b: &Backprop<'e>, name: &str, reserved: usize) -> Grads<'e> {
    let (x, scale) = (b.x(0), b.x(1));
    let is_training = b.flag("is_training");
    let (mean, variance) = if is_training { (b.y(3), b.y(4)) } else { (b.x(3), b.x(4)) };
    let mut inputs = vec![b.dy(0), x, scale, mean, variance];
    inputs.extend((0..reserved).map(|index| b.y(5 + index)));
    let found = calls_with(name, b.own_attrs(), &inputs);
    grads([found.at(0), found.at(1), found.at(2)])
}

pub(crate) fn batch_norm_v1<'e>(b: &Backprop<'e>) -> Grads<'e> {
    batch_norm(b, "FusedBatchNormGrad", 0)
}

pub(crate) fn batch_norm_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    batch_norm(b, "FusedBatchNormGradV2", 0)
}

pub(crate) fn batch_norm_v3<'e>(b: &Backprop<'e>) -> Grads<'e> {
    batch_norm(b, "FusedBatchNormGradV3", 1)
}

pub(crate) fn fake_quant_args<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("FakeQuantWithMinMaxArgsGradient", [b.dy(0), b.x(0)])])
}

fn fake_quant<'e>(b: &Backprop<'e>, name: &str) -> Grads<'e> {
    let inputs = [b.dy(0), b.x(0), b.x(1), b.x(2)];
    let found = calls_with(name, b.own_attrs(), &inputs);
    grads([found.at(0), found.at(1), found.at(2)])
}

pub(crate) fn fake_quant_vars<'e>(b: &Backprop<'e>) -> Grads<'e> {
    fake_quant(b, "FakeQuantWithMinMaxVarsGradient")
}

pub(crate) fn fake_quant_per_channel<'e>(b: &Backprop<'e>) -> Grads<'e> {
    fake_quant(b, "FakeQuantWithMinMaxVarsPerChannelGradient")
}

/// Inside the range the gradient passes; TensorFlow returns none to the range.
pub(crate) fn quantize_v4<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, low, high) = (b.x(0), b.x(1), b.x(2));
    let dx = inside_range(b.dy(0), [x, low, high], b.int("axis"));
    grads([dx, low.zeros_like(), high.zeros_like()])
}

/// The gradient by `x` where that is from `low` to `high`, each a scalar or one number per index of
/// `axis`. As in TensorFlow it is a product with 0 elsewhere, and where `x` is NaN.
pub(crate) fn inside_range<'e>(
    dy: Value<'e>,
    [x, low, high]: [Value<'e>; 3],
    axis: i64,
) -> Value<'e> {
    let spread = |end: Value<'e>| match (axis, x.rank()) {
        (-1, _) | (_, None) => end,
        (axis, Some(rank)) => {
            let mut dims = vec![1i64; rank];
            dims[(axis.max(0) as usize).min(rank - 1)] = -1;
            end.reshape(&dims)
        }
    };
    let ends = [call("GreaterEqual", [x, spread(low)]), call("LessEqual", [x, spread(high)])];
    dy * call("LogicalAnd", ends).cast(dy.dtype())
}

/// The loss of each sequence; the op has its gradient by the logits beside it.
pub(crate) fn ctc_loss<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([column(b.dy(0)) * b.y(1)])
}

/// Each element of a segment has the mean of the gradients of the segment.
pub(crate) fn isotonic<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (segments, dy) = (b.y(1).cast(DType::I64), b.dy(0));
    let Some(rank) = dy.rank() else { return b.postponed("its gradient needs a known rank") };
    let width = shapes::dim(dy, rank - 1);
    let total = shapes::size(dy);
    let minus = dy.int_vector(&[-1]);
    let table = shapes::join(&[minus, width]);
    let rows = shapes::product(shapes::part(dy.shape_vector(), 0, rank as i64 - 1));
    let starts = (shapes::range(rows) * width).reshape(&[-1, 1]);
    let ids = (segments.reshape_to(table) + starts).reshape(&[-1]);
    let sum = |x: Value<'e>| call("UnsortedSegmentSum", [x.reshape(&[-1]), ids, total]);
    let mean = call("DivNoNan", [sum(dy), sum(dy.ones_like())]);
    grads([call("GatherV2", [mean, ids, ids.literal(0i64)]).reshape_like(dy)])
}

pub(crate) fn resize_bilinear<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("ResizeBilinearGrad", [b.dy(0), b.x(0)])])
}

pub(crate) fn resize_bicubic<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("ResizeBicubicGrad", [b.dy(0), b.x(0)])])
}

pub(crate) fn resize_bilinear_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("ResizeBilinear", [b.dy(0), image_size(b.x(0))])])
}

pub(crate) fn resize_bicubic_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("ResizeBicubic", [b.dy(0), image_size(b.x(0))])])
}

/// Height and width of a batch of images.
fn image_size(x: Value<'_>) -> Value<'_> {
    shapes::part(x.shape_vector(), 1, 2).cast(DType::I32)
}

pub(crate) fn resize_nearest<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("ResizeNearestNeighborGrad", [b.dy(0), image_size(b.x(0))])])
}

pub(crate) fn crop_and_resize<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (image, boxes, places, dy) = (b.x(0), b.x(1), b.x(2), b.dy(0));
    let method = Attrs::new().with("method", b.string("method"));
    let attrs = method.clone().with("T", image.dtype());
    let inputs = [dy, boxes, places, shapes::shape_i32(image)];
    let by_image = b.needs(0).then(|| call_with("CropAndResizeGradImage", attrs, inputs).into());
    // Its gradient by the boxes exists for linear interpolation; TensorFlow takes it for others too.
    let inputs = [dy, image, boxes, places];
    let by_boxes = b.needs(1).then(|| call("CropAndResizeGradBoxes", inputs).into());
    vec![by_image, by_boxes]
}

/// The inverse projection.
pub(crate) fn project<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (images, transforms, dy) = (b.x(0), b.x(1), b.dy(0));
    let rows = transforms.slice(&[0, 0], &[-1, 1]);
    let matrices = Value::concat(&[transforms, rows.ones_like()], 1).reshape(&[-1, 3, 3]);
    let attrs = Attrs::new().with("adjoint", false);
    let inverse = call_with("MatrixInverse", attrs, [matrices]).reshape(&[-1, 9]);
    let inverse = inverse / inverse.slice(&[0, 8], &[-1, 1]);
    let mut inputs = vec![dy, inverse.slice(&[0, 0], &[-1, 8]), image_size(images)];
    if b.xs().len() > 3 {
        inputs.push(dy.literal(0.0f32));
    }
    grads([calls_with(b.op.name, b.own_attrs(), &inputs).at(0)])
}

/// Of hue, saturation and value: piecewise in which colour is the largest and the smallest.
pub(crate) fn rgb_to_hsv<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.unary();
    let channel =
        |of: Value<'e>, index: i64| call("GatherV2", [of, of.literal(index), of.literal(-1i64)]);
    let [red, green, blue] = [0, 1, 2].map(|index| channel(x, index));
    let [saturation, value] = [1, 2].map(|index| channel(y, index));
    let [d_hue, d_saturation, d_value] = [0, 1, 2].map(|index| channel(dy, index));
    let as_float = |truth: Value<'e>| truth.cast(x.dtype());
    let and = |a: Value<'e>, b: Value<'e>| call("LogicalAnd", [a, b]);
    let (rg, rb, gb) =
        (red.greater_equal(green), red.greater_equal(blue), green.greater_equal(blue));
    let red_is_first = and(rg, rb);
    let green_is_first = and(rg.logical_not(), gb);
    let blue_is_first = and(rb.logical_not(), gb.logical_not());
    let red_is_last = and(red.less(green), red.less(blue));
    let green_is_last = and(green.less_equal(red), green.less(blue));
    let blue_is_last = and(blue.less_equal(red), blue.less_equal(green));
    let first = [red_is_first, green_is_first, blue_is_first].map(as_float);
    let last = [red_is_last, green_is_last, blue_is_last].map(as_float);
    let range = value * saturation;
    let no_nan = |a: Value<'e>, b: Value<'e>| call("DivNoNan", [a, b]);
    let low = value - range;
    // saturation = 1 - low / value; hue moves between 60 degrees of neighbouring colours.
    let by_first = no_nan(low, value.square());
    let by_last = -no_nan(value.ones_like(), value);
    let colours = [red, green, blue];
    let mut parts = Vec::new();
    for index in 0..3 {
        let mut hue = red.zeros_like();
        for largest in 0..3 {
            let (next, after) = ((largest + 1) % 3, (largest + 2) % 3);
            let numerator = colours[next] - colours[after];
            let slope = |of: usize| match of {
                of if of == next => no_nan(range.ones_like(), range),
                of if of == after => -no_nan(range.ones_like(), range),
                _ => range.zeros_like(),
            };
            let by_range = -no_nan(numerator, range.square());
            let moved = slope(index) + by_range * (first[index] - last[index]);
            hue = hue + first[largest] * moved * (1.0 / 6.0);
        }
        let is_lit = as_float(colours[index].greater(0.0));
        let by_saturation = (by_first * first[index] + by_last * last[index]) * is_lit;
        parts.push(d_hue * hue + d_saturation * by_saturation + d_value * first[index]);
    }
    grads([calls_with("Pack", Attrs::new().with("axis", -1i64), &parts).at(0)])
}

/// The op is linear, first in columns, then in rows: images of single pixels return the weights.
pub(crate) fn scale_and_translate<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, dy) = (b.x(0), b.dy(0));
    let [rows, columns] = [0, 1].map(|axis| {
        let square = |pixels, [size, scale, translation]: [Value<'e>; 3]| {
            b.with_attrs("ScaleAndTranslate", [pixels, size, scale, translation])
        };
        moved_pixels(axis, x, [b.x(1), b.x(2), b.x(3)], square)
    });
    grads([unmoved(dy, rows, columns).cast(x.dtype())])
}

/// `ScaleAndTranslateGrad` as a formula.
pub(crate) fn scale_and_translate_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (dy, x) = (c.x(0), c.x(1));
    let size = dy.shape().to_i64();
    let size = dy.int32_vector(size.get(1..3).unwrap_or_default());
    let [rows, columns] = [0, 1].map(|axis| {
        let square = |pixels, [size, scale, translation]: [Value<'e>; 3]| {
            call_with("ScaleAndTranslate", c.attrs.clone(), [pixels, size, scale, translation])
        };
        moved_pixels(axis, x, [size, c.x(2), c.x(3)], square)
    });
    vec![unmoved(dy, rows, columns)]
}

/// For each pixel along an axis, what becomes of it where it is alone: the weights of the op.
fn moved_pixels<'e>(
    axis: i64,
    x: Value<'e>,
    [size, scale, translation]: [Value<'e>; 3],
    apply: impl FnOnce(Value<'e>, [Value<'e>; 3]) -> Value<'e>,
) -> Value<'e> {
    let n = shapes::dim(x, axis as usize + 1);
    let ones = call("Fill", [n.reshape(&[1]), x.literal(1.0f32)]);
    let one = x.int_vector(&[1]);
    let square = if axis == 0 { [one, n, one, n] } else { [one, one, n, n] };
    let pixels = call("MatrixDiag", [ones]).reshape_to(shapes::join(&square));
    let along = |of: Value<'e>, other: Value<'e>| {
        let own = of.slice(&[axis], &[1]);
        Value::concat(&if axis == 0 { [own, other] } else { [other, own] }, 0)
    };
    let vector = |value: f32| x.literal(value).reshape(&[1]);
    let steered = [
        along(size, x.int32_vector(&[1])),
        along(scale, vector(1.0)),
        along(translation, vector(0.0)),
    ];
    apply(pixels, steered).reshape_to(shapes::join(&[x.int_vector(&[-1]), n]))
}

/// The gradient of images whose rows and columns were mixed with these weights.
fn unmoved<'e>(dy: Value<'e>, rows: Value<'e>, columns: Value<'e>) -> Value<'e> {
    let einsum = |equation: &str, a: Value<'e>, b: Value<'e>| {
        calls_with("Einsum", Attrs::new().with("equation", equation), &[a, b]).at(0)
    };
    einsum("bhpc,pw->bhwc", einsum("bopc,oh->bhpc", dy, rows), columns)
}

/// The gradients of batch normalisation as arithmetic, to be differentiated once more. When
/// training, the statistics are those of `x`, whatever was kept of them.
pub(crate) fn batch_norm_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let dtype = c.dtype(0);
    let (dy, x, scale) = (c.x(0).cast(DType::F32), c.x(1).cast(DType::F32), c.x(2));
    let epsilon = f64::from(c.float("epsilon"));
    let rank = x.shape().rank() as i64;
    let channel = if c.string("data_format").starts_with("NC") { 1 } else { rank - 1 };
    let axes: Vec<i64> = (0..rank).filter(|&axis| axis != channel).collect();
    let mut spread = vec![1i64; rank as usize];
    spread[channel as usize] = -1;
    let spread = |x: Value<'e>| x.reshape(&spread);
    let (mean, variance) = if c.flag("is_training") {
        let mean = x.mean(&axes, true);
        (mean, (x - mean).square().mean(&axes, true))
    } else {
        (spread(call("StopGradient", [c.x(3)])), spread(call("StopGradient", [c.x(4)])))
    };
    let (centred, inverse) = (x - mean, (variance + epsilon).rsqrt());
    let by_scale = (dy * centred * inverse).sum(&axes, false);
    let by_offset = dy.sum(&axes, false);
    let by_x = if c.flag("is_training") {
        let slope = (dy * centred).mean(&axes, true) * inverse.square() * centred;
        spread(scale) * inverse * (dy - dy.mean(&axes, true) - slope)
    } else {
        dy * spread(scale) * inverse
    };
    let nothing = c.vector::<f32>(&[]);
    vec![by_x.cast(dtype), by_scale, by_offset, nothing, nothing]
}
