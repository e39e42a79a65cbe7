//! Reductions along any axes: one invocation per result, or a group where that pays.
//!
//! Sums of floats are kept in sixteen interleaved partial sums, which are then added in pairs:
//! their rounding error grows with a sixteenth of the length.

use super::{
    Shader,
    index::position,
    scalar_type::{Caps, ScalarType, cut, float},
    tiles::TEAM,
    workgroup::{Fold, PARTS},
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{DType, ReduceKind, StridedView, infer::reduced_axes, view::ViewDim};
use smallvec::SmallVec;

/// Partial sums of floats.
const LANES: usize = 16;

/// Elements per result from which on groups work on it, where groups pay.
const LONG: usize = 512;

/// So few results do not keep a device busy with an invocation for each.
const FEW: usize = 1 << 14;

/// The shader of a reduction.
///
/// # Errors
///
/// When the axes are none of the input.
pub(super) fn shader(call: &OpCall<'_>, caps: Caps, kind: ReduceKind) -> Result<Option<Shader>> {
    let Some(word) = ScalarType::of(call.dtype(0), caps) else { return Ok(None) };
    let shape = call.shape(0);
    let reduced = reduced_axes(&call.ints(1)?, shape.rank())?;
    let strides = shape.strides();
    let loops = |wanted: bool| {
        let dims = shape.iter().zip(&strides).zip(&reduced);
        let dims: SmallVec<[ViewDim; 6]> = dims
            .filter(|(_, reduced)| **reduced == wanted)
            .map(|((&size, &stride), _)| ViewDim { size, stride: stride as isize })
            .collect();
        StridedView { offset: 0, dims }
    };
    let (kept, folded) = (loops(false), loops(true));
    let (count, length) = (kept.num_elements(), folded.num_elements());
    if kind == ReduceKind::Mean && word != ScalarType::F32 {
        return Ok(whole_mean(caps, word, &kept, &folded));
    }
    let Some(rule) = Rule::of(kind, call.dtype(0), word, length) else { return Ok(None) };
    let base = position(&kept, "n");
    let offset = position(&folded, "i");
    let load = |at: &str| rule.contribution(&word.load("in0", at));
    if caps.tiles && word == ScalarType::F32 && length >= LONG && (count <= FEW || is_row(&folded))
    {
        return Ok(Some(by_groups(&rule, &kept, &folded, caps)));
    }
    let lanes =
        if word == ScalarType::F32 && rule.is_sum && length >= 4 * LANES { LANES } else { 1 };
    let mut body = format!("let base = {base};\n");
    for lane in 0..lanes {
        body += &format!("var acc{lane} = {};\n", rule.start);
    }
    let whole = length / lanes * lanes;
    body += &format!("for (var i = 0u; i < {whole}u; i++) {{\n");
    for lane in 0..lanes {
        let step = rule.combine(&format!("acc{lane}"), &load(&format!("base + {offset}")));
        body += &format!("acc{lane} = {step};\n");
        if lane + 1 < lanes {
            body += "i++;\n";
        }
    }
    body += "}\n";
    if whole < length {
        let step = rule.combine("acc0", &load(&format!("base + {offset}")));
        body += &format!("for (var i = {whole}u; i < {length}u; i++) {{\nacc0 = {step};\n}}\n");
    }
    let mut width = lanes / 2;
    while width > 0 {
        for lane in 0..width {
            let sum = rule.combine(&format!("acc{lane}"), &format!("acc{}", lane + width));
            body += &format!("acc{lane} = {sum};\n");
        }
        width /= 2;
    }
    body += &word.store("out0", "n", &rule.finish("acc0"));
    Ok(Some(Shader::plain(vec![(0, word)], vec![word], body, count)))
}

/// Whether neighbours in memory are folded.
fn is_row(folded: &StridedView) -> bool {
    folded.dims.last().is_some_and(|dim| dim.stride == 1)
}

/// A group per result.
fn by_groups(rule: &Rule, kept: &StridedView, folded: &StridedView, caps: Caps) -> Shader {
    let fold = match rule.kind {
        ReduceKind::Max => Fold::Function("max_"),
        ReduceKind::Min => Fold::Function("min_"),
        ReduceKind::Prod => Fold::Function("times_"),
        ReduceKind::Sum
        | ReduceKind::Mean
        | ReduceKind::EuclideanNorm
        | ReduceKind::All
        | ReduceKind::Any => Fold::Sum,
    };
    let load = rule.contribution(&format!("in0[base + {}]", position(folded, "i")));
    let body = format!(
        "let base = {};\nvar acc = {};\n\
         for (var i = lane; i < {}u; i = i + {TEAM}u) {{ acc = {}; }}\n{}\
         if (lane == 0u) {{ out0[team] = {}; }}\n",
        position(kept, "team"),
        rule.start,
        rule.length,
        rule.combine("acc", &load),
        fold.text("acc", "folded", TEAM, caps),
        rule.finish("folded"),
    );
    let count = kept.num_elements() * TEAM;
    let shader = Shader::plain(vec![(0, ScalarType::F32)], vec![ScalarType::F32], body, count);
    Shader { shared: vec![PARTS], ..shader }
}

/// Means of integers, whose sums need wider ones; of nothing 0.
fn whole_mean(
    caps: Caps,
    word: ScalarType,
    kept: &StridedView,
    folded: &StridedView,
) -> Option<Shader> {
    let wide = match word {
        _ if !caps.int64 => return None,
        ScalarType::I32 | ScalarType::I64 => "i64",
        ScalarType::U32 | ScalarType::U64 => "u64",
        ScalarType::F32 | ScalarType::Bool => return None,
    };
    let length = folded.num_elements();
    let body = format!(
        "let base = {};\nvar sum = {wide}(0);\n\
         for (var i = 0u; i < {length}u; i++) {{\nlet at = base + {};\n\
         sum = sum + {wide}(in0[at]);\n}}\nout0[n] = {}(sum / {wide}({}));\n",
        position(kept, "n"),
        position(folded, "i"),
        word.name(),
        length.max(1),
    );
    Some(Shader::plain(vec![(0, word)], vec![word], body, kept.num_elements()))
}

/// Reduction of the elements.
struct Rule {
    kind: ReduceKind,
    dtype: DType,
    start: String,
    is_sum: bool,
    length: usize,
}

impl Rule {
    fn of(kind: ReduceKind, dtype: DType, word: ScalarType, length: usize) -> Option<Rule> {
        use ReduceKind::*;
        let is_float = word == ScalarType::F32;
        let one = match word {
            ScalarType::F32 => "1.0f".to_string(),
            _ => format!("{}(1)", word.name()),
        };
        let start = match (kind, word) {
            (All, ScalarType::Bool) => "true".into(),
            (Any, ScalarType::Bool) => "false".into(),
            (_, ScalarType::Bool) | (All | Any, _) => return None,
            (Sum | Mean, _) => word.zero().to_string(),
            (EuclideanNorm, _) if is_float => word.zero().to_string(),
            (EuclideanNorm, _) => return None,
            (Prod, _) => one,
            (Max, _) => extreme(dtype, true)?,
            (Min, _) => extreme(dtype, false)?,
        };
        let is_sum = matches!(kind, Sum | Mean | EuclideanNorm);
        Some(Rule { kind, dtype, start, is_sum, length })
    }

    fn contribution(&self, element: &str) -> String {
        match self.kind {
            ReduceKind::EuclideanNorm => format!("square_({element})"),
            _ => element.into(),
        }
    }

    fn combine(&self, acc: &str, x: &str) -> String {
        use ReduceKind::*;
        let is_float = self.dtype.is_float();
        match self.kind {
            Sum | Mean | EuclideanNorm => format!("{acc} + {x}"),
            Prod => format!("{acc} * {x}"),
            Max if is_float => format!("max_({acc}, {x})"),
            Min if is_float => format!("min_({acc}, {x})"),
            Max => format!("max({acc}, {x})"),
            Min => format!("min({acc}, {x})"),
            All => format!("{acc} & {x}"),
            Any => format!("{acc} | {x}"),
        }
    }

    fn finish(&self, acc: &str) -> String {
        let value = match (self.kind, self.dtype.is_float()) {
            (ReduceKind::Mean, true) if self.length == 0 => float(f32::NAN),
            (ReduceKind::Mean, _) => format!("{acc} / {}", float(self.length as f32)),
            (ReduceKind::EuclideanNorm, _) => format!("sqrt({acc})"),
            _ => acc.into(),
        };
        cut(self.dtype, &value)
    }
}

/// Least (or greatest) finite element.
pub(super) fn bound(dtype: DType, lowest: bool) -> Option<String> {
    let most = match dtype {
        DType::F32 => f32::MAX,
        DType::F16 => half::f16::MAX.to_f32(),
        DType::BF16 => half::bf16::MAX.to_f32(),
        dtype => return extreme(dtype, lowest),
    };
    Some(float(if lowest { -most } else { most }))
}

/// Least (or greatest) element.
pub(super) fn extreme(dtype: DType, lowest: bool) -> Option<String> {
    use ferroflow_ir::expr::Constant;
    let bits = dtype.size()? as u32 * 8;
    let scalar = ScalarType::of(dtype, Caps { int64: true, ..Caps::default() })?;
    let value = match scalar {
        ScalarType::F32 if lowest => return Some(float(f32::NEG_INFINITY)),
        ScalarType::F32 => return Some(float(f32::INFINITY)),
        ScalarType::Bool => return None,
        ScalarType::I32 | ScalarType::I64 if lowest => -(1i128 << (bits - 1)),
        ScalarType::I32 | ScalarType::I64 => (1i128 << (bits - 1)) - 1,
        ScalarType::U32 | ScalarType::U64 if lowest => 0,
        ScalarType::U32 | ScalarType::U64 => (1i128 << bits) - 1,
    };
    super::scalar_type::literal(Constant::Int(value), scalar)
}
