//! Blocks of samples to blocks of coefficients, in the arithmetic of libjpeg-turbo (jfdctint.c,
//! after Loeffler, Ligtenberg and Moschytz).

use super::samples::Plane;

const SCALE: u32 = 13;
const BETWEEN: u32 = 2;

/// A plane's coefficients, divided and rounded: blocks in rows.
pub(super) fn coefficients(plane: &Plane, divisors: &[u16; 64]) -> Vec<[i16; 64]> {
    let stride = plane.across * 8;
    let block = |at: usize| {
        let (row, column) = (at / plane.across * 8, at % plane.across * 8);
        let mut values = [0; 64];
        for (y, line) in values.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let samples = &plane.samples[(row + y) * stride + column..][..8];
            *line = std::array::from_fn(|x| i32::from(samples[x]) - 128);
        }
        transform(&mut values);
        std::array::from_fn(|at| quantize(values[at], i32::from(divisors[at]) * 8))
    };
    (0..plane.across * plane.down).map(block).collect()
}

fn quantize(value: i32, divisor: i32) -> i16 {
    let size = (value.abs() + divisor / 2) / divisor;
    (if value < 0 { -size } else { size }) as i16
}

fn descale(value: i32, bits: u32) -> i32 {
    (value + (1 << (bits - 1))) >> bits
}

fn transform(values: &mut [i32; 64]) {
    for line in values.as_chunks_mut::<8>().0 {
        let (ends, others) = line_sums(*line);
        for (at, end) in [0, 4].into_iter().zip(ends) {
            line[at] = end << BETWEEN;
        }
        for (at, other) in OTHERS.into_iter().zip(others) {
            line[at] = descale(other, SCALE - BETWEEN);
        }
    }
    for column in 0..8 {
        let (ends, others) = line_sums(std::array::from_fn(|at| values[at * 8 + column]));
        for (at, end) in [0, 4].into_iter().zip(ends) {
            values[at * 8 + column] = descale(end, BETWEEN);
        }
        for (at, other) in OTHERS.into_iter().zip(others) {
            values[at * 8 + column] = descale(other, SCALE + BETWEEN);
        }
    }
}

/// Positions of the coefficients that have `SCALE` bits of fraction.
const OTHERS: [usize; 6] = [2, 6, 7, 5, 3, 1];

/// Coefficients 0 and 4, and those of `OTHERS`.
fn line_sums(x: [i32; 8]) -> ([i32; 2], [i32; 6]) {
    let sum = |at: usize| x[at] + x[7 - at];
    let difference = |at: usize| x[at] - x[7 - at];
    let (outer, inner) = (sum(0) + sum(3), sum(1) + sum(2));
    let (far, near) = (sum(0) - sum(3), sum(1) - sum(2));
    let common = (near + far) * 4433;
    let [d7, d6, d5, d4] = [difference(0), difference(1), difference(2), difference(3)];
    let both = (d4 + d6 + d5 + d7) * 9633;
    let (ends, middles) = ((d4 + d7) * -7373, (d5 + d6) * -20995);
    let (even, odd) = (both - (d4 + d6) * 16069, both - (d5 + d7) * 3196);
    (
        [outer + inner, outer - inner],
        [
            common + far * 6270,
            common - near * 15137,
            d4 * 2446 + ends + even,
            d5 * 16819 + middles + odd,
            d6 * 25172 + middles + even,
            d7 * 12299 + ends + odd,
        ],
    )
}
