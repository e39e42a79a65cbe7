//! Pools whose windows have random borders: `FractionalAvgPool`, `FractionalMaxPool` (Graham 2014).
//!
//! Borders are drawn as in `tensorflow/core/kernels/fractional_pool_common.cc`. Seeds stand for the
//! borders of a first call; without seeds nobody can foresee them.

use super::{Build, dispatch::with_real};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    philox::{Philox, uniform_f64},
};
use ferroflow_ir::{Shape, entropy::unforeseen};
use num_traits::Bounded;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("FractionalAvgPool", |call| build(call, Fold::Mean)),
    ("FractionalMaxPool", |call| build(call, Fold::Largest)),
];

#[derive(Debug, Clone, Copy)]
enum Fold {
    Mean,
    Largest,
}

#[derive(Debug, Clone)]
struct Plan {
    input: Shape,
    out: Shape,
    fold: Fold,
    /// Whether neighbouring windows share a border.
    overlapping: bool,
    /// Whether borders are evenly spread, from a random position on.
    even: bool,
    seeds: [u64; 2],
}

fn build(call: &OpCall<'_>, fold: Fold) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number + PartialOrd + Bounded>(plan: Plan) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let mut generator = plan.generator();
            let borders = [1, 2]
                .map(|axis| borders(plan.input[axis], plan.out[axis], plan.even, &mut generator));
            plan.pool::<T>(io, &borders);
            for (index, borders) in borders.into_iter().enumerate() {
                let out: &mut [i64] = io.output(1 + index);
                out.iter_mut().zip(borders).for_each(|(out, border)| *out = border as i64);
            }
            Ok(())
        })
    }
    let seed = |name: &str| -> Result<u64> { Ok(call.attrs.int(name)? as u64) };
    let plan = Plan {
        input: call.shape(0).clone(),
        out: call.output_shape(0)?,
        fold,
        overlapping: call.attrs.bool("overlapping")?,
        even: call.attrs.bool("pseudo_random")?,
        seeds: [seed("seed")?, seed("seed2")?],
    };
    Ok(with_real!(call.dtype(0), T => kernel::<T>(plan)))
}

impl Plan {
    fn generator(&self) -> Philox {
        let [key, counter] = match self.seeds {
            [0, 0] => [unforeseen(), unforeseen()],
            seeds => seeds,
        };
        Philox::new(key, u128::from(counter) << 64)
    }

    /// The positions of a window along an axis: 0 for rows, 1 for columns.
    fn window(&self, borders: &[usize], index: usize, axis: usize) -> std::ops::Range<usize> {
        let end = borders[index + 1] + usize::from(self.overlapping);
        borders[index]..end.min(self.input[axis + 1])
    }

    fn pool<T: Number + PartialOrd + Bounded>(&self, io: &mut Io<'_>, borders: &[Vec<usize>; 2]) {
        let (x, y): (&[T], &mut [T]) = (io.input(0), io.output(0));
        let [_, height, width, channels] = [0, 1, 2, 3].map(|axis| self.input[axis]);
        let [_, rows, columns, _] = [0, 1, 2, 3].map(|axis| self.out[axis]);
        for (index, y) in y.chunks_mut(channels.max(1)).enumerate() {
            let image = index / (rows * columns);
            let over_rows = self.window(&borders[0], index / columns % rows, 0);
            let over_columns = self.window(&borders[1], index % columns, 1);
            let count = over_rows.len() * over_columns.len();
            for (channel, y) in y.iter_mut().enumerate() {
                let elements = over_rows.clone().flat_map(|row| {
                    over_columns.clone().map(move |column| {
                        x[((image * height + row) * width + column) * channels + channel]
                    })
                });
                *y = match self.fold {
                    Fold::Mean => elements.fold(T::ZERO, T::plus).over(T::count(count)),
                    Fold::Largest => {
                        elements.fold(T::min_value(), |a, b| if b > a { b } else { a })
                    }
                };
            }
        }
    }
}

/// The borders of `output` windows over `input` positions: where each begins, and the end.
fn borders(input: usize, output: usize, even: bool, place: &mut Philox) -> Vec<usize> {
    let lengths = match even {
        true => even_lengths(input, output, place),
        false => mixed_lengths(input, output, place),
    };
    let mut border = 0;
    std::iter::once(0)
        .chain(lengths.into_iter().map(|length| {
            border += length;
            border
        }))
        .collect()
}

/// Lengths of windows that step evenly from a random position on, rounded up.
fn even_lengths(input: usize, output: usize, place: &mut Philox) -> Vec<usize> {
    let words = place.next_block();
    let random = uniform_f64(words[0], words[1]);
    let step = input as f64 / output as f64;
    let shortest = (input / output) as f64;
    let first = (shortest + 2.0) / step - 1.0;
    let last = (input as f64 + 1.0 - shortest) / step - (output as f64 - 1.0);
    let shift = random * first.min(last);
    let border = |index: usize| match index {
        0 => 1,
        index if index == output => input + 1,
        index => (step * (index as f64 + shift)).ceil() as usize,
    };
    (0..output).map(|index| border(index + 1).saturating_sub(border(index))).collect()
}

/// Windows of the shortest length and of one more, shuffled.
fn mixed_lengths(input: usize, output: usize, place: &mut Philox) -> Vec<usize> {
    let shortest = input / output;
    let mut lengths: Vec<usize> =
        (0..output).map(|index| shortest + usize::from(index < input % output)).collect();
    let mut words = Vec::with_capacity(output);
    while words.len() < output {
        words.extend(place.next_block());
    }
    for (index, word) in words.into_iter().take(output - 1).enumerate() {
        lengths.swap(index, index + word as usize % (output - index));
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_the_dimension() {
        for seed in 0..50 {
            let mut index = Philox::new(seed, 1 << 64);
            for even in [false, true] {
                let found = borders(17, 11, even, &mut index);
                assert_eq!((found.len(), found[0], found[11]), (12, 0, 17));
                assert!(found.is_sorted_by(|a, b| a < b));
            }
        }
    }
}
