//! Calls before they are mutated.

use super::rng::FuzzRng;
use crate::ops::{self, attrs, tensor};
use anyhow::{Context as _, Result};
use ferroflow::{
    ir::{
        AttrValue, Attrs, DType, HostTensor, NameAttrList, OpDef, PartialShape, Shape,
        op::{Allowed, AttrDef, AttrKind},
    },
    runtime::Context,
};
use half::{bf16, f16};
use serde_json::Value;
use std::{fmt, path::Path};

/// An input of a call: a tensor, or the result of an earlier call.
#[derive(Debug, Clone)]
pub(super) enum CallInput {
    Tensor(HostTensor),
    /// Step and result.
    From(usize, usize),
}

/// A call of a sequence.
#[derive(Debug, Clone)]
pub(super) struct HostileCall {
    pub(super) op: &'static OpDef,
    pub(super) attrs: Attrs,
    pub(super) inputs: Vec<CallInput>,
}

impl fmt::Display for HostileCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.op.name)?;
        for (index, input) in self.inputs.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            match input {
                CallInput::Tensor(tensor) => write!(f, "{comma}{}", literal(tensor))?,
                CallInput::From(step, result) => write!(f, "{comma}%{step}.{result}")?,
            }
        }
        f.write_str(")")?;
        for (name, value) in self.attrs.iter() {
            write!(f, " {name}={value:?}")?;
        }
        Ok(())
    }
}

/// A tensor with as many elements as a line has room for.
fn literal(tensor: &HostTensor) -> String {
    let mut text = format!("{tensor:?}");
    if text.len() > 200 {
        let end = (0..=200).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
    }
    format!("{}{} {text}", tensor.dtype(), tensor.shape())
}

/// Where calls of an op come from.
pub(super) struct CallSource {
    op: String,
    cases: Vec<Value>,
    sequences: Vec<Value>,
}

impl CallSource {
    pub(super) fn new(op: &str, path: Option<&Path>) -> Result<CallSource> {
        let (mut cases, mut sequences) = (Vec::new(), Vec::new());
        if let Some(path) = path {
            let file = ops::read(path)?;
            let list = |key: &str| file[key].as_array().cloned().unwrap_or_default();
            // A large tensor makes a slow mutant and shows nothing that a small one does not.
            let is_small = |case: &Value| case.to_string().len() < 1 << 14;
            cases = list("cases").into_iter().filter(is_small).collect();
            sequences = list("sequences")
                .into_iter()
                .filter(|case| is_small(case) && case["mode"] != "graph")
                .collect();
        }
        Ok(CallSource { op: op.into(), cases, sequences })
    }

    /// A call, with those that lead to it; `None` for an op that no registry has.
    pub(super) fn choose(&self, rng: &mut FuzzRng, context: &Context) -> Option<Vec<HostileCall>> {
        let op = context.registry().find(&self.op)?;
        let n_recorded = self.cases.len() + self.sequences.len();
        if n_recorded > 0 && rng.chance(0.85) {
            let at = rng.below(n_recorded);
            let recorded = match at.checked_sub(self.cases.len()) {
                None => recorded(context, &self.op, &self.cases[at]).map(|call| vec![call]),
                Some(at) => sequence(context, &self.sequences[at]),
            };
            if let Ok(calls) = recorded
                && !calls.is_empty()
            {
                return Some(calls);
            }
        }
        Some(vec![suggested(op, rng)])
    }
}

fn recorded(context: &Context, op: &str, case: &Value) -> Result<HostileCall> {
    let op = context.registry().find(op).context("an op of the registry")?;
    let mut inputs = Vec::new();
    for input in case["inputs"].as_array().context("inputs")? {
        let list = input.as_array().cloned().unwrap_or_else(|| vec![input.clone()]);
        for input in list {
            inputs.push(operand(&input)?);
        }
    }
    Ok(HostileCall { op, attrs: attrs(op, &case["attrs"])?, inputs })
}

fn operand(input: &Value) -> Result<CallInput> {
    let Some(from) = input["from"].as_array() else { return Ok(CallInput::Tensor(tensor(input)?)) };
    let at = |index: usize| from.get(index).and_then(Value::as_u64).map(|n| n as usize);
    let (step, result) = at(0).zip(at(1)).context("a reference")?;
    Ok(CallInput::From(step, result))
}

fn sequence(context: &Context, sequence: &Value) -> Result<Vec<HostileCall>> {
    let steps = sequence["steps"].as_array().context("steps")?;
    let step = |step: &Value| recorded(context, step["op"].as_str().context("an op")?, step);
    steps.iter().map(step).collect()
}

/// A call that the record of an op suggests.
fn suggested(op: &'static OpDef, rng: &mut FuzzRng) -> HostileCall {
    let mut given = Attrs::new();
    for def in op.attrs {
        if rng.chance(0.6)
            && let Some(value) = def.default.value()
        {
            given.set(def.name, value);
        } else if let Some(value) = value_of(def, rng) {
            given.set(def.name, value);
        }
    }
    let dtypes = op.input_dtypes(&given).unwrap_or_default();
    let inputs = dtypes.iter().take(16).map(|&dtype| some_tensor(dtype, rng));
    let inputs = inputs.map(CallInput::Tensor).collect();
    HostileCall { op, attrs: given, inputs }
}

/// A value that fits the record.
fn value_of(def: &AttrDef, rng: &mut FuzzRng) -> Option<AttrValue> {
    let dtype = |rng: &mut FuzzRng| match def.allowed {
        Allowed::Types(types) => rng.pick(types),
        Allowed::Any | Allowed::Strings(_) => rng.pick(&[DType::F32, DType::I32, DType::I64]),
    };
    let n = rng.below(3).max(usize::try_from(def.minimum).unwrap_or(0).min(8));
    Some(match def.kind {
        AttrKind::String => AttrValue::string(match def.allowed {
            Allowed::Strings(allowed) => rng.pick(allowed),
            Allowed::Any | Allowed::Types(_) => rng.pick(&["", "a", "b"]),
        }),
        AttrKind::Int => AttrValue::Int(rng.within(def.minimum.max(0), def.minimum.max(0) + 3)),
        AttrKind::Float => AttrValue::Float(rng.pick(&[0.0, 0.5, 1.0, 2.0])),
        AttrKind::Bool => AttrValue::Bool(rng.chance(0.5)),
        AttrKind::Type => AttrValue::Type(dtype(rng)),
        AttrKind::Shape => AttrValue::Shape(PartialShape::from(some_shape(rng))),
        AttrKind::Func => AttrValue::Func(NameAttrList::new("absent")),
        AttrKind::Strings => AttrValue::Strings((0..n).map(|_| "a".into()).collect()),
        AttrKind::Ints => AttrValue::Ints((0..n).map(|_| rng.within(0, 3)).collect()),
        AttrKind::Floats => AttrValue::Floats((0..n).map(|_| 1.0).collect()),
        AttrKind::Bools => AttrValue::Bools((0..n).map(|_| rng.chance(0.5)).collect()),
        AttrKind::Types => AttrValue::Types((0..n).map(|_| dtype(rng)).collect()),
        AttrKind::Shapes => {
            AttrValue::Shapes((0..n).map(|_| PartialShape::from(some_shape(rng))).collect())
        }
        AttrKind::Tensor => AttrValue::Tensor(some_tensor(DType::F32, rng)),
        AttrKind::Tensors | AttrKind::Funcs => return None,
    })
}

/// A small shape.
pub(super) fn some_shape(rng: &mut FuzzRng) -> Shape {
    let rank = rng.pick(&[0, 0, 1, 1, 2, 2, 3, 4, 5]);
    Shape::new((0..rank).map(|_| rng.pick(&[1, 1, 2, 2, 3, 4]))).unwrap_or_default()
}

/// A small tensor.
fn some_tensor(dtype: DType, rng: &mut FuzzRng) -> HostTensor {
    of_shape(dtype, some_shape(rng), &[0, 1, 2, 3, 1, 0])
}

/// A tensor of some shape whose elements repeat small numbers; a number alone where that is too large.
pub(super) fn of_shape(dtype: DType, shape: Shape, numbers: &[u8]) -> HostTensor {
    let number = |at: usize| numbers[at % numbers.len()];
    if dtype == DType::String || dtype.size().is_none() {
        let n = shape.num_elements();
        if n > 1 << 16 {
            return HostTensor::scalar_string("");
        }
        let texts = (0..n).map(|at| number(at).to_string().into()).collect();
        return HostTensor::from_strings(shape, texts).unwrap_or(HostTensor::scalar_string(""));
    }
    let n = shape.num_elements();
    if n > 1 << 22 {
        return HostTensor::scalar(0u8);
    }
    let bytes: Vec<u8> = (0..n).flat_map(|at| element(dtype, i128::from(number(at)))).collect();
    HostTensor::from_bytes(dtype, shape, &bytes).unwrap_or(HostTensor::scalar(0u8))
}

/// The bytes of an element: a number that wraps into its type, and so may be any of an integer type.
pub(super) fn element(dtype: DType, number: i128) -> Vec<u8> {
    match dtype {
        DType::F16 => f16::from_f64(number as f64).to_le_bytes().into(),
        DType::BF16 => bf16::from_f64(number as f64).to_le_bytes().into(),
        DType::F32 => (number as f32).to_le_bytes().into(),
        DType::F64 => (number as f64).to_le_bytes().into(),
        DType::C64 => [(number as f32).to_le_bytes(), [0; 4]].concat(),
        DType::C128 => [(number as f64).to_le_bytes(), [0; 8]].concat(),
        DType::Bool => vec![(number & 1) as u8],
        other => {
            let size = other.size().unwrap_or(0);
            number.to_le_bytes().into_iter().take(size).collect()
        }
    }
}
