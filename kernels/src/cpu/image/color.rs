//! Colour spaces: red, green and blue; hue, saturation and value, all from 0 to 1.

use crate::{
    cpu::{Build, dispatch::with_float},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    wide::WideElement,
};
use num_traits::{Float, clamp};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("AdjustHue", |call| build(call, Change::Hue)),
    ("AdjustSaturation", |call| build(call, Change::Saturation)),
    ("HSVToRGB", |call| build(call, Change::ToRgb)),
    ("RGBToHSV", |call| build(call, Change::ToHsv)),
];

/// Pixels per piece of work.
const PIECE: usize = 1 << 12;

#[derive(Debug, Clone, Copy)]
enum Change {
    Hue,
    Saturation,
    ToRgb,
    ToHsv,
}

fn build(call: &OpCall<'_>, change: Change) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: Float + From<f32>>>(change: Change) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let by: T::Acc = match change {
                Change::Hue | Change::Saturation => io.scalar::<f32>(1).into(),
                Change::ToRgb | Change::ToHsv => Float::neg_zero(),
            };
            let x = T::widen(io.input(0));
            let threads = io.threads();
            T::through_acc(io.output(0), |out| {
                threads.for_each_piece(out, 3 * PIECE, |start, out| {
                    let from = x[start..].as_chunks::<3>().0;
                    for (out, &from) in out.as_chunks_mut::<3>().0.iter_mut().zip(from) {
                        *out = changed(change, from, by);
                    }
                });
            });
            Ok(())
        })
    }
    Ok(with_float!(call.dtype(0), T => kernel::<T>(change)))
}

fn changed<A: Float>(change: Change, pixel: [A; 3], by: A) -> [A; 3] {
    match change {
        Change::ToRgb => to_rgb(pixel),
        Change::ToHsv => to_hsv(pixel),
        Change::Hue => turned(pixel, by),
        Change::Saturation => saturated(pixel, by),
    }
}

fn number<A: Float>(value: f64) -> A {
    A::from(value).expect("floats are made of floats")
}

fn to_hsv<A: Float>([red, green, blue]: [A; 3]) -> [A; 3] {
    let value = red.max(green).max(blue);
    let range = value - red.min(green).min(blue);
    let saturation = if value > A::zero() { range / value } else { A::zero() };
    let part = A::one() / range * (A::one() / number(6.0));
    let hue = if red == value {
        part * (green - blue)
    } else if green == value {
        part * (blue - red) + number(2.0 / 6.0)
    } else {
        part * (red - green) + number(4.0 / 6.0)
    };
    let hue = if range > A::zero() { hue } else { A::zero() };
    [if hue < A::zero() { hue + A::one() } else { hue }, saturation, value]
}

fn to_rgb<A: Float>([hue, saturation, value]: [A; 3]) -> [A; 3] {
    let sixths = hue * number(6.0);
    let [one, two, three, four]: [A; 4] = [1.0, 2.0, 3.0, 4.0].map(number);
    let strengths =
        [(sixths - three).abs() - one, two - (sixths - two).abs(), two - (sixths - four).abs()];
    strengths.map(|strength| {
        let strength = clamp(strength, A::zero(), one);
        (one - saturation + saturation * strength) * value
    })
}

/// The channels by size, of the colours of each sixth of the circle of hues.
const SIXTHS: [Sixth; 6] = [
    Sixth { most: 0, middle: 1, least: 2 },
    Sixth { most: 1, middle: 0, least: 2 },
    Sixth { most: 1, middle: 2, least: 0 },
    Sixth { most: 2, middle: 1, least: 0 },
    Sixth { most: 2, middle: 0, least: 1 },
    Sixth { most: 0, middle: 2, least: 1 },
];

#[derive(Debug, Clone, Copy)]
struct Sixth {
    most: usize,
    middle: usize,
    least: usize,
}

/// A number moved by a multiple of a period to between 0 and the period.
fn wrapped<A: Float>(mut x: A, period: A) -> A {
    // Steps are few, and there is an end to them.
    if x.abs() > number(1e3) {
        x = x % period;
    }
    while x < A::zero() {
        x = x + period;
    }
    while x >= period {
        x = x - period;
    }
    x
}

/// The pixel with its hue turned by a part of the circle. It is a position between the least and the
/// largest channel, whatever those are (`tensorflow/core/kernels/image/adjust_hue_op.cc`).
fn turned<A: Float>(pixel: [A; 3], by: A) -> [A; 3] {
    let [red, green, blue] = pixel;
    let sixth = match (red < green, blue) {
        (true, blue) if blue < red => 1,
        (true, blue) if blue > green => 3,
        (true, _) => 2,
        (false, blue) if blue < green => 0,
        (false, blue) if blue > red => 4,
        (false, _) => 5,
    };
    let Sixth { most, middle, least } = SIXTHS[sixth];
    let (most, middle, least) = (pixel[most], pixel[middle], pixel[least]);
    let circle = number::<A>(6.0);
    // From an odd sixth on, the middle channel falls.
    let directed =
        |part: A, sixth: usize| if sixth.is_multiple_of(2) { part } else { A::one() - part };
    let mut hue = match most == least {
        true => A::zero(),
        false => number::<A>(sixth as f64) + directed((middle - least) / (most - least), sixth),
    };
    hue = wrapped(hue + by * circle, circle);
    let sixth = hue.to_usize().map_or(SIXTHS.len() - 1, |sixth| sixth.min(SIXTHS.len() - 1));
    let part = directed(hue - number(sixth as f64), sixth);
    let channel = SIXTHS[sixth];
    let mut turned = [A::zero(); 3];
    turned[channel.most] = most;
    turned[channel.middle] = least + part * (most - least);
    turned[channel.least] = least;
    turned
}

/// The pixel with another saturation, from 0 to 1. The kernel of `AdjustSaturation` rounds otherwise
/// on its way to hues and back than those of the conversions
/// (`tensorflow/core/kernels/image/adjust_saturation_op.cc`).
fn saturated<A: Float>([red, green, blue]: [A; 3], by: A) -> [A; 3] {
    // Of a NaN and a number, the first.
    let larger = |a: A, b: A| if a < b { b } else { a };
    let smaller = |a: A, b: A| if b < a { b } else { a };
    let value = larger(red, larger(green, blue));
    let range = value - smaller(red, smaller(green, blue));
    let saturation = if value > A::zero() { range / value } else { A::zero() };
    let part = A::one() / (number::<A>(6.0) * range);
    let after =
        |part: A, sixths: f64| -> A { number(part.to_f64().unwrap_or(f64::NAN) + sixths / 6.0) };
    let hue = match value {
        value if red == value => part * (green - blue),
        value if green == value => after(part * (blue - red), 2.0),
        _ => after(part * (red - green), 4.0),
    };
    let hue = if range <= A::zero() { A::zero() } else { hue };
    let hue = if hue < A::zero() { hue + A::one() } else { hue };
    let saturation = (saturation * by).max(A::zero()).min(A::one());
    let most = saturation * value;
    let least = value - most;
    let sixths = hue * number(6.0);
    let middle = most * (A::one() - (wrapped(sixths, number(2.0)) - A::one()).abs());
    let mut parts = [A::zero(); 3];
    if let Some(sixth) = sixths.to_usize().and_then(|sixth| SIXTHS.get(sixth)) {
        (parts[sixth.most], parts[sixth.middle]) = (most, middle);
    }
    parts.map(|part| part + least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_back() {
        for pixel in [[1.0, 0.0, 0.0], [0.2, 0.7, 0.4], [0.1, 0.3, 0.9], [0.5, 0.5, 0.5]] {
            let back = to_rgb(to_hsv(pixel));
            assert!(back.iter().zip(pixel).all(|(a, b)| (a - b).abs() < 1e-12));
        }
        assert_eq!(to_hsv([0.0, 0.0, 1.0]), [4.0 / 6.0, 1.0, 1.0]);
    }

    /// Images of mean zero have pixels whose channels are all negative.
    #[test]
    fn hues_of_negative_pixels_are_turned() {
        assert_eq!(turned([-1.0f32, -2.0, -3.0], 1.0 / 3.0), [-3.0, -1.0, -2.0]);
        assert_eq!(turned([-1.0f32, -1.0, -1.0], 0.3), [-1.0; 3]);
        assert!(turned([f32::NAN, 0.0, 1.0], 0.3).iter().any(|x| x.is_nan()));
        assert!(turned([0.0, 0.5f32, 1.0], f32::INFINITY).iter().any(|x| x.is_nan()));
    }
}
