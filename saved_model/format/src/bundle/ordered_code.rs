//! Keys of slices: name and extents in an encoding whose byte order is the order of the values.

use super::slice::{Extent, TensorSlice};

/// The key under which a table holds `slice` of the tensor `name`.
///
/// It begins with a zero byte, which no tensor's own key does.
pub fn encode_slice_key(name: &str, slice: &TensorSlice) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 4 + 4 * slice.extents().len());
    write_number(&mut key, 0);
    write_string(&mut key, name.as_bytes());
    write_number(&mut key, slice.extents().len() as u64);
    for extent in slice.extents() {
        let (start, length) = match *extent {
            Extent::Full => (0, -1),
            Extent::Range { start, length } => (start as i64, length as i64),
        };
        write_signed(&mut key, start);
        write_signed(&mut key, length);
    }
    key
}

/// The name and the slice of a key; `None` when it is not the key of a slice.
pub fn decode_slice_key(key: &[u8]) -> Option<(String, TensorSlice)> {
    let mut rest = key;
    if read_number(&mut rest)? != 0 {
        return None;
    }
    let name = String::from_utf8(read_string(&mut rest)?).ok()?;
    let rank = read_number(&mut rest)?;
    let mut extents = Vec::new();
    for _ in 0..rank {
        let start = usize::try_from(read_signed(&mut rest)?).ok()?;
        extents.push(match read_signed(&mut rest)? {
            -1 if start == 0 => Extent::Full,
            length => {
                let length = usize::try_from(length).ok().filter(|&length| length > 0)?;
                Extent::Range { start, length }
            }
        });
    }
    rest.is_empty().then(|| (name, TensorSlice::new(extents)))
}

/// The number of significant bytes, then those, most significant first.
fn write_number(key: &mut Vec<u8>, number: u64) {
    let n_zero = number.leading_zeros() as usize / 8;
    key.push(8 - n_zero as u8);
    key.extend_from_slice(&number.to_be_bytes()[n_zero..]);
}

fn read_number(rest: &mut &[u8]) -> Option<u64> {
    let (&len, tail) = rest.split_first()?;
    let (bytes, tail) = tail.split_at_checked(usize::from(len))?;
    *rest = tail;
    if len > 8 || bytes.first() == Some(&0) {
        return None;
    }
    Some(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// The bytes, with `00` as `00 ff` and `ff` as `ff 00`, ended by `00 01`.
fn write_string(key: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        key.push(byte);
        match byte {
            0x00 => key.push(0xff),
            0xff => key.push(0x00),
            _ => {}
        }
    }
    key.extend_from_slice(&[0x00, 0x01]);
}

fn read_string(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        if byte != 0x00 && byte != 0xff {
            bytes.push(byte);
            continue;
        }
        let (&escape, tail) = rest.split_first()?;
        *rest = tail;
        match (byte, escape) {
            (0x00, 0x01) => return Some(bytes),
            (0x00, 0xff) | (0xff, 0x00) => bytes.push(byte),
            _ => return None,
        }
    }
}

/// The longest form of a signed number, in bytes.
const MAX_SIGNED: usize = 10;

/// As many leading bits as bytes, one for numbers from 0 on and zero for negative ones, then the
/// number in two's complement, whose sign bit ends the count.
fn write_signed(key: &mut Vec<u8>, number: i64) {
    let fits = |n: usize| {
        let bits = 7 * n as u32 - 1;
        (-(1i128 << bits)..1i128 << bits).contains(&i128::from(number))
    };
    let n = (1..MAX_SIGNED).find(|&n| fits(n)).unwrap_or(MAX_SIGNED);
    let bytes = (i128::from(number) ^ length_mark(n)).to_be_bytes();
    key.extend_from_slice(&bytes[16 - n..]);
}

fn read_signed(rest: &mut &[u8]) -> Option<i64> {
    let first = *rest.first()?;
    let second = rest.get(1).copied().unwrap_or(0);
    let head = u16::from_be_bytes([first, second]);
    let n = if first & 0x80 == 0 { head.leading_zeros() } else { head.leading_ones() } as usize;
    let (bytes, tail) = rest.split_at_checked(n).filter(|_| n <= MAX_SIGNED)?;
    *rest = tail;
    let negative = first & 0x80 == 0;
    let mut wide = [if negative { 0xff } else { 0x00 }; 16];
    wide[16 - n..].copy_from_slice(bytes);
    let number = i128::from_be_bytes(wide) ^ length_mark(n);
    i64::try_from(number).ok()
}

/// The `n` highest of `8 * n` bits.
fn length_mark(n: usize) -> i128 {
    ((1i128 << n) - 1) << (7 * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signed(number: i64) -> Vec<u8> {
        let mut key = Vec::new();
        write_signed(&mut key, number);
        key
    }

    #[test]
    fn numbers_as_tensorflow_writes_them() {
        assert_eq!(signed(0), [0x80]);
        assert_eq!(signed(63), [0xbf]);
        assert_eq!(signed(-64), [0x40]);
        assert_eq!(signed(-1), [0x7f]);
        assert_eq!(signed(64), [0xc0, 0x40]);
        assert_eq!(signed(100), [0xc0, 0x64]);
        assert_eq!(signed(20000), [0xe0, 0x4e, 0x20]);
        assert_eq!(signed(i64::MAX)[..2], [0xff, 0xc0]);
        assert_eq!(signed(i64::MAX).len(), 10);
    }

    #[test]
    fn keys_of_slices() {
        let slice: TensorSlice = "0,5:-".parse().unwrap();
        let key = encode_slice_key("w\0", &slice);
        let expected = [0, b'w', 0, 0xff, 0, 1, 1, 2, 0x80, 0x85, 0x80, 0x7f];
        assert_eq!(key, expected);
        assert_eq!(decode_slice_key(&key), Some(("w\0".into(), slice)));
        assert_eq!(decode_slice_key(&key[..key.len() - 1]), None);
        assert_eq!(decode_slice_key(b"w"), None);
    }

    proptest! {
        #[test]
        fn signed_numbers_keep_value_and_order(a in any::<i64>(), shift in 0u32..64, b in any::<i64>()) {
            let (a, b) = (a >> shift, b >> shift);
            let (key, other) = (signed(a), signed(b));
            prop_assert_eq!(read_signed(&mut &key[..]), Some(a));
            prop_assert_eq!(a.cmp(&b), key.cmp(&other));
        }

        #[test]
        fn keys_round_trip(
            name in ".{0,12}",
            extents in prop::collection::vec((any::<u32>(), 0..u32::MAX), 0..5),
        ) {
            let extents = extents.iter().map(|&(start, length)| match length {
                0 => Extent::Full,
                length => Extent::Range { start: start as usize, length: length as usize },
            });
            let slice = TensorSlice::new(extents);
            let key = encode_slice_key(&name, &slice);
            prop_assert_eq!(decode_slice_key(&key), Some((name, slice)));
        }

        #[test]
        fn any_bytes_decode_or_not(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            decode_slice_key(&bytes);
        }
    }
}
