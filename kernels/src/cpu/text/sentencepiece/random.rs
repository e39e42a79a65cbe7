//! Random choices, for sampling. They cannot be repeated, as those of the library cannot.

use ferroflow_ir::entropy::unforeseen;

/// A source of random numbers (SplitMix64).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Random {
        Random(unforeseen())
    }

    /// A number from 0 to 1, without 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A position in a list of weights, which is not empty, as likely as its weight says.
    pub(super) fn choose(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit() * weights.iter().sum::<f64>();
        let taken = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        // Rounding, or weights without a sum, may leave the last one.
        taken.unwrap_or(weights.len() - 1)
    }
}
