//! Matrix products by groups of invocations, which share tiles of both operands.
//!
//! A group computes a square of the result, each of its invocations a block of that in registers.
//! Elements are summed in the same order as without tiles.

use super::{
    Shader,
    finish::EpilogueWriter,
    index,
    matmul::{BLOCK, MatmulSide, pairs},
    word::Word,
};

/// Invocations of a group that shares memory.
pub(super) const TEAM: usize = 256;

/// Rows and columns of the result that a group computes.
pub(super) const TILE: usize = 64;

/// Length of the part of the summed dimension that is shared at a time.
pub(super) const DEPTH: usize = 16;

/// Rows of shared memory are a word longer than a tile, for they are written across.
pub(super) const PITCH: usize = TILE + 1;

/// Whether a product `[m, k] × [k, n]` has work for groups.
pub(super) fn fits(m: usize, k: usize, n: usize) -> bool {
    m >= TILE && n >= TILE && k >= DEPTH
}

/// Number of workgroups that compute a result `[m, n]`.
pub(super) fn count(m: usize, n: usize) -> usize {
    m.div_ceil(TILE) * n.div_ceil(TILE)
}

/// Sizes of the matrices, and how many products there are.
pub(super) struct TileSizes {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
    pub(super) batch: usize,
}

/// Access to an element of an operand: the statement that sets `x` to that at `along` the dimension
/// that the result has too, and `deep` along the summed one.
pub(super) struct TileOperand {
    pub(super) read: String,
    /// Whether neighbours along the summed dimension are neighbours in memory.
    pub(super) is_deep: bool,
}

/// The product of matrices of floats.
pub(super) fn product(
    inputs: Vec<(usize, Word)>,
    finish: &EpilogueWriter,
    a: &MatmulSide,
    b: &MatmulSide,
    batch: usize,
) -> Shader {
    let sizes = TileSizes { m: a.rows, k: a.cols, n: b.cols, batch };
    let matrices = format!(
        "let a = {};\nlet b = {};\n",
        index::position(&a.matrices, "matrix"),
        index::position(&b.matrices, "matrix"),
    );
    let operand = |source: &str, step: usize, deep_step: usize| TileOperand {
        read: format!("x = {source} + along * {step}u + deep * {deep_step}u];"),
        is_deep: step != 1,
    };
    let a = operand("in0[a", a.row_step, a.col_step);
    let b = operand("in1[b", b.col_step, b.row_step);
    tiled(inputs, finish, &sizes, &matrices, [&a, &b])
}

/// A product `[m, k] × [k, n]` whose operands are read as told, after some statements.
pub(super) fn tiled(
    inputs: Vec<(usize, Word)>,
    finish: &EpilogueWriter,
    &TileSizes { m, k, n, batch }: &TileSizes,
    before: &str,
    [a, b]: [&TileOperand; 2],
) -> Shader {
    let (down, across) = (m.div_ceil(TILE), n.div_ceil(TILE));
    let mut body = format!(
        "let column = team % {across}u * {TILE}u;\nlet row = team / {across}u % {down}u * {TILE}u;\n\
         let matrix = team / {}u;\n{before}\
         let right = lane % {side}u * {BLOCK}u;\nlet below = lane / {side}u * {BLOCK}u;\n",
        across * down,
        side = TILE / BLOCK,
    );
    for (i, j) in pairs(BLOCK, BLOCK) {
        body += &format!("var c{i}{j} = 0.0f;\n");
    }
    body += &format!("for (var first = 0u; first < {k}u; first = first + {DEPTH}u) {{\n");
    body += &share("tile_a", a, ("row", m), k);
    body += &share("tile_b", b, ("column", n), k);
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
        let at = format!("c + (row + below + {i}u) * {n}u + column + right + {j}u");
        let store = finish.store(&at, &format!("c{i}{j}"));
        body += &format!(
            "if (row + below + {i}u < {m}u && column + right + {j}u < {n}u) {{ {store} }}\n"
        );
    }
    let shared = vec![("tile_a", DEPTH * PITCH), ("tile_b", DEPTH * PITCH)];
    let count = batch * down * across * TEAM;
    Shader { shared, ..finish.shader(inputs, Word::F32, body, count) }
}

/// The statements that share a tile of an operand, from `start` of so many rows or columns on.
/// Neighbours read neighbours.
pub(super) fn share(
    tile: &str,
    operand: &TileOperand,
    (start, size): (&str, usize),
    summed: usize,
) -> String {
    let (own, depth) = match operand.is_deep {
        false => (format!("at % {TILE}u"), format!("at / {TILE}u")),
        true => (format!("at / {DEPTH}u"), format!("at % {DEPTH}u")),
    };
    format!(
        "for (var s = 0u; s < {}u; s++) {{\nlet at = lane + s * {TEAM}u;\n\
         let own = {own};\nlet depth = {depth};\nlet along = {start} + own;\n\
         let deep = first + depth;\nvar x = 0.0f;\n\
         if (along < {size}u && deep < {summed}u) {{ {} }}\n\
         {tile}[depth * {PITCH}u + own] = x;\n}}\n",
        TILE * DEPTH / TEAM,
        operand.read
    )
}
