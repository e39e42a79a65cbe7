//! Calls of ops that run at once, and their gradients.

use ferroflow::{
    ir::{
        Attrs, DType, Error, HostTensor, OpDef, ValueType,
        build::infer_attrs,
        emit::{Emit, ValueId},
        gradient::{RecordedCall, backward, dense},
    },
    runtime::{Context, EagerTensor, execute},
};
use smallvec::SmallVec;

/// Runs calls at once, and keeps them in mind.
pub(crate) struct CallTape<'a> {
    context: &'a Context,
    pub(super) values: Vec<EagerTensor>,
    calls: Vec<RecordedCall>,
}

impl<'a> CallTape<'a> {
    pub(crate) fn new(context: &'a Context) -> CallTape<'a> {
        CallTape { context, values: Vec::new(), calls: Vec::new() }
    }

    /// A value of the tape.
    pub(crate) fn value_of(&self, id: ValueId) -> &EagerTensor {
        &self.values[id.0 as usize]
    }

    pub(crate) fn add(&mut self, value: EagerTensor) -> ValueId {
        self.values.push(value);
        ValueId(self.values.len() as u32 - 1)
    }
}

impl Emit for CallTape<'_> {
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
        self.calls.push(RecordedCall::new(op, attrs, inputs, &outputs));
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

/// The gradients of sources, dense, from those of results.
pub(crate) fn gradients(
    tape: &mut CallTape<'_>,
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
