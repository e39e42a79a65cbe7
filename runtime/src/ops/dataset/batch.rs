//! Data sets of elements stacked to batches.

use super::{Cardinality, Components, Dataset, DatasetSource, KeptBytes, Stream, map};
use crate::{
    context::Context,
    eager_tensor::Results,
    error::Result,
    ops::RuntimeCall,
    rows::{RowRun, join, stacked},
    scope::Scope,
};
use ferroflow_ir::{Error as IrError, HostTensor};

/// A number of elements at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batching {
    pub(super) size: usize,
    pub(super) drop_remainder: bool,
}

impl Batching {
    /// The next elements; nothing at the end.
    pub(super) fn next(
        self,
        scope: Scope<'_>,
        input: &mut Stream,
    ) -> Result<Option<Vec<Components>>> {
        let (mut elements, mut kept) = (Vec::new(), KeptBytes::default());
        while elements.len() < self.size {
            let Some(element) = input.next(scope)? else { break };
            kept.add(scope, &element)?;
            elements.push(element);
        }
        let is_short = elements.len() < self.size && self.drop_remainder;
        Ok(Some(elements).filter(|elements| !elements.is_empty() && !is_short))
    }

    pub(super) fn cardinality(self, input: Cardinality) -> Cardinality {
        let size = self.size as u64;
        input.map(|n| if self.drop_remainder { n / size } else { n.div_ceil(size) })
    }
}

#[derive(Debug)]
struct Batch {
    input: Dataset,
    op: &'static str,
    batches: Batching,
}

impl DatasetSource for Batch {
    fn stream(&self) -> Stream {
        let (mut input, batches, op) = (self.input.stream(), self.batches, self.op);
        Stream::new(move |scope| {
            let elements = batches.next(scope, &mut input)?;
            elements.map(|elements| stack(scope.context, op, &elements)).transpose()
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.batches.cardinality(self.input.cardinality())
    }
}

/// Elements stacked along a new first dimension, component by component.
///
/// # Errors
///
/// When the components differ in number, dtype or shape, or a result is too large.
pub(super) fn stack(
    context: &Context,
    op: &'static str,
    elements: &[Components],
) -> Result<Components> {
    let n_components = elements.first().map_or(0, Vec::len);
    (0..n_components)
        .map(|index| {
            let tensors: Option<Vec<&HostTensor>> =
                elements.iter().map(|element| element.get(index)).collect();
            let tensors = tensors.filter(|_| elements.iter().all(|e| e.len() == n_components));
            let tensors = tensors.ok_or_else(|| {
                let expected = format!("of {n_components} components, as the first");
                IrError::argument(op, "elements", expected, "others")
            })?;
            stack_tensors(context, op, &tensors)
        })
        .collect()
}

fn stack_tensors(
    context: &Context,
    op: &'static str,
    tensors: &[&HostTensor],
) -> Result<HostTensor> {
    let (dtype, shape) = (tensors[0].dtype(), tensors[0].shape());
    if let Some(other) = tensors.iter().find(|tensor| tensor.shape() != shape) {
        let expected = format!("of shape {shape}, as the first of the batch");
        return Err(IrError::argument(op, "elements", expected, other.shape()).into());
    }
    let parts: Vec<RowRun<'_>> = tensors.iter().map(|tensor| RowRun::Tensor(tensor)).collect();
    join(context, dtype, stacked(tensors.len(), shape)?, &parts)
}

/// The batch size of a call, and whether it drops the remainder; the sizes begin at input `size`.
pub(super) fn batches(call: &RuntimeCall<'_>, size: usize) -> Result<Batching> {
    let last = call.inputs.len().saturating_sub(1);
    let has_flag = call.op.inputs.last().is_some_and(|input| input.name == "drop_remainder");
    let drop_remainder = has_flag && call.host(last)?.as_bool()?;
    Ok(Batching { size: call.count(size, "batch_size")?, drop_remainder })
}

pub(super) fn batch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let batches = batches(call, 1)?;
    call.check_parallel_calls(2, i64::MAX)?;
    call.dataset(Batch { input: call.input_dataset(0)?, op: call.op.name, batches })
}

/// A function of each element, whose results are stacked.
#[derive(Debug)]
struct MapAndBatch {
    map: map::Map,
    op: &'static str,
    batches: Batching,
}

impl DatasetSource for MapAndBatch {
    fn stream(&self) -> Stream {
        let (mut input, batches, op) = (self.map.stream(), self.batches, self.op);
        Stream::new(move |scope| {
            let elements = batches.next(scope, &mut input)?;
            elements.map(|elements| stack(scope.context, op, &elements)).transpose()
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.batches.cardinality(self.map.cardinality())
    }
}

pub(super) fn map_and_batch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let others = 1 + map::n_types(call, "Targuments")?;
    let batches = batches(call, others)?;
    call.check_parallel_calls(others + 1, i64::MAX)?;
    call.dataset(MapAndBatch { map: map::of_call(call)?, op: call.op.name, batches })
}
