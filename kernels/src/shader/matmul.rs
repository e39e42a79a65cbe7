//! Matrix products: each invocation computes a block of the result in registers; where devices share
//! memory well, groups of them do so for large products of floats.

use super::{
    Shader,
    finish::EpilogueWriter,
    index, tiles,
    word::{Caps, Word},
    words,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{Shape, StridedView, view::ViewDim};

pub(super) const SHADERS: &[(&str, super::BuildProduct)] =
    &[("BatchMatMul", batch_matmul), ("BatchMatMulV2", batch_matmul), ("MatMul", matmul)];

/// Rows and columns of the result that one invocation computes.
pub(super) const BLOCK: usize = 4;

fn matmul(call: &OpCall<'_>, caps: Caps, finish: &EpilogueWriter) -> Result<Option<Shader>> {
    let a = MatmulSide::new(call.shape(0), call.attrs.bool("transpose_a")?, &[])?;
    let b = MatmulSide::new(call.shape(1), call.attrs.bool("transpose_b")?, &[])?;
    Ok(product(call, caps, finish, [&a, &b], 1))
}

fn batch_matmul(call: &OpCall<'_>, caps: Caps, finish: &EpilogueWriter) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let batch = &shape[..shape.rank() - 2];
    let a = MatmulSide::new(call.shape(0), call.attrs.bool("adj_x")?, batch)?;
    let b = MatmulSide::new(call.shape(1), call.attrs.bool("adj_y")?, batch)?;
    Ok(product(call, caps, finish, [&a, &b], batch.iter().product()))
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

fn product(
    call: &OpCall<'_>,
    caps: Caps,
    finish: &EpilogueWriter,
    [a, b]: [&MatmulSide; 2],
    batch: usize,
) -> Option<Shader> {
    let (inputs, word) = words(call, caps, [0, 1])?;
    if word == Word::Bool {
        return None;
    }
    let (m, k, n) = (a.rows, a.cols, b.cols);
    if caps.tiles && word == Word::F32 && tiles::fits(m, k, n) {
        return Some(tiles::product(inputs, finish, a, b, batch));
    }
    let (down, across) = (m.div_ceil(BLOCK), n.div_ceil(BLOCK));
    let mut body = format!(
        "let column = n % {across}u * {BLOCK}u;\nlet row = n / {across}u % {down}u * {BLOCK}u;\n\
         let matrix = n / {}u;\nlet a = {};\nlet b = {};\n",
        across * down,
        index::position(&a.matrices, "matrix"),
        index::position(&b.matrices, "matrix"),
    );
    // Rows beyond the last are computed as the last one, and not stored.
    for i in 0..BLOCK.min(m) {
        body += &format!("let a{i} = a + min(row + {i}u, {}u) * {}u;\n", m - 1, a.row_step);
    }
    for j in 0..BLOCK.min(n) {
        body += &format!("let b{j} = b + min(column + {j}u, {}u) * {}u;\n", n - 1, b.col_step);
    }
    for (i, j) in pairs(m, n) {
        body += &format!("var c{i}{j} = {};\n", word.zero());
    }
    body += &format!("for (var i = 0u; i < {k}u; i++) {{\n");
    for i in 0..BLOCK.min(m) {
        body += &format!("let x{i} = in0[a{i} + i * {}u];\n", a.col_step);
    }
    for j in 0..BLOCK.min(n) {
        body += &format!("let y{j} = in1[b{j} + i * {}u];\n", b.row_step);
    }
    for (i, j) in pairs(m, n) {
        body += &format!("c{i}{j} = c{i}{j} + x{i} * y{j};\n");
    }
    body += &format!("}}\nlet c = matrix * {}u;\n", m * n);
    for (i, j) in pairs(m, n) {
        let at = format!("c + (row + {i}u) * {n}u + column + {j}u");
        let store = finish.store(&at, &format!("c{i}{j}"));
        body += &format!("if (row + {i}u < {m}u && column + {j}u < {n}u) {{ {store} }}\n");
    }
    Some(finish.shader(inputs, word, body, batch * down * across))
}

/// Places in a block.
pub(super) fn pairs(m: usize, n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..BLOCK.min(m)).flat_map(move |i| (0..BLOCK.min(n)).map(move |j| (i, j)))
}
