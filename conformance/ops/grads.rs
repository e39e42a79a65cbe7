//! Recorded gradients, first and second, against the reverse walk.

use super::value;
use crate::{
    compare::{Compare, Tolerance},
    outcome::Outcome,
};
use anyhow::{Context as _, Result};
use ferroflow::{
    ir::{
        Attrs, DType, Error, HostTensor, OpDef, ValueType,
        build::infer_attrs,
        emit::{Emit, ValueId},
        gradient::{Call, backward, dense},
    },
    runtime::{Context, EagerTensor, execute},
};
use serde_json::Value;
use smallvec::SmallVec;

/// Runs calls at once, and keeps them in mind.
struct Tape<'a> {
    context: &'a Context,
    values: Vec<EagerTensor>,
    calls: Vec<Call>,
}

impl Tape<'_> {
    fn add(&mut self, value: EagerTensor) -> ValueId {
        self.values.push(value);
        ValueId(self.values.len() as u32 - 1)
    }
}

impl Emit for Tape<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: &[ValueId],
    ) -> ferroflow::ir::Result<SmallVec<[ValueId; 2]>> {
        let values: Vec<EagerTensor> =
            inputs.iter().map(|id| self.values[id.0 as usize].clone()).collect();
        let dtypes: Vec<DType> = values.iter().map(EagerTensor::dtype).collect();
        let attrs = op.complete_attrs(infer_attrs(op, attrs, &dtypes))?;
        let results = execute(self.context, op.name, attrs.clone(), &values).map_err(|error| {
            let detail = error.to_string();
            Error::Status { code: error.code(), op: op.name.into(), detail }
        })?;
        let outputs: SmallVec<[ValueId; 2]> =
            results.into_iter().map(|result| self.add(result)).collect();
        self.calls.push(Call {
            op,
            attrs: attrs.into(),
            inputs: inputs.into(),
            outputs: outputs.clone(),
            name: "".into(),
            custom: None,
        });
        Ok(outputs)
    }

    fn constant(&mut self, tensor: HostTensor) -> ferroflow::ir::Result<ValueId> {
        Ok(self.add(tensor.into()))
    }

    fn ty(&self, id: ValueId) -> ValueType {
        let value = &self.values[id.0 as usize];
        ValueType::new(value.dtype(), value.shape())
    }

    fn value(&self, id: ValueId) -> Option<HostTensor> {
        self.values[id.0 as usize].host().ok().cloned()
    }
}

/// Values and what is recorded for each, lists flattened.
fn flat(list: &Value) -> Vec<Value> {
    let items = list.as_array().cloned().unwrap_or_default();
    let flatten = |item: Value| match item {
        Value::Array(items) => items,
        item => vec![item],
    };
    items.into_iter().flat_map(flatten).collect()
}

/// Compares the gradients of a case with those recorded.
pub(super) fn run(context: &Context, op: &str, case: &Value) -> Result<Outcome> {
    let Some(record) = context.registry().find(op) else {
        return Ok(Outcome::Unsupported(op.into()));
    };
    let mut tape = Tape { context, values: Vec::new(), calls: Vec::new() };
    let inputs: Vec<ValueId> =
        super::tensors(&case["inputs"])?.into_iter().map(|x| tape.add(x)).collect();
    let attrs = value::attrs(record, &case["attrs"])?;
    let outputs = match tape.emit(record, attrs, &inputs) {
        Ok(outputs) => outputs,
        Err(error) => return Ok(Outcome::of_error(error.code(), error.to_string())),
    };
    let grads = &case["grads"];
    let dys = add_all(&mut tape, &flat(&grads["dy"]))?;
    // Sums of 16-bit floats are rounded at places that nobody has fixed.
    let rounding = dys.iter().flatten().map(|dy| match tape.values[dy.0 as usize].dtype() {
        DType::F16 => 4.0 / 2048.0,
        DType::BF16 => 4.0 / 256.0,
        _ => 1e-5,
    });
    let least = rounding.fold(1e-5, f64::max);
    let tolerance = |name: &str| case[name].as_f64().unwrap_or(1e-5).max(least);
    let compare = Compare::Close(Tolerance { rtol: tolerance("rtol"), atol: tolerance("atol") });
    let expected = flat(&grads["dx"]);
    let seeds = pairs(&outputs, &dys);
    let dx = match gradients(&mut tape, &seeds, &inputs) {
        Ok(dx) => dx,
        Err(error) => return Ok(Outcome::of_error(error.code(), error.to_string())),
    };
    if let Some(why) = differ(&tape, compare, "dx", &dx, &expected)? {
        return Ok(Outcome::Failed(why));
    }
    let second = &grads["second"];
    if !second.is_object() {
        return Ok(Outcome::Passed);
    }
    let dx: Vec<ValueId> = dx.into_iter().map(|dx| dx.unwrap_or(ValueId(0))).collect();
    let vs = add_all(&mut tape, &flat(&second["v"]))?;
    let seeds = pairs(&dx, &vs);
    let sources: Vec<ValueId> =
        inputs.iter().copied().chain(dys.iter().flatten().copied()).collect();
    let found = match gradients(&mut tape, &seeds, &sources) {
        Ok(found) => found,
        Err(error) => {
            return Ok(Outcome::of_error(error.code(), format!("second: {error}")));
        }
    };
    let (by_x, by_dy) = found.split_at(inputs.len());
    let expected: Vec<Value> = flat(&second["ddy"])
        .into_iter()
        .zip(&dys)
        .filter(|(_, dy)| dy.is_some())
        .map(|(v, _)| v)
        .collect();
    let why = match differ(&tape, compare, "second dx", by_x, &flat(&second["dx"]))? {
        Some(why) => Some(why),
        None => differ(&tape, compare, "ddy", by_dy, &expected)?,
    };
    Ok(why.map_or(Outcome::Passed, Outcome::Failed))
}

fn add_all(tape: &mut Tape<'_>, recorded: &[Value]) -> Result<Vec<Option<ValueId>>> {
    let add = |recorded: &Value| match recorded {
        Value::Null => Ok(None),
        recorded => Ok(Some(tape.add(value::tensor(recorded)?.into()))),
    };
    recorded.iter().map(add).collect()
}

fn pairs(values: &[ValueId], gradients: &[Option<ValueId>]) -> Vec<(ValueId, ValueId)> {
    values.iter().zip(gradients).filter_map(|(&value, &dy)| Some((value, dy?))).collect()
}

fn gradients(
    tape: &mut Tape<'_>,
    seeds: &[(ValueId, ValueId)],
    sources: &[ValueId],
) -> ferroflow::ir::Result<Vec<Option<ValueId>>> {
    let calls = tape.calls.clone();
    let found = backward(tape, &calls, seeds, sources)?;
    let dense = |(gradient, &source): (Option<_>, &ValueId)| match gradient {
        Some(gradient) => dense(tape, gradient, source).map(Some),
        None => Ok(None),
    };
    found.into_iter().zip(sources).map(dense).collect()
}

fn differ(
    tape: &Tape<'_>,
    compare: Compare,
    what: &str,
    found: &[Option<ValueId>],
    expected: &[Value],
) -> Result<Option<String>> {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let why = match (found, expected) {
            (None, Value::Null) => continue,
            // Where nothing depends on an input TensorFlow may say so, or give zeros.
            (Some(id), Value::Null) => {
                let zeros =
                    tape.values[id.0 as usize].host()?.bytes().iter().all(|&b| b & 0x7f == 0);
                if zeros {
                    continue;
                }
                "a gradient instead of none".to_string()
            }
            (None, expected) => {
                let expected = value::tensor(expected)?;
                if expected.bytes().iter().all(|&byte| byte & 0x7f == 0) {
                    continue;
                }
                "no gradient".to_string()
            }
            (Some(id), expected) => {
                let found = tape.values.get(id.0 as usize).context("a value")?;
                match compare.check(found.host()?, &value::tensor(expected)?) {
                    Ok(()) => continue,
                    Err(error) => error.to_string(),
                }
            }
        };
        return Ok(Some(format!("{what} {index}: {why}")));
    }
    Ok(None)
}
