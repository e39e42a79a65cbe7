//! Ops that read sparse tensors from messages.

use crate::{convert, proto::TensorProto};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor};
use ferroflow_runtime::{
    Context, Error, Result, Results,
    ops::RuntimeCall,
    sparse::{Sparse, stack},
};
use prost::Message;

/// Makes the ops known to a context.
pub(crate) fn add_ops(context: &Context) {
    context.add_host_op("DeserializeManySparse", deserialize);
    context.add_host_op("DeserializeSparse", deserialize);
}

/// Sparse tensors as triples of messages (places, elements, sizes), behind any dimensions.
fn deserialize(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let serialized = call.host(0)?;
    if serialized.dtype() == DType::Variant {
        let what = "sparse tensors that are values of dtype variant".into();
        return Err(IrError::Unsupported { op: call.op.name.into(), what }.into());
    }
    let Some((3, outer)) = serialized.shape().split_last() else {
        let expected = "triples";
        let found = serialized.shape();
        return Err(IrError::argument(call.op.name, "serialized_sparse", expected, found).into());
    };
    let parts = serialized.strings()?.chunks(3).map(|triple| {
        let part = |bytes: &Bytes| tensor(call, bytes);
        Sparse::new(&part(&triple[0])?, &part(&triple[1])?, &part(&triple[2])?)
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    let results = stack(call.context(), outer, &parts, call.attrs.dtype("dtype")?)?;
    Ok(results.into_iter().map(Into::into).collect())
}

fn tensor(call: &RuntimeCall<'_>, bytes: &Bytes) -> Result<HostTensor> {
    let damaged = |error: prost::DecodeError| -> Error {
        let (op, detail) = (call.op.name.into(), format!("no tensor: {error}"));
        IrError::Status { code: Code::InvalidArgument, op, detail }.into()
    };
    let message = TensorProto::decode(bytes.clone()).map_err(damaged)?;
    Ok(convert::tensor(&message, call.context().limits())?)
}
