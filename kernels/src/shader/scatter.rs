//! Writing slices by index: `ScatterNd`, `TensorScatter…`, `UnsortedSegment…`.
//!
//! An invocation per element of the result looks for the updates of its place in their order: no
//! two invocations write one word, and results do not depend on chance. Updates outside are left
//! out, as on TensorFlow's accelerators.

use super::{
    Shader,
    gather::zero,
    reduce::bound,
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::DType;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("ScatterNd", |call, caps| onto(call, caps, None, Rule::Add)),
    ("ScatterNdNonAliasingAdd", |call, caps| onto(call, caps, Some(0), Rule::Add)),
    ("SparseToDense", sparse_to_dense),
    ("TensorScatterAdd", |call, caps| onto(call, caps, Some(0), Rule::Add)),
    ("TensorScatterMax", |call, caps| onto(call, caps, Some(0), Rule::Max)),
    ("TensorScatterMin", |call, caps| onto(call, caps, Some(0), Rule::Min)),
    ("TensorScatterSub", |call, caps| onto(call, caps, Some(0), Rule::Sub)),
    ("TensorScatterUpdate", |call, caps| onto(call, caps, Some(0), Rule::Update)),
    ("UnsortedSegmentMax", |call, caps| segments(call, caps, Rule::Max)),
    ("UnsortedSegmentMin", |call, caps| segments(call, caps, Rule::Min)),
    ("UnsortedSegmentProd", |call, caps| segments(call, caps, Rule::Mul)),
    ("UnsortedSegmentSum", |call, caps| segments(call, caps, Rule::Add)),
    ("_TensorScatterDiv", |call, caps| onto(call, caps, Some(0), Rule::Div)),
    ("_TensorScatterMul", |call, caps| onto(call, caps, Some(0), Rule::Mul)),
];

/// Combination of an update with the element before it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Update,
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
}

impl Rule {
    /// `None` where the dtype has no such rule. Bools are added as 0 and 1 in storage are.
    fn text(self, dtype: DType, word: ScalarType, update: &str) -> Option<String> {
        let is_float = dtype.is_float();
        // Each update rounds, as each would were they separate calls.
        let step = |value: &str| format!("acc = {};\n", cut(dtype, value));
        Some(match self {
            Rule::Update => format!("acc = {update};\n"),
            Rule::Add if word == ScalarType::Bool => format!("acc = acc | {update};\n"),
            _ if word == ScalarType::Bool => return None,
            Rule::Max if is_float => format!("acc = max_(acc, {update});\n"),
            Rule::Min if is_float => format!("acc = min_(acc, {update});\n"),
            Rule::Max => format!("acc = max(acc, {update});\n"),
            Rule::Min => format!("acc = min(acc, {update});\n"),
            Rule::Add => step(&format!("acc + {update}")),
            Rule::Sub => step(&format!("acc - {update}")),
            Rule::Mul => step(&format!("acc * {update}")),
            Rule::Div if is_float => step(&format!("acc / {update}")),
            Rule::Div => step(&format!("div_{}_(acc, {update})", word.name())),
        })
    }
}

/// The result is seen as `[dims…, inner]`, the updates as `[count, inner]`.
fn onto(
    call: &OpCall<'_>,
    caps: Caps,
    before: Option<usize>,
    rule: Rule,
) -> Result<Option<Shader>> {
    let first = before.map_or(0, |before| before + 1);
    let (shape, places) = (call.output_shape(0)?, call.shape(first));
    let (count, depth) = match &places[..] {
        [n] => (*n, 1),
        [rows @ .., depth] => (rows.iter().product(), *depth),
        [] => (0, 0),
    };
    let dtype = call.outputs[0].dtype;
    let (Some(word), Some(index)) =
        (ScalarType::of(dtype, caps), ScalarType::of(call.dtype(first), caps))
    else {
        return Ok(None);
    };
    let mut inputs: Vec<(usize, ScalarType)> =
        before.map(|before| (before, word)).into_iter().collect();
    let start = if before.is_some() { "in0[n]" } else { zero(word) };
    let total = shape.num_elements();
    if count == 0 {
        let body = format!("out0[n] = {start};\n");
        return Ok(Some(Shader::plain(inputs, vec![word], body, total)));
    }
    let (indices, updates) = (inputs.len(), inputs.len() + 1);
    inputs.extend([(first, index), (first + 1, word)]);
    let inner = shape[depth..].iter().product::<usize>().max(1);
    let Some(step) = rule.text(dtype, word, &format!("in{updates}[i * {inner}u + n % {inner}u]"))
    else {
        return Ok(None);
    };
    let mut body = format!("let place = n / {inner}u;\nvar acc = {start};\n");
    body += &format!("for (var i = 0u; i < {count}u; i++) {{\nvar at = 0u;\nvar inside = true;\n");
    for (axis, &size) in shape[..depth].iter().enumerate() {
        body += &format!(
            "let index{axis} = in{indices}[i * {depth}u + {axis}u];\nlet at{axis} = {};\n\
             inside = inside && at{axis} < {size}u;\nat = at * {size}u + at{axis};\n",
            index.as_index(&format!("index{axis}")),
        );
    }
    body += &format!("if (inside && at == place) {{ {step} }}\n}}\n");
    body += "out0[n] = acc;\n";
    Ok(Some(Shader::plain(inputs, vec![word], body, total)))
}

/// Elements, or one for all, at positions `[count, rank]`, among others. A call that has its
/// positions checked has no program.
fn sparse_to_dense(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let checks = call.attrs.bool("validate_indices")?;
    let Some((inputs, word)) = scalar_types(call, caps, [0, 2, 3]).filter(|_| !checks) else {
        return Ok(None);
    };
    let (shape, places) = (call.output_shape(0)?, call.shape(0));
    let count = places.first().copied().unwrap_or(1);
    let own = if call.shape(2).rank() == 0 { "0u" } else { "i" };
    let mut body = format!(
        "out0[n] = in2[0];\nfor (var i = 0u; i < {count}u; i++) {{\nvar at = 0u;\nvar inside = true;\n"
    );
    for (axis, &size) in shape.iter().enumerate() {
        let at = inputs[0].1.as_index(&format!("index{axis}"));
        body += &format!(
            "let index{axis} = in0[i * {}u + {axis}u];\nlet at{axis} = {at};\n\
             inside = inside && at{axis} < {size}u;\nat = at * {size}u + at{axis};\n",
            shape.rank(),
        );
    }
    body += &format!("if (inside && at == n) {{ out0[n] = in1[{own}]; }}\n}}\n");
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}

/// `[rows, inner]` by the segment of each row → `[segments, inner]`.
fn segments(call: &OpCall<'_>, caps: Caps, rule: Rule) -> Result<Option<Shader>> {
    let (shape, rows) = (call.output_shape(0)?, call.shape(1).num_elements());
    let dtype = call.dtype(0);
    let (Some(word), Some(id)) = (ScalarType::of(dtype, caps), ScalarType::of(call.dtype(1), caps))
    else {
        return Ok(None);
    };
    let inner = shape[1..].iter().product::<usize>().max(1);
    let start = match rule {
        Rule::Mul if word == ScalarType::F32 => "1.0f".into(),
        Rule::Mul => format!("{}(1)", word.name()),
        // Unlike reductions these start from finite numbers.
        Rule::Max | Rule::Min => match bound(dtype, rule == Rule::Max) {
            Some(bound) => bound,
            None => return Ok(None),
        },
        Rule::Add | Rule::Sub | Rule::Div | Rule::Update => word.zero().into(),
    };
    let Some(step) = rule.text(dtype, word, &format!("in0[i * {inner}u + n % {inner}u]")) else {
        return Ok(None);
    };
    let body = format!(
        "let segment = n / {inner}u;\nvar acc = {start};\n\
         for (var i = 0u; i < {rows}u; i++) {{\nlet id = in1[i];\n\
         if ({} == segment) {{ {step} }}\n}}\nout0[n] = acc;\n",
        id.as_index("id"),
    );
    let inputs = vec![(0, word), (1, id)];
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}
