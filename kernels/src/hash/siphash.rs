//! SipHash-2-4 (Jean-Philippe Aumasson and Daniel J. Bernstein, 2012), TensorFlow's strong hash.

use siphasher::sip::SipHasher24;

/// The hash of a string under a key.
pub(crate) fn siphash24(key: [u64; 2], text: &[u8]) -> u64 {
    SipHasher24::new_with_keys(key[0], key[1]).hash(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_paper_comes_out() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let text: Vec<u8> = (0..15).collect();
        assert_eq!(siphash24(key, &text), 0xa129_ca61_49be_45e5);
    }
}
