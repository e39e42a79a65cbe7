//! Ops that read sparse tensors from messages.

use crate::{convert, proto::TensorProto};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error as IrError, Handle, HostTensor};
use ferroflow_runtime::{
    Context, Error, Result, Results,
    ops::RuntimeCall,
    sparse::{Sparse, stack},
};
use prost::Message;
use std::sync::Arc;

/// Makes the ops known to a context.
pub(crate) fn add_ops(context: &Context) {
    context.add_host_op("DeserializeManySparse", deserialize);
    context.add_host_op("DeserializeSparse", deserialize);
}

/// Sparse tensors as triples of messages (coordinates, elements, sizes), behind any dimensions.
fn deserialize(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let serialized = call.host(0)?;
    let Some((3, outer)) = serialized.shape().split_last() else {
        let expected = "triples";
        let found = serialized.shape();
        return Err(IrError::argument(call.op.name, "serialized_sparse", expected, found).into());
    };
    let parts: Result<Vec<Sparse>> = match serialized.dtype() {
        DType::Variant => {
            serialized.handles()?.chunks(3).map(|triple| held(call, triple)).collect()
        }
        _ => serialized.strings()?.chunks(3).map(|triple| written(call, triple)).collect(),
    };
    let parts = parts?;
    let results = stack(call.context(), outer, &parts, call.attrs.dtype("dtype")?)?;
    Ok(results.into_iter().map(Into::into).collect())
}

/// A sparse tensor of three tensors that are values of dtype variant.
fn held(call: &RuntimeCall<'_>, triple: &[Arc<dyn Handle>]) -> Result<Sparse> {
    let part = |index: usize| {
        let found = triple[index].as_any().downcast_ref::<HostTensor>();
        found.ok_or_else(|| -> Error {
            let (expected, found) = ("tensors", format!("{:?}", triple[index]));
            IrError::argument(call.op.name, "serialized_sparse", expected, found).into()
        })
    };
    Sparse::new(part(0)?, part(1)?, part(2)?)
}

/// A sparse tensor of three messages.
fn written(call: &RuntimeCall<'_>, triple: &[Bytes]) -> Result<Sparse> {
    let part = |index: usize| tensor(call, &triple[index]);
    Sparse::new(&part(0)?, &part(1)?, &part(2)?)
}

fn tensor(call: &RuntimeCall<'_>, bytes: &Bytes) -> Result<HostTensor> {
    let damaged = |error: prost::DecodeError| -> Error {
        let (op, detail) = (call.op.name.into(), format!("no tensor: {error}"));
        IrError::Status { code: Code::InvalidArgument, op, detail }.into()
    };
    let message = TensorProto::decode(bytes.clone()).map_err(damaged)?;
    Ok(convert::tensor(&message, call.context().limits())?)
}
