//! Matrix products, convolutions, pools, normalisations, attention, with what comes before and after.

use super::super::program::{Id, StatementOperand};
use super::{
    Gen, Template,
    operands::{int, ints, value},
};
use ferroflow::ir::{Attrs, DType, HostTensor};

pub(super) const TEMPLATES: &[(f64, Template)] = &[
    (3.0, matmul),
    (4.0, dense),
    (1.5, added),
    (2.0, convolution),
    (1.0, depthwise),
    (1.5, inverted_residual),
    (1.0, pool),
    (1.5, softmax),
    (1.5, layer_norm),
    (0.7, square_norm),
    (1.5, attention),
];

fn matmul(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_number() && seen.rank() > Some(1))?;
    let seen = g.type_of(x).clone();
    let rank = seen.rank()?;
    let (turn_a, turn_b) = (g.rng.chance(0.3), g.rng.chance(0.4));
    let inner = seen.sizes(if turn_a { rank - 2 } else { rank - 1 }).collect::<Vec<_>>();
    let y = g.find(|other| {
        let same = (0..rank - 2).all(|axis| other.sizes(axis).eq(seen.sizes(axis)));
        let axis = if turn_b { rank - 1 } else { rank - 2 };
        other.dtype == seen.dtype
            && other.rank() == Some(rank)
            && same
            && other.sizes(axis).eq(inner.iter().copied())
    })?;
    let (name, attrs) = if rank == 2 {
        ("MatMul", Attrs::new().with("transpose_a", turn_a).with("transpose_b", turn_b))
    } else {
        ("BatchMatMulV2", Attrs::new().with("adj_x", turn_a).with("adj_y", turn_b))
    };
    g.op(name, vec![value(x), value(y)], attrs).map(drop)
}

/// Epilogue of a layer: a bias, factors, an activation, a residual.
fn epilogue(g: &mut Gen, mut y: Id) -> Option<Id> {
    let seen = g.type_of(y).clone();
    let channels = seen.size(seen.rank()?.checked_sub(1)?)?;
    for _ in 0..g.rng.below(4) {
        y = match g.rng.below(6) {
            0 => {
                let bias = g.numbers(seen.dtype, &[channels])?;
                g.op("BiasAdd", vec![value(y), bias], Attrs::new())?
            }
            1 => {
                let factors = g.numbers(seen.dtype, &[channels])?;
                g.op("Mul", vec![value(y), factors], Attrs::new())?
            }
            2 => {
                let name = g.rng.pick(&["Relu", "Relu", "Relu6", "Elu", "Sigmoid", "Tanh"]);
                g.call(name, &[y])?
            }
            3 => {
                let residual = g.fitting(y)?;
                let name = g.rng.pick(&["AddV2", "Sub", "Mul"]);
                g.call(name, &[y, residual])?
            }
            4 => g.call("Square", &[y])?,
            _ => {
                let constant = g.numbers(seen.dtype, &[])?;
                g.op("AddV2", vec![value(y), constant], Attrs::new())?
            }
        };
    }
    Some(y)
}

fn dense(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| {
        seen.is_float() && seen.rank() == Some(2) && matches!(seen.size(1), Some(1..=6))
    })?;
    let n = 1 + g.rng.below(4);
    let weights = g.numbers(g.type_of(x).dtype, &[g.type_of(x).size(1)?, n])?;
    let x = if g.rng.chance(0.3) { g.call("Neg", &[x])? } else { x };
    let y = g.op("MatMul", vec![value(x), weights], Attrs::new())?;
    epilogue(g, y).map(drop)
}

/// Two matmuls that are added, each with an epilogue of its own.
fn added(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| {
        seen.is_float() && seen.rank() == Some(2) && matches!(seen.size(1), Some(1..=6))
    })?;
    let (dtype, inner) = (g.type_of(x).dtype, g.type_of(x).size(1)?);
    let n = 1 + g.rng.below(4);
    let mut results = [x; 2];
    for result in &mut results {
        let weights = g.numbers(dtype, &[inner, n])?;
        let y = g.op("MatMul", vec![value(x), weights], Attrs::new())?;
        *result = epilogue(g, y)?;
    }
    let name = g.rng.pick(&["AddV2", "AddV2", "Sub", "Mul"]);
    let sum = g.call(name, &results)?;
    epilogue(g, sum).map(drop)
}

/// A value as images `[batch, height, width, channels]`.
fn images(g: &mut Gen) -> Option<Id> {
    let found = g.find(|seen| {
        seen.dtype == DType::F32 && seen.rank() == Some(4) && matches!(seen.size(3), Some(1..=4))
    });
    if found.is_some() && g.rng.chance(0.7) {
        return found;
    }
    let x =
        g.find(|seen| seen.dtype == DType::F32 && (2..=3).contains(&seen.rank().unwrap_or(0)))?;
    let rank = g.type_of(x).rank()?;
    let x = if rank == 2 { g.op("ExpandDims", vec![value(x), int(0)], Attrs::new())? } else { x };
    g.op("ExpandDims", vec![value(x), int(-1)], Attrs::new())
}

fn windows(g: &mut Gen) -> Attrs {
    let stride = g.rng.pick(&[1i64, 1, 2]);
    let padding = g.rng.pick(&["SAME", "VALID"]);
    Attrs::new().with("strides", vec![1, stride, stride, 1]).with("padding", padding)
}

fn convolution(g: &mut Gen) -> Option<()> {
    let x = images(g)?;
    let channels = g.type_of(x).size(3)?;
    let (side, n) = (1 + g.rng.below(3), 1 + g.rng.below(3));
    let filter = g.numbers(DType::F32, &[side, side, channels, n])?;
    let attrs = windows(g);
    let y = g.op("Conv2D", vec![value(x), filter], attrs)?;
    epilogue(g, y).map(drop)
}

fn depthwise(g: &mut Gen) -> Option<()> {
    let x = images(g)?;
    let channels = g.type_of(x).size(3)?;
    let side = 1 + g.rng.below(3);
    let filter = g.numbers(DType::F32, &[side, side, channels, 1])?;
    let attrs = windows(g);
    let y = g.op("DepthwiseConv2dNative", vec![value(x), filter], attrs)?;
    epilogue(g, y).map(drop)
}

/// Pointwise, depthwise and pointwise convolutions one after the other, the first or last at times not.
fn inverted_residual(g: &mut Gen) -> Option<()> {
    let mut y = images(g)?;
    let pointwise = |g: &mut Gen, y: Id, n: usize| {
        let filter = g.numbers(DType::F32, &[1, 1, g.type_of(y).size(3)?, n])?;
        let attrs = Attrs::new().with("strides", vec![1i64; 4]).with("padding", "SAME");
        let y = g.op("Conv2D", vec![value(y), filter], attrs)?;
        epilogue(g, y)
    };
    if g.rng.chance(0.8) {
        let n = 3 + g.rng.below(4);
        y = pointwise(g, y, n)?;
    }
    let side = 1 + g.rng.below(3);
    let filter = g.numbers(DType::F32, &[side, side, g.type_of(y).size(3)?, 1])?;
    let attrs = windows(g);
    y = g.op("DepthwiseConv2dNative", vec![value(y), filter], attrs)?;
    y = epilogue(g, y)?;
    if g.rng.chance(0.8) {
        let n = 2 + g.rng.below(3);
        y = pointwise(g, y, n)?;
    }
    epilogue(g, y).map(drop)
}

fn pool(g: &mut Gen) -> Option<()> {
    let x = images(g)?;
    let side = 1 + g.rng.below(2) as i64;
    let attrs = windows(g).with("ksize", vec![1, side, side, 1]);
    let name = g.rng.pick(&["MaxPool", "AvgPool"]);
    g.op(name, vec![value(x)], attrs).map(drop)
}

fn float_matrix(g: &mut Gen) -> Option<Id> {
    g.find(|seen| seen.is_float() && seen.rank() > Some(0))
}

fn softmax(g: &mut Gen) -> Option<()> {
    let x = float_matrix(g)?;
    if g.rng.chance(0.5) {
        let name = g.rng.pick(&["Softmax", "LogSoftmax"]);
        return g.call(name, &[x]).map(drop);
    }
    // As formulas.
    let kept = || Attrs::new().with("keep_dims", true);
    let most = g.op("Max", vec![value(x), ints(&[-1])], kept())?;
    let e = g.call("Sub", &[x, most])?;
    let e = g.call("Exp", &[e])?;
    let sum = g.op("Sum", vec![value(e), ints(&[-1])], kept())?;
    g.call("RealDiv", &[e, sum]).map(drop)
}

fn scalar(dtype: DType, number: f32) -> StatementOperand {
    StatementOperand::Const(match dtype {
        DType::F64 => HostTensor::scalar(f64::from(number)),
        _ => HostTensor::scalar(number),
    })
}

fn layer_norm(g: &mut Gen) -> Option<()> {
    let x = float_matrix(g)?;
    let dtype = g.type_of(x).dtype;
    let kept = || Attrs::new().with("keep_dims", true);
    let mean = g.op("Mean", vec![value(x), ints(&[-1])], kept())?;
    let square = g.call("SquaredDifference", &[x, mean])?;
    let variance = g.op("Mean", vec![value(square), ints(&[-1])], kept())?;
    let variance = g.op("AddV2", vec![value(variance), scalar(dtype, 0.5)], Attrs::new())?;
    let factor = g.call("Rsqrt", &[variance])?;
    let centred = g.call("Sub", &[x, mean])?;
    let y = g.call("Mul", &[centred, factor])?;
    epilogue(g, y).map(drop)
}

fn square_norm(g: &mut Gen) -> Option<()> {
    let x = float_matrix(g)?;
    let dtype = g.type_of(x).dtype;
    let square = g.call("Square", &[x])?;
    let attrs = Attrs::new().with("keep_dims", true);
    let sum = g.op("Sum", vec![value(square), ints(&[-1])], attrs)?;
    let sum = g.op("AddV2", vec![value(sum), scalar(dtype, 1.0)], Attrs::new())?;
    let factor = g.call("Rsqrt", &[sum])?;
    g.call("Mul", &[x, factor]).map(drop)
}

fn attention(g: &mut Gen) -> Option<()> {
    let q = g.find(|seen| seen.dtype == DType::F32 && seen.rank() > Some(1))?;
    let (k, v) = (g.like(q)?, g.like(q)?);
    let (name, flag) = match g.type_of(q).rank()? {
        2 => ("MatMul", "transpose_b"),
        _ => ("BatchMatMulV2", "adj_y"),
    };
    let mut scores = g.op(name, vec![value(q), value(k)], Attrs::new().with(flag, true))?;
    if g.rng.chance(0.7) {
        scores = g.op("Mul", vec![value(scores), scalar(DType::F32, 0.5)], Attrs::new())?;
    }
    if g.rng.chance(0.3) {
        let mask = g.fitting(scores)?;
        scores = g.call("AddV2", &[scores, mask])?;
    }
    let weights = g.call("Softmax", &[scores])?;
    g.call(name, &[weights, v]).map(drop)
}
