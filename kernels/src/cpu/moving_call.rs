//! Calls of known shapes some of whose host inputs turn out when they run: windows that move.

use crate::{
    Precision,
    device::{OpCall, OperandSpec},
    error::Result,
    kernel::Io,
};
use ferroflow_ir::{Attrs, OpDef, infer::OpContext};
use smallvec::SmallVec;

/// A call whose host inputs are read each time that it runs.
pub(super) struct MovingCall {
    op: &'static OpDef,
    attrs: Attrs,
    specs: Vec<OperandSpec>,
    /// The inputs whose values tell the windows.
    host: Vec<bool>,
}

impl MovingCall {
    pub(super) fn of(call: &OpCall<'_>) -> Result<MovingCall> {
        let host = call.op.host_inputs(call.attrs)?.into_iter().collect();
        Ok(MovingCall { op: call.op, attrs: call.attrs.clone(), specs: call.inputs.to_vec(), host })
    }

    pub(super) fn name(&self) -> &'static str {
        self.op.name
    }

    /// The result of `read`, which looks at the call with the host inputs that there are.
    pub(super) fn with_context<T>(
        &self,
        io: &Io<'_>,
        read: impl FnOnce(&OpContext<'_>) -> ferroflow_ir::Result<T>,
    ) -> Result<T> {
        let mut specs: SmallVec<[OperandSpec; 5]> = SmallVec::new();
        for (index, (spec, &host)) in self.specs.iter().zip(&self.host).enumerate() {
            specs.push(match &spec.value {
                None if host => OperandSpec::known(io.to_host(index, spec)?),
                _ => spec.clone(),
            });
        }
        let call = OpCall {
            op: self.op,
            attrs: &self.attrs,
            inputs: &specs,
            outputs: SmallVec::new(),
            expr: None,
            precision: Precision::Full,
        };
        call.with_context(read)
    }
}
