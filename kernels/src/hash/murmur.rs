//! The 64-bit MurmurHash2 (Austin Appleby, `MurmurHash64A`) with the seed that TensorFlow uses
//! (`tensorflow/core/platform/hash.cc`).

const SEED: u64 = 0x00de_cafc_affe;
const MUL: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The hash of a string: TensorFlow's `Hash64`.
pub fn hash64(text: &[u8]) -> u64 {
    let mut hash = SEED ^ (text.len() as u64).wrapping_mul(MUL);
    let (blocks, rest) = text.as_chunks::<8>();
    for block in blocks {
        let block = u64::from_le_bytes(*block).wrapping_mul(MUL);
        hash ^= (block ^ (block >> SHIFT)).wrapping_mul(MUL);
        hash = hash.wrapping_mul(MUL);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MUL);
    }
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(MUL);
    hash ^ (hash >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_tensorflow() {
        let check = |text: &[u8], expected| assert_eq!(hash64(text) % (1 << 62), expected);
        check(b"", 105_434_511_174_508_091);
        check(b"a", 2_996_632_905_371_535_868);
        check(b"hello world, hello", 2_162_709_835_404_562_280);
    }
}
