//! Calls of known shapes some of whose host inputs turn out when they run: windows that move.

use super::dispatch::with_index;
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
    /// The values of inputs 1 and 2, where they are known.
    known: [Option<Bounds>; 2],
}

/// Where windows begin or end, along each dimension.
type Bounds = SmallVec<[i64; 8]>;

impl MovingCall {
    pub(super) fn of(call: &OpCall<'_>) -> Result<MovingCall> {
        let host = call.op.host_inputs(call.attrs)?.into_iter().collect();
        let known = [1, 2].map(|index| {
            let value = call.inputs.get(index)?.value.as_ref()?;
            value.to_i64s().ok().map(Bounds::from_vec)
        });
        let (attrs, specs) = (call.attrs.clone(), call.inputs.to_vec());
        Ok(MovingCall { op: call.op, attrs, specs, host, known })
    }

    /// The integers of inputs 1 and 2: where windows begin, and where they end or their sizes.
    pub(super) fn bounds(&self, io: &Io<'_>) -> [Bounds; 2] {
        let read = |index: usize| {
            if let Some(known) = &self.known[index - 1] {
                return known.clone();
            }
            #[expect(clippy::useless_conversion, reason = "one of the types is `i64` itself")]
            let read = with_index!(self.specs[index].dtype, I => {
                io.input::<I>(index).iter().map(|&bound| i64::from(bound)).collect()
            });
            read.unwrap_or_default()
        };
        [read(1), read(2)]
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
