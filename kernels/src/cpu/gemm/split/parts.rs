//! Numbers of `f32` as sums of three numbers of `bfloat16`, in the order in which tiles are loaded.

use super::{
    super::{Matrix, group_order::GroupOrder},
    registers::{Rows, split_tile, transpose},
    unit::{DEPTH, LINES, PART, SplitUnit, TILE},
};
use std::ops::Range;

/// The magnitudes of some numbers, as bits of `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) struct Magnitudes {
    largest: u32,
    /// The bits of the least that is not zero, less one; `u32::MAX` where all are zero.
    least: u32,
}

impl Magnitudes {
    /// Those of no numbers.
    pub(in crate::cpu) const NONE: Magnitudes = Magnitudes { largest: 0, least: u32::MAX };

    /// Numbers from this on have all their parts: the lowest is no subnormal number, which tiles take
    /// for zero.
    const WHOLE: f32 = f32::from_bits((127 - 103) << 23);

    /// The bound of the largest magnitudes multiplied: rounded parts are far from overflowing, too.
    const BOUND: f64 = (1u128 << 126) as f64;

    /// The bound of the least magnitudes multiplied: tiles take sums for zero that are subnormal, and the parts left out
    /// of what is summed are 2⁻²⁴ of it.
    const LEAST: f64 = 1.0 / (1u128 << 102) as f64;

    /// Magnitudes of numbers of which these are the largest, and the least but zero less one, as bits.
    pub(super) fn new(largest: u32, least: u32) -> Magnitudes {
        Magnitudes { largest, least }
    }

    pub(in crate::cpu) fn and(self, other: Magnitudes) -> Magnitudes {
        Magnitudes { largest: self.largest.max(other.largest), least: self.least.min(other.least) }
    }

    /// The least that is not zero, if there is one.
    fn least(self) -> Option<f32> {
        self.least.checked_add(1).map(f32::from_bits)
    }

    /// Whether sums with the others are as good by parts as they are of whole numbers: all are finite,
    /// and no part that counts is lost, of a number or of two multiplied.
    pub(in crate::cpu) fn suit(self, others: Magnitudes) -> bool {
        let (own, other) = (f32::from_bits(self.largest), f32::from_bits(others.largest));
        let are_bounded = !own.is_nan()
            && !other.is_nan()
            && own.max(other) < f32::MAX / 2.0
            && f64::from(own) * f64::from(other) <= Magnitudes::BOUND;
        are_bounded
            && self.least().zip(others.least()).is_none_or(|(own, other)| {
                own.min(other) >= Magnitudes::WHOLE
                    && f64::from(own) * f64::from(other) >= Magnitudes::LEAST
            })
    }
}

/// Splits some rows of a matrix, called lines, whose elements of these depths are summed: two tiles of lines
/// for each step of the depths, filled up with zeros. Returns the magnitudes of the lines of each tile.
pub(super) fn pack(
    unit: SplitUnit,
    matrix: Matrix<'_, f32>,
    lines: Range<usize>,
    depths: Range<usize>,
    order: GroupOrder,
    packed: &mut [u32],
) -> [Magnitudes; 2] {
    let mut all = [Magnitudes::NONE; 2];
    for (step, tiles) in packed.chunks_exact_mut(unit.parts.step()).enumerate() {
        let first = depths.start + step * DEPTH;
        let depths = first..depths.end.min(first + DEPTH);
        for (half, all) in all.iter_mut().enumerate() {
            let first = lines.start + half * LINES;
            let lines = first..lines.end.min(first + LINES).max(first);
            let tiles = &mut tiles[half * TILE..];
            *all = all.and(pack_tile(unit, matrix, lines, depths.clone(), order, tiles));
        }
    }
    all
}

/// Splits the elements of a tile.
fn pack_tile(
    unit: SplitUnit,
    matrix: Matrix<'_, f32>,
    lines: Range<usize>,
    depths: Range<usize>,
    order: GroupOrder,
    tiles: &mut [u32],
) -> Magnitudes {
    let Matrix { row_stride, col_stride, .. } = matrix;
    let (n, depth) = (lines.len(), depths.len());
    let by_lines = |stride: usize| Rows {
        stride,
        second: LINES,
        counts: [n; 2],
        lens: [depth.min(LINES), depth.saturating_sub(LINES)],
    };
    let at = (lines.start * row_stride + depths.start * col_stride).min(matrix.data.len());
    let numbers = &matrix.data[at..];
    let (natural, met) = if col_stride == 1 {
        (GroupOrder::ByLines, split_tile(unit, numbers, by_lines(row_stride), tiles))
    } else if row_stride == 1 {
        let rows = Rows {
            stride: col_stride,
            second: LINES * col_stride,
            counts: [depth.min(LINES), depth.saturating_sub(LINES)],
            lens: [n; 2],
        };
        (GroupOrder::ByGroups, split_tile(unit, numbers, rows, tiles))
    } else {
        let mut aside = [0.0; LINES * DEPTH];
        for (line, aside) in (0..n).zip(aside.chunks_exact_mut(DEPTH)) {
            for (step, number) in aside.iter_mut().take(depth).enumerate() {
                *number = numbers[line * row_stride + step * col_stride];
            }
        }
        (GroupOrder::ByLines, split_tile(unit, &aside, by_lines(DEPTH), tiles))
    };
    if natural != order {
        for part in tiles.chunks_mut(PART).take(unit.parts.count()) {
            part.first_chunk_mut().into_iter().for_each(|tile| transpose(unit, tile));
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::super::unit::Parts;
    use super::{super::registers::split_positions, *};
    use crate::Precision;

    fn magnitudes(numbers: &[f32]) -> Magnitudes {
        let all = numbers.iter().map(|number| number.abs().to_bits());
        let least = all.clone().map(|bits| bits.wrapping_sub(1)).min();
        Magnitudes::new(all.max().unwrap_or(0), least.unwrap_or(u32::MAX))
    }

    /// Normal numbers from 2⁻¹⁰² on, of either sign.
    fn numbers(len: usize) -> Vec<f32> {
        let mut state = 1u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(state & 0x80ff_ffff | (25 + state % 220) << 23)
        };
        (0..len).map(next).collect()
    }

    /// The parts at an element of a packed operand.
    fn parts(packed: &[u32], order: GroupOrder, line: usize, depth: usize) -> [f32; 3] {
        let (step, depth) = (depth / DEPTH, depth % DEPTH);
        let (half, line) = (line / LINES, line % LINES);
        let (group, shift) = (depth % LINES, 16 * (depth / LINES));
        let within = match order {
            GroupOrder::ByLines => line * LINES + group,
            GroupOrder::ByGroups => group * LINES + line,
        };
        [0, 1, 2].map(|part| {
            let group = packed[step * Parts::Three.step() + part * PART + half * TILE + within];
            f32::from_bits(group >> shift << 16)
        })
    }

    #[test]
    fn three_parts_are_the_number() {
        let Some(unit) = SplitUnit::detect(Precision::Full) else { return };
        for (lines, depth) in [(32, 32), (32, 96), (17, 50), (3, 70), (16, 16)] {
            for (row_stride, col_stride) in [(depth, 1), (1, lines), (2 * depth + 1, 2)] {
                let data = numbers((lines - 1) * row_stride + (depth - 1) * col_stride + 1);
                let matrix = Matrix { data: &data[..], row_stride, col_stride, conjugate: false };
                for order in [GroupOrder::ByLines, GroupOrder::ByGroups] {
                    let mut packed = vec![7; depth.div_ceil(DEPTH) * unit.parts.step()];
                    let met = pack(unit, matrix, 0..lines, 0..depth, order, &mut packed);
                    let mut all = [Vec::new(), Vec::new()];
                    for (line, step) in (0..32).flat_map(|line| (0..depth).map(move |x| (line, x)))
                    {
                        let [high, middle, low] = parts(&packed, order, line, step);
                        let number = match line < lines {
                            true => data[line * row_stride + step * col_stride],
                            false => 0.0,
                        };
                        let sum = f64::from(high) + f64::from(middle) + f64::from(low);
                        assert_eq!(
                            sum,
                            f64::from(number),
                            "{lines} {depth} {order:?} {line} {step}"
                        );
                        assert!(middle.abs() <= high.abs() / 256.0);
                        assert!(low.abs() <= high.abs() / 65536.0);
                        all[line / LINES].push(number);
                    }
                    assert_eq!(met, all.map(|numbers| magnitudes(&numbers)));
                }
            }
        }
    }

    #[test]
    fn positions_are_split_side_by_side() {
        let Some(unit) = SplitUnit::detect(Precision::Full) else { return };
        for (channels, stride, count) in [(32, 32, 5), (24, 24, 3), (40, 90, 4), (100, 100, 1)] {
            let data = numbers((count - 1) * stride + channels);
            let groups = channels.div_ceil(DEPTH) * LINES;
            let part = count * groups + 5;
            let mut packed = vec![7; 3 * part];
            let met = split_positions(unit, &data, (channels, stride), &mut packed, part);
            let mut all = vec![0.0];
            for (position, channel) in (0..count)
                .flat_map(|position| (0..2 * groups).map(move |channel| (position, channel)))
            {
                let at = position * groups + channel / DEPTH * LINES + channel % LINES;
                let shift = 16 * (channel % DEPTH / LINES);
                let sum = (0..3).map(|index| {
                    f64::from(f32::from_bits(packed[index * part + at] >> shift << 16))
                });
                let number = match channel < channels {
                    true => data[position * stride + channel],
                    false => 0.0,
                };
                assert_eq!(sum.sum::<f64>(), f64::from(number), "{channels} {position} {channel}");
                all.push(number);
            }
            assert_eq!(met, magnitudes(&all));
        }
    }

    #[test]
    fn operands_suit_each_other_unless_parts_are_lost_or_overflow() {
        let ordinary = magnitudes(&[0.0, 1e-12, -3.0, 1e5]);
        let (tiny, large) = (magnitudes(&[0.0, -1e-36, 2.0]), magnitudes(&[1e30]));
        assert!(ordinary.suit(ordinary) && ordinary.suit(large) && Magnitudes::NONE.suit(large));
        assert!(!tiny.suit(ordinary) && !ordinary.suit(tiny), "parts are lost");
        assert!(!large.suit(large), "products overflow");
        let small = magnitudes(&[1e-18, 0.0]);
        assert!(!small.suit(small), "parts of products are subnormal");
        assert!(small.suit(magnitudes(&[1e-10])) && small.suit(Magnitudes::NONE));
        for number in [f32::NAN, f32::INFINITY, f32::MAX, -f32::MAX] {
            assert!(!magnitudes(&[number, 1.0]).suit(ordinary), "{number}");
            assert!(!Magnitudes::NONE.suit(magnitudes(&[number])), "{number}");
        }
        assert_eq!(magnitudes(&[1.0]).and(magnitudes(&[-8.0])), magnitudes(&[-8.0, 1.0]));
    }
}
