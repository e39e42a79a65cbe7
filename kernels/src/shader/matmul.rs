//! Matmuls: each invocation computes a block of the result in registers; where devices share
//! memory well, workgroups do so for large products of floats.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    epilogue::Epilogue,
    index::position,
    scalar_type::{Caps, ScalarType},
    tiles,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{Shape, StridedView, view::ViewDim};

pub(super) const SHADERS: &[(&str, super::BuildMatmul)] =
    &[("BatchMatMul", batch_matmul), ("BatchMatMulV2", batch_matmul), ("MatMul", matmul)];

/// Rows and columns of the result that one invocation computes.
pub(super) const BLOCK: usize = 4;

/// So few results do not keep a device busy with an invocation for several.
const FEW: usize = 1 << 14;

/// Sums of so few terms are unrolled, for all of them to be read at once.
const SHORT: usize = 32;

fn matmul(call: &OpCall<'_>, caps: Caps, epilogue: &Epilogue<'_>) -> Result<Option<Shader>> {
    let a = MatmulSide::new(call.shape(0), call.attrs.bool("transpose_a")?, &[])?;
    let b = MatmulSide::new(call.shape(1), call.attrs.bool("transpose_b")?, &[])?;
    batched(call, caps, epilogue, [&a, &b], 1)
}

fn batch_matmul(call: &OpCall<'_>, caps: Caps, epilogue: &Epilogue<'_>) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let batch = &shape[..shape.rank() - 2];
    let a = MatmulSide::new(call.shape(0), call.attrs.bool("adj_x")?, batch)?;
    let b = MatmulSide::new(call.shape(1), call.attrs.bool("adj_y")?, batch)?;
    batched(call, caps, epilogue, [&a, &b], batch.iter().product())
}

/// A single operand: its matrices' sizes as used, how far a row and a column step moves, and which
/// matrix belongs to each of the result.
pub(super) struct MatmulSide {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_step: usize,
    pub(super) col_step: usize,
    pub(super) matrices: StridedView,
}

impl MatmulSide {
    fn new(shape: &Shape, transposed: bool, batch: &[usize]) -> Result<MatmulSide> {
        let own = &shape[..shape.rank() - 2];
        let (rows, cols) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
        let strides = Shape::new(own.iter().copied())?.strides();
        let missing = batch.len() - own.len();
        let dims = batch.iter().enumerate().map(|(axis, &size)| {
            let own = axis.checked_sub(missing).filter(|&axis| own[axis] != 1);
            ViewDim { size, stride: own.map_or(0, |axis| (strides[axis] * rows * cols) as isize) }
        });
        let matrices = StridedView { offset: 0, dims: dims.collect() };
        Ok(match transposed {
            false => MatmulSide { rows, cols, row_step: cols, col_step: 1, matrices },
            true => MatmulSide { rows: cols, cols: rows, row_step: 1, col_step: cols, matrices },
        })
    }
}

fn batched(
    call: &OpCall<'_>,
    caps: Caps,
    epilogue: &Epilogue<'_>,
    [a, b]: [&MatmulSide; 2],
    batch: usize,
) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let k = KernelBuilder::new(caps);
    let [left, right] = k.inputs(call, [0, 1]);
    k.requires(left.scalar != ScalarType::Bool);
    let out = epilogue.output(&k, &shape);
    let (m, depth, n) = (a.rows, a.cols, b.cols);
    if caps.tiles && left.scalar == ScalarType::F32 && tiles::fits(m, depth, n) {
        return tiles::matmul(&k, &out, [(left, a), (right, b)], batch);
    }
    let block = if caps.tiles && batch * m * n <= FEW { 1 } else { BLOCK };
    let (down, across) = (m.div_ceil(block), n.div_ceil(block));
    let number = k.element();
    let column = k.bind("column", number % across * block);
    let row = k.bind("row", number / across % down * block);
    let matrix = k.bind("matrix", number / (across * down));
    let (left_start, right_start) =
        (position(&k, &a.matrices, matrix), position(&k, &b.matrices, matrix));
    // Rows beyond the last are computed as the last one, and not stored.
    let rows = bind_each(&k, "row_start", block.min(m), |i| {
        left_start + (row + i).min(m - 1) * a.row_step
    });
    let columns = bind_each(&k, "column_start", block.min(n), |j| {
        right_start + (column + j).min(n - 1) * b.col_step
    });
    let sums = SumBlock::new(&k, (rows.len(), columns.len()), left.zero());
    let terms = |i: KernelValue<'_>| {
        let x = bind_each(&k, "x", rows.len(), |at| left.at(rows[at] + i * a.col_step));
        let y = bind_each(&k, "y", columns.len(), |at| right.at(columns[at] + i * b.row_step));
        sums.add_outer(&x, &y);
    };
    if depth <= SHORT {
        k.unrolled_below("i", depth, terms);
    } else {
        k.for_below("i", depth, terms);
    }
    let first = k.bind("first", matrix * (m * n));
    sums.each(|i, j, sum| {
        let inside = (row + i).lt(m).and((column + j).lt(n));
        k.when(inside, || out.set(first + (row + i) * n + column + j, sum));
    });
    k.finish(batch * down * across)
}

/// So many values, each bound to a name.
pub(super) fn bind_each<'k>(
    k: &'k KernelBuilder,
    name: &str,
    count: usize,
    value: impl Fn(usize) -> KernelValue<'k>,
) -> Vec<KernelValue<'k>> {
    (0..count).map(|i| k.bind(name, value(i))).collect()
}

/// A block of sums in registers.
pub(super) struct SumBlock<'k> {
    pub(super) rows: Vec<Vec<KernelValue<'k>>>,
}

impl<'k> SumBlock<'k> {
    /// Variables for rows and columns, which begin with zero.
    pub(super) fn new(
        k: &'k KernelBuilder,
        (rows, columns): (usize, usize),
        zero: KernelValue<'k>,
    ) -> SumBlock<'k> {
        let row = || (0..columns).map(|_| k.variable("sum", zero)).collect();
        SumBlock { rows: (0..rows).map(|_| row()).collect() }
    }

    /// Multiplies each pair of a row and a column, and adds that.
    pub(super) fn add_outer(&self, x: &[KernelValue<'k>], y: &[KernelValue<'k>]) {
        self.each(|i, j, sum| sum.set(sum + x[i] * y[j]));
    }

    /// Visits every sum with its row and its column.
    pub(super) fn each(&self, mut visit: impl FnMut(usize, usize, KernelValue<'k>)) {
        for (i, row) in self.rows.iter().enumerate() {
            for (j, &sum) in row.iter().enumerate() {
                visit(i, j, sum);
            }
        }
    }
}
