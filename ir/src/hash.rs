//! A fast hash for small keys of our own making, such as numbers of values and names of ops.
//!
//! It is FxHash, the hash of Firefox and rustc. Who chooses the keys can make them collide: keys from
//! outside belong in maps with the standard hash.

/// The state of the fast hash.
pub use rustc_hash::FxHasher as FastHasher;

/// A map with the fast hash.
pub use rustc_hash::FxHashMap as FastMap;

/// A set with the fast hash.
pub use rustc_hash::FxHashSet as FastSet;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher;

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
