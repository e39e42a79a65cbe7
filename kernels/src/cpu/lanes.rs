//! Lanes: partial results of a row that are kept side by side, in whole vectors, and combined in the end.

use std::hint;

/// Number of lanes: two vectors of AVX-512, or four of AVX2, of `f32`.
pub(super) const LANES: usize = 32;

/// The lanes in memory, for code after the loop that fills them: seen together, the compiler divides the vectors
/// of the loop into the short ones of what comes after it.
#[inline(always)]
pub(super) fn settled<T>(lanes: [T; LANES]) -> [T; LANES] {
    hint::black_box(lanes)
}

/// The lanes as one: those of the first half each with that of the second, until one is left.
#[inline(always)]
pub(super) fn pairwise<T: Copy>(lanes: [T; LANES], combine: impl Fn(T, T) -> T) -> T {
    let lanes: [T; 16] = halved(settled(lanes), &combine);
    let lanes: [T; 8] = halved(lanes, &combine);
    let lanes: [T; 4] = halved(lanes, &combine);
    let [first, second] = halved(lanes, &combine);
    combine(first, second)
}

#[inline(always)]
fn halved<T: Copy, const N: usize, const HALF: usize>(
    lanes: [T; N],
    combine: &impl Fn(T, T) -> T,
) -> [T; HALF] {
    let mut half = [lanes[0]; HALF];
    for (index, half) in half.iter_mut().enumerate() {
        *half = combine(lanes[index], lanes[index + HALF]);
    }
    half
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::array;

    #[test]
    fn lanes_are_combined_with_those_half_their_number_away() {
        let texts: [usize; LANES] = array::from_fn(|lane| 1 << lane);
        assert_eq!(pairwise(texts, |a, b| a | b), (1 << LANES) - 1);
        // The order is that of a tree: the first pair of each level is lane 0 and the middle one.
        let order = std::cell::RefCell::new(Vec::new());
        pairwise(array::from_fn(|lane| lane), |a, b| {
            order.borrow_mut().push((a, b));
            a
        });
        let order = order.into_inner();
        assert_eq!(order.len(), LANES - 1);
        assert_eq!(
            [order[0], order[16], order[24], order[28], order[30]],
            [16, 8, 4, 2, 1].map(|b| (0, b))
        );
    }
}
