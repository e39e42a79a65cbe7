//! Segments in order, where their number is known: `SparseSegment…WithNumSegments`, and gradients.
//!
//! An invocation per element of the result looks for the rows of its segment. Rows and segments
//! outside are left out.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("SparseSegmentMeanGrad", |call, caps| gradient(call, caps, Rule::Mean)),
    ("SparseSegmentMeanWithNumSegments", |call, caps| segments(call, caps, Rule::Mean)),
    ("SparseSegmentSqrtNGrad", |call, caps| gradient(call, caps, Rule::Root)),
    ("SparseSegmentSqrtNWithNumSegments", |call, caps| segments(call, caps, Rule::Root)),
    ("SparseSegmentSumGrad", |call, caps| gradient(call, caps, Rule::Sum)),
    ("SparseSegmentSumWithNumSegments", |call, caps| segments(call, caps, Rule::Sum)),
];

/// Reduction of the rows of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Sum,
    Mean,
    /// The sum over the root of the number of rows.
    Root,
}

impl Rule {
    /// Source of the result of a sum of `count` rows.
    fn share(self, sum: &str, word: ScalarType) -> String {
        match (self, word) {
            (Rule::Mean, ScalarType::F32) => format!("{sum} / f32(count)"),
            (Rule::Mean, _) => format!("div_{name}_({sum}, {name}(count))", name = word.name()),
            (Rule::Root, _) => format!("{sum} / sqrt(f32(count))"),
            (Rule::Sum, _) => sum.into(),
        }
    }
}

/// Data `[rows, inner]`, numbers of rows, and their segments → `[segments, inner]`.
fn segments(call: &OpCall<'_>, caps: Caps, rule: Rule) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let (shape, rows) = (call.output_shape(0)?, call.shape(0)[0]);
    if word == ScalarType::Bool || (rule == Rule::Root && word != ScalarType::F32) {
        return Ok(None);
    }
    let inner = shape[1..].iter().product::<usize>().max(1);
    let body = format!(
        "let segment = n / {inner}u;\nvar count = 0u;\nvar acc = {};\n\
         for (var i = 0u; i < {}u; i++) {{\nlet id = in2[i];\nlet index = in1[i];\nlet row = {};\n\
         if ({} != segment || row >= {rows}u) {{ continue; }}\n\
         acc = acc + in0[row * {inner}u + n % {inner}u];\ncount = count + 1u;\n}}\n\
         if (count > 0u) {{ acc = {}; }}\nout0[n] = acc;\n",
        word.zero(),
        call.shape(1).num_elements(),
        inputs[1].1.as_index("index"),
        inputs[2].1.as_index("id"),
        cut(call.dtype(0), &rule.share("acc", word)),
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}

/// Rows of gradients `[segments, inner]` go back to the rows that were chosen.
fn gradient(call: &OpCall<'_>, caps: Caps, rule: Rule) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let (shape, segments) = (call.output_shape(0)?, call.shape(0)[0]);
    if word != ScalarType::F32 {
        return Ok(None);
    }
    let (chosen, inner) =
        (call.shape(1).num_elements(), shape[1..].iter().product::<usize>().max(1));
    let id = |at: &str| inputs[2].1.as_index(&format!("in2[{at}]"));
    let count = match rule {
        Rule::Sum => String::new(),
        _ => format!(
            "var count = 0u;\nfor (var j = 0u; j < {chosen}u; j++) {{\n\
             if ({} == segment) {{ count = count + 1u; }}\n}}\n",
            id("j")
        ),
    };
    let body = format!(
        "let row = n / {inner}u;\nvar acc = 0.0f;\n\
         for (var i = 0u; i < {chosen}u; i++) {{\nlet index = in1[i];\n\
         if ({} != row) {{ continue; }}\nlet segment = {};\nif (segment >= {segments}u) {{ continue; }}\n\
         {count}acc = {};\n}}\nout0[n] = acc;\n",
        inputs[1].1.as_index("index"),
        id("i"),
        cut(
            call.dtype(0),
            &format!(
                "acc + {}",
                rule.share(&format!("in0[segment * {inner}u + n % {inner}u]"), word)
            )
        ),
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}
