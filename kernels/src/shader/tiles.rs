//! Matrix products by groups of invocations, which share tiles of both operands.
//!
//! A group computes a square of the result, each of its invocations a block of that in registers.
//! Elements are summed in the same order as without tiles.

use super::{
    Shader, index,
    matmul::{BLOCK, Side, pairs},
    word::{Word, cut},
};
use ferroflow_ir::DType;

/// Invocations of a group that shares memory.
pub(super) const TEAM: usize = 256;

/// Rows and columns of the result that a group computes.
const TILE: usize = 64;

/// How much of the summed dimension is shared at a time.
const DEPTH: usize = 16;

/// Rows of shared memory are a word longer than a tile, for they are written across.
const PITCH: usize = TILE + 1;

/// Whether a product `[m, k] × [k, n]` has work for groups.
pub(super) fn fits(m: usize, k: usize, n: usize) -> bool {
    m >= TILE && n >= TILE && k >= DEPTH
}

/// The product of matrices of floats.
pub(super) fn product(
    inputs: Vec<(usize, Word)>,
    dtype: DType,
    a: &Side,
    b: &Side,
    batch: usize,
) -> Shader {
    let (m, k, n) = (a.rows, a.cols, b.cols);
    let (down, across) = (m.div_ceil(TILE), n.div_ceil(TILE));
    let mut body = format!(
        "let column = team % {across}u * {TILE}u;\nlet row = team / {across}u % {down}u * {TILE}u;\n\
         let matrix = team / {}u;\nlet a = {};\nlet b = {};\n\
         let right = lane % {side}u * {BLOCK}u;\nlet below = lane / {side}u * {BLOCK}u;\n",
        across * down,
        index::position(&a.matrices, "matrix"),
        index::position(&b.matrices, "matrix"),
        side = TILE / BLOCK,
    );
    for (i, j) in pairs(BLOCK, BLOCK) {
        body += &format!("var c{i}{j} = 0.0f;\n");
    }
    body += &format!("for (var first = 0u; first < {k}u; first = first + {DEPTH}u) {{\n");
    body += &share("tile_a", "in0[a", ("row", m, a.row_step), (k, a.col_step));
    body += &share("tile_b", "in1[b", ("column", n, b.col_step), (k, b.row_step));
    body += &format!("barrier_();\nfor (var i = 0u; i < {DEPTH}u; i++) {{\n");
    for i in 0..BLOCK {
        body += &format!("let x{i} = tile_a[i * {PITCH}u + below + {i}u];\n");
        body += &format!("let y{i} = tile_b[i * {PITCH}u + right + {i}u];\n");
    }
    for (i, j) in pairs(BLOCK, BLOCK) {
        body += &format!("c{i}{j} = c{i}{j} + x{i} * y{j};\n");
    }
    body += &format!("}}\nbarrier_();\n}}\nlet c = matrix * {}u;\n", m * n);
    for (i, j) in pairs(BLOCK, BLOCK) {
        let value = cut(dtype, &format!("c{i}{j}"));
        body += &format!(
            "if (row + below + {i}u < {m}u && column + right + {j}u < {n}u) {{ \
             out0[c + (row + below + {i}u) * {n}u + column + right + {j}u] = {value}; }}\n"
        );
    }
    let shared = vec![("tile_a", DEPTH * PITCH), ("tile_b", DEPTH * PITCH)];
    let count = batch * down * across * TEAM;
    Shader { inputs, tables: Vec::new(), outputs: vec![Word::F32], body, count, shared }
}

/// The statements that share a tile: `along` is the dimension that the result has too, of this size
/// and step, `summed` the other one. Neighbours read neighbours.
fn share(
    tile: &str,
    source: &str,
    (start, size, step): (&str, usize, usize),
    (summed, summed_step): (usize, usize),
) -> String {
    let (own, depth) = match step {
        1 => (format!("at % {TILE}u"), format!("at / {TILE}u")),
        _ => (format!("at / {DEPTH}u"), format!("at % {DEPTH}u")),
    };
    format!(
        "for (var s = 0u; s < {}u; s++) {{\nlet at = lane + s * {TEAM}u;\n\
         let own = {own};\nlet depth = {depth};\nvar x = 0.0f;\n\
         if ({start} + own < {size}u && first + depth < {summed}u) {{ \
         x = {source} + ({start} + own) * {step}u + (first + depth) * {summed_step}u]; }}\n\
         {tile}[depth * {PITCH}u + own] = x;\n}}\n",
        TILE * DEPTH / TEAM
    )
}
