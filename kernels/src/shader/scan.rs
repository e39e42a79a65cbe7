//! Running results along an axis, and the largest elements of rows.

use super::{
    Shader,
    index::around,
    scalar_type::{Caps, ScalarType, cut, float},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{DType, infer::normalize_axis};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("Cumprod", |call, caps| scan(call, caps, Rule::Product)),
    ("Cumsum", |call, caps| scan(call, caps, Rule::Sum)),
    ("CumulativeLogsumexp", |call, caps| scan(call, caps, Rule::LogSumExp)),
    ("TopK", top_k),
    ("TopKV2", top_k),
];

/// Operation that scans the elements.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Sum,
    Product,
    LogSumExp,
}

impl Rule {
    fn start(self, word: ScalarType) -> String {
        match (self, word) {
            (Rule::Sum, _) => word.zero().into(),
            (Rule::Product, ScalarType::F32) => "1.0f".into(),
            (Rule::Product, _) => format!("{}(1)", word.name()),
            (Rule::LogSumExp, _) => float(f32::NEG_INFINITY),
        }
    }

    fn step(self) -> &'static str {
        match self {
            Rule::Sum => "acc + in0[at]",
            Rule::Product => "acc * in0[at]",
            Rule::LogSumExp => "log_add_(acc, in0[at])",
        }
    }
}

/// An invocation per row.
fn scan(call: &OpCall<'_>, caps: Caps, rule: Rule) -> Result<Option<Shader>> {
    let axis = normalize_axis(call.ints(1)?[0], call.shape(0).rank())?;
    let dims = around(call.shape(0), axis);
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let dtype = call.dtype(0);
    if word == ScalarType::Bool || (rule == Rule::LogSumExp && word != ScalarType::F32) {
        return Ok(None);
    }
    let (exclusive, reverse) = (call.attrs.bool("exclusive")?, call.attrs.bool("reverse")?);
    let (size, inner) = (dims.size, dims.inner.max(1));
    let step = if reverse { format!("({}u - i)", size.max(1) - 1) } else { "i".into() };
    let store = format!("out0[at] = {};\n", cut(dtype, "acc"));
    let (before, after) = if exclusive { (&*store, "") } else { ("", &*store) };
    let body = format!(
        "let base = n / {inner}u * {}u + n % {inner}u;\nvar acc = {start};\n\
         for (var i = 0u; i < {size}u; i++) {{\nlet at = base + {step} * {inner}u;\n\
         {before}acc = {next};\n{after}}}\n",
        size * inner,
        start = rule.start(word),
        next = rule.step(),
    );
    let count = if size == 0 { 0 } else { dims.outer * dims.inner };
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}

/// An invocation per element, which counts how many come before it: larger ones, and equal ones to
/// the left. NaN is larger than anything. The order of a heap, which is that of elements that are
/// not sorted, is left to the host.
fn top_k(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let row = call.shape(0).last().copied().unwrap_or(0);
    let k = call.output_shape(0)?.last().copied().unwrap_or(0);
    if !call.attrs.bool("sorted")? && 1 < k && k < row {
        return Ok(None);
    }
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let Some(index) = ScalarType::of(call.outputs[1].dtype, caps) else { return Ok(None) };
    if word == ScalarType::Bool || call.dtype(0) == DType::Bool {
        return Ok(None);
    }
    let (larger, equal) = match word {
        ScalarType::F32 => (
            "(other > key || (is_nan_(other) && !is_nan_(key)))",
            "(other == key || (is_nan_(other) && is_nan_(key)))",
        ),
        _ => ("other > key", "other == key"),
    };
    let body = format!(
        "let base = n / {row}u * {row}u;\nlet place = n % {row}u;\nlet own = in0[n];\nlet key = {};\n\
         var rank = 0u;\nfor (var i = 0u; i < {row}u; i++) {{\nlet other = {};\n\
         if ({larger} || ({equal} && i < place)) {{ rank++; }}\n}}\n\
         if (rank < {k}u) {{\nlet at = n / {row}u * {k}u + rank;\n\
         out0[at] = own;\nout1[at] = {}(place);\n}}\n",
        word.compared("own"),
        word.compared("in0[base + i]"),
        index.name(),
    );
    let count = if k == 0 { 0 } else { call.shape(0).num_elements() };
    Ok(Some(Shader::plain(inputs, vec![word, index], body, count)))
}
