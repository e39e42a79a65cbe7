//! Functions of a few ops.

use super::{
    measure::{MeasuredRow, RowWork},
    place::BenchDevice,
    sizes,
};
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    Tensor, function,
    ir::{DType, HostTensor, Shape},
    ops, tracer,
};

/// Eight cheap ops, one after the other.
pub(super) fn elementwise(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let [n] = sizes(rest.strip_prefix("chain_").context("there is a chain only")?)?;
    let x = place.floats(1, &[n], -2.0, 2.0)?;
    let y = place.floats(2, &[n], 0.5, 1.5)?;
    let f = function(|x: Tensor, y: Tensor| {
        let t = ((&x * &y)? + &x)?.relu()?;
        let t = ((t * 1.5)? - &y)?.minimum(3.0)?;
        (t * &x)? + 1.0
    });
    // Two inputs, one result.
    let work = RowWork::Bytes((3 * 4 * n) as f64);
    Ok(MeasuredRow::new(move || Ok(f.call((&x, &y))?)).work(work))
}

/// The product of two square matrices.
pub(super) fn gemm(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let (format, size) = rest.split_once('_').context("a format and a size")?;
    let [n] = sizes(size)?;
    let dtype = match format {
        "f32" | "tf32" => {
            check_rounding(place, n, format == "tf32")?;
            DType::F32
        }
        "bf16" => DType::BF16,
        _ => bail!("there are products of f32, tf32 and bf16"),
    };
    let a = place.floats(11, &[n, n], -1.0, 1.0)?.cast(dtype)?;
    let b = place.floats(12, &[n, n], -1.0, 1.0)?.cast(dtype)?;
    let f = function(|a: Tensor, b: Tensor| a.matmul(&b));
    let work = RowWork::Flops(2.0 * (n as f64).powi(3));
    Ok(MeasuredRow::new(move || Ok(f.call((&a, &b))?)).work(work))
}

/// Fails unless products of `float32` round their factors to TF32 just if they are `to`: there are
/// devices and sizes for which the setting of the context changes nothing.
fn check_rounding(place: &BenchDevice, n: usize, to: bool) -> Result<()> {
    // Of the factor, TF32 keeps the 1.
    let filled = |value: f32| {
        place.tensor(HostTensor::from_slice(Shape::new([n, n])?, &vec![value; n * n])?)
    };
    let f = function(|a: Tensor, b: Tensor| a.matmul(&b));
    let product = f.call((&filled(1.0 + 1.0 / 4096.0)?, &filled(1.0)?))?;
    let found = product.into_eager()?.host()?.as_slice::<f32>()?[0];
    let is_rounded = found / (n as f32) - 1.0 < 0.5 / 4096.0;
    match (to, is_rounded) {
        (true, false) => bail!("not available: {} does not round to TF32 here", place.name()),
        (false, true) => bail!("{} rounds to TF32 though told not to", place.name()),
        _ => Ok(()),
    }
}

/// Rows and columns of a matrix of `float32`.
fn matrix(place: &BenchDevice, rest: &str) -> Result<([usize; 2], Tensor)> {
    let dims = sizes(rest.strip_prefix("f32_").context("there is f32 only")?)?;
    Ok((dims, place.floats(3, &dims, -2.0, 2.0)?))
}

/// Softmax of each row.
pub(super) fn softmax(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let ([rows, columns], x) = matrix(place, rest)?;
    let f = function(|x: Tensor| x.softmax());
    let work = RowWork::Bytes((2 * 4 * rows * columns) as f64);
    Ok(MeasuredRow::new(move || Ok(f.call((&x,))?)).work(work))
}

/// Layer normalisation of each row.
pub(super) fn layer_norm(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let ([rows, columns], x) = matrix(place, rest)?;
    let gain = place.floats(4, &[columns], 0.5, 1.5)?;
    let offset = place.floats(5, &[columns], -0.5, 0.5)?;
    let f = function(|x: Tensor, gain: Tensor, offset: Tensor| normalized(&x, &gain, &offset));
    let work = RowWork::Bytes((2 * 4 * rows * columns) as f64);
    Ok(MeasuredRow::new(move || Ok(f.call((&x, &gain, &offset))?)).work(work))
}

/// Each row less its mean, by its deviation, then scaled and shifted.
pub(super) fn normalized(x: &Tensor, gain: &Tensor, offset: &Tensor) -> tracer::Result<Tensor> {
    let mean = x.mean(&[-1])?.expand_dims(-1)?;
    let variance = ops::squared_difference(x, &mean)?.mean(&[-1])?.expand_dims(-1)?;
    (((x - mean)? * ops::rsqrt(&(variance + 1e-5)?)?)? * gain)? + offset
}

/// Attention over batches, heads, steps and sizes.
pub(super) fn attention(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let (format, dims) = rest.split_once('_').context("a format and sizes")?;
    let dims @ [batch, heads, steps, size] = sizes(dims)?;
    let dtype = match format {
        "f32" => DType::F32,
        "bf16" => DType::BF16,
        _ => bail!("there is attention in f32 and bf16"),
    };
    let [q, k, v] = [21, 22, 23].map(|seed| place.floats(seed, &dims, -1.0, 1.0));
    let (q, k, v) = (q?.cast(dtype)?, k?.cast(dtype)?, v?.cast(dtype)?);
    let f = function(|q: Tensor, k: Tensor, v: Tensor| attended(&q, &k, &v));
    let work = RowWork::Flops((4 * batch * heads * steps * steps * size) as f64);
    Ok(MeasuredRow::new(move || Ok(f.call((&q, &k, &v))?)).work(work))
}

/// Attention of queries over keys and values, all `[batch, heads, steps, size]`.
pub(super) fn attended(q: &Tensor, k: &Tensor, v: &Tensor) -> tracer::Result<Tensor> {
    let size = q.shape().dim(3).unwrap_or(1) as f64;
    let attrs = ops::BatchMatMulV2Attrs { adj_y: true, ..Default::default() };
    let scores = ops::batch_matmul_v2_with(&(q * size.sqrt().recip())?, k, &attrs)?;
    scores.softmax()?.matmul(v)
}

/// A function of many ops that are too small to matter: what is left is the cost of starting them.
pub(super) fn launch(place: &BenchDevice, rest: &str) -> Result<MeasuredRow> {
    let (kind, n) = rest.split_once('_').context("a kind and the ops")?;
    let [n] = sizes(n)?;
    match kind {
        // They may become one program.
        "chain" => {
            let x = place.floats(31, &[256], -1.0, 1.0)?;
            let a = place.floats(32, &[256], 0.5, 1.0)?;
            let b = place.floats(33, &[256], -0.5, 0.5)?;
            let f = function(move |x: Tensor, a: Tensor, b: Tensor| {
                (0..n).try_fold(x, |x, i| if i % 2 == 0 { x * &a } else { x + &b })
            });
            Ok(MeasuredRow::new(move || Ok(f.call((&x, &a, &b))?)))
        }
        // Products do not become one.
        "mixed" => {
            let x = place.floats(31, &[16, 16], -1.0, 1.0)?;
            let bound = (3.0f32 / 16.0).sqrt();
            let w = place.floats(32, &[16, 16], -bound, bound)?;
            let f = function(move |x: Tensor, w: Tensor| {
                (0..n).try_fold(x, |x, i| if i % 2 == 0 { x.matmul(&w) } else { x.tanh() })
            });
            Ok(MeasuredRow::new(move || Ok(f.call((&x, &w))?)))
        }
        _ => bail!("there are chain and mixed"),
    }
}
