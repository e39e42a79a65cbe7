//! One op on one device: the device interface, and the CPU's kernels.
//!
//! ```
//! use ferroflow_ir::{Attrs, DType, HostTensor, registry};
//! use ferroflow_kernels::{CpuDevice, Device, Io, OpCall, Operand, OperandSpec, Target, Threads};
//! # fn main() -> ferroflow_kernels::Result<()> {
//! let x = HostTensor::vector(&[1.0f32, 4.0, 9.0])?;
//! let op = registry::find("Sqrt").unwrap();
//! let attrs = Attrs::new().with("T", DType::F32);
//! let inputs = [OperandSpec::new(DType::F32, x.shape().clone())];
//! let call = OpCall::new(op, &attrs, &inputs, None)?;
//! let kernel = CpuDevice::new(0).kernel(&call)?.unwrap();
//! let mut y = HostTensor::zeros(DType::F32, call.output_shape(0)?)?;
//! let threads = Threads::single();
//! let target = Target::Plain(y.bytes_mut());
//! kernel.run(&mut Io::new([Operand::Tensor(&x)], [target], &threads, usize::MAX))?;
//! assert_eq!(y.as_slice::<f32>()?, [1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//!
//! - A kernel is compiled for the dtypes, shapes and attributes of one call, which the op's shape
//!   function has accepted; kernels rely on that and check only what depends on the data.
//! - A kernel keeps no state between runs and may run on several threads at once.
//! - Results do not depend on the number of threads.
//!
//! # What is absent on purpose
//!
//! There are no graphs, variables or function calls here, and no choice of device: see the crate
//! above.

#![allow(clippy::excessive_precision, reason = "constants stand as their sources give them")]
#![allow(clippy::neg_cmp_op_on_partial_ord, reason = "`!(a < b)` is also true of NaN")]

use std::sync::Arc;

pub mod buffer;
mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
mod elementwise;
pub mod error;
pub mod frame;
mod hash;
pub mod kernel;
mod number;
pub mod optimizer;
pub mod philox;
pub mod plan;
mod scratch;
#[cfg_attr(
    not(feature = "wgpu"),
    expect(dead_code, reason = "no device that takes programs is compiled in")
)]
mod shader;
mod simd;
mod threads;
#[cfg(feature = "wgpu")]
pub mod wgpu;
mod wide;
mod wire;

pub use buffer::{Buffer, DeviceBuffer, DeviceMemory};
pub use cpu::{CpuDevice, string::summary::summary};
pub use device::{Device, OpCall, OperandSpec};
pub use elementwise::scalar;
pub use error::{Error, Result};
pub use hash::{fingerprint::fingerprint64, murmur::hash64};
pub use kernel::{Io, Kernel, Operand, Target, check_size};
pub use threads::Threads;

/// The devices of this process besides the CPU. They are looked for once, when they are first asked
/// for; without a driver there are none.
pub fn accelerators() -> Vec<Arc<dyn Device>> {
    #[cfg_attr(not(feature = "wgpu"), expect(unused_mut, reason = "nothing else is compiled in"))]
    let mut found: Vec<Arc<dyn Device>> = Vec::new();
    #[cfg(feature = "wgpu")]
    for device in wgpu::devices() {
        found.push(device.clone());
    }
    found
}
