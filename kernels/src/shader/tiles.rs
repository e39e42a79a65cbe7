//! Matmuls by workgroups, whose invocations share tiles of both operands.
//!
//! A workgroup computes a square of the result, each of its invocations a block of that in
//! registers. Elements are summed in the same order as without tiles.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    dialect::WORKGROUP,
    epilogue::FusedOutput,
    index::position,
    matmul::{BLOCK, MatmulSide, SumBlock, bind_each},
};
use crate::error::Result;

/// Rows and columns of the result that a workgroup computes.
pub(super) const TILE: usize = 64;

/// Length of the part of the summed dimension that is shared at a time.
pub(super) const DEPTH: usize = 16;

/// Rows of shared memory are one element longer than a tile, for they are written across.
pub(super) const PITCH: usize = TILE + 1;

/// Whether a matmul `[m, k] × [k, n]` has work for workgroups.
pub(super) fn fits(m: usize, k: usize, n: usize) -> bool {
    m >= TILE && n >= TILE && k >= DEPTH
}

/// Number of workgroups that compute a result `[m, n]`.
pub(super) fn count(m: usize, n: usize) -> usize {
    m.div_ceil(TILE) * n.div_ceil(TILE)
}

/// Sizes of the matrices, and how many matmuls there are.
pub(super) struct TileSizes {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) batch: usize,
}

/// Access to an operand.
pub(super) struct TileOperand<'a, 'k> {
    /// Assigns the element at a position along the dimension that the result has too, and at one
    /// along the summed dimension, to a variable that is 0.
    pub(super) read: &'a dyn Fn(KernelValue<'k>, KernelValue<'k>, KernelValue<'k>),
    /// Whether neighbours along the summed dimension are neighbours in memory.
    pub(super) is_deep: bool,
}

/// The matmul of matrices of floats.
pub(super) fn matmul<'k>(
    k: &'k KernelBuilder,
    out: &FusedOutput<'k>,
    [(left, a), (right, b)]: [(KernelBuffer<'k>, &MatmulSide); 2],
    batch: usize,
) -> Result<Option<Shader>> {
    let square = TileSquare::new(k, TileSizes { m: a.rows, k: a.cols, n: b.cols, batch });
    let start = |side: &MatmulSide| k.bind("start", position(k, &side.matrices, square.matrix));
    let (a_start, b_start) = (start(a), start(b));
    let read_a = |along, deep, x: KernelValue<'k>| {
        x.set(left.at(a_start + along * a.row_step + deep * a.col_step));
    };
    let read_b = |along, deep, x: KernelValue<'k>| {
        x.set(right.at(b_start + along * b.col_step + deep * b.row_step));
    };
    let a = TileOperand { read: &read_a, is_deep: a.row_step != 1 };
    let b = TileOperand { read: &read_b, is_deep: b.col_step != 1 };
    square.kernel(out, [&a, &b])
}

/// The square of a result `[m, n]` that a workgroup computes.
pub(super) struct TileSquare<'k> {
    k: &'k KernelBuilder,
    sizes: TileSizes,
    /// The number of the matmul.
    pub(super) matrix: KernelValue<'k>,
    row: KernelValue<'k>,
    column: KernelValue<'k>,
}

impl<'k> TileSquare<'k> {
    /// The square of this workgroup.
    pub(super) fn new(k: &'k KernelBuilder, sizes: TileSizes) -> TileSquare<'k> {
        let (down, across) = (sizes.m.div_ceil(TILE), sizes.n.div_ceil(TILE));
        let number = k.workgroup();
        let column = k.bind("column", number % across * TILE);
        let row = k.bind("row", number / across % down * TILE);
        TileSquare { k, sizes, matrix: k.bind("matrix", number / (across * down)), row, column }
    }

    /// The kernel that multiplies two operands.
    pub(super) fn kernel(
        &self,
        out: &FusedOutput<'k>,
        [a, b]: [&TileOperand<'_, 'k>; 2],
    ) -> Result<Option<Shader>> {
        let (k, &TileSizes { m, k: depth, n, batch }) = (self.k, &self.sizes);
        let block = TileBlock::new(k);
        let sums = SumBlock::new(k, (BLOCK, BLOCK), k.float(0.0));
        block.add_matmul(&sums, (a, self.row, m), (b, self.column, n), depth);
        let first = k.bind("first", self.matrix * (m * n));
        let row = k.bind("row", self.row + block.below);
        let column = k.bind("column", self.column + block.right);
        sums.each(|i, j, sum| {
            let inside = (row + i).lt(m).and((column + j).lt(n));
            k.when(inside, || out.set(first + (row + i) * n + column + j, sum));
        });
        k.finish(batch * count(m, n) * WORKGROUP)
    }
}

/// The part of a square that one invocation has, and the tiles that it reads.
pub(super) struct TileBlock<'k> {
    k: &'k KernelBuilder,
    /// Its first row and column, counted from those of the square.
    pub(super) below: KernelValue<'k>,
    pub(super) right: KernelValue<'k>,
    pub(super) tiles: [KernelBuffer<'k>; 2],
}

impl<'k> TileBlock<'k> {
    pub(super) fn new(k: &'k KernelBuilder) -> TileBlock<'k> {
        let side = TILE / BLOCK;
        let right = k.bind("right", k.local() % side * BLOCK);
        let below = k.bind("below", k.local() / side * BLOCK);
        let tiles = ["tile_a", "tile_b"].map(|name| k.shared(name, DEPTH * PITCH));
        TileBlock { k, below, right, tiles }
    }

    /// Adds the matmul of rows of one operand and columns of the other, from first ones on of so many,
    /// over the summed dimension.
    pub(super) fn add_matmul(
        &self,
        sums: &SumBlock<'k>,
        (a, row, m): (&TileOperand<'_, 'k>, KernelValue<'k>, usize),
        (b, column, n): (&TileOperand<'_, 'k>, KernelValue<'k>, usize),
        depth: usize,
    ) {
        let (k, [tile_a, tile_b]) = (self.k, self.tiles);
        k.for_range("deep_start", (0, depth, DEPTH), |start| {
            share(k, tile_a, a, (row, m), (start, depth));
            share(k, tile_b, b, (column, n), (start, depth));
            k.barrier();
            k.for_below("i", DEPTH, |i| {
                let x = bind_each(k, "x", BLOCK, |at| tile_a.at(i * PITCH + self.below + at));
                let y = bind_each(k, "y", BLOCK, |at| tile_b.at(i * PITCH + self.right + at));
                sums.add_outer(&x, &y);
            });
            k.barrier();
        });
    }
}

/// Shares a tile of an operand, from a first row or column on of so many, and from a position of the
/// summed dimension on. Neighbours read neighbours.
fn share<'k>(
    k: &'k KernelBuilder,
    tile: KernelBuffer<'k>,
    operand: &TileOperand<'_, 'k>,
    (first, size): (KernelValue<'k>, usize),
    (start, summed): (KernelValue<'k>, usize),
) {
    k.for_below("step", TILE * DEPTH / WORKGROUP, |step| {
        let at = k.bind("at", k.local() + step * WORKGROUP);
        let (line, depth) = match operand.is_deep {
            false => (at % TILE, at / TILE),
            true => (at / DEPTH, at % DEPTH),
        };
        let (line, depth) = (k.bind("line", line), k.bind("depth", depth));
        let (along, deep) = (k.bind("along", first + line), k.bind("deep", start + depth));
        let x = k.variable("x", k.float(0.0));
        let inside = along.lt(size).and(deep.lt(summed));
        k.when(inside, || (operand.read)(along, deep, x));
        tile.set(depth * PITCH + line, x);
    });
}
