//! Kernels of ops of the user's own.

use crate::{context::Context, error::Result, sync::RwLock};
use ferroflow_ir::{Lowering, OpDef};
use ferroflow_kernels::{Kernel, OpCall};
use std::{collections::HashMap, fmt, sync::Arc};

/// A function that makes the kernel of a call.
type MakeKernel =
    dyn Fn(&OpCall<'_>) -> ferroflow_kernels::Result<Option<Arc<dyn Kernel>>> + Send + Sync;

/// The functions that make kernels, by the names of ops.
#[derive(Default)]
pub(crate) struct RegisteredKernels(RwLock<HashMap<&'static str, Arc<MakeKernel>>>);

impl RegisteredKernels {
    fn add(&self, op: &'static OpDef, make: Arc<MakeKernel>) {
        self.0.write().insert(op.name, make);
    }

    /// The function for an op.
    pub(crate) fn find(&self, op: &OpDef) -> Option<Arc<MakeKernel>> {
        self.0.read().get(op.name).cloned()
    }
}

impl fmt::Debug for RegisteredKernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.read().keys()).finish()
    }
}

impl Context {
    /// Registers an op of the user's own with kernels for the CPU: a record whose lowering is
    /// [`Lowering::Kernel`], and a function that makes the kernel of a call from its attributes and
    /// shapes. Calls run it like a kernel of this crate: its results are in the memory that the plan
    /// of the program has for them, over an operand that is no longer needed where
    /// [`Kernel::in_place`] allows it, and [`Io::threads`](ferroflow_kernels::Io::threads) shares the
    /// work. Plans with other devices bring its operands to the host.
    ///
    /// ```
    /// use ferroflow_ir::{Attrs, DType, HostTensor, Lowering, OpDef, infer, op::arg_of};
    /// use ferroflow_kernels::Io;
    /// use ferroflow_runtime::{Context, execute};
    /// use std::sync::Arc;
    ///
    /// const TWICE: OpDef = OpDef {
    ///     name: "Acme>TwiceEach",
    ///     summary: "Doubles each element.",
    ///     inputs: &[arg_of("x", DType::F32)],
    ///     outputs: &[arg_of("y", DType::F32)],
    ///     infer: infer::unchanged,
    ///     lowering: Lowering::Kernel,
    ///     ..OpDef::PURE
    /// };
    /// let context = Context::new();
    /// context.register_kernel(TWICE, |_call| {
    ///     Ok(Some(Arc::new(|io: &mut Io<'_>| {
    ///         let (x, y) = (io.input::<f32>(0), io.output::<f32>(0));
    ///         y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
    ///         Ok(())
    ///     })))
    /// })?;
    /// let x = HostTensor::vector(&[1.0f32, 2.0])?;
    /// let y = execute(&context, "Acme>TwiceEach", Attrs::new(), &[x.into()])?;
    /// assert_eq!(y[0].host()?.as_slice::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), ferroflow_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When there is an op of this name already, or the record says another lowering.
    pub fn register_kernel(
        &self,
        op: OpDef,
        make: impl Fn(&OpCall<'_>) -> ferroflow_kernels::Result<Option<Arc<dyn Kernel>>>
        + Send
        + Sync
        + 'static,
    ) -> Result<&'static OpDef> {
        if !matches!(op.lowering, Lowering::Kernel) {
            let found = format!("{:?}", op.lowering);
            let error = ferroflow_ir::Error::argument(op.name, "lowering", "`Kernel`", found);
            return Err(error.into());
        }
        let op = self.registry().register(op)?;
        self.registered_kernels().add(op, Arc::new(make));
        Ok(op)
    }
}
