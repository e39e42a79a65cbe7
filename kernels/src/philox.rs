//! The random generator Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
//! 3", 2011): block `n` of four words is a function of a key and of `n`.

/// A position in the sequence of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Philox {
    key: u64,
    counter: u128,
}

/// Blocks that TensorFlow sets aside for each number of a distribution that may need many.
pub const BLOCKS_PER_NUMBER: u64 = 256;

pub(crate) const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
pub(crate) const KEY_STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
pub(crate) const ROUNDS: usize = 10;

/// The key that scrambles seeds (TensorFlow's `stateless_random_ops.cc`).
pub(crate) const SEED_KEY: u64 = 0x0246_1E29_3EC8_F720;

impl Philox {
    /// The position of this counter in the sequence of this key.
    pub fn new(key: u64, counter: u128) -> Philox {
        Philox { key, counter }
    }

    /// The position that a seed of two parts stands for: seeds that resemble each other lead to
    /// places that do not.
    pub fn from_seed(seed: [u64; 2]) -> Philox {
        let words = Philox::new(SEED_KEY, join(seed)).next_block();
        let [key, counter] = [[words[0], words[1]], [words[2], words[3]]]
            .map(|[low, high]| u64::from(low) | u64::from(high) << 32);
        Philox::new(key, join([0, counter]))
    }

    /// The key.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The counter, low half first.
    pub fn counter(&self) -> [u64; 2] {
        [self.counter as u64, (self.counter >> 64) as u64]
    }

    /// The position `n` blocks further on.
    #[must_use]
    pub fn skipped(self, n: u128) -> Philox {
        Philox { counter: self.counter.wrapping_add(n), ..self }
    }

    /// The block at this position; goes on to the next.
    pub fn next_block(&mut self) -> [u32; 4] {
        self.next_blocks::<1>().map(|[word]| word)
    }

    /// The blocks from this position on, as the first words of all, the second ones, and so on; goes
    /// on to the next. Loops over the blocks are innermost, so that vectors can hold them.
    #[inline(always)]
    pub(crate) fn next_blocks<const N: usize>(&mut self) -> [[u32; N]; 4] {
        let mut key = [self.key as u32, (self.key >> 32) as u32];
        let mut words = [[0; N]; 4];
        for block in 0..N {
            let counter = self.counter.wrapping_add(block as u128);
            for (part, words) in words.iter_mut().enumerate() {
                words[block] = (counter >> (32 * part)) as u32;
            }
        }
        self.counter = self.counter.wrapping_add(N as u128);
        for _ in 0..ROUNDS {
            let [first, second, third, fourth] = &mut words;
            for block in 0..N {
                let left = u64::from(MULTIPLIERS[0]) * u64::from(first[block]);
                let right = u64::from(MULTIPLIERS[1]) * u64::from(third[block]);
                first[block] = (right >> 32) as u32 ^ second[block] ^ key[0];
                second[block] = right as u32;
                third[block] = (left >> 32) as u32 ^ fourth[block] ^ key[1];
                fourth[block] = left as u32;
            }
            for (key, step) in key.iter_mut().zip(KEY_STEPS) {
                *key = key.wrapping_add(step);
            }
        }
        words
    }
}

/// Two halves, the low one first.
fn join([low, high]: [u64; 2]) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

/// The words of a sequence one by one.
#[derive(Debug)]
pub struct Words {
    philox: Philox,
    block: [u32; 4],
    used: usize,
}

impl Words {
    /// The words from a position on.
    pub fn new(philox: Philox) -> Words {
        Words { philox, block: [0; 4], used: 4 }
    }

    /// The next word.
    pub fn next_word(&mut self) -> u32 {
        if self.used == self.block.len() {
            (self.block, self.used) = (self.philox.next_block(), 0);
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// The next number of [0, 1), of one word.
    pub fn next_f32(&mut self) -> f32 {
        uniform_f32(self.next_word())
    }

    /// The next two words, the first as the low half.
    pub fn next_u64(&mut self) -> u64 {
        let (low, high) = (self.next_word(), self.next_word());
        u64::from(low) | u64::from(high) << 32
    }

    /// An integer below `n`, all equally often: words that would favour some are left out. 0 for no
    /// integer below. Source: TensorFlow's `exact_uniform_int.h`.
    pub fn below_u32(&mut self, n: u32) -> u32 {
        loop {
            let word = self.next_word();
            if let Some(found) = evenly(word.into(), n.into(), u32::MAX.into()) {
                return found as u32;
            }
        }
    }

    /// As [`Words::below_u32`], of two words.
    pub fn below_u64(&mut self, n: u64) -> u64 {
        loop {
            let word = self.next_u64();
            if let Some(found) = evenly(word, n, u64::MAX) {
                return found;
            }
        }
    }

    /// The next number of [0, 1), of two words.
    pub fn next_f64(&mut self) -> f64 {
        let (low, high) = (self.next_word(), self.next_word());
        uniform_f64(low, high)
    }
}

/// The remainder of a word of `0..=largest` by `n`; `None` for the words that have no equal share.
fn evenly(word: u64, n: u64, largest: u64) -> Option<u64> {
    match n {
        0 => Some(0),
        n if n.is_power_of_two() => Some(word & (n - 1)),
        n => (word > largest % n).then_some(word % n),
    }
}

/// A number of [0, 1) with the 23 low bits of a word as its fraction.
pub fn uniform_f32(word: u32) -> f32 {
    f32::from_bits(127 << 23 | (word & 0x7F_FFFF)) - 1.0
}

/// A number of [0, 1) with 52 bits of two words as its fraction: 20 low bits of the first, and the
/// second.
pub fn uniform_f64(first: u32, second: u32) -> f64 {
    f64::from_bits(1023 << 52 | u64::from(first & 0xF_FFFF) << 32 | u64::from(second)) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_paper() {
        // Known answers of the authors' Random123 library.
        let zeros = Philox::new(0, 0).next_block();
        assert_eq!(zeros, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = Philox::new(u64::MAX, u128::MAX).next_block();
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn blocks_together_are_those_one_by_one() {
        let start = Philox::new(0x0123_4567_89AB_CDEF, u128::MAX - 5);
        let (mut together, mut one_by_one) = (start, start);
        let words = together.next_blocks::<16>();
        for block in 0..16 {
            assert_eq!(one_by_one.next_block(), words.map(|words| words[block]), "block {block}");
        }
        assert_eq!(together, one_by_one);
    }

    #[test]
    fn skipping_is_going_on() {
        let mut one_by_one = Philox::new(7, u128::from(u64::MAX));
        for _ in 0..5 {
            one_by_one.next_block();
        }
        assert_eq!(one_by_one, Philox::new(7, u128::from(u64::MAX)).skipped(5));
        assert_eq!(one_by_one.counter(), [4, 1]);
    }

    #[test]
    fn words_without_an_equal_share_are_left_out() {
        assert_eq!(evenly(7, 8, u32::MAX.into()), Some(7));
        assert_eq!(evenly(0, 3, u32::MAX.into()), None);
        assert_eq!(evenly(4, 3, u32::MAX.into()), Some(1));
        let mut words = Words::new(Philox::new(1, 2));
        assert!((0..100).all(|_| words.below_u32(7) < 7 && words.below_u64(7) < 7));
        assert_eq!(words.below_u32(0), 0);
    }

    #[test]
    fn numbers_are_below_one() {
        assert_eq!((uniform_f32(0), uniform_f64(0, 0)), (0.0, 0.0));
        assert!(uniform_f32(u32::MAX) < 1.0 && uniform_f64(u32::MAX, u32::MAX) < 1.0);
    }
}
