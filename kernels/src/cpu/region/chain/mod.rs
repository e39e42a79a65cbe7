//! Convolutions one after the other, a few rows of an image at a time.
//!
//! The rows that a convolution needs of the one before are kept in memory of their own, which stays
//! in the second-level cache: a strip of the last result is computed, then the next, and rows that
//! both need are moved, not computed again. Threads take stretches of rows; where two of those meet,
//! the rows that both need are computed twice. An element is the same chain of operations as without
//! strips, whatever their height.

mod layer;
mod strips;

use super::RegionKernel;
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    threads::Threads,
};
use layer::{ChainedConvolution, RunningConvolution};
use strips::Strips;

/// Bytes of the rows between convolutions that stay in the second-level cache.
const STRIP_BYTES: usize = 384 << 10;

/// Tensors between convolutions that take fewer bytes stay in the second-level cache anyway.
const LEAST_BYTES: usize = 1 << 20;

/// Compiles a chain; `None` where a member cannot be computed by rows.
pub(super) fn compile(call: &OpCall<'_>) -> Result<Option<RegionKernel>> {
    Ok(Chain::new(call)?.map(|chain| {
        let pays = chain.pays();
        RegionKernel::new(chain, pays)
    }))
}

/// Convolutions of which each reads the result of the one before.
struct Chain {
    layers: Vec<ChainedConvolution>,
    /// Rows of the last result that are computed at a time.
    strip: usize,
}

impl Chain {
    fn new(call: &OpCall<'_>) -> Result<Option<Chain>> {
        let mut layers: Vec<ChainedConvolution> = Vec::new();
        let all = call.with_members(|member, first| {
            // The first one reads its image from the inputs, too.
            let layer = ChainedConvolution::new(member, first + usize::from(layers.is_empty()))?;
            Ok(layer.map(|layer| layers.push(layer)))
        })?;
        let (Some(()), Some(last)) = (all, layers.last()) else { return Ok(None) };
        let rows = last.rows().output;
        let mut chain = Chain { layers, strip: 1 };
        let fits = |&rows: &usize| chain.strip_bytes(rows) <= STRIP_BYTES;
        chain.strip = (1..=rows).take_while(fits).last().unwrap_or(1);
        Ok(Some(chain))
    }

    /// Rows of the input of each layer but the first that so many rows of the last result need.
    fn most_needed(&self, rows: usize) -> Vec<usize> {
        let mut needed: Vec<usize> = Vec::new();
        for layer in self.layers[1..].iter().rev() {
            needed.push(layer.most_needed(*needed.last().unwrap_or(&rows)));
        }
        needed.reverse();
        needed
    }

    /// Bytes between the layers, for so many rows of the last result.
    fn strip_bytes(&self, rows: usize) -> usize {
        let needed = self.most_needed(rows).into_iter();
        let lines = needed.zip(&self.layers[1..]).map(|(rows, layer)| rows * layer.in_line);
        lines.sum::<usize>() * size_of::<f32>()
    }

    /// Whether what is between the layers would not stay in a cache as a whole, but does by strips.
    fn pays(&self) -> bool {
        let batch = self.layers[0].sweep().batch;
        let between =
            |layer: &ChainedConvolution| layer.rows().input * layer.in_line * size_of::<f32>();
        let most = self.layers[1..].iter().map(between).max().unwrap_or(0);
        batch.saturating_mul(most) >= LEAST_BYTES && self.strip_bytes(1) <= STRIP_BYTES
    }
}

impl Kernel for Chain {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let layers: Vec<RunningConvolution<'_>> =
            self.layers.iter().map(|layer| layer.on(io)).collect();
        let input: &[f32] = io.input(0);
        let (threads, out): (&Threads, &mut [f32]) = (io.threads(), io.output(0));
        let last = &self.layers[self.layers.len() - 1];
        let (line, rows) = (last.out_line, last.rows().output);
        // A thread that takes one stretch computes the fewest rows twice.
        let pieces = threads.count();
        let all = out.len() / line;
        // Whole images where there are enough of them: what is between them is computed once.
        let lines = match all / rows >= pieces {
            true => rows,
            false => all.div_ceil(pieces),
        };
        threads.try_for_each_piece(out, lines * line, |start, mut out| {
            let mut strips = Strips::new(self, &layers, input)?;
            let mut at = start / line;
            while !out.is_empty() {
                let (image, row) = (at / rows, at % rows);
                let count = self.strip.min(rows - row).min(out.len() / line);
                let (strip, rest) = out.split_at_mut(count * line);
                strips.compute(image, row..row + count, strip);
                (at, out) = (at + count, rest);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
