//! Unpredictable bits, for seeds and for names that no other process has drawn.

/// Bits that differ from call to call and from process to process: from the entropy of the system,
/// in a browser from that of the page.
pub fn unforeseen() -> u64 {
    #[cfg(not(target_arch = "wasm32"))]
    {
        use std::hash::{BuildHasher, RandomState};
        // Each `RandomState` has keys of its own, drawn from the system's entropy.
        RandomState::new().hash_one(crate::clock::Instant::now())
    }
    #[cfg(target_arch = "wasm32")]
    // A page without a source of entropy cannot run programs that draw from it.
    getrandom::u64().expect("the page has a source of entropy")
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_two_draws_are_the_same() {
        let draws: std::collections::HashSet<u64> = (0..100).map(|_| super::unforeseen()).collect();
        assert_eq!(draws.len(), 100);
    }
}
