//! SipHash-2-4 (Jean-Philippe Aumasson and Daniel J. Bernstein, 2012), TensorFlow's strong hash.

/// The hash of a string under a key.
pub(crate) fn siphash24(key: [u64; 2], text: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let (blocks, rest) = text.as_chunks::<8>();
    let mut last = [0u8; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = text.len() as u8;
    for block in blocks.iter().chain([&last]) {
        let block = u64::from_le_bytes(*block);
        state[3] ^= block;
        rounds(&mut state, 2);
        state[0] ^= block;
    }
    state[2] ^= 0xff;
    rounds(&mut state, 4);
    state.iter().fold(0, |hash, part| hash ^ part)
}

fn rounds(state: &mut [u64; 4], n: usize) {
    let [mut a, mut b, mut c, mut d] = *state;
    for _ in 0..n {
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
    }
    *state = [a, b, c, d];
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
