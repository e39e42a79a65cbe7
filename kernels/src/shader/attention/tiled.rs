//! A group of invocations for a tile of queries.

use super::{
    super::{
        matmul::{BLOCK, pairs},
        tiles::{DEPTH, PITCH, TEAM, TILE, TileOperand, share},
        word::float,
    },
    SIDE, Text, each, largest_of, shrink, weigh,
};
use crate::plan::attention::{Attention, Matrices};

impl Text<'_> {
    /// A group for a tile of queries.
    pub(super) fn tiled(&self) -> Option<String> {
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
        let operand = |source: &str, matrices: &Matrices| TileOperand {
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
        body += &self.across("max", "part", largest_of);
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
