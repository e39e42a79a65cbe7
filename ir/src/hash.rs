//! A fast hash for small keys of our own making, such as numbers of values and names of ops.
//!
//! It mixes numbers as FxHash does, the hash of Firefox and rustc. Who chooses the keys can make them
//! collide: keys from outside belong in maps with the standard hash.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map with the fast hash.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// The state of the fast hash.
#[derive(Debug, Clone, Copy, Default)]
pub struct FastHasher(u64);

impl FastHasher {
    /// Mixes a number in.
    pub fn add(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        // Maps look at the lowest and the highest bits; products are best in the middle.
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(number));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_keys_have_different_hashes() {
        let hash = |bytes: &[u8]| {
            let mut hasher = FastHasher::default();
            hasher.write(bytes);
            hasher.finish()
        };
        let names = ["Add", "AddV2", "Mul", "MaximumOfManyThings", "MaximumOfManyThinks"];
        let mut hashes: Vec<u64> = names.iter().map(|name| hash(name.as_bytes())).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), names.len());
    }
}
