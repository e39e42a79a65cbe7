//! The rows between the convolutions of a chain, strip by strip.

use super::{Chain, layer::RunningConvolution};
use crate::{error::Result, scratch::Scratch};
use smallvec::SmallVec;
use std::ops::Range;

/// The rows between the layers, as one thread goes from strip to strip.
pub(super) struct Strips<'a, 'b> {
    layers: &'a [RunningConvolution<'b>],
    input: &'a [f32],
    image: usize,
    /// For each layer but the first, rows of its input, from the first of `held` on.
    rows: SmallVec<[Scratch<f32>; 2]>,
    held: SmallVec<[Range<usize>; 2]>,
}

impl<'a, 'b> Strips<'a, 'b> {
    pub(super) fn new(
        chain: &Chain,
        layers: &'a [RunningConvolution<'b>],
        input: &'a [f32],
    ) -> Result<Strips<'a, 'b>> {
        let needed = chain.most_needed(chain.strip).into_iter().zip(&chain.layers[1..]);
        let rows: std::result::Result<SmallVec<[Scratch<f32>; 2]>, _> =
            needed.map(|(rows, layer)| Scratch::new(rows * layer.in_line)).collect();
        let held = chain.layers[1..].iter().map(|_| 0..0).collect();
        Ok(Strips { layers, input, image: 0, rows: rows?, held })
    }

    /// Computes rows of an image, which come after those of the last call if it is the same.
    pub(super) fn compute(&mut self, image: usize, rows: Range<usize>, out: &mut [f32]) {
        if image != self.image {
            self.held.iter_mut().for_each(|held| *held = 0..0);
            self.image = image;
        }
        let n = self.layers.len();
        // The rows that each layer computes, from the last to the first.
        let mut wanted: SmallVec<[Range<usize>; 3]> = SmallVec::from_elem(rows.clone(), n);
        for index in (1..n).rev() {
            let needed = self.layers[index].layer.needs(&wanted[index]);
            let kept = self.keep(index - 1, &needed);
            wanted[index - 1] = kept..needed.end.max(kept);
        }
        for (index, layer) in self.layers.iter().enumerate() {
            let wanted = &wanted[index];
            if wanted.is_empty() {
                continue;
            }
            let line = layer.layer.out_line;
            let (before, after) = self.rows.split_at_mut(index);
            let (input, first) = match before.last() {
                Some(rows) => (&rows[..], self.held[index - 1].start),
                None => {
                    let needed = layer.layer.needs(wanted);
                    let first = image * layer.layer.rows().input + needed.start;
                    (&self.input[first * layer.layer.in_line..], needed.start)
                }
            };
            let out = match after.first_mut() {
                Some(rows) => {
                    let start = (wanted.start - self.held[index].start) * line;
                    self.held[index].end = wanted.end;
                    &mut rows[start..start + wanted.len() * line]
                }
                None => &mut *out,
            };
            layer.compute(image, (input, first), (out, wanted.start));
        }
    }

    /// Moves what is held of the needed rows to the front; returns the first row that is missing.
    fn keep(&mut self, index: usize, needed: &Range<usize>) -> usize {
        let line = self.layers[index].layer.out_line;
        let held = &mut self.held[index];
        if held.contains(&needed.start) {
            let first = (needed.start - held.start) * line;
            self.rows[index].copy_within(first..held.len() * line, 0);
            held.start = needed.start;
        } else {
            *held = needed.start..needed.start;
        }
        held.end
    }
}
