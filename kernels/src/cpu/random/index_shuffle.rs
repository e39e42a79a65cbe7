//! `RandomIndexShuffle`: where an index goes in a permutation that a seed names, without the
//! permutation.
//!
//! A block cipher of few rounds (Beaulieu et al., "The Simon and Speck families of lightweight
//! block ciphers", 2013) permutes the numbers of some bits; it is repeated until the number is in
//! range (`random_index_shuffle.cc` of TensorFlow).

use crate::{
    cpu::{Build, index::integers},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{Code, DType, Error, budget};
use std::{borrow::Cow, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[("RandomIndexShuffle", shuffle)];

const OP: &str = "RandomIndexShuffle";

/// A word of a block: half of its bits.
#[derive(Debug, Clone, Copy)]
struct BlockHalf {
    bits: u32,
    mask: u64,
}

impl BlockHalf {
    fn rotated(self, x: u64, left: u32) -> u64 {
        (x << left | x >> (self.bits - left)) & self.mask
    }

    fn mixed(self, x: u64) -> u64 {
        self.rotated(x, 1) & self.rotated(x, 8) ^ self.rotated(x, 2)
    }

    fn round_keys(self, key: [u32; 3], rounds: usize) -> Vec<u64> {
        const CONSTANT: u64 = 0xFFFF_FFFC;
        let mut pattern = 0x7369_F885_192C_0EF5 & self.mask;
        let mut keys: Vec<u64> = key.iter().map(|&key| u64::from(key) & self.mask).collect();
        for round in 3..rounds {
            let last = keys[round - 1];
            let turned = self.rotated(last, self.bits - 3) ^ self.rotated(last, self.bits - 4);
            keys.push((CONSTANT & self.mask) ^ (pattern & 1) ^ keys[round - 3] ^ turned);
            pattern >>= 1;
        }
        keys
    }

    fn encrypted(self, value: u64, keys: &[u64]) -> u64 {
        let (mut left, mut right) = (value >> self.bits & self.mask, value & self.mask);
        for pair in keys.chunks_exact(2) {
            left ^= self.mixed(right) ^ pair[0];
            right ^= self.mixed(left) ^ pair[1];
        }
        left << self.bits | right
    }
}

/// As many rounds as anyone could want: the keys of all are kept.
const MOST_ROUNDS: usize = 1 << 16;

/// Where `index` of `0..=most` goes.
fn shuffled(index: u64, key: [u32; 3], most: u64, rounds: usize) -> u64 {
    if most == 0 {
        return 0;
    }
    let needed = (most as f64).log2().ceil() as u32;
    let bits = (needed + needed % 2).clamp(16, 64) / 2;
    let half = BlockHalf { bits, mask: u64::MAX >> (64 - bits) };
    let keys = half.round_keys(key, rounds);
    let mut found = half.encrypted(index, &keys);
    while found > most {
        budget::tick();
        found = half.encrypted(found, &keys);
    }
    found
}

fn shuffle(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let rounds = call.attrs.int("rounds")?;
    let fit = usize::try_from(rounds)
        .ok()
        .filter(|rounds| (4..=MOST_ROUNDS).contains(rounds) && rounds % 2 == 0);
    let rounds = fit.ok_or_else(|| call.wrong("rounds", "even, and from 4 to 65536", rounds))?;
    let dtypes = [0, 1, 2].map(|index| call.dtype(index));
    let dtype = dtypes[0];
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let [indices, seeds, most] = [0, 1, 2].map(|input| wide(io, input, dtypes[input]));
        let lengths = [indices.len(), seeds.len() / 3, most.len()];
        let n = lengths.into_iter().find(|length| *length != 1).unwrap_or(1);
        let at = |values: &[i64], at: usize| values[if values.len() == 1 { 0 } else { at }];
        let mut found = Vec::with_capacity(n);
        for number in 0..n {
            let (index, most) = (at(&indices, number), at(&most, number));
            let is_signed = matches!(dtype, DType::I32 | DType::I64);
            if is_signed && (index < 0 || index > most) || index as u64 > most as u64 {
                let detail = format!("index {index} is not in 0..={most}");
                let (code, op) = (Code::InvalidArgument, OP.into());
                return Err(Error::Status { code, op, detail }.into());
            }
            let first = if seeds.len() == 3 { 0 } else { 3 * number };
            let key = [0, 1, 2].map(|part| seeds[first + part] as u32);
            found.push(shuffled(index as u64, key, most as u64, rounds));
        }
        match dtype {
            DType::I32 | DType::U32 => {
                io.output::<u32>(0).iter_mut().zip(found).for_each(|(out, x)| *out = x as u32);
            }
            _ => io.output::<u64>(0).copy_from_slice(&found),
        }
        Ok(())
    })))
}

/// The integers in an input, of which unsigned ones of 64 bits keep their bits.
fn wide<'a>(io: &Io<'a>, input: usize, dtype: DType) -> Cow<'a, [i64]> {
    match dtype {
        DType::U32 => io.input::<u32>(input).iter().map(|&x| i64::from(x)).collect(),
        DType::U64 => Cow::Borrowed(io.input::<i64>(input)),
        dtype => integers(io, input, dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_permuted() {
        for most in [1, 2, 5, 1000, 70_000] {
            let mut found: Vec<u64> =
                (0..=most).map(|index| shuffled(index, [7, 8, 9], most, 4)).collect();
            found.sort_unstable();
            assert!(found.into_iter().eq(0..=most));
        }
    }
}
