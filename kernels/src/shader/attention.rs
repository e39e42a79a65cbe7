//! Attention without a matrix of scores: the largest score so far, the sum of exponentials and the sum
//! of the values so weighted stay in registers while keys go by.
//!
//! Where groups share memory, a group takes 64 queries, and as many keys at a time: products of both
//! go through tiles of shared memory, and so do weights on their way to the values. Elsewhere an
//! invocation takes a block of queries and of columns. Sums are those of `kernels/src/cpu/attention.rs`,
//! in another order.

use super::{
    Shader, expr, index,
    matmul::{BLOCK, pairs},
    tiles::{DEPTH, Operand, PITCH, TEAM, TILE, share},
    word::{Caps, Word, cut, float},
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
    let inputs: Option<Vec<(usize, Word)>> = (0..call.inputs.len())
        .map(|index| Some((index, Word::of(call.dtype(index), caps)?)))
        .collect();
    let Some(inputs) = inputs.filter(|_| !too_long) else { return Ok(None) };
    let text = Text { call, caps, attention: &attention };
    let Attention { queries, keys, width, .. } = attention;
    if !caps.tiles {
        let n = attention.count() * queries.div_ceil(BLOCK) * width.div_ceil(COLUMNS);
        let shader = |body| Shader::plain(inputs, vec![Word::F32], body, n);
        return Ok(text.plain().map(shader));
    }
    if queries < LEAST || keys < LEAST || width > MOST_COLUMNS {
        return Ok(None);
    }
    let values = DEPTH * width.next_multiple_of(SIDE);
    let shared = vec![("tile_a", DEPTH * PITCH), ("tile_b", values.max(DEPTH * PITCH))];
    let n = attention.count() * queries.div_ceil(TILE) * TEAM;
    let shader = |body| Shader { shared, ..Shader::plain(inputs, vec![Word::F32], body, n) };
    Ok(text.tiled().map(shader))
}

/// Writes the body.
struct Text<'a> {
    call: &'a OpCall<'a>,
    caps: Caps,
    attention: &'a Attention,
}

/// Lines for each place of a block.
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
        let place = format!("other{at} + {row} * {row_step}u + {col} * {col_step}u");
        let word = Word::of(self.call.dtype(3 + at), self.caps).unwrap_or(Word::F32);
        word.load(&format!("in{}", 3 + at), &place)
    }

    /// The statements that make of product `score` at a place what the softmax is taken of, or -inf
    /// beyond the last key.
    fn mapped(&self, score: &str, row: &str, col: &str) -> Option<String> {
        let keys = self.attention.keys;
        let (lines, value) = match &self.attention.expr {
            None => (String::new(), score.to_string()),
            Some(expr) => {
                let mut inputs = vec![score.to_string()];
                let others = self.attention.others.len();
                inputs.extend((0..others).map(|at| self.other(at, "row", "col")));
                let (lines, value) = expr::print(expr, &inputs, self.caps)?;
                let place = format!("let row = {row};\nlet col = min({col}, {}u);\n", keys - 1);
                (place + &lines, value)
            }
        };
        let value = match keys.is_multiple_of(TILE) {
            true => value,
            false => format!("select({}, {value}, {col} < {keys}u)", float(f32::NEG_INFINITY)),
        };
        Some(format!("{{\n{lines}{score} = {value};\n}}\n"))
    }

    /// The statements that make a zero of a weight that does not count, and `counts` of one that does.
    fn kept(&self, weight: &str, counts: &str, row: &str, col: &str) -> String {
        let Some(keep) = self.attention.keep else { return String::new() };
        let keys = self.attention.keys;
        let col = format!("min({col}, {}u)", keys - 1);
        let truth = self.other(keep, row, &col);
        format!("if ({truth}) {{ {counts} = 1.0f; }} else {{ {weight} = 0.0f; }}\n")
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

    /// An invocation for a block of queries and some columns.
    fn plain(&self) -> Option<String> {
        let Attention { queries, keys, depth, width, query, key, value, .. } = self.attention;
        let (down, across) = (queries.div_ceil(BLOCK), width.div_ceil(COLUMNS));
        let columns = COLUMNS.min(*width);
        let mut body = format!(
            "let column = n % {across}u * {COLUMNS}u;\nlet first = n / {across}u % {down}u * {BLOCK}u;\n\
             let matrix = n / {}u;\n{}",
            across * down,
            self.matrices()
        );
        body += &each(BLOCK, |i| {
            format!(
                "let row{i} = min(first + {i}u, {}u);\nlet q{i} = q + row{i} * {}u;\n\
                 var largest{i} = {};\nvar total{i} = 0.0f;\nvar counts{i} = 0.0f;\n",
                queries - 1,
                query.row_step,
                float(f32::MIN)
            ) + &each(columns, |j| format!("var o{i}_{j} = 0.0f;\n"))
        });
        body += &format!("for (var at = 0u; at < {keys}u; at = at + {BLOCK}u) {{\n");
        body += &each(BLOCK, |j| {
            let last = keys - 1;
            format!(
                "let key{j} = min(at + {j}u, {last}u);\nlet k{j} = k + key{j} * {}u;\n",
                key.row_step
            )
        });
        for (i, j) in pairs(BLOCK, BLOCK) {
            body += &format!("var c{i}{j} = 0.0f;\n");
        }
        body += &format!("for (var i = 0u; i < {depth}u; i++) {{\n");
        body += &each(BLOCK, |i| format!("let x{i} = in0[q{i} + i * {}u];\n", query.col_step));
        body += &each(BLOCK, |j| format!("let y{j} = in1[k{j} + i * {}u];\n", key.col_step));
        for (i, j) in pairs(BLOCK, BLOCK) {
            body += &format!("c{i}{j} = c{i}{j} + x{i} * y{j};\n");
        }
        body += "}\n";
        for (i, j) in pairs(BLOCK, BLOCK) {
            body +=
                &self.mapped(&format!("c{i}{j}"), &format!("row{i}"), &format!("(at + {j}u)"))?;
        }
        for i in 0..BLOCK {
            body += &format!("let high{i} = max(largest{i}, {});\n", largest_of(i));
            body += &shrink(i, columns, |j| format!("o{i}_{j}"));
            body += &each(BLOCK, |j| {
                let weight = format!("c{i}{j}");
                weigh(i, &weight)
                    + &self.kept(
                        &weight,
                        &format!("counts{i}"),
                        &format!("row{i}"),
                        &format!("(at + {j}u)"),
                    )
            });
        }
        body += &each(BLOCK, |j| format!("let v{j} = v + key{j} * {}u;\n", value.row_step));
        for column in 0..columns {
            body += "{\n";
            body += &format!(
                "let col = min(column + {column}u, {}u) * {}u;\n",
                width - 1,
                value.col_step
            );
            body += &each(BLOCK, |j| format!("let y{j} = in2[v{j} + col];\n"));
            body += &each(BLOCK, |i| {
                let products = each(BLOCK, |j| format!(" + c{i}{j} * y{j}"));
                format!("o{i}_{column} = o{i}_{column}{products};\n")
            });
            body += "}\n";
        }
        body += "}\n";
        for i in 0..BLOCK {
            for j in 0..columns {
                let sum = format!("o{i}_{j}");
                let value = self.result(&sum, &format!("total{i}"), &format!("counts{i}"));
                body += &self.output(&format!("first + {i}u"), &format!("column + {j}u"), &value);
            }
        }
        Some(body)
    }

    /// A group for a tile of queries.
    fn tiled(&self) -> Option<String> {
        let Attention { queries, keys, depth, width, query, key, .. } = self.attention;
        let (down, columns) = (queries.div_ceil(TILE), width.div_ceil(SIDE));
        let mut body = format!(
            "let row = team % {down}u * {TILE}u;\nlet matrix = team / {down}u;\n{}\
             let near = lane % {SIDE}u;\nlet right = near * {BLOCK}u;\nlet below = lane / {SIDE}u * {BLOCK}u;\n",
            self.matrices()
        );
        body += &each(BLOCK, |i| {
            let largest = float(f32::MIN);
            format!(
                "let row{i} = min(row + below + {i}u, {}u);\nvar largest{i} = {largest};\n\
                 var total{i} = 0.0f;\nvar counts{i} = 0.0f;\n",
                queries - 1
            ) + &each(columns, |j| format!("var o{i}_{j} = 0.0f;\n"))
        });
        body += &format!("for (var start = 0u; start < {keys}u; start = start + {TILE}u) {{\n");
        for (i, j) in pairs(BLOCK, BLOCK) {
            body += &format!("var c{i}{j} = 0.0f;\n");
        }
        let operand = |source: &str, matrices: &Matrices| Operand {
            read: format!(
                "x = {source} + along * {}u + deep * {}u];",
                matrices.row_step, matrices.col_step
            ),
            is_deep: matrices.col_step == 1,
        };
        body += &format!("for (var first = 0u; first < {depth}u; first = first + {DEPTH}u) {{\n");
        body += &share("tile_a", &operand("in0[q", query), ("row", *queries), *depth);
        body += &share("tile_b", &operand("in1[k", key), ("start", *keys), *depth);
        body += &format!("barrier_();\nfor (var i = 0u; i < {DEPTH}u; i++) {{\n");
        body += &each(BLOCK, |i| {
            format!(
                "let x{i} = tile_a[i * {PITCH}u + below + {i}u];\n\
                 let y{i} = tile_b[i * {PITCH}u + right + {i}u];\n"
            )
        });
        for (i, j) in pairs(BLOCK, BLOCK) {
            body += &format!("c{i}{j} = c{i}{j} + x{i} * y{j};\n");
        }
        body += "}\nbarrier_();\n}\n";
        for (i, j) in pairs(BLOCK, BLOCK) {
            let place = format!("(start + right + {j}u)");
            body += &self.mapped(&format!("c{i}{j}"), &format!("row{i}"), &place)?;
        }
        body += &self.across("max", "part", |i| largest_of(i));
        for i in 0..BLOCK {
            body += &format!("let high{i} = max(largest{i}, part{i});\n");
            body += &shrink(i, columns, |j| format!("o{i}_{j}"));
            body += &each(BLOCK, |j| {
                let (weight, place) = (format!("c{i}{j}"), format!("(start + right + {j}u)"));
                weigh(i, &weight)
                    + &self.kept(&weight, &format!("counts{i}"), &format!("row{i}"), &place)
            });
        }
        body += &self.averaged(columns);
        body += "}\n";
        body += &self.across("+", "whole", |i| format!("total{i}"));
        if self.attention.keep.is_some() {
            body += &self.across("max", "any", |i| format!("counts{i}"));
        }
        for i in 0..BLOCK {
            for j in 0..columns {
                let value =
                    self.result(&format!("o{i}_{j}"), &format!("whole{i}"), &format!("any{i}"));
                let (row, col) = (format!("row + below + {i}u"), format!("near + {}u", j * SIDE));
                body += &self.output(&row, &col, &value);
            }
        }
        Some(body)
    }

    /// The statements that make `name0`, `name1`, … of what the neighbours of a row have.
    fn across(&self, fold: &str, name: &str, part: impl Fn(usize) -> String) -> String {
        let own =
            each(BLOCK, |i| format!("tile_a[(below + {i}u) * {SIDE}u + near] = {};\n", part(i)));
        let first = each(BLOCK, |i| format!("var {name}{i} = tile_a[(below + {i}u) * {SIDE}u];\n"));
        let rest = each(BLOCK, |i| {
            let next = format!("tile_a[(below + {i}u) * {SIDE}u + i]");
            match fold {
                "+" => format!("{name}{i} = {name}{i} + {next};\n"),
                fold => format!("{name}{i} = {fold}({name}{i}, {next});\n"),
            }
        });
        format!(
            "{own}barrier_();\n{first}for (var i = 1u; i < {SIDE}u; i++) {{\n{rest}}}\nbarrier_();\n"
        )
    }

    /// The statements that add weighted values, some keys at a time.
    fn averaged(&self, columns: usize) -> String {
        let Attention { keys, width, value, .. } = self.attention;
        let wide = columns * SIDE;
        let mut text = format!(
            "for (var some = 0u; some < {TILE}u; some = some + {DEPTH}u) {{\n\
             if (right >= some && right < some + {DEPTH}u) {{\n"
        );
        for (i, j) in pairs(BLOCK, BLOCK) {
            text +=
                &format!("tile_a[(right - some + {j}u) * {PITCH}u + below + {i}u] = c{i}{j};\n");
        }
        text += &format!(
            "}}\nfor (var s = lane; s < {}u; s = s + {TEAM}u) {{\n\
             let key = start + some + s / {wide}u;\nlet col = s % {wide}u;\nvar x = 0.0f;\n\
             if (key < {keys}u && col < {width}u) {{ x = in2[v + key * {}u + col * {}u]; }}\n\
             tile_b[s] = x;\n}}\nbarrier_();\nfor (var i = 0u; i < {DEPTH}u; i++) {{\n",
            DEPTH * wide,
            value.row_step,
            value.col_step
        );
        text += &each(BLOCK, |i| format!("let x{i} = tile_a[i * {PITCH}u + below + {i}u];\n"));
        text += &each(columns, |j| {
            format!("let y{j} = tile_b[i * {wide}u + near + {}u];\n", j * SIDE)
                + &each(BLOCK, |i| format!("o{i}_{j} = o{i}_{j} + x{i} * y{j};\n"))
        });
        text + "}\nbarrier_();\n}\n"
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
