//! Matmuls: each invocation computes a block of the result in registers; where devices share
//! memory well, groups of them do so for large products of floats.

use super::{
    Shader,
    epilogue::EpilogueWriter,
    index,
    scalar_type::{Caps, ScalarType},
    scalar_types, tiles,
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

fn matmul(call: &OpCall<'_>, caps: Caps, finish: &EpilogueWriter) -> Result<Option<Shader>> {
    let a = MatmulSide::new(call.shape(0), call.attrs.bool("transpose_a")?, &[])?;
    let b = MatmulSide::new(call.shape(1), call.attrs.bool("transpose_b")?, &[])?;
    Ok(batched(call, caps, finish, [&a, &b], 1))
}

fn batch_matmul(call: &OpCall<'_>, caps: Caps, finish: &EpilogueWriter) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let batch = &shape[..shape.rank() - 2];
    let a = MatmulSide::new(call.shape(0), call.attrs.bool("adj_x")?, batch)?;
    let b = MatmulSide::new(call.shape(1), call.attrs.bool("adj_y")?, batch)?;
    Ok(batched(call, caps, finish, [&a, &b], batch.iter().product()))
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
    finish: &EpilogueWriter,
    [a, b]: [&MatmulSide; 2],
    batch: usize,
) -> Option<Shader> {
    let (inputs, word) = scalar_types(call, caps, [0, 1])?;
    if word == ScalarType::Bool {
        return None;
    }
    let (m, k, n) = (a.rows, a.cols, b.cols);
    if caps.tiles && word == ScalarType::F32 && tiles::fits(m, k, n) {
        return Some(tiles::matmul(inputs, finish, a, b, batch));
    }
    let block = if caps.tiles && batch * m * n <= FEW { 1 } else { BLOCK };
    let pairs = || pairs(block.min(m), block.min(n));
    let (down, across) = (m.div_ceil(block), n.div_ceil(block));
    let mut body = format!(
        "let column = n % {across}u * {block}u;\nlet row = n / {across}u % {down}u * {block}u;\n\
         let matrix = n / {}u;\nlet a = {};\nlet b = {};\n",
        across * down,
        index::position(&a.matrices, "matrix"),
        index::position(&b.matrices, "matrix"),
    );
    // Rows beyond the last are computed as the last one, and not stored.
    for i in 0..block.min(m) {
        body += &format!("let a{i} = a + min(row + {i}u, {}u) * {}u;\n", m - 1, a.row_step);
    }
    for j in 0..block.min(n) {
        body += &format!("let b{j} = b + min(column + {j}u, {}u) * {}u;\n", n - 1, b.col_step);
    }
    for (i, j) in pairs() {
        body += &format!("var c{i}{j} = {};\n", word.zero());
    }
    let unroll = if k <= SHORT { "unroll_ " } else { "" };
    body += &format!("{unroll}for (var i = 0u; i < {k}u; i++) {{\n");
    for i in 0..block.min(m) {
        body += &format!("let x{i} = in0[a{i} + i * {}u];\n", a.col_step);
    }
    for j in 0..block.min(n) {
        body += &format!("let y{j} = in1[b{j} + i * {}u];\n", b.row_step);
    }
    for (i, j) in pairs() {
        body += &format!("c{i}{j} = c{i}{j} + x{i} * y{j};\n");
    }
    body += &format!("}}\nlet c = matrix * {}u;\n", m * n);
    for (i, j) in pairs() {
        let at = format!("c + (row + {i}u) * {n}u + column + {j}u");
        let store = finish.store(&at, &format!("c{i}{j}"));
        body += &format!("if (row + {i}u < {m}u && column + {j}u < {n}u) {{ {store} }}\n");
    }
    Some(finish.shader(inputs, word, body, batch * down * across))
}

/// Positions in a block.
pub(super) fn pairs(down: usize, across: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..down).flat_map(move |i| (0..across).map(move |j| (i, j)))
}
