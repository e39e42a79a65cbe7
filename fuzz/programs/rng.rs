//! Random choices: SplitMix64, so that a seed means the same program on every machine.

/// A source of random choices.
#[derive(Debug, Clone)]
pub(crate) struct FuzzRng(u64);

impl FuzzRng {
    /// The source for a seed and a stream within it.
    pub(crate) fn new(seed: u64, stream: u64) -> FuzzRng {
        let mut rng = FuzzRng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.rotate_left(32));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < probability
    }

    /// A random item of a list that is not empty.
    pub(crate) fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// The index of one of some weights, by weight.
    pub(super) fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = (self.next() >> 11) as f64 / ((1u64 << 53) as f64);
        left *= weights.iter().sum::<f64>();
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return index;
            }
        }
        weights.len() - 1
    }

    /// Puts a list in random order.
    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for index in (1..list.len()).rev() {
            list.swap(index, self.below(index + 1));
        }
    }
}
