//! The 64-bit fingerprint of FarmHash (Geoff Pike, Google; `farmhashna::Hash64`), and how
//! TensorFlow joins two of them (`tensorflow/core/platform/fingerprint.h`); the 128-bit fingerprint,
//! which is that of CityHash (Geoff Pike and Jyrki Alakuijala, Google; `CityHash128`).

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// The fingerprint of a string.
pub fn fingerprint64(text: &[u8]) -> u64 {
    match text.len() {
        0..=16 => up_to_16(text),
        17..=32 => up_to_32(text),
        33..=64 => up_to_64(text),
        _ => longer(text),
    }
}

/// The fingerprint of two things whose fingerprints these are; their order matters.
pub(crate) fn fingerprint_cat64(first: u64, second: u64) -> u64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    let mut result = first ^ MUL;
    result ^= shift_mix(second.wrapping_mul(MUL)).wrapping_mul(MUL);
    result = result.wrapping_mul(MUL);
    shift_mix(shift_mix(result).wrapping_mul(MUL))
}

/// The fingerprint of a string in two halves, the low one first.
pub(crate) fn fingerprint128(text: &[u8]) -> [u64; 2] {
    match text.split_at_checked(16) {
        Some((first, rest)) => {
            let seed = [fetch64(first, 0), fetch64(first, 8).wrapping_add(K0)];
            match rest.len() {
                0..128 => murmur(rest, seed),
                _ => city(rest, seed),
            }
        }
        None => murmur(text, [K0, K1]),
    }
}

/// The multiplier of hashes of two numbers.
const PAIR: u64 = 0x9ddf_ea08_eb38_2d69;

fn pair(u: u64, v: u64) -> u64 {
    mix(u, v, PAIR)
}

/// Of strings of less than 128 bytes.
fn murmur(text: &[u8], [mut a, mut b]: [u64; 2]) -> [u64; 2] {
    let scrambled = |value: u64| shift_mix(value.wrapping_mul(K1)).wrapping_mul(K1);
    let len = text.len();
    let (mut c, mut d);
    if len <= 16 {
        a = scrambled(a);
        c = b.wrapping_mul(K1).wrapping_add(up_to_16(text));
        d = shift_mix(a.wrapping_add(if len >= 8 { fetch64(text, 0) } else { c }));
    } else {
        c = pair(fetch64(text, len - 8).wrapping_add(K1), a);
        let last = c.wrapping_add(fetch64(text, len - 16));
        d = pair(b.wrapping_add(len as u64), last);
        a = a.wrapping_add(d);
        for at in (0..len - 16).step_by(16) {
            a = (a ^ scrambled(fetch64(text, at))).wrapping_mul(K1);
            b ^= a;
            c = (c ^ scrambled(fetch64(text, at + 8))).wrapping_mul(K1);
            d ^= c;
        }
    }
    let (a, b) = (pair(a, c), pair(d, b));
    [a ^ b, pair(b, a)]
}

/// Of strings of 128 bytes and more: blocks of 128, then up to four of 32 from the end.
fn city(text: &[u8], [mut x, mut y]: [u64; 2]) -> [u64; 2] {
    let len = text.len();
    let mut z = (len as u64).wrapping_mul(K1);
    let first = (y ^ K1).rotate_right(49).wrapping_mul(K1).wrapping_add(fetch64(text, 0));
    let second = first.rotate_right(42).wrapping_mul(K1).wrapping_add(fetch64(text, 8));
    let mut v = (first, second);
    let mut w = (
        y.wrapping_add(z).rotate_right(35).wrapping_mul(K1).wrapping_add(x),
        x.wrapping_add(fetch64(text, 88)).rotate_right(53).wrapping_mul(K1),
    );
    let n_whole = len / 128 * 128;
    for at in (0..n_whole).step_by(64) {
        x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(fetch64(text, at + 8));
        x = x.rotate_right(37).wrapping_mul(K1);
        y = y.wrapping_add(v.1).wrapping_add(fetch64(text, at + 48));
        y = y.rotate_right(42).wrapping_mul(K1);
        x ^= w.1;
        y = y.wrapping_add(v.0).wrapping_add(fetch64(text, at + 40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(K1);
        v = weak(text, at, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        let second = y.wrapping_add(fetch64(text, at + 16));
        w = weak(text, at + 32, z.wrapping_add(w.1), second);
        (z, x) = (x, z);
    }
    x = x.wrapping_add(v.0.wrapping_add(z).rotate_right(49).wrapping_mul(K0));
    y = y.wrapping_mul(K0).wrapping_add(w.1.rotate_right(37));
    z = z.wrapping_mul(K0).wrapping_add(w.0.rotate_right(27));
    w.0 = w.0.wrapping_mul(9);
    v.0 = v.0.wrapping_mul(K0);
    for done in (32..len - n_whole + 32).step_by(32) {
        let at = len - done;
        y = x.wrapping_add(y).rotate_right(42).wrapping_mul(K0).wrapping_add(v.1);
        w.0 = w.0.wrapping_add(fetch64(text, at + 16));
        x = x.wrapping_mul(K0).wrapping_add(w.0);
        z = z.wrapping_add(w.1).wrapping_add(fetch64(text, at));
        w.1 = w.1.wrapping_add(v.0);
        v = weak(text, at, v.0.wrapping_add(z), v.1);
        v.0 = v.0.wrapping_mul(K0);
    }
    let (x, y) = (pair(x, v.0), pair(y.wrapping_add(z), w.0));
    let high = pair(x.wrapping_add(w.1), y.wrapping_add(v.1));
    [pair(x.wrapping_add(v.1), w.1).wrapping_add(y), high]
}

fn fetch64(text: &[u8], at: usize) -> u64 {
    text[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn fetch32(text: &[u8], at: usize) -> u64 {
    text[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes).into())
}

fn shift_mix(value: u64) -> u64 {
    value ^ (value >> 47)
}

fn mix(u: u64, v: u64, mul: u64) -> u64 {
    let a = shift_mix((u ^ v).wrapping_mul(mul));
    shift_mix((v ^ a).wrapping_mul(mul)).wrapping_mul(mul)
}

fn up_to_16(text: &[u8]) -> u64 {
    let len = text.len();
    let mul = K2.wrapping_add(2 * len as u64);
    if len >= 8 {
        let a = fetch64(text, 0).wrapping_add(K2);
        let b = fetch64(text, len - 8);
        let c = b.rotate_right(37).wrapping_mul(mul).wrapping_add(a);
        let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(mul);
        return mix(c, d, mul);
    }
    if len >= 4 {
        let a = fetch32(text, 0);
        return mix((len as u64).wrapping_add(a << 3), fetch32(text, len - 4), mul);
    }
    if len == 0 {
        return K2;
    }
    let (a, b, c) = (text[0], text[len / 2], text[len - 1]);
    let y = u64::from(a) + (u64::from(b) << 8);
    let z = len as u64 + (u64::from(c) << 2);
    shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
}

fn up_to_32(text: &[u8]) -> u64 {
    let len = text.len();
    let mul = K2.wrapping_add(2 * len as u64);
    let a = fetch64(text, 0).wrapping_mul(K1);
    let b = fetch64(text, 8);
    let c = fetch64(text, len - 8).wrapping_mul(mul);
    let d = fetch64(text, len - 16).wrapping_mul(K2);
    let u = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let v = a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c);
    mix(u, v, mul)
}

fn up_to_64(text: &[u8]) -> u64 {
    let len = text.len();
    let mul = K2.wrapping_add(2 * len as u64);
    let a = fetch64(text, 0).wrapping_mul(K2);
    let b = fetch64(text, 8);
    let c = fetch64(text, len - 8).wrapping_mul(mul);
    let d = fetch64(text, len - 16).wrapping_mul(K2);
    let y = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let z = mix(y, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), mul);
    let e = fetch64(text, 16).wrapping_mul(mul);
    let f = fetch64(text, 24);
    let g = y.wrapping_add(fetch64(text, len - 32)).wrapping_mul(mul);
    let h = z.wrapping_add(fetch64(text, len - 24)).wrapping_mul(mul);
    let u = e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h);
    let v = e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g);
    mix(u, v, mul)
}

/// A weak hash of 32 bytes and two seeds.
fn weak(text: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let (w, x) = (fetch64(text, at), fetch64(text, at + 8));
    let (y, z) = (fetch64(text, at + 16), fetch64(text, at + 24));
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let c = a;
    let a = a.wrapping_add(x).wrapping_add(y);
    let b = b.wrapping_add(a.rotate_right(44));
    (a.wrapping_add(z), b.wrapping_add(c))
}

/// Of strings of more than 64 bytes: all blocks of 64 but the last, then the last 64 bytes.
fn longer(text: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let len = text.len();
    let mut x = SEED.wrapping_mul(K2).wrapping_add(fetch64(text, 0));
    let mut y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut z = shift_mix(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let (mut v, mut w) = ((0u64, 0u64), (0u64, 0u64));
    let n_blocks = (len - 1) / 64;
    for at in (0..n_blocks).map(|block| block * 64) {
        x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(fetch64(text, at + 8));
        x = x.rotate_right(37).wrapping_mul(K1);
        y = y.wrapping_add(v.1).wrapping_add(fetch64(text, at + 48));
        y = y.rotate_right(42).wrapping_mul(K1);
        x ^= w.1;
        y = y.wrapping_add(v.0).wrapping_add(fetch64(text, at + 40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(K1);
        v = weak(text, at, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        let second = y.wrapping_add(fetch64(text, at + 16));
        w = weak(text, at + 32, z.wrapping_add(w.1), second);
        (z, x) = (x, z);
    }
    let mul = K1.wrapping_add((z & 0xff) << 1);
    let at = len - 64;
    w.0 = w.0.wrapping_add((len as u64 - 1) & 63);
    v.0 = v.0.wrapping_add(w.0);
    w.0 = w.0.wrapping_add(v.0);
    x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(fetch64(text, at + 8));
    x = x.rotate_right(37).wrapping_mul(mul);
    y = y.wrapping_add(v.1).wrapping_add(fetch64(text, at + 48));
    y = y.rotate_right(42).wrapping_mul(mul);
    x ^= w.1.wrapping_mul(9);
    y = y.wrapping_add(v.0.wrapping_mul(9)).wrapping_add(fetch64(text, at + 40));
    z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(mul);
    v = weak(text, at, v.1.wrapping_mul(mul), x.wrapping_add(w.0));
    w = weak(text, at + 32, z.wrapping_add(w.1), y.wrapping_add(fetch64(text, at + 16)));
    (z, x) = (x, z);
    let first = mix(v.0, w.0, mul).wrapping_add(shift_mix(y).wrapping_mul(K0)).wrapping_add(z);
    mix(first, mix(v.1, w.1, mul).wrapping_add(x), mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_of_tensorflow() {
        for (length, expected) in [
            (0, K2),
            (1, 0xbec0_9cc4_4746_9d8b),
            (3, 0x40b4_412e_33ee_fd64),
            (4, 0xf3c7_ee05_197a_7b92),
            (8, 0x0c97_ecbc_1e9d_2626),
            (16, 0x7eda_0ed8_c837_a168),
            (17, 0xc951_8fe6_3ebf_6127),
            (32, 0xa53f_806f_23a3_14e8),
            (33, 0xc24f_9d7c_e864_f0e9),
            (64, 0x0566_266c_b579_eca2),
            (65, 0x77e0_8677_14e6_b0e4),
            (128, 0x6668_2396_0b3a_c271),
            (129, 0x9820_6b85_79bc_a083),
            (192, 0x3fb4_2d06_dd42_f727),
            (300, 0xdfbc_ed11_6079_af13),
        ] {
            let text: Vec<u8> = (0..length).map(|n: usize| (n * 7 + 3) as u8).collect();
            assert_eq!(fingerprint64(&text), expected, "{length} bytes");
        }
    }
}
