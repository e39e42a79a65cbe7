//! Colour spaces: red, green and blue; hue, saturation and value, all from 0 to 1.

use crate::{
    cpu::{Build, dispatch::with_float},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    wide::WideElement,
};
use num_traits::Float;
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
        Change::Hue => {
            let [hue, saturation, value] = to_hsv(pixel);
            let hue = hue + by;
            to_rgb([hue - hue.floor(), saturation, value])
        }
        Change::Saturation => {
            let [hue, saturation, value] = to_hsv(pixel);
            to_rgb([hue, (saturation * by).min(A::one()).max(A::zero()), value])
        }
    }
}

fn number<A: Float>(value: f64) -> A {
    A::from(value).expect("floats are made of floats")
}

fn to_hsv<A: Float>([red, green, blue]: [A; 3]) -> [A; 3] {
    let value = red.max(green).max(blue);
    let range = value - red.min(green).min(blue);
    let saturation = if value > A::zero() { range / value } else { A::zero() };
    let part = A::one() / (number::<A>(6.0) * range);
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
        let strength = strength.max(A::zero()).min(one);
        (one - saturation + saturation * strength) * value
    })
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
}
