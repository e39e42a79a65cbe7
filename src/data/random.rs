//! Orders of seeds.

/// Numbers of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014), the same for the same seed and epoch.
#[derive(Debug, Clone)]
pub(super) struct SplitMix(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix {
    pub(super) fn new(seed: u64, epoch: u64) -> SplitMix {
        SplitMix(mixed(seed).wrapping_add(epoch.wrapping_mul(STEP)))
    }

    /// A number below `n`, which is not 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(STEP);
        // The high half of a product is a number below `n`.
        ((u128::from(mixed(self.0)) * n as u128) >> 64) as usize
    }

    /// Fisher and Yates's shuffle.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.below(last + 1);
            items.swap(last, chosen);
        }
    }
}

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
