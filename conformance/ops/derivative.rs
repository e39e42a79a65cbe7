//! Choice of the gradient that is the derivative, among two: the op itself is moved a little.
//!
//! In a few places TensorFlow's gradient is not the derivative of the op: `MatrixDiagV2` and its
//! kin have those of `…V3`, which aligns diagonals differently; `Polygamma` in `float32` fails left
//! of 0; some take the other side of a branch cut. There the op decides.

use crate::compare::{Tolerance, elements, floats, with_elements};
use anyhow::{Context as _, Result};
use ferroflow::{
    ir::{AttrValue, Attrs, DType, HostTensor, OpDef},
    runtime::{Context, EagerTensor, execute},
};

/// A call, and the gradients of its results.
pub(super) struct Moved<'a> {
    context: &'a Context,
    op: &'a str,
    attrs: Attrs,
    inputs: Vec<EagerTensor>,
    dys: Vec<Option<EagerTensor>>,
}

/// Distance by which an element is moved, relative to its size.
fn step(dtype: DType) -> f64 {
    let bits = match dtype {
        DType::F16 | DType::BF16 => 3,
        DType::F32 | DType::C64 => 9,
        _ => 18,
    };
    f64::from(1u32 << bits).recip()
}

/// The number of floats in an element.
fn parts(dtype: DType) -> usize {
    if dtype.is_complex() { 2 } else { 1 }
}

/// The most exact dtype of the same kind.
fn widest(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => DType::F64,
        DType::C64 => DType::C128,
        other => other,
    }
}

impl<'a> Moved<'a> {
    /// The call, with floats as exact as the op takes them.
    pub(super) fn new(
        context: &'a Context,
        op: &'a OpDef,
        attrs: &Attrs,
        inputs: Vec<EagerTensor>,
        dys: Vec<Option<EagerTensor>>,
    ) -> Result<Moved<'a>> {
        let exact = Moved::as_recorded(context, op, attrs, &inputs, &dys, widest);
        match exact {
            Ok(exact) if exact.results(&exact.inputs).is_ok() => Ok(exact),
            _ => Moved::as_recorded(context, op, attrs, &inputs, &dys, |dtype| dtype),
        }
    }

    fn as_recorded(
        context: &'a Context,
        op: &'a OpDef,
        attrs: &Attrs,
        inputs: &[EagerTensor],
        dys: &[Option<EagerTensor>],
        of: impl Fn(DType) -> DType,
    ) -> Result<Moved<'a>> {
        let wider = |tensor: &EagerTensor| -> Result<EagerTensor> {
            let host = tensor.host()?;
            match elements(host) {
                Some(values) => Ok(floats(of(host.dtype()), host.shape(), &values)?.into()),
                None => Ok(tensor.clone()),
            }
        };
        let attr = |(name, value): (&str, &AttrValue)| match value {
            AttrValue::Type(dtype) => (name.to_string(), AttrValue::Type(of(*dtype))),
            value => (name.to_string(), value.clone()),
        };
        let attrs = attrs.iter().map(attr).collect();
        let inputs = inputs.iter().map(wider).collect::<Result<_>>()?;
        let dys = dys.iter().map(|dy| dy.as_ref().map(wider).transpose()).collect::<Result<_>>()?;
        Ok(Moved { context, op: op.name, attrs, inputs, dys })
    }

    /// Whether, where the two gradients by an input differ, the op moves as `found` says and not as
    /// recorded: on one side at least, as it may jump on the other.
    pub(super) fn decides(
        &self,
        input: usize,
        found: &EagerTensor,
        recorded: &HostTensor,
        tolerance: Tolerance,
    ) -> Result<bool> {
        if found.host()?.shape() != recorded.shape() {
            return Ok(false);
        }
        let found = elements(found.host()?).context("floats")?;
        let recorded = elements(recorded).context("floats")?;
        let host = self.inputs[input].host()?;
        let (at, parts) = (elements(host).context("floats")?, parts(host.dtype()));
        let (mut from_found, mut from_recorded) = (0.0, 0.0);
        for (element, (&found, &recorded)) in found.iter().zip(&recorded).enumerate() {
            // At infinity there is no derivative.
            let first = element - element % parts;
            let is_finite = at[first..first + parts].iter().all(|part| part.is_finite());
            if tolerance.accepts(found, recorded) || !is_finite {
                continue;
            }
            let up = self.slope(input, element, 1.0)?;
            let down = self.slope(input, element, -1.0)?;
            let slopes = [up, down, (up + down) / 2.0];
            let distance = |value: f64| {
                let nearest = slopes.iter().map(|slope| (slope - value).abs());
                nearest.fold(f64::INFINITY, f64::min)
            };
            from_found += distance(found).powi(2);
            from_recorded += match distance(recorded) {
                distance if distance.is_finite() => distance.powi(2),
                _ => found.powi(2).max(1.0),
            };
        }
        Ok(from_found <= from_recorded / 64.0)
    }

    /// Change of the results, weighed by their gradients, when an element moves to one side.
    fn slope(&self, input: usize, element: usize, side: f64) -> Result<f64> {
        let host = self.inputs[input].host()?;
        let before = elements(host).context("floats")?;
        let size = if before[element] == 0.0 { 1.0 } else { before[element].abs() };
        let mut after = before.clone();
        after[element] += side * size * step(host.dtype());
        let moved = with_elements(host, &after)?;
        let distance = elements(&moved).context("floats")?[element] - before[element];
        let mut inputs = self.inputs.clone();
        let (start, end) = (self.results(&inputs)?, {
            inputs[input] = moved.into();
            self.results(&inputs)?
        });
        let mut sum = 0.0;
        for ((start, end), dy) in start.iter().zip(&end).zip(&self.dys) {
            let Some(dy) = dy else { continue };
            let (Some(start), Some(end)) = (elements(start.host()?), elements(end.host()?)) else {
                continue;
            };
            let dy = elements(dy.host()?).context("floats")?;
            for ((start, end), dy) in start.into_iter().zip(end).zip(dy) {
                if start != end && !(start.is_nan() && end.is_nan()) {
                    sum += (end - start) * dy;
                }
            }
        }
        Ok(sum / distance)
    }

    fn results(&self, inputs: &[EagerTensor]) -> Result<Vec<EagerTensor>> {
        Ok(execute(self.context, self.op, self.attrs.clone(), inputs)?.into_vec())
    }
}
