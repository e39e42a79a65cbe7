//! Expressions over `f32`, one tile of 64 elements at a time, with the values in registers.
//!
//! An expression becomes a list of operations on one value at hand. Other operands are tiles in
//! memory: inputs, constants, and values set aside. The machine is in [`avx2`]; on processors
//! without AVX2 the portable engine does all the work.

mod avx2;
mod math;

use super::{reads_in_place, spelling::spell};
use crate::{
    error::Result,
    kernel::{Io, Kernel},
    plan::broadcast::Access,
    simd::has_avx2,
};
use avx2::{Entry, Frame, Op, TILE, Tile};
use ferroflow_ir::{
    DType, Expr, Prim, StridedView,
    expr::{Constant, ExprId, ExprKind},
};
use smallvec::SmallVec;
use std::sync::Arc;

/// Longer programs could overflow the stack of an unoptimised build.
const MAX_OPERATIONS: usize = 256;

/// Outputs of fewer elements are not worth a second thread.
const ELEMENTS_PER_PIECE: usize = 1 << 15;

/// What a place of the frame's table points to.
#[derive(Debug, Clone)]
enum Place {
    /// The next elements of a contiguous input, of this width in bytes.
    Input(usize, usize),
    /// A tile of the program's own, by number, and what is in it.
    Own(usize, Content),
    /// The next elements of the output.
    Output,
}

/// What is in a tile of a program's own.
#[derive(Debug, Clone)]
enum Content {
    /// Elements of a strided input, which have this width in bytes.
    Gathered(usize, StridedView, usize),
    /// The only element of an input.
    Scalar(usize),
    /// A constant, as bits.
    Constant(u32),
    /// A value set aside.
    Spill,
}

struct Program {
    ops: Vec<Op>,
    places: Vec<Place>,
    /// How many tiles of its own it has.
    n_own: usize,
    accesses: Vec<Access>,
    input_widths: Vec<usize>,
    output_width: usize,
}

/// Compiles an expression; `None` when it is not one for this engine.
pub(super) fn compile(
    expr: &Expr,
    inputs: &[DType],
    accesses: &[Access],
) -> Option<Arc<dyn Kernel>> {
    if !has_avx2() || expr.is_fallible() {
        return None;
    }
    let narrow = |dtype: &DType| dtype.size().filter(|&width| width <= size_of::<f32>());
    let widths: Option<Vec<usize>> = inputs.iter().map(narrow).collect();
    let mut builder = Builder::new(expr, accesses);
    builder.translate()?;
    let (ops, places, n_own) = (builder.ops, builder.places, builder.n_own);
    (ops.len() <= MAX_OPERATIONS).then_some(())?;
    let accesses = accesses.to_vec();
    let (input_widths, output_width) = (widths?, expr.dtype().size()?);
    Some(Arc::new(Program { ops, places, n_own, accesses, input_widths, output_width }))
}

/// Makes a program of an expression.
struct Builder<'a> {
    expr: &'a Expr,
    accesses: &'a [Access],
    ops: Vec<Op>,
    places: Vec<Place>,
    n_own: usize,
    /// Where each value is in memory, if it is.
    memory: Vec<Option<u32>>,
    /// How often each value will still be used.
    unused: Vec<usize>,
    /// The value at hand.
    hand: Option<usize>,
    free_spills: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(expr: &'a Expr, accesses: &'a [Access]) -> Builder<'a> {
        let n = expr.nodes().len();
        let mut unused = vec![0; n];
        for node in expr.nodes() {
            if let ExprKind::Apply(_, args) = &node.kind {
                args.iter().for_each(|arg| unused[arg.index()] += 1);
            }
        }
        unused[expr.root().index()] += 1;
        let (ops, places, memory) = (Vec::new(), Vec::new(), vec![None; n]);
        let (n_own, hand, free_spills) = (0, None, Vec::new());
        Builder { expr, accesses, ops, places, n_own, memory, unused, hand, free_spills }
    }

    fn translate(&mut self) -> Option<()> {
        for index in 0..self.expr.nodes().len() {
            let node = &self.expr.nodes()[index];
            match &node.kind {
                ExprKind::Input(input) => self.input(index, *input, node.dtype)?,
                ExprKind::Const(constant) => {
                    let bits = constant_bits(*constant, node.dtype)?;
                    self.memory[index] = Some(self.own(Content::Constant(bits)));
                }
                ExprKind::Apply(prim, args) => self.apply(index, *prim, args, node.dtype)?,
            }
        }
        let root = self.expr.root();
        let store = store_entry(self.expr.dtype())?;
        if !matches!(self.expr.dtype(), DType::F16 | DType::BF16) {
            self.take(root.index());
        } else if self.hand != Some(root.index()) {
            return None; // Only the store can make 16-bit floats.
        }
        let output = self.place(Place::Output);
        self.push(store, output, 0);
        Some(())
    }

    fn place(&mut self, place: Place) -> u32 {
        self.places.push(place);
        self.places.len() as u32 - 1
    }

    fn own(&mut self, content: Content) -> u32 {
        self.n_own += 1;
        self.place(Place::Own(self.n_own - 1, content))
    }

    fn push(&mut self, run: Entry, a: u32, b: u32) {
        self.ops.push(Op { run, a, b, fallback: None });
    }

    fn dtype(&self, id: ExprId) -> DType {
        self.expr.nodes()[id.index()].dtype
    }

    fn input(&mut self, index: usize, input: usize, dtype: DType) -> Option<()> {
        let width = dtype.size()?;
        let place = match &self.accesses[input] {
            Access::Contiguous => self.place(Place::Input(input, width)),
            Access::Strided(view) => self.own(Content::Gathered(input, view.clone(), width)),
            Access::Scalar => self.own(Content::Scalar(input)),
        };
        match dtype {
            DType::F32 => self.memory[index] = Some(place),
            DType::Bool => {
                self.put_aside();
                self.push(avx2::load_bool, place, 0);
                self.hand = Some(index);
            }
            // Only loads that convert may use it.
            DType::F16 | DType::BF16 | DType::I32 => self.memory[index] = Some(place),
            _ => return None,
        }
        Some(())
    }

    fn apply(&mut self, index: usize, prim: Prim, args: &[ExprId], dtype: DType) -> Option<()> {
        let from = self.dtype(args[0]);
        if prim == Prim::Cast {
            return self.cast(index, args[0].index(), from, dtype);
        }
        let known = |dtype: DType| matches!(dtype, DType::F32 | DType::Bool);
        if !known(dtype) || !args.iter().all(|&arg| known(self.dtype(arg))) {
            return None;
        }
        if prim == Prim::Select {
            self.select(args);
        } else if let Some(run) = unary_entry(prim, from) {
            self.take(args[0].index());
            self.push(run, 0, 0);
        } else if let Some((run, reversed)) = binary_entry(prim, from) {
            let swap = self.hand == Some(args[1].index()) && self.hand != Some(args[0].index());
            let (run, first, second) = match (swap, reversed) {
                (true, Some(reversed)) => (reversed, args[1], args[0]),
                _ => (run, args[0], args[1]),
            };
            let second = self.prepare(first, second);
            self.push(run, second, 0);
        } else {
            let run =
                spell(prim, from, dtype).filter(|_| (from, dtype) == (DType::F32, DType::F32))?;
            let other = match args {
                [only] => {
                    self.take(only.index());
                    self.own(Content::Constant(0))
                }
                [first, second] => self.prepare(*first, *second),
                _ => return None,
            };
            self.ops.push(Op { run: avx2::fallback, a: other, b: 0, fallback: Some(run) });
        }
        self.hand = Some(index);
        self.release(args);
        Some(())
    }

    /// Brings `first` to hand and `second` to memory; gives its place. Both are used up once.
    fn prepare(&mut self, first: ExprId, second: ExprId) -> u32 {
        let (first, second) = (first.index(), second.index());
        if self.hand == Some(second) && self.memory[second].is_none() {
            self.set_aside(second);
        }
        self.unused[second] -= 1;
        self.take(first);
        self.memory[second].expect("a value that is not at hand is in memory")
    }

    /// Gives back the tiles of values that are not used any more.
    fn release(&mut self, args: &[ExprId]) {
        for arg in args {
            if let (0, Some(place)) = (self.unused[arg.index()], self.memory[arg.index()])
                && matches!(self.places[place as usize], Place::Own(_, Content::Spill))
            {
                self.memory[arg.index()] = None;
                self.free_spills.push(place);
            }
        }
    }

    fn select(&mut self, args: &[ExprId]) {
        let [condition, then, otherwise] = [args[0].index(), args[1].index(), args[2].index()];
        if let Some(hand) = self.hand
            && args.iter().filter(|arg| arg.index() == hand).count() > 1
            && self.memory[hand].is_none()
        {
            self.set_aside(hand);
        }
        let (run, hand, a, b) = match self.hand {
            Some(hand) if hand == then => (avx2::select_then as Entry, then, condition, otherwise),
            Some(hand) if hand == otherwise => {
                (avx2::select_else as Entry, otherwise, condition, then)
            }
            _ => (avx2::select_by as Entry, condition, then, otherwise),
        };
        self.unused[a] -= 1;
        self.unused[b] -= 1;
        self.take(hand);
        let place = |value: usize| self.memory[value].expect("a value not at hand is in memory");
        let (a, b) = (place(a), place(b));
        self.push(run, a, b);
    }

    fn cast(&mut self, index: usize, arg: usize, from: DType, to: DType) -> Option<()> {
        let load: Option<Entry> = match (from, to) {
            (DType::F16, DType::F32) => Some(avx2::load_f16),
            (DType::BF16, DType::F32) => Some(avx2::load_bf16),
            (DType::I32, DType::F32) => Some(avx2::load_i32),
            _ => None,
        };
        let is_input = matches!(self.expr.nodes()[arg].kind, ExprKind::Input(_));
        if let (Some(load), true) = (load, is_input) {
            self.put_aside();
            self.unused[arg] -= 1;
            let place = self.memory[arg]?;
            self.push(load, place, 0);
            self.hand = Some(index);
            return Some(());
        }
        let is_root = index == self.expr.root().index();
        match (from, to) {
            (DType::F32, DType::F16 | DType::BF16) if is_root => self.take(arg),
            (DType::Bool, DType::F32) => {
                self.take(arg);
                self.push(avx2::mask_to_f32, 0, 0);
            }
            (DType::F32, DType::Bool) => {
                self.take(arg);
                self.push(avx2::f32_to_mask, 0, 0);
            }
            _ => return None,
        }
        self.hand = Some(index);
        Some(())
    }

    /// Brings a value to hand and uses it up once; it stays in memory if it is needed again.
    fn take(&mut self, value: usize) {
        self.unused[value] -= 1;
        if self.hand != Some(value) {
            self.put_aside();
            let place = self.memory[value].expect("a value that is not at hand is in memory");
            self.push(avx2::load_f32, place, 0);
            self.hand = Some(value);
        } else if self.unused[value] > 0 && self.memory[value].is_none() {
            self.set_aside(value);
        }
    }

    /// Keeps the value at hand in memory if it will be used again.
    fn put_aside(&mut self) {
        if let Some(hand) = self.hand
            && self.unused[hand] > 0
            && self.memory[hand].is_none()
        {
            self.set_aside(hand);
        }
    }

    fn set_aside(&mut self, value: usize) {
        let place = self.free_spills.pop().unwrap_or_else(|| self.own(Content::Spill));
        self.memory[value] = Some(place);
        self.push(avx2::spill, place, 0);
    }
}

impl Program {
    /// Computes the elements from `start` on that fill `out`.
    fn run_piece(&self, io: &Io<'_>, start: usize, out: &mut [u8]) {
        let n = out.len() / self.output_width;
        let mut tiles = Tiles::new();
        for place in &self.places {
            if let Place::Own(index, content) = place {
                debug_assert_eq!(*index, tiles.len(), "tiles are numbered in order");
                tiles.push(match content {
                    Content::Constant(bits) => Tile([f32::from_bits(*bits); TILE]),
                    Content::Scalar(input) => self.repeated(io, *input),
                    Content::Gathered(..) | Content::Spill => EMPTY,
                });
            }
        }
        let (whole, rest) = out.split_at_mut(n / TILE * TILE * self.output_width);
        if !whole.is_empty() {
            self.run_tiles(io, start, whole, &mut tiles);
        }
        if !rest.is_empty() {
            self.run_rest(io, start + n / TILE * TILE, rest, &mut tiles);
        }
    }

    /// Computes whole tiles.
    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    fn run_tiles(&self, io: &Io<'_>, start: usize, out: &mut [u8], tiles: &mut [Tile]) {
        let n_tiles = out.len() / (TILE * self.output_width);
        let (base, out) = (tiles.as_mut_ptr(), out.as_mut_ptr());
        let mut places: SmallVec<[*mut u8; 8]> = SmallVec::new();
        // Places that move on by so many bytes from tile to tile.
        let mut moving: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for (index, place) in self.places.iter().enumerate() {
            places.push(match place {
                Place::Input(input, width) => {
                    moving.push((index, TILE * width));
                    if io.is_in_place(*input) {
                        out
                    } else {
                        let bytes = &io.bytes(*input)[start * width..][..n_tiles * TILE * width];
                        bytes.as_ptr().cast_mut()
                    }
                }
                Place::Output => {
                    moving.push((index, TILE * self.output_width));
                    out
                }
                Place::Own(index, _) => base.wrapping_add(*index).cast(),
            });
        }
        for tile in 0..n_tiles {
            for place in &self.places {
                if let Place::Own(index, Content::Gathered(input, view, width)) = place {
                    // SAFETY: `index` is one of the tiles, and nothing else refers to it now.
                    let own = tile_bytes(unsafe { &mut *base.add(*index) });
                    let (source, first) = (io.bytes(*input), start + tile * TILE);
                    super::gather(view, source, first, &mut own[..TILE * width], *width);
                }
            }
            // SAFETY: `compile` has seen to it that the processor has the features, that the
            // program ends with a store, and that every operand is an index into `places`. Each
            // place points to a whole tile of the type the operation reads: contiguous inputs and
            // the output to the next `TILE` elements of theirs, of which there are `n_tiles` times
            // as many, the rest to tiles of the widest type, of which `run_piece` has made as many
            // as there are. Only the output and spills are written, and the output, which may be
            // an input in place, is written last.
            unsafe { avx2::run(&self.ops, &mut Frame { places: &mut places }) };
            for &(index, step) in &moving {
                places[index] = places[index].wrapping_add(step);
            }
        }
    }

    /// Computes the last elements, fewer than a tile: on copies that are as long as a tile.
    fn run_rest(&self, io: &Io<'_>, start: usize, out: &mut [u8], tiles: &mut Tiles) {
        let n = out.len() / self.output_width;
        // The tile of the output comes behind the program's own, then those of the inputs.
        tiles.push(EMPTY);
        for place in &self.places {
            match place {
                Place::Input(input, width) => {
                    let elements = match io.is_in_place(*input) {
                        true => &*out,
                        false => &io.bytes(*input)[start * width..][..n * width],
                    };
                    tiles.push(EMPTY);
                    let copy = tile_bytes(tiles.last_mut().expect("just pushed"));
                    copy[..elements.len()].copy_from_slice(elements);
                }
                Place::Own(index, Content::Gathered(input, view, width)) => {
                    let tile = &mut tile_bytes(&mut tiles[*index])[..n * width];
                    super::gather(view, io.bytes(*input), start, tile, *width);
                }
                Place::Own(..) | Place::Output => {}
            }
        }
        self.run_copies(tiles);
        out.copy_from_slice(&tile_bytes(&mut tiles[self.n_own])[..out.len()]);
    }

    #[expect(unsafe_code, reason = "the machine works on pointers; see the SAFETY comment")]
    fn run_copies(&self, tiles: &mut [Tile]) {
        let n_copies = self.places.iter().filter(|place| matches!(place, Place::Input(..))).count();
        assert_eq!(tiles.len(), self.n_own + 1 + n_copies, "every place has its tile");
        let base = tiles.as_mut_ptr();
        let mut places: SmallVec<[*mut u8; 8]> = SmallVec::new();
        let mut copy = self.n_own;
        for place in &self.places {
            let tile = match place {
                Place::Own(index, _) => *index,
                Place::Output => self.n_own,
                Place::Input(..) => {
                    copy += 1;
                    copy
                }
            };
            places.push(base.wrapping_add(tile).cast());
        }
        // SAFETY: as in `run_tiles`; every place points to a tile, which is long enough for
        // elements of any type here.
        unsafe { avx2::run(&self.ops, &mut Frame { places: &mut places }) };
    }

    /// A tile of the only element of an input.
    fn repeated(&self, io: &Io<'_>, input: usize) -> Tile {
        let element = &io.bytes(input)[..self.input_widths[input]];
        let mut tile = EMPTY;
        tile_bytes(&mut tile)
            .chunks_exact_mut(element.len())
            .for_each(|cell| cell.copy_from_slice(element));
        tile
    }
}

/// The tiles of a running program.
type Tiles = SmallVec<[Tile; 8]>;

const EMPTY: Tile = Tile([0.0; TILE]);

fn tile_bytes(tile: &mut Tile) -> &mut [u8] {
    bytemuck::cast_slice_mut(&mut tile.0)
}

impl Kernel for Program {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let out = io.output_bytes(0);
        if out.len() <= ELEMENTS_PER_PIECE * self.output_width {
            self.run_piece(io, 0, out);
            return Ok(());
        }
        let piece = ELEMENTS_PER_PIECE * self.output_width;
        io.threads().for_each_piece(out, piece, |start, out| {
            self.run_piece(io, start / self.output_width, out);
        });
        Ok(())
    }

    fn in_place(&self, index: usize) -> bool {
        reads_in_place(&self.accesses, index) && self.input_widths[index] == self.output_width
    }
}

fn store_entry(dtype: DType) -> Option<Entry> {
    Some(match dtype {
        DType::F32 => avx2::store_f32,
        DType::F16 => avx2::store_f16,
        DType::BF16 => avx2::store_bf16,
        DType::Bool => avx2::store_bool,
        _ => return None,
    })
}

fn unary_entry(prim: Prim, dtype: DType) -> Option<Entry> {
    if dtype == DType::Bool {
        return (prim == Prim::Not).then_some(avx2::not as Entry);
    }
    Some(match prim {
        Prim::Neg => avx2::neg,
        Prim::Abs => avx2::abs,
        Prim::Sign => avx2::sign,
        Prim::Flush => avx2::flush,
        Prim::Exp => avx2::exp,
        Prim::Expm1 => avx2::expm1,
        Prim::Log => avx2::log,
        Prim::Log1p => avx2::log1p,
        Prim::Tanh => avx2::tanh,
        Prim::Erf => avx2::erf,
        Prim::Sin => avx2::sin,
        Prim::Cos => avx2::cos,
        Prim::Sqrt => avx2::sqrt,
        Prim::Rsqrt => avx2::rsqrt,
        Prim::Floor => avx2::floor,
        Prim::Ceil => avx2::ceil,
        Prim::Trunc => avx2::trunc,
        Prim::Rint => avx2::rint,
        Prim::IsNan => avx2::is_nan,
        Prim::IsInf => avx2::is_inf,
        Prim::IsFinite => avx2::is_finite,
        _ => return None,
    })
}

/// The operation with the first argument at hand, and the one with the second at hand.
fn binary_entry(prim: Prim, dtype: DType) -> Option<(Entry, Option<Entry>)> {
    let same = |entry: Entry| Some((entry, Some(entry)));
    if dtype == DType::Bool {
        return match prim {
            Prim::And | Prim::Min => same(avx2::and),
            Prim::Or | Prim::Max => same(avx2::or),
            Prim::Xor | Prim::Ne => same(avx2::xor),
            _ => None,
        };
    }
    match prim {
        Prim::Add => same(avx2::add),
        Prim::Mul => same(avx2::mul),
        Prim::Max => same(avx2::max),
        Prim::Min => same(avx2::min),
        Prim::Eq => same(avx2::eq),
        Prim::Ne => same(avx2::ne),
        Prim::Sub => Some((avx2::sub, Some(avx2::sub_from))),
        Prim::Div => Some((avx2::div, Some(avx2::div_into))),
        Prim::Lt => Some((avx2::lt, Some(avx2::gt))),
        Prim::Le => Some((avx2::le, Some(avx2::ge))),
        Prim::Gt => Some((avx2::gt, Some(avx2::lt))),
        Prim::Ge => Some((avx2::ge, Some(avx2::le))),
        _ => None,
    }
}

fn constant_bits(constant: Constant, dtype: DType) -> Option<u32> {
    match dtype {
        DType::F32 => Some((constant.to_f64() as f32).to_bits()),
        DType::Bool => Some(if constant.to_f64() != 0.0 { u32::MAX } else { 0 }),
        _ => None,
    }
}
