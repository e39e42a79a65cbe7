//! Recorded gradients, first and second, against the reverse walk.

use super::{
    derivative::Moved,
    tape::{CallTape, gradients},
    value,
};
use crate::{
    compare::{Compare, Tolerance, elements},
    outcome::CaseOutcome,
};
use anyhow::{Context as _, Result};
use ferroflow::{
    ir::{
        Attrs, DType, HostTensor,
        emit::{Emit, ValueId},
    },
    runtime::{Context, EagerTensor, execute},
};
use serde_json::Value;

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
pub(super) fn run(context: &Context, op: &str, case: &Value) -> Result<CaseOutcome> {
    let Some(record) = context.registry().find(op) else {
        return Ok(CaseOutcome::Unsupported(op.into()));
    };
    let mut tape = CallTape::new(context);
    let inputs: Vec<ValueId> =
        super::tensors(&case["inputs"])?.into_iter().map(|x| tape.add(x)).collect();
    let attrs = value::attrs(record, &case["attrs"])?;
    let outputs = match tape.emit(record, attrs.clone(), &inputs) {
        Ok(outputs) => outputs,
        Err(error) => return Ok(CaseOutcome::of_error(error.code(), error.to_string())),
    };
    let grads = &case["grads"];
    let dys = add_all(&mut tape, &flat(&grads["dy"]))?;
    let tolerance = |name: &str| case[name].as_f64().unwrap_or(1e-5).max(1e-5);
    let tolerance = Tolerance { rtol: tolerance("rtol"), atol: tolerance("atol") };
    let dtypes = dys.iter().flatten().map(|dy| tape.values[dy.0 as usize].dtype());
    let judge = Judge { context, tolerance, rounding: dtypes.map(rounding).fold(0.0, f64::max) };
    let expected = flat(&grads["dx"]);
    let seeds = pairs(&outputs, &dys);
    let dx = match gradients(&mut tape, &seeds, &inputs) {
        Ok(dx) => dx,
        Err(error) => return Ok(CaseOutcome::of_error(error.code(), error.to_string())),
    };
    if judge.differ(&tape, "dx", None, &dx, &expected)?.is_some() {
        let mut given = Vec::new();
        for (&output, &dy) in outputs.iter().zip(&dys) {
            given.push(match dy {
                Some(dy) if carries(&mut tape, (output, dy), &inputs)? => {
                    Some(tape.value_of(dy).clone())
                }
                _ => None,
            });
        }
        let values: Vec<EagerTensor> =
            inputs.iter().map(|&input| tape.value_of(input).clone()).collect();
        let moved = Moved::new(context, record, &attrs, values, given)?;
        if let Some(why) = judge.differ(&tape, "dx", Some(&moved), &dx, &expected)? {
            return Ok(CaseOutcome::Failed(why));
        }
    }
    let second = &grads["second"];
    if !second.is_object() {
        return Ok(CaseOutcome::Passed);
    }
    let dx: Vec<ValueId> = dx.into_iter().map(|dx| dx.unwrap_or(ValueId(0))).collect();
    let vs = add_all(&mut tape, &flat(&second["v"]))?;
    let seeds = pairs(&dx, &vs);
    let sources: Vec<ValueId> =
        inputs.iter().copied().chain(dys.iter().flatten().copied()).collect();
    let found = match gradients(&mut tape, &seeds, &sources) {
        Ok(found) => found,
        Err(error) => {
            return Ok(CaseOutcome::of_error(error.code(), format!("second: {error}")));
        }
    };
    let (by_x, by_dy) = found.split_at(inputs.len());
    let expected: Vec<Value> = flat(&second["ddy"])
        .into_iter()
        .zip(&dys)
        .filter(|(_, dy)| dy.is_some())
        .map(|(v, _)| v)
        .collect();
    let why = match judge.differ(&tape, "second dx", None, by_x, &flat(&second["dx"]))? {
        Some(why) => Some(why),
        None => judge.differ(&tape, "ddy", None, by_dy, &expected)?,
    };
    Ok(why.map_or(CaseOutcome::Passed, CaseOutcome::Failed))
}

fn add_all(tape: &mut CallTape<'_>, recorded: &[Value]) -> Result<Vec<Option<ValueId>>> {
    let add = |recorded: &Value| match recorded {
        Value::Null => Ok(None),
        recorded => Ok(Some(tape.add(value::tensor(recorded)?.into()))),
    };
    recorded.iter().map(add).collect()
}

fn pairs(values: &[ValueId], gradients: &[Option<ValueId>]) -> Vec<(ValueId, ValueId)> {
    values.iter().zip(gradients).filter_map(|(&value, &dy)| Some((value, dy?))).collect()
}

/// Whether gradients go through an output at all: gates of a cell, say, have none.
fn carries(tape: &mut CallTape<'_>, seed: (ValueId, ValueId), inputs: &[ValueId]) -> Result<bool> {
    for gradient in gradients(tape, &[seed], inputs)?.into_iter().flatten() {
        if !is_zero(tape.value_of(gradient).host()?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The relative error of what was added up in floats of this dtype, at places that nobody has
/// fixed.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 4.0 / 2048.0,
        DType::BF16 => 4.0 / 256.0,
        _ => 0.0,
    }
}

/// Comparison of gradients.
struct Judge<'a> {
    context: &'a Context,
    /// That of the case.
    tolerance: Tolerance,
    /// That of the gradients of the results.
    rounding: f64,
}

impl Judge<'_> {
    /// Difference between two answers. Where `moved` is given and knows that the recorded gradient
    /// is not the derivative of the op while the one that was found is, nothing does.
    fn differ(
        &self,
        tape: &CallTape<'_>,
        what: &str,
        moved: Option<&Moved<'_>>,
        found: &[Option<ValueId>],
        expected: &[Value],
    ) -> Result<Option<String>> {
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            let found = found.map(|id| tape.values.get(id.0 as usize).context("a value"));
            let found = found.transpose()?;
            let expected = match expected {
                Value::Null => None,
                expected => Some(value::tensor(expected)?),
            };
            let why = match (found, expected) {
                (None, None) => continue,
                // Where nothing depends on an input TensorFlow may say so, or give zeros.
                (Some(found), None) if is_zero(found.host()?) => continue,
                (Some(_), None) => "a gradient instead of none".to_string(),
                (None, Some(expected)) if is_zero(&expected) => continue,
                (None, Some(_)) => "no gradient".to_string(),
                (Some(found), Some(expected)) => {
                    let expected = self.summed(expected, found.host()?)?;
                    let tolerance = self.tolerance(&expected);
                    match Compare::Close(tolerance).check(found.host()?, &expected) {
                        Ok(()) => continue,
                        Err(error) => match moved {
                            Some(moved) if moved.decides(index, found, &expected, tolerance)? => {
                                continue;
                            }
                            _ => error.to_string(),
                        },
                    }
                }
            };
            return Ok(Some(format!("{what} {index}: {why}")));
        }
        Ok(None)
    }

    /// Of sums of 16-bit floats it is a share of what was added up, for which the largest element
    /// stands.
    fn tolerance(&self, expected: &HostTensor) -> Tolerance {
        let rounding = self.rounding.max(rounding(expected.dtype()));
        let sizes = elements(expected).unwrap_or_default().into_iter().map(f64::abs);
        let largest = sizes.filter(|size| size.is_finite()).fold(1.0, f64::max);
        let Tolerance { rtol, atol } = self.tolerance;
        Tolerance { rtol: rtol.max(rounding), atol: atol.max(rounding * largest) }
    }

    /// The gradient of an input that was broadcast, in its shape: for some ops TensorFlow gives it
    /// in that of the result.
    fn summed(&self, expected: HostTensor, found: &HostTensor) -> Result<HostTensor> {
        let (from, to) = (expected.shape(), found.shape());
        if from == to || from.rank() != to.rank() {
            return Ok(expected);
        }
        let axes: Vec<i64> = (0..from.rank())
            .filter(|&axis| to[axis] == 1 && from[axis] != 1)
            .map(|axis| axis as i64)
            .collect();
        let attrs = Attrs::new().with("T", expected.dtype()).with("Tidx", DType::I64);
        let inputs = [expected.into(), HostTensor::vector(&axes)?.into()];
        let sum = execute(self.context, "Sum", attrs.with("keep_dims", true), &inputs)?;
        Ok(sum[0].host()?.clone())
    }
}

fn is_zero(tensor: &HostTensor) -> bool {
    tensor.bytes().iter().all(|&byte| byte & 0x7f == 0)
}
