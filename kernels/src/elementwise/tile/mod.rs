//! Expressions over `f32`, one tile at a time, with the values in registers.
//!
//! An expression becomes steps of operations on one value at hand ([`draft`]). Other operands are
//! tiles in memory: inputs, constants, and values set aside. The steps are run by the [`machine`]
//! of the widest vectors that the processor has ([`lanes`], [`math`]); on processors of the x86-64
//! family without AVX2 the portable engine does all the work.

mod codes;
mod compile;
mod cycle;
mod erf;
mod lanes;
mod line;
mod machine;
mod math;
mod operations;
mod pointers;
#[cfg(test)]
mod tests;

use super::{
    flush::{flush, flushed_before},
    lines::{Along, LineProgram, STREAMED_FROM},
    reads_in_place,
};
use crate::{
    error::Result,
    kernel::{Io, Kernel},
    plan::broadcast::InputAccess,
    simd::store_fence,
};
use codes::{folding, streaming};
use compile::{TileContent, TileSlot, UnscheduledProgram, unscheduled};
use cycle::Cycle;
use ferroflow_ir::{DType, Expr, StridedView};
pub(crate) use lanes::Lanes;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use lanes::Quad;
#[cfg(target_arch = "x86_64")]
pub(crate) use lanes::{Avx2, Avx512};
use machine::{Tile, TileFrame, TileMachine, TileProgram};
use pointers::{PointerTable, StackPage};
use smallvec::SmallVec;
use std::sync::Arc;

/// Longer programs could overflow the stack of an unoptimised build.
const MAX_OPERATIONS: usize = 256;

/// Outputs of fewer elements are not worth a second thread.
const ELEMENTS_PER_PIECE: usize = 1 << 15;

/// Memory is asked for so many tiles before it is used: programs are long, and the processor does
/// not look as far ahead.
const AHEAD: usize = 4;

/// A program for a machine with tiles of `N` floats.
struct Program<M: TileMachine<N>, const N: usize> {
    ops: TileProgram<M>,
    /// The same with a result that passes the caches by; none if there is no such store.
    streaming: TileProgram<M>,
    places: Vec<TileSlot>,
    /// Number of its own tiles.
    n_own: usize,
    accesses: Vec<InputAccess>,
    /// The inputs that are flushed where they are gathered.
    flushed: Vec<usize>,
    input_widths: Vec<usize>,
    output_width: usize,
    n_results: usize,
    /// The input that stands for the accumulator of a line.
    accumulator: Option<usize>,
    /// The same, with a result that is folded into the accumulator; none if there is no such step.
    folding: TileProgram<M>,
}

/// The program that a function compiles for the widest machine of this processor, if it has one.
#[cfg(target_arch = "x86_64")]
macro_rules! with_widest {
    ($compile:ident($($argument:expr),*)) => {
        if Avx512::detected() {
            Some(Arc::new($compile::<Avx512, 128>($($argument),*)?))
        } else if Avx2::detected() {
            Some(Arc::new($compile::<Avx2, 64>($($argument),*)?))
        } else {
            None
        }
    };
}

/// The program that a function compiles for this processor's machine.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! with_widest {
    ($compile:ident($($argument:expr),*)) => {
        Some(Arc::new($compile::<Quad, 32>($($argument),*)?))
    };
}

/// Compiles an expression; `None` when it is not one for this engine.
pub(super) fn compile(
    expr: &Expr,
    inputs: &[DType],
    accesses: &[InputAccess],
) -> Option<Arc<dyn Kernel>> {
    with_widest!(compile_for(expr, inputs, accesses))
}

/// Compiles an expression for lines; `None` when it is not one for this engine.
pub(super) fn line_program(
    expr: &Expr,
    inputs: &[DType],
    along: &[Along],
) -> Option<Arc<dyn LineProgram>> {
    let access = |along: &Along| match along {
        Along::Elements | Along::Accumulator => InputAccess::Contiguous,
        Along::Single => InputAccess::Scalar,
    };
    let accesses: Vec<InputAccess> = along.iter().map(access).collect();
    let accumulator = along.iter().position(|along| *along == Along::Accumulator);
    if accumulator.is_some() && expr.dtype() != DType::F32 {
        return None;
    }
    with_widest!(compile_with(expr, inputs, &accesses, accumulator))
}

/// As [`compile`], for a machine that this processor has. What is gathered once for many elements is flushed
/// then.
fn compile_for<M: TileMachine<N>, const N: usize>(
    expr: &Expr,
    inputs: &[DType],
    accesses: &[InputAccess],
) -> Option<Program<M, N>> {
    // Kernels of their own compute several results.
    (expr.results().count() == 1).then_some(())?;
    let (expr, flushed) = flushed_before(expr, inputs, |input| match &accesses[input] {
        InputAccess::Contiguous => false,
        InputAccess::Scalar => true,
        InputAccess::Strided(view) => view.period().is_some(),
    });
    Some(Program { flushed, ..compile_with(&expr, inputs, accesses, None)? })
}

/// As [`compile_for`], with an input that stands for an accumulator.
fn compile_with<M: TileMachine<N>, const N: usize>(
    expr: &Expr,
    inputs: &[DType],
    accesses: &[InputAccess],
    accumulator: Option<usize>,
) -> Option<Program<M, N>> {
    if expr.is_fallible() {
        return None;
    }
    let narrow = |dtype: &DType| dtype.size().filter(|&width| width <= size_of::<f32>());
    let input_widths: Option<Vec<usize>> = inputs.iter().map(narrow).collect();
    let UnscheduledProgram { steps, places, n_own } = unscheduled(expr, accesses)?;
    (steps.len() <= MAX_OPERATIONS).then_some(())?;
    let (input_widths, output_width) = (input_widths?, expr.dtype().size()?);
    let streaming = TileProgram::new(&streaming(&steps));
    let is_accumulator = |place: &TileSlot| matches!(place, TileSlot::Input(input, _) if Some(*input) == accumulator);
    let slot = places.iter().position(is_accumulator);
    let folding = slot.and_then(|slot| folding(&steps, slot as u32)).unwrap_or_default();
    let folding = TileProgram::new(&folding);
    let (ops, accesses) = (TileProgram::new(&steps), accesses.to_vec());
    Some(Program {
        ops,
        streaming,
        places,
        n_own,
        accesses,
        flushed: Vec::new(),
        input_widths,
        output_width,
        n_results: expr.results().count(),
        accumulator,
        folding,
    })
}

impl<M: TileMachine<N>, const N: usize> Program<M, N> {
    /// Bytes of an element of an output: those after the first are floats.
    fn width_of(&self, output: usize) -> usize {
        if output == 0 { self.output_width } else { size_of::<f32>() }
    }

    /// Computes the elements from `start` on that fill `out`.
    fn run_piece(&self, io: &Io<'_>, start: usize, out: &mut [u8], streams: bool) -> Result<()> {
        let n = out.len() / self.output_width;
        let mut tiles = Tiles::new();
        for place in &self.places {
            if let TileSlot::Own(index, content) = place {
                debug_assert_eq!(*index, tiles.len(), "tiles are numbered in order");
                tiles.push(match content {
                    TileContent::Constant(bits) => Tile([f32::from_bits(*bits); N]),
                    TileContent::Scalar(input) => self.repeated(io, *input),
                    TileContent::Gathered(..) | TileContent::Spill => Tile([0.0; N]),
                });
            }
        }
        let (whole, rest) = out.split_at_mut(n / N * N * self.output_width);
        if !whole.is_empty() {
            self.run_tiles(io, start, whole, &mut tiles, streams)?;
        }
        if !rest.is_empty() {
            self.run_rest(io, start + n / N * N, rest, &mut tiles);
        }
        Ok(())
    }

    /// Computes whole tiles.
    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    fn run_tiles(
        &self,
        io: &Io<'_>,
        start: usize,
        out: &mut [u8],
        tiles: &mut [Tile<N>],
        streams: bool,
    ) -> Result<()> {
        let mut page = StackPage::begin();
        page.hold();
        let n_tiles = out.len() / (N * self.output_width);
        let ahead = (n_tiles > AHEAD).then_some(AHEAD);
        let (base, out) = (tiles.as_mut_ptr(), out.as_mut_ptr());
        let mut indices = PointerTable::default();
        // Memory is asked for once where the output takes the place of an input, and not at all where
        // the caches are passed by.
        let ops = if streams { &self.streaming } else { &self.ops };
        // What begins again, by place; the rest of the windows is read anew for each tile.
        let mut cycles: SmallVec<[(usize, Cycle); 2]> = SmallVec::new();
        for (index, place) in self.places.iter().enumerate() {
            if let TileSlot::Own(_, TileContent::Gathered(input, view, width)) = place {
                let mut cycle = Cycle::of::<N>(view, io.bytes(*input), *width, start, n_tiles)?;
                if let Some(cycle) = cycle.as_mut().filter(|_| self.flushed.contains(input)) {
                    flush(&mut cycle.elements);
                }
                cycles.extend(cycle.map(|cycle| (index, cycle)));
            }
        }
        let mut gathered: SmallVec<[(usize, &TileSlot); 2]> = SmallVec::new();
        for (index, place) in self.places.iter().enumerate() {
            match place {
                TileSlot::Input(input, width) if io.is_in_place(*input) => {
                    indices.go(out, N * width, None);
                }
                TileSlot::Input(input, width) => {
                    let bytes = &io.bytes(*input)[start * width..][..n_tiles * N * width];
                    indices.go(bytes.as_ptr().cast_mut(), N * width, ahead);
                }
                TileSlot::Output(_) => {
                    indices.go(out, N * self.output_width, ahead.filter(|_| !streams));
                }
                TileSlot::Own(_, TileContent::Gathered(_, _, width))
                    if let Some((_, cycle)) = cycles.iter_mut().find(|(own, _)| *own == index) =>
                {
                    let (at, period) = (cycle.at, cycle.period);
                    indices.turn(cycle.elements.as_mut_ptr(), at, N * width, period);
                }
                TileSlot::Own(tile, content) => {
                    if let TileContent::Gathered(..) = content {
                        gathered.push((*tile, place));
                    }
                    indices.stay(base.wrapping_add(*tile).cast());
                }
            }
        }
        // Where something must be filled for each tile, the program runs on one at a time.
        let at_once = if gathered.is_empty() { n_tiles } else { 1 };
        for tile in (0..n_tiles).step_by(at_once) {
            for (own, place) in &gathered {
                if let TileSlot::Own(_, TileContent::Gathered(input, view, width)) = place {
                    // SAFETY: `own` is one of the tiles, and nothing else refers to it now.
                    let own = tile_bytes(unsafe { &mut *base.add(*own) });
                    let first = start + tile * N;
                    self.gather((*input, io.bytes(*input)), view, first, &mut own[..N * width]);
                }
            }
            // SAFETY: `compile` has seen to it that the processor has the features, that the
            // program ends with a store, and that every operand is an index into `places`. Each
            // place points to a whole tile of the type the operation reads: contiguous inputs and
            // the output to the next `N` elements of theirs, of which there are `n_tiles` times
            // as many, cycles, which live until the end, to as many from a position before their
            // period on, the rest to tiles of the widest type, of which `run_piece` has made as many
            // as there are. Only the output and spills are written, and the output, which may be an
            // input in place, is written last.
            // Stores that pass the caches by write to aligned memory: pieces are whole tiles, and the
            // first was found to be aligned.
            unsafe { M::run(ops, &mut indices.frame(), at_once) };
        }
        if streams {
            store_fence();
        }
        Ok(())
    }

    /// Whether a result is so large that it would not be in the caches when it is read, and there
    /// is a store for that.
    fn streams(&self, io: &Io<'_>, out: &[u8]) -> bool {
        let in_place = (0..self.accesses.len()).any(|index| io.is_in_place(index));
        let aligned = (out.as_ptr() as usize).is_multiple_of(align_of::<Tile<N>>());
        out.len() >= STREAMED_FROM && aligned && !in_place && !self.streaming.is_empty()
    }

    /// Computes the last elements, fewer than a tile: on copies that are as long as a tile.
    fn run_rest(&self, io: &Io<'_>, start: usize, out: &mut [u8], tiles: &mut Tiles<N>) {
        let n = out.len() / self.output_width;
        // The tile of the output comes behind the program's own, then those of the inputs.
        tiles.push(Tile([0.0; N]));
        for place in &self.places {
            match place {
                TileSlot::Input(input, width) => {
                    let elements = match io.is_in_place(*input) {
                        true => &*out,
                        false => &io.bytes(*input)[start * width..][..n * width],
                    };
                    tiles.push(Tile([0.0; N]));
                    let copy = tile_bytes(tiles.last_mut().expect("just pushed"));
                    copy[..elements.len()].copy_from_slice(elements);
                }
                TileSlot::Own(index, TileContent::Gathered(input, view, width)) => {
                    let tile = &mut tile_bytes(&mut tiles[*index])[..n * width];
                    self.gather((*input, io.bytes(*input)), view, start, tile);
                }
                TileSlot::Own(..) | TileSlot::Output(_) => {}
            }
        }
        self.run_copies(tiles);
        out.copy_from_slice(&tile_bytes(&mut tiles[self.n_own])[..out.len()]);
    }

    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    fn run_copies(&self, tiles: &mut [Tile<N>]) {
        let n_copies =
            self.places.iter().filter(|place| matches!(place, TileSlot::Input(..))).count();
        assert_eq!(tiles.len(), self.n_own + 1 + n_copies, "every place has its tile");
        let base = tiles.as_mut_ptr();
        let mut indices: SmallVec<[*mut u8; 8]> = SmallVec::new();
        let mut copy = self.n_own;
        for place in &self.places {
            let tile = match place {
                TileSlot::Own(index, _) => *index,
                TileSlot::Output(_) => self.n_own,
                TileSlot::Input(..) => {
                    copy += 1;
                    copy
                }
            };
            indices.push(base.wrapping_add(tile).cast());
        }
        // SAFETY: as in `run_tiles`; every place points to a tile, which is long enough for
        // elements of any type here.
        unsafe {
            M::run(&self.ops, &mut TileFrame { places: &mut indices, moving: &[], turning: &[] }, 1)
        };
    }

    /// Reads elements of an input, from the one for `start` on.
    fn gather(
        &self,
        (input, source): (usize, &[u8]),
        view: &StridedView,
        start: usize,
        out: &mut [u8],
    ) {
        super::gather(view, source, start, out, self.input_widths[input]);
        if self.flushed.contains(&input) {
            flush(out);
        }
    }

    /// A tile of the only element of an input.
    fn repeated(&self, io: &Io<'_>, input: usize) -> Tile<N> {
        let element = &io.bytes(input)[..self.input_widths[input]];
        let mut tile = Tile([0.0; N]);
        let cells = tile_bytes(&mut tile);
        cells.chunks_exact_mut(element.len()).for_each(|cell| cell.copy_from_slice(element));
        if self.flushed.contains(&input) {
            flush(cells);
        }
        tile
    }
}

/// The tiles of a running program.
type Tiles<const N: usize> = SmallVec<[Tile<N>; 8]>;

fn tile_bytes<const N: usize>(tile: &mut Tile<N>) -> &mut [u8] {
    bytemuck::cast_slice_mut(&mut tile.0)
}

impl<M: TileMachine<N>, const N: usize> Kernel for Program<M, N> {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let out = io.output_bytes(0);
        if out.len() <= ELEMENTS_PER_PIECE * self.output_width {
            return self.run_piece(io, 0, out, false);
        }
        let streams = self.streams(io, out);
        let piece = ELEMENTS_PER_PIECE * self.output_width;
        io.threads().try_for_each_piece(out, piece, |start, out| {
            self.run_piece(io, start / self.output_width, out, streams)
        })
    }

    fn in_place(&self, index: usize) -> bool {
        reads_in_place(&self.accesses, index) && self.input_widths[index] == self.output_width
    }
}
