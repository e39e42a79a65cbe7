//! Numbers made of random words, as TensorFlow's `random_distributions.h` makes them.

use crate::philox::{Words, uniform_f32, uniform_f64};
use bytemuck::Pod;
use half::{bf16, f16};
use std::f64::consts::TAU;

/// Uniform numbers below it are taken for it, so that their logarithm is finite.
const SMALLEST: f64 = 1e-7;

/// Truncated normal numbers are closer to 0.
const LIMIT: f64 = 2.0;

/// Floats that can be drawn. A block of words gives four at most; arrays hold `PER_BLOCK` of them.
pub(super) trait Variate: Pod + Send + Sync {
    /// Count of numbers from a block of four random integers of 32 bits.
    const PER_BLOCK: usize;

    /// Uniform numbers of [0, 1).
    fn uniform(block: [u32; 4]) -> [Self; 4];

    /// Numbers of the standard normal distribution.
    fn normal(block: [u32; 4]) -> [Self; 4];

    /// A pair of normal numbers, and what is left of them as `f64`.
    fn normal_pair(words: &mut Words) -> [(Self, f64); 2];

    /// `PER_BLOCK` normal numbers that are closer to 0 than the limit.
    fn truncated(words: &mut Words) -> [Self; 4] {
        let mut found = [Self::zeroed(); 4];
        let mut n_found = 0;
        while n_found < Self::PER_BLOCK {
            for (number, value) in Self::normal_pair(words) {
                if value.abs() < LIMIT && n_found < Self::PER_BLOCK {
                    found[n_found] = number;
                    n_found += 1;
                }
            }
        }
        found
    }
}

/// Two normal numbers by the method of Box and Muller (1958).
fn box_muller_f32(first: u32, second: u32) -> [f32; 2] {
    let radius = (-2.0 * uniform_f32(first).max(SMALLEST as f32).ln()).sqrt();
    let (sin, cos) = ((TAU * f64::from(uniform_f32(second))) as f32).sin_cos();
    [sin * radius, cos * radius]
}

fn box_muller_f64(words: [u32; 4]) -> [f64; 2] {
    let radius = (-2.0 * uniform_f64(words[0], words[1]).max(SMALLEST).ln()).sqrt();
    let (sin, cos) = (TAU * uniform_f64(words[2], words[3])).sin_cos();
    [sin * radius, cos * radius]
}

fn normal_f32(block: [u32; 4]) -> [f32; 4] {
    let ([a, b], [c, d]) = (box_muller_f32(block[0], block[1]), box_muller_f32(block[2], block[3]));
    [a, b, c, d]
}

fn pair_f32(words: &mut Words) -> [f32; 2] {
    let (first, second) = (words.next_word(), words.next_word());
    box_muller_f32(first, second)
}

impl Variate for f32 {
    const PER_BLOCK: usize = 4;

    fn uniform(block: [u32; 4]) -> [f32; 4] {
        block.map(uniform_f32)
    }

    fn normal(block: [u32; 4]) -> [f32; 4] {
        normal_f32(block)
    }

    fn normal_pair(words: &mut Words) -> [(f32, f64); 2] {
        pair_f32(words).map(|number| (number, f64::from(number)))
    }
}

impl Variate for f16 {
    const PER_BLOCK: usize = 4;

    fn uniform(block: [u32; 4]) -> [f16; 4] {
        block.map(|word| {
            let above_one = f16::from_bits(15 << 10 | (word & 0x3FF) as u16);
            f16::from_f32(above_one.to_f32() - 1.0)
        })
    }

    fn normal(block: [u32; 4]) -> [f16; 4] {
        normal_f32(block).map(f16::from_f32)
    }

    fn normal_pair(words: &mut Words) -> [(f16, f64); 2] {
        pair_f32(words).map(|number| (f16::from_f32(number), f64::from(number)))
    }
}

impl Variate for bf16 {
    const PER_BLOCK: usize = 4;

    fn uniform(block: [u32; 4]) -> [bf16; 4] {
        block.map(|word| {
            let above_one = bf16::from_bits(127 << 7 | (word & 0x7F) as u16);
            bf16::from_f32(above_one.to_f32() - 1.0)
        })
    }

    fn normal(block: [u32; 4]) -> [bf16; 4] {
        normal_f32(block).map(bf16::from_f32)
    }

    fn normal_pair(words: &mut Words) -> [(bf16, f64); 2] {
        pair_f32(words).map(|number| (bf16::from_f32(number), f64::from(number)))
    }
}

impl Variate for f64 {
    const PER_BLOCK: usize = 2;

    fn uniform(block: [u32; 4]) -> [f64; 4] {
        [uniform_f64(block[0], block[1]), uniform_f64(block[2], block[3]), 0.0, 0.0]
    }

    fn normal(block: [u32; 4]) -> [f64; 4] {
        let [a, b] = box_muller_f64(block);
        [a, b, 0.0, 0.0]
    }

    fn normal_pair(words: &mut Words) -> [(f64, f64); 2] {
        box_muller_f64([0; 4].map(|_| words.next_word())).map(|number| (number, number))
    }
}

/// Integers that random bits fill.
pub(super) trait RandomBits: Pod + Send + Sync + PartialOrd {
    /// Count of integers from a block of four random integers of 32 bits.
    const PER_BLOCK: usize;

    /// Integers of random bits.
    fn bits(block: [u32; 4]) -> [Self; 4];

    /// `low` and the remainder of random bits by the distance to `high`.
    fn between(bits: Self, low: Self, high: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty, $unsigned:ty, $per_block:literal, $block:ident => $bits:expr;)*) => {
        $(impl RandomBits for $type {
            const PER_BLOCK: usize = $per_block;

            fn bits($block: [u32; 4]) -> [$type; 4] {
                $bits
            }

            fn between(bits: $type, low: $type, high: $type) -> $type {
                let range = (high as $unsigned).wrapping_sub(low as $unsigned);
                (low as $unsigned).wrapping_add(bits as $unsigned % range) as $type
            }
        })*
    };
}

integers! {
    i32, u32, 4, block => block.map(|word| word as i32);
    u32, u32, 4, block => block;
    i64, u64, 2, block => pairs(block).map(|bits| bits as i64);
    u64, u64, 2, block => pairs(block);
}

fn pairs(block: [u32; 4]) -> [u64; 4] {
    let pair = |low: usize| u64::from(block[low]) | u64::from(block[low + 1]) << 32;
    [pair(0), pair(2), 0, 0]
}
