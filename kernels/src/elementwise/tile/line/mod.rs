//! Tile programs along lines.

mod packed;

use super::{
    AHEAD, Program,
    compile::{TileContent, TileSlot},
    machine::{Tile, TileFrame, TileMachine, TileProgram},
    pointers::{PointerTable, StackPage},
    tile_bytes,
};
use crate::{
    elementwise::lines::{ElementLines, LineProgram, LineSource, LinesSource, Runner},
    simd::{Vectorized, store_fence, vectorize},
};
use ferroflow_ir::ReduceKind;
use packed::PackedLines;
use smallvec::SmallVec;
use std::{array, ops::Deref, sync::Arc};

impl<M: TileMachine<N>, const N: usize> LineProgram for Program<M, N> {
    fn runner(&self) -> Box<dyn Runner + '_> {
        Box::new(Line::new(self))
    }

    fn into_runner(self: Arc<Self>) -> Box<dyn Runner> {
        Box::new(Line::new(self))
    }

    fn tile(&self) -> usize {
        N
    }
}

/// A program that runs along lines.
struct Line<P, const N: usize> {
    program: P,
    /// The tiles of its own, and the accumulator.
    tiles: Vec<Tile<N>>,
    /// A tile for each slot that is not the program's own: what the end of a line is copied to.
    copies: Vec<Tile<N>>,
    /// Memory for lines that are computed as one.
    packed: PackedLines,
}

impl<M, P, const N: usize> Line<P, N>
where
    M: TileMachine<N>,
    P: Deref<Target = Program<M, N>>,
{
    fn new(program: P) -> Line<P, N> {
        let own = program.places.iter().filter_map(|place| match place {
            TileSlot::Own(_, TileContent::Constant(bits)) => Some(Tile([f32::from_bits(*bits); N])),
            TileSlot::Own(..) => Some(Tile([0.0; N])),
            TileSlot::Input(..) | TileSlot::Output(_) => None,
        });
        let mut tiles: Vec<Tile<N>> = own.collect();
        assert_eq!(tiles.len(), program.n_own, "every tile of its own");
        tiles.push(Tile([0.0; N]));
        let copies = vec![Tile([0.0; N]); program.places.len() - program.n_own];
        Line { program, tiles, copies, packed: PackedLines::default() }
    }
}

impl<M, P, const N: usize> Runner for Line<P, N>
where
    M: TileMachine<N>,
    P: Deref<Target = Program<M, N>> + Clone + Send,
{
    fn set(&mut self, input: usize, element: &[u8]) {
        for place in &self.program.places {
            if let TileSlot::Own(tile, TileContent::Scalar(own)) = place
                && *own == input
            {
                fill(&mut self.tiles[*tile], element);
            }
        }
    }

    fn run(&mut self, sources: &[LineSource<'_>], out: &mut [u8]) {
        let width = self.program.output_width;
        let n = out.len() / width;
        let whole = n / N * N;
        if whole > 0 {
            self.run_tiles(sources, whole, &mut out[..whole * width]);
        }
        let rest = n - whole;
        if rest > 0 {
            self.copy_ends(rest, |input, width| match sources[input] {
                LineSource::Elements(bytes) => &bytes[whole * width..],
                LineSource::InPlace => &out[whole * width..],
                LineSource::Cycle { bytes, period, at } => &bytes[(at + whole * width) % period..],
                LineSource::Unread => &[],
            });
            self.run_copies();
            out[whole * width..].copy_from_slice(self.copied(0, rest));
        }
    }

    fn run_lines(&mut self, lines: &ElementLines<'_>, outs: &mut [&mut [u8]], streams: bool) {
        if packed::is_faster::<N>(lines) {
            return self.run_packed(lines, outs, streams);
        }
        let mut page = StackPage::begin();
        page.hold();
        assert_eq!(outs.len(), self.program.n_results, "an output for each result");
        for (output, out) in outs.iter().enumerate() {
            let bytes = lines.n * lines.len * self.program.width_of(output);
            assert_eq!(out.len(), bytes, "room for all lines");
        }
        let (start, bytes) = (outs[0].as_ptr() as usize, lines.len * self.program.output_width);
        let aligned = (start | bytes).is_multiple_of(align_of::<Tile<N>>());
        let program = self.program.clone();
        let streams = streams && aligned && !program.streaming.is_empty();
        let ops = if streams { &program.streaming } else { &program.ops };
        let (whole, rest) = (lines.len / N * N, lines.len % N);
        let mut table = self.table(lines, LineResults::Outputs(outs), !streams);
        for line in 0..lines.n {
            if rest > 0 && line > 0 {
                // The end of the line before has borrowed the outputs.
                table = self.table(lines, LineResults::Outputs(outs), !streams);
            }
            self.set_singles(lines, line);
            self.run_line(ops, &mut table, line, whole / N);
            if rest > 0 {
                self.copy_ends_of(lines, line, rest, &outs[0][line * bytes..][..bytes]);
                self.run_copies();
                for (output, out) in outs.iter_mut().enumerate() {
                    let width = self.program.width_of(output);
                    let end = &mut out[(line * lines.len + whole) * width..][..rest * width];
                    end.copy_from_slice(self.copied(output, rest));
                }
            }
        }
    }

    fn settle(&self) {
        store_fence();
    }

    fn fold_lines(&mut self, lines: &ElementLines<'_>, kind: ReduceKind, totals: &mut [f32]) {
        assert_eq!(totals.len(), lines.n, "a total for each line");
        if packed::is_faster::<N>(lines) && lines.len < N {
            return self.fold_packed(lines, kind, totals);
        }
        let mut page = StackPage::begin();
        page.hold();
        let program = self.program.clone();
        let ops = if program.folding.is_empty() { &program.ops } else { &program.folding };
        let (whole, rest) = (lines.len / N * N, lines.len % N);
        let mut table = self.table(lines, LineResults::Accumulator, false);
        for (line, total) in totals.iter_mut().enumerate() {
            self.set_singles(lines, line);
            self.tiles[program.n_own].0.fill(start(kind));
            self.run_line(ops, &mut table, line, whole / N);
            if rest > 0 {
                self.copy_ends_of(lines, line, rest, &[]);
                self.run_copies();
                let result = self.copies.len() - 1;
                let parts = &mut self.tiles[program.n_own].0[..rest];
                parts.copy_from_slice(&self.copies[result].0[..rest]);
            }
            *total = vectorize(Total(&mut self.tiles[program.n_own].0, kind));
        }
    }
}

/// Initial value of a reduction.
fn start(kind: ReduceKind) -> f32 {
    match kind {
        ReduceKind::Max => f32::NEG_INFINITY,
        ReduceKind::Min => f32::INFINITY,
        _ => 0.0,
    }
}

/// The parts of an accumulator, of which there is a power of two from sixteen on, combined pairwise.
struct Total<'a, const N: usize>(&'a mut [f32; N], ReduceKind);

impl<const N: usize> Vectorized for Total<'_, N> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let Total(parts, kind) = self;
        match kind {
            ReduceKind::Max => halved(parts, |a, b| if a.is_nan() || a > b { a } else { b }),
            ReduceKind::Min => halved(parts, |a, b| if a.is_nan() || a < b { a } else { b }),
            _ => halved(parts, |a, b| a + b),
        }
    }
}

/// The last sixteen parts are combined in registers.
#[inline(always)]
fn halved<const N: usize>(parts: &mut [f32; N], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = N / 2;
    while width > 8 {
        let (low, high) = parts.split_at_mut(width);
        low.iter_mut().zip(high).for_each(|(low, high)| *low = combine(*low, *high));
        width /= 2;
    }
    let eight: [f32; 8] = array::from_fn(|at| combine(parts[at], parts[at + 8]));
    let four: [f32; 4] = array::from_fn(|at| combine(eight[at], eight[at + 4]));
    combine(combine(four[0], four[2]), combine(four[1], four[3]))
}

/// Puts an element of up to four bytes all over a tile.
fn fill<const N: usize>(tile: &mut Tile<N>, element: &[u8]) {
    match <[u8; 4]>::try_from(element) {
        Ok(element) => tile.0.fill(f32::from_ne_bytes(element)),
        Err(_) => tile_bytes(tile)
            .chunks_exact_mut(element.len())
            .for_each(|cell| cell.copy_from_slice(element)),
    }
}

/// The input, bytes and step of a slot for a single element, of which there is one for each element of a line.
fn repeated<'a>(
    content: &TileContent,
    lines: &ElementLines<'a>,
) -> Option<(usize, &'a [u8], usize)> {
    let TileContent::Scalar(input) = content else { return None };
    let LinesSource::Elements { bytes, step, .. } = lines.sources[*input] else { return None };
    Some((*input, bytes, step))
}

/// Lines of more elements are not rows of which the next is still in the cache when its turn comes.
const SHORT: usize = 1 << 13;

/// Where the results of lines go.
enum LineResults<'a, 'b> {
    /// Each to an output of its own.
    Outputs(&'a mut [&'b mut [u8]]),
    /// The only one to the accumulator.
    Accumulator,
}

/// Where the operands of lines are.
struct LinesTable {
    pointers: PointerTable,
    /// The slots that begin elsewhere for each line: their first bytes, and how many there are from line
    /// to line.
    starts: SmallVec<[(usize, *mut u8, usize); 18]>,
}

impl<M, P, const N: usize> Line<P, N>
where
    M: TileMachine<N>,
    P: Deref<Target = Program<M, N>> + Clone + Send,
{
    /// Operands and results of lines.
    ///
    /// # Panics
    ///
    /// When a source is too short.
    fn table(
        &mut self,
        lines: &ElementLines<'_>,
        mut results: LineResults<'_, '_>,
        asks: bool,
    ) -> LinesTable {
        let accumulator = self.accumulator();
        let is_folded = matches!(results, LineResults::Accumulator);
        let mut result = |output: usize| match &mut results {
            LineResults::Outputs(outs) => outs[output].as_mut_ptr(),
            LineResults::Accumulator => accumulator,
        };
        let (pointers, starts) = (PointerTable::default(), SmallVec::new());
        let mut table = LinesTable { pointers, starts };
        let base: *mut Tile<N> = self.tiles.as_mut_ptr();
        // Lines follow each other: while some are computed, memory is asked for as many more, once where
        // the output takes the place of an input.
        let ahead = if lines.len <= SHORT { lines.n * (lines.len / N) } else { AHEAD };
        let in_place = lines.sources.iter().any(|source| matches!(source, LinesSource::InPlace));
        for (slot, place) in self.program.places.iter().enumerate() {
            let (first, from_line_to_line, width, asked) = match place {
                TileSlot::Own(tile, content) => match repeated(content, lines) {
                    Some((input, bytes, step)) => {
                        let width = self.program.input_widths[input];
                        assert!(bytes.len() >= lines.len * width, "an element for each");
                        (bytes.as_ptr().cast_mut(), step, width, [0, 0])
                    }
                    None => {
                        table.pointers.stay(base.wrapping_add(*tile).cast());
                        continue;
                    }
                },
                TileSlot::Output(output) => {
                    let asked = if asks && !in_place { [0, 8] } else { [0, 0] };
                    let width = if is_folded { 0 } else { self.program.width_of(*output) };
                    (result(*output), lines.len * width, width, asked)
                }
                TileSlot::Input(input, width) => match lines.sources[*input] {
                    LinesSource::Elements { bytes, step, asked } => {
                        let last = (lines.n - 1) * step + lines.len * width;
                        assert!(bytes.len() >= last, "the elements of all lines");
                        (bytes.as_ptr().cast_mut(), step, *width, asked)
                    }
                    LinesSource::InPlace => {
                        let has_room = !is_folded && *width == self.program.output_width;
                        assert!(has_room, "as many bytes as in the output");
                        (result(0), lines.len * width, *width, [0, 8])
                    }
                    LinesSource::Single { .. } | LinesSource::Unread => {
                        assert_eq!(
                            Some(*input),
                            self.program.accumulator,
                            "a source of each input"
                        );
                        table.pointers.stay(accumulator);
                        continue;
                    }
                },
            };
            table.starts.push((slot, first, from_line_to_line));
            let ahead = Some(ahead).filter(|_| !lines.is_all);
            table.pointers.go_sharing(first, N * width, ahead, asked);
        }
        table
    }

    /// The memory of the accumulator.
    fn accumulator(&mut self) -> *mut u8 {
        self.tiles.as_mut_ptr().wrapping_add(self.program.n_own).cast()
    }

    /// Sets what is a single element of each line.
    fn set_singles(&mut self, lines: &ElementLines<'_>, line: usize) {
        for place in &self.program.places {
            if let TileSlot::Own(tile, TileContent::Scalar(input)) = place
                && let LinesSource::Single { bytes, step, width } = lines.sources[*input]
                && (line == 0 || step > 0)
            {
                fill(&mut self.tiles[*tile], &bytes[line * step..][..width]);
            }
        }
    }

    /// Computes the whole tiles of a line.
    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    #[inline(always)]
    fn run_line(&self, ops: &TileProgram<M>, table: &mut LinesTable, line: usize, n_tiles: usize) {
        for &(slot, first, step) in &table.starts {
            table.pointers.set(slot, first.wrapping_add(line * step));
        }
        // SAFETY: `line_program` has seen to it that the processor has the features, that the
        // program ends with a store, and that every operand is an index into `places`. `table` has a
        // pointer for each place, to a whole tile of the type the operation reads: inputs and the output
        // to the next `N` elements of theirs, of which it found `n_tiles` times as many for each line;
        // the rest to tiles. Only outputs, which are those of the line or the accumulator, and spills are
        // written, and the output that may be an input in place is written last. Where it passes the caches
        // by, lines are aligned, and so is each of their tiles.
        unsafe { M::run(ops, &mut table.pointers.frame(), n_tiles) };
    }

    /// Computes `n` elements, a multiple of a tile.
    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    fn run_tiles(&mut self, sources: &[LineSource<'_>], n: usize, out: &mut [u8]) {
        let mut page = StackPage::begin();
        page.hold();
        let program = self.program.clone();
        let accumulator = self.accumulator();
        assert_eq!(program.n_results, 1, "a single result");
        assert!(out.len() >= n * program.output_width, "room for a line");
        let (result, out_step, n_out) = (out.as_mut_ptr(), N * program.output_width, out.len());
        let base: *mut Tile<N> = self.tiles.as_mut_ptr();
        // Rows follow each other: while one is computed, memory is asked for the next, once where the
        // output takes the place of an input.
        let ahead = Some(if n <= SHORT { n / N } else { AHEAD });
        let mut indices = PointerTable::default();
        let in_place = sources.iter().any(|source| matches!(source, LineSource::InPlace));
        for place in &program.places {
            match place {
                TileSlot::Own(tile, _) => indices.stay(base.wrapping_add(*tile).cast()),
                TileSlot::Output(_) => indices.go(result, out_step, ahead.filter(|_| !in_place)),
                TileSlot::Input(input, width) => match sources[*input] {
                    LineSource::Elements(bytes) => {
                        assert!(bytes.len() >= n * width, "the elements of a line");
                        indices.go(bytes.as_ptr().cast_mut(), N * width, ahead);
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
        // SAFETY: as in `run_line`; the assertions above found `n` elements, and cycles point to as many
        // from a position before their period on.
        unsafe { M::run(&program.ops, &mut indices.frame(), n / N) };
    }

    /// Copies the last `rest` elements of each input, which the bytes that `end` finds begin with: an
    /// input and its width.
    fn copy_ends<'a>(&mut self, rest: usize, end: impl Fn(usize, usize) -> &'a [u8]) {
        let mut copy = 0;
        for place in &self.program.places {
            let TileSlot::Input(input, width) = place else { continue };
            let from = end(*input, *width);
            let n = from.len().min(rest * width);
            tile_bytes(&mut self.copies[copy])[..n].copy_from_slice(&from[..n]);
            copy += 1;
        }
    }

    /// Copies the last `rest` elements of a line, whose output has the bytes `out`.
    fn copy_ends_of(&mut self, lines: &ElementLines<'_>, line: usize, rest: usize, out: &[u8]) {
        let whole = lines.len - rest;
        for place in &self.program.places {
            if let TileSlot::Own(tile, content) = place
                && let Some((input, bytes, step)) = repeated(content, lines)
            {
                let width = self.program.input_widths[input];
                let end = &bytes[line * step + whole * width..][..rest * width];
                tile_bytes(&mut self.tiles[*tile])[..end.len()].copy_from_slice(end);
            }
        }
        self.copy_ends(rest, |input, width| match lines.sources[input] {
            LinesSource::Elements { bytes, step, .. } => &bytes[line * step + whole * width..],
            LinesSource::InPlace => &out[whole * width..],
            LinesSource::Single { .. } | LinesSource::Unread => &[],
        });
    }

    /// The copy that has the elements of an output; that of output 0 is the last.
    fn copy_of(&self, output: usize) -> usize {
        self.copies.len() - 1 - output
    }

    /// The first `n` elements of the copy of an output.
    fn copied(&mut self, output: usize, n: usize) -> &[u8] {
        let copy = self.copy_of(output);
        &tile_bytes(&mut self.copies[copy])[..n * self.program.width_of(output)]
    }

    /// Computes the copies.
    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    fn run_copies(&mut self) {
        let base: *mut Tile<N> = self.tiles.as_mut_ptr();
        let copies: *mut Tile<N> = self.copies.as_mut_ptr();
        let accumulator = self.accumulator();
        let mut indices: SmallVec<[*mut u8; 12]> = SmallVec::new();
        let mut copy = 0;
        for place in &self.program.places {
            indices.push(match place {
                TileSlot::Own(tile, _) => base.wrapping_add(*tile).cast(),
                TileSlot::Output(output) => copies.wrapping_add(self.copy_of(*output)).cast(),
                TileSlot::Input(input, _) => {
                    copy += 1;
                    match Some(*input) == self.program.accumulator {
                        true => accumulator,
                        false => copies.wrapping_add(copy - 1).cast(),
                    }
                }
            });
        }
        // SAFETY: as in `run_line`; every place points to a tile, which is long enough for elements
        // of any type here. There is a copy for each input, and one for each result.
        unsafe {
            M::run(
                &self.program.ops,
                &mut TileFrame { places: &mut indices, moving: &[], turning: &[] },
                1,
            )
        };
    }
}
