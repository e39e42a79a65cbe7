//! An invocation for a block of queries and some columns of values.

use super::{
    super::{
        matmul::{BLOCK, pairs},
        scalar_type::float,
    },
    COLUMNS, Text, each, largest_of, shrink, weigh,
};
use crate::plan::attention::Attention;

impl Text<'_> {
    /// An invocation for a block of queries and some columns.
    pub(super) fn plain(&self) -> Option<String> {
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
                let terms = each(BLOCK, |j| format!(" + c{i}{j} * y{j}"));
                format!("o{i}_{column} = o{i}_{column}{terms};\n")
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
}
