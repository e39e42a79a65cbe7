//! Tile programs along lines.

use super::{
    AHEAD, Program,
    compile::{TileContent, TileSlot},
    lanes::store_fence,
    machine::{Tile, TileFrame, TileMachine},
    pointers::{PointerTable, StackPage},
    tile_bytes,
};
use crate::elementwise::lines::{LineProgram, LineSource, Runner};
use ferroflow_ir::ReduceKind;
use smallvec::SmallVec;

impl<M: TileMachine<N>, const N: usize> LineProgram for Program<M, N> {
    fn runner(&self) -> Box<dyn Runner + '_> {
        let own = self.places.iter().filter_map(|place| match place {
            TileSlot::Own(_, TileContent::Constant(bits)) => Some(Tile([f32::from_bits(*bits); N])),
            TileSlot::Own(..) => Some(Tile([0.0; N])),
            TileSlot::Input(..) | TileSlot::Output => None,
        });
        let tiles: Vec<Tile<N>> = own.collect();
        assert_eq!(tiles.len(), self.n_own, "every tile of its own");
        let n_inputs = self.places.len() - self.n_own;
        let copies = vec![Tile([0.0; N]); n_inputs];
        Box::new(Line { program: self, tiles, copies, accumulator: Tile([0.0; N]) })
    }

    fn tile(&self) -> usize {
        N
    }
}

/// A program that runs along lines.
struct Line<'p, M: TileMachine<N>, const N: usize> {
    program: &'p Program<M, N>,
    tiles: Vec<Tile<N>>,
    /// A tile for each slot that is not the program's own: what the end of a line is copied to.
    copies: Vec<Tile<N>>,
    accumulator: Tile<N>,
}

impl<M: TileMachine<N>, const N: usize> Runner for Line<'_, M, N> {
    fn set(&mut self, input: usize, element: &[u8]) {
        for place in &self.program.places {
            if let TileSlot::Own(tile, TileContent::Scalar(own)) = place
                && *own == input
            {
                let tile = &mut self.tiles[*tile];
                match <[u8; 4]>::try_from(element) {
                    Ok(element) => tile.0.fill(f32::from_ne_bytes(element)),
                    Err(_) => tile_bytes(tile)
                        .chunks_exact_mut(element.len())
                        .for_each(|cell| cell.copy_from_slice(element)),
                }
            }
        }
    }

    fn run(&mut self, sources: &[LineSource<'_>], out: &mut [u8]) {
        self.line(sources, out, false);
    }

    fn stream(&mut self, sources: &[LineSource<'_>], out: &mut [u8]) {
        let aligned = (out.as_ptr() as usize).is_multiple_of(align_of::<Tile<N>>());
        self.line(sources, out, aligned && !self.program.streaming.is_empty());
    }

    fn settle(&self) {
        store_fence();
    }

    fn start(&mut self, value: f32) {
        self.accumulator.0.fill(value);
    }

    fn fold(&mut self, sources: &[LineSource<'_>], n: usize) {
        let whole = n / N * N;
        self.tiles_of(sources, whole, None, false);
        if whole < n {
            let rest = n - whole;
            self.copy_ends(sources, whole, rest, &[]);
            self.run_copies();
            let result = self.copies.len() - 1;
            self.accumulator.0[..rest].copy_from_slice(&self.copies[result].0[..rest]);
        }
    }

    fn total(&mut self, kind: ReduceKind) -> f32 {
        let parts = &mut self.accumulator.0;
        match kind {
            ReduceKind::Max => halved(parts, |a, b| if a.is_nan() || a > b { a } else { b }),
            ReduceKind::Min => halved(parts, |a, b| if a.is_nan() || a < b { a } else { b }),
            _ => halved(parts, |a, b| a + b),
        }
    }
}

/// The parts, of which there is a power of two, combined pairwise.
fn halved<const N: usize>(parts: &mut [f32; N], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = N / 2;
    while width > 0 {
        for index in 0..width {
            parts[index] = combine(parts[index], parts[index + width]);
        }
        width /= 2;
    }
    parts[0]
}

/// Lines of more elements are not rows of which the next is still in the cache when its turn comes.
const SHORT: usize = 1 << 13;

impl<M: TileMachine<N>, const N: usize> Line<'_, M, N> {
    /// Computes the elements of `out`.
    fn line(&mut self, sources: &[LineSource<'_>], out: &mut [u8], streams: bool) {
        let width = self.program.output_width;
        let n = out.len() / width;
        let whole = n / N * N;
        self.tiles_of(sources, whole, Some(&mut out[..whole * width]), streams);
        if whole < n {
            let (first, rest) = (whole, n - whole);
            self.copy_ends(sources, first, rest, out);
            self.run_copies();
            let result = self.copies.len() - 1;
            let end = &mut out[first * width..];
            end.copy_from_slice(&tile_bytes(&mut self.copies[result])[..rest * width]);
        }
    }

    /// Computes `n` elements, a multiple of a tile: into the accumulator, or into `out`, past the
    /// caches if it `streams`, which takes a program with such a store and aligned memory.
    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    fn tiles_of(
        &mut self,
        sources: &[LineSource<'_>],
        n: usize,
        out: Option<&mut [u8]>,
        streams: bool,
    ) {
        if n == 0 {
            return;
        }
        let mut page = StackPage::begin();
        page.hold();
        let program = self.program;
        let accumulator: *mut u8 = (&raw mut self.accumulator).cast();
        let ops = if streams { &program.streaming } else { &program.ops };
        let (result, out_step, n_out) = match out {
            Some(out) => {
                assert!(out.len() >= n * program.output_width, "room for a line");
                (out.as_mut_ptr(), N * program.output_width, out.len())
            }
            None => (accumulator, 0, 0),
        };
        let base: *mut Tile<N> = self.tiles.as_mut_ptr();
        // Rows follow each other: while one is computed, memory is asked for the next, once where the
        // output takes the place of an input.
        let tiles = if n <= SHORT { n / N } else { AHEAD };
        let ahead = Some(tiles);
        let out_ahead = ahead.filter(|_| !streams);
        let mut indices = PointerTable::default();
        let in_place = sources.iter().any(|source| matches!(source, LineSource::InPlace));
        for place in &program.places {
            match place {
                TileSlot::Own(tile, _) => indices.stay(base.wrapping_add(*tile).cast()),
                TileSlot::Output => indices.go(result, out_step, out_ahead.filter(|_| !in_place)),
                TileSlot::Input(input, width) => match sources[*input] {
                    LineSource::Elements(bytes) => {
                        assert!(bytes.len() >= n * width, "the elements of a line");
                        indices.go(bytes.as_ptr().cast_mut(), N * width, ahead);
                    }
                    LineSource::Shared { bytes, turn, turns } => {
                        assert!(bytes.len() >= n * width, "the elements of a line");
                        let (first, step) = (bytes.as_ptr().cast_mut(), N * width);
                        indices.go_sharing(first, step, ahead, (turn, turns));
                    }
                    LineSource::Near(bytes) => {
                        assert!(bytes.len() >= n * width, "the elements of a line");
                        indices.go(bytes.as_ptr().cast_mut(), N * width, None);
                    }
                    LineSource::Cycle { bytes, period, at } => {
                        assert!(at < period && period + N * width <= bytes.len(), "a whole cycle");
                        indices.turn(bytes.as_ptr().cast_mut(), at, N * width, period);
                    }
                    LineSource::InPlace => {
                        assert!(n_out >= n * width, "the elements of a line");
                        indices.go(result, N * width, ahead);
                    }
                    LineSource::Unread => {
                        assert_eq!(Some(*input), program.accumulator, "a source for each input");
                        indices.stay(accumulator);
                    }
                },
            }
        }
        // SAFETY: `line_program` has seen to it that the processor has the features, that the
        // program ends with a store, and that every operand is an index into `places`. Each
        // place points to a whole tile of the type the operation reads: inputs and the output to
        // the next `N` elements of theirs, of which the assertions above found `n`; cycles to as
        // many from a position before their period on; the rest to tiles. Only the output, which is
        // the line's or the accumulator, and spills are written, and the output is written last.
        // Where it passes the caches by, the line is aligned, and so is each of its tiles.
        unsafe { M::run(ops, &mut indices.frame(), n / N) };
    }

    /// Copies the last `rest` elements of the inputs, from element `first` on.
    fn copy_ends(&mut self, sources: &[LineSource<'_>], first: usize, rest: usize, out: &[u8]) {
        let mut copy = 0;
        for place in &self.program.places {
            let TileSlot::Input(input, width) = place else { continue };
            let to = &mut tile_bytes(&mut self.copies[copy])[..rest * width];
            copy += 1;
            match sources[*input] {
                LineSource::Elements(bytes)
                | LineSource::Shared { bytes, .. }
                | LineSource::Near(bytes) => {
                    to.copy_from_slice(&bytes[first * width..][..rest * width])
                }
                LineSource::InPlace => to.copy_from_slice(&out[first * width..][..rest * width]),
                LineSource::Cycle { bytes, period, at } => {
                    let at = (at + first * width) % period;
                    to.copy_from_slice(&bytes[at..][..rest * width]);
                }
                LineSource::Unread => {}
            }
        }
    }

    /// Computes the copies: the result is the last of them.
    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    fn run_copies(&mut self) {
        let base: *mut Tile<N> = self.tiles.as_mut_ptr();
        let copies: *mut Tile<N> = self.copies.as_mut_ptr();
        let accumulator: *mut u8 = (&raw mut self.accumulator).cast();
        let result = self.copies.len() - 1;
        let mut indices: SmallVec<[*mut u8; 12]> = SmallVec::new();
        let mut copy = 0;
        for place in &self.program.places {
            indices.push(match place {
                TileSlot::Own(tile, _) => base.wrapping_add(*tile).cast(),
                TileSlot::Output => copies.wrapping_add(result).cast(),
                TileSlot::Input(input, _) => {
                    copy += 1;
                    match Some(*input) == self.program.accumulator {
                        true => accumulator,
                        false => copies.wrapping_add(copy - 1).cast(),
                    }
                }
            });
        }
        // SAFETY: as in `tiles_of`; every place points to a tile, which is long enough for elements
        // of any type here. There is a copy for each input, and one for the result.
        unsafe {
            M::run(&self.program.ops, &mut TileFrame { places: &mut indices, moving: &[] }, 1)
        };
    }
}
