//! Attention without a matrix of scores: the largest score so far, the sum of exponentials and the
//! sum of the values so weighted stay in registers while keys go by.
//!
//! Where groups share memory, a group takes 64 queries, and as many keys at a time: products of
//! both go through tiles of shared memory, and so do weights on their way to the values. Elsewhere
//! an invocation takes a block of queries and of columns. Sums are those of
//! `kernels/src/cpu/attention/`, in another order.

mod matrices;
mod plain;
mod tiled;

use super::{
    Shader, expr, index,
    matmul::BLOCK,
    scalar_type::{Caps, ScalarType, cut, float},
    tiles::{DEPTH, PITCH, TEAM, TILE},
};
use crate::{
    device::OpCall,
    error::Result,
    plan::attention::{Attention, Matrices},
};

pub(super) const SHADERS: &[(&str, super::Build)] = &[(OP, attention)];

/// The op, whose calls hold expressions.
pub(super) const OP: &str = "_FusedAttention";

/// Columns of values that a group can keep in registers.
const MOST_COLUMNS: usize = 128;

/// Columns that an invocation by itself does.
const COLUMNS: usize = 32;

/// Fewer queries or keys leave most of a group without work.
const LEAST: usize = 16;

/// Longer expressions, written out for each score of a block, are long to compile.
const MOST_NODES: usize = 64;

/// Neighbours of a group along one side of its tile.
const SIDE: usize = TILE / BLOCK;

fn attention(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let attention = Attention::new(call)?;
    let too_long = attention.expr.as_ref().is_some_and(|expr| expr.nodes().len() > MOST_NODES);
    let inputs: Option<Vec<(usize, ScalarType)>> = (0..call.inputs.len())
        .map(|index| Some((index, ScalarType::of(call.dtype(index), caps)?)))
        .collect();
    let Some(inputs) = inputs.filter(|_| !too_long && attention.keys > 0) else {
        return Ok(None);
    };
    let text = Text { call, caps, attention: &attention };
    let Attention { queries, keys, width, .. } = attention;
    if !caps.tiles {
        let n = attention.count() * queries.div_ceil(BLOCK) * width.div_ceil(COLUMNS);
        let shader = |body| Shader::plain(inputs, vec![ScalarType::F32], body, n);
        return Ok(text.plain().map(shader));
    }
    if is_of_matrices(call, &attention, caps) {
        let n = attention.count() * queries.div_ceil(matrices::ROWS) * TEAM;
        let shared = matrices::shared(&attention);
        let shader =
            |body| Shader { shared, ..Shader::plain(inputs, vec![ScalarType::F32], body, n) };
        return Ok(text.by_matrices().map(shader));
    }
    if queries < LEAST || keys < LEAST || width > MOST_COLUMNS {
        return Ok(None);
    }
    let values = DEPTH * width.next_multiple_of(SIDE);
    let shared = vec![("tile_a", DEPTH * PITCH), ("tile_b", values.max(DEPTH * PITCH))];
    let n = attention.count() * queries.div_ceil(TILE) * TEAM;
    let shader = |body| Shader { shared, ..Shader::plain(inputs, vec![ScalarType::F32], body, n) };
    Ok(text.tiled().map(shader))
}

/// Whether warps compute a call of the op by multiplying matrices.
///
/// # Errors
///
/// When the call's attributes do not fit its op.
#[cfg(feature = "cuda")]
pub(crate) fn attends_by_matrices(call: &OpCall<'_>, caps: Caps) -> Result<bool> {
    Ok(is_of_matrices(call, &Attention::new(call)?, caps))
}

fn is_of_matrices(call: &OpCall<'_>, attention: &Attention, caps: Caps) -> bool {
    let fits = attention.queries >= LEAST && attention.keys >= LEAST;
    caps.matrices && fits && matrices::fits(call, attention)
}

/// Writes the body.
struct Text<'a> {
    call: &'a OpCall<'a>,
    caps: Caps,
    attention: &'a Attention,
}

/// Lines for each position of a block.
fn each(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(line).collect()
}

impl Text<'_> {
    /// Where the matrices begin: `q`, `k`, `v`, `o`, and `other0`, `other1`, ….
    fn matrices(&self) -> String {
        let Attention { query, key, value, output, others, .. } = self.attention;
        let mut text = String::new();
        for (name, matrices) in [("q", query), ("k", key), ("v", value), ("o", output)] {
            text += &format!("let {name} = {};\n", index::position(&matrices.first, "matrix"));
        }
        for (at, matrices) in others.iter().enumerate() {
            text += &format!("let other{at} = {};\n", index::position(&matrices.first, "matrix"));
        }
        text
    }

    fn other(&self, at: usize, row: &str, col: &str) -> String {
        let Matrices { row_step, col_step, .. } = self.attention.others[at];
        let position = format!("other{at} + {row} * {row_step}u + {col} * {col_step}u");
        let scalar = ScalarType::of(self.call.dtype(3 + at), self.caps).unwrap_or(ScalarType::F32);
        scalar.load(&format!("in{}", 3 + at), &position)
    }

    /// The statements that make of matmul `score` at a position what the softmax is taken of, or
    /// -inf beyond the last key.
    fn mapped(&self, score: &str, row: &str, col: &str) -> Option<String> {
        let keys = self.attention.keys;
        let (lines, value) = match &self.attention.expr {
            None => (String::new(), score.to_string()),
            Some(expr) => {
                let mut inputs = vec![score.to_string()];
                let others = self.attention.others.len();
                inputs.extend((0..others).map(|at| self.other(at, "row", "col")));
                let (lines, value) = expr::print(expr, &inputs, self.caps)?;
                let position = format!("let row = {row};\nlet col = min({col}, {}u);\n", keys - 1);
                (position + &lines, value)
            }
        };
        let value = match keys.is_multiple_of(TILE) {
            true => value,
            false => format!("select({}, {value}, {col} < {keys}u)", float(f32::NEG_INFINITY)),
        };
        Some(format!("{{\n{lines}{score} = {value};\n}}\n"))
    }

    /// The statements that make a zero of a weight that does not count, and `counts` of one that
    /// does.
    fn kept(&self, weight: &str, counts: &str, row: &str, col: &str) -> String {
        let Some(keep) = self.attention.keep else { return String::new() };
        let keys = self.attention.keys;
        let col = format!("min({col}, {}u)", keys - 1);
        let is_kept = self.other(keep, row, &col);
        format!("if ({is_kept}) {{ {counts} = 1.0f; }} else {{ {weight} = 0.0f; }}\n")
    }

    /// A sum of values as an element of the result.
    fn result(&self, sum: &str, total: &str, counts: &str) -> String {
        let quotient = format!("{sum} / {total}");
        let value = match self.attention.keep {
            None => quotient,
            // Rows of which no weight counts are sums of nothing, whatever the weights are.
            Some(_) => format!("select({sum}, {quotient}, {counts} > 0.0f)"),
        };
        cut(self.call.dtype(0), &value)
    }

    fn output(&self, row: &str, col: &str, value: &str) -> String {
        let Attention { queries, width, output, .. } = self.attention;
        format!(
            "if ({row} < {queries}u && {col} < {width}u) {{ \
             out0[o + ({row}) * {}u + ({col}) * {}u] = {value}; }}\n",
            output.row_step, output.col_step
        )
    }
}

/// The largest score of row `i` of a block.
fn largest_of(i: usize) -> String {
    format!("max(max(c{i}0, c{i}1), max(c{i}2, c{i}3))")
}

/// The statements that make sums of row `i` those under a larger largest score.
fn shrink(i: usize, columns: usize, sum: impl Fn(usize) -> String) -> String {
    format!(
        "let shrink{i} = exp_(largest{i} - high{i});\nlargest{i} = high{i};\n\
         total{i} = total{i} * shrink{i};\n"
    ) + &each(columns, |j| format!("{0} = {0} * shrink{i};\n", sum(j)))
}

/// The statements that make a weight of a score of row `i`, and count it.
fn weigh(i: usize, score: &str) -> String {
    format!("{score} = exp_({score} - high{i});\ntotal{i} = total{i} + {score};\n")
}
