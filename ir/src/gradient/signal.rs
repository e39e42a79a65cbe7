//! Gradients of Fourier transforms: the transforms in the other direction.

use super::{Backprop, Grads, grads, math::real, shapes};
use crate::{
    attr::Attrs,
    emit::{Value, call, call_with},
};

/// The number of elements that one transform of `rank` dimensions takes.
fn n_elements<'e>(x: Value<'e>, rank: usize) -> Option<Value<'e>> {
    let all = x.rank()? as i64;
    Some(shapes::product(shapes::part(x.shape_vector(), all - rank as i64, rank as i64)))
}

fn scaled<'e>(b: &Backprop<'e>, other: &str, rank: usize, up: bool) -> Grads<'e> {
    let dy = b.dy(0);
    let Some(n) = n_elements(b.y(0), rank) else {
        return b.postponed("its gradient needs a known rank");
    };
    let (other, n) = (call(other, [dy]), n.cast(dy.dtype()));
    grads([if up { other * n } else { other / n }])
}

pub(crate) fn fft<'e>(b: &Backprop<'e>) -> Grads<'e> {
    scaled(b, "IFFT", 1, true)
}

pub(crate) fn fft2d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    scaled(b, "IFFT2D", 2, true)
}

pub(crate) fn fft3d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    scaled(b, "IFFT3D", 3, true)
}

pub(crate) fn ifft<'e>(b: &Backprop<'e>) -> Grads<'e> {
    scaled(b, "FFT", 1, false)
}

pub(crate) fn ifft2d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    scaled(b, "FFT2D", 2, false)
}

pub(crate) fn ifft3d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    scaled(b, "FFT3D", 3, false)
}

/// The transform returns half of what a complex one would: the rest gets no gradient.
pub(crate) fn rfft<'e>(b: &Backprop<'e>) -> Grads<'e> {
    half(b, "IFFT", 1)
}

pub(crate) fn rfft2d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    half(b, "IFFT2D", 2)
}

/// Of a transform of real numbers, cut or filled up to `fft_length`.
fn half<'e>(b: &Backprop<'e>, inverse: &str, rank: usize) -> Grads<'e> {
    let (x, dy) = (b.x(0), b.dy(0));
    let (Some(lengths), Some(dims), Some(out)) = (b.x(1).ints(), x.dims(), dy.dims()) else {
        return b.postponed("its gradient needs a known shape");
    };
    let mut full = out.clone();
    let n = full.len();
    full[n - 1] = lengths[rank - 1];
    let whole = call(inverse, [resized(dy, &out, &full)]);
    let count: i64 = lengths.iter().product();
    let found = real(whole) * (count as f64);
    grads([resized(found, &full, &dims)])
}

/// Cut or filled up with zeros to other sizes.
pub(crate) fn resized<'e>(x: Value<'e>, from: &[i64], to: &[i64]) -> Value<'e> {
    let least: Vec<i64> = from.iter().zip(to).map(|(&a, &b)| a.min(b)).collect();
    let cut = if least == from { x } else { x.slice(&vec![0; from.len()], &least) };
    if least == to {
        return cut;
    }
    let paddings: Vec<i64> = to.iter().zip(&least).flat_map(|(&a, &b)| [0, a - b]).collect();
    call("Pad", [cut, x.int_vector(&paddings).reshape(&[-1, 2])])
}

pub(crate) fn irfft<'e>(b: &Backprop<'e>) -> Grads<'e> {
    doubled(b, "RFFT", 1)
}

pub(crate) fn irfft2d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    doubled(b, "RFFT2D", 2)
}

/// All but the first column, and the middle one of an even length, stand for two.
fn doubled<'e>(b: &Backprop<'e>, forward: &str, rank: usize) -> Grads<'e> {
    let (x, dy) = (b.x(0), b.dy(0));
    let (Some(lengths), Some(dims)) = (b.x(1).ints(), x.dims()) else {
        return b.postponed("its gradient needs a known shape");
    };
    let complex = Attrs::new().with("Tcomplex", x.dtype());
    let found = call_with(forward, complex, [dy, b.x(1)]);
    let count: i64 = lengths.iter().product();
    let last = lengths[rank - 1];
    let weight = |column: i64| match column {
        0 => 1.0,
        column if 2 * column == last => 1.0,
        _ => 2.0,
    };
    let weights: Vec<f64> = (0..last / 2 + 1).map(|c| weight(c) / count as f64).collect();
    let weights = b.vector(&weights).cast(x.dtype());
    let found = found * weights;
    let Some(from) = found.dims() else {
        return b.postponed("its gradient needs a known shape");
    };
    grads([resized(found, &from, &dims)])
}
