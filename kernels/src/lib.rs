//! Kernels of single ops on single devices: the device interface, and the CPU's kernels.
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
pub mod cost;
mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
mod elementwise;
pub mod error;
pub mod forest;
pub mod frame;
mod hash;
pub mod instructions;
pub mod kernel;
pub mod kernel_graph;
mod number;
pub mod optimizer;
pub mod philox;
pub mod plan;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod program_cache;
#[cfg(feature = "cuda")]
mod schedule;
mod scratch;
pub mod shader;
mod simd;
mod sync;
mod tensor_message;
mod threads;
#[cfg(feature = "wgpu")]
pub mod wgpu;
mod wide;

pub use buffer::{Buffer, DeviceBuffer, DeviceMemory};
#[cfg(feature = "text")]
pub use cpu::text::{sentencepiece, wordpiece::table as wordpiece};
pub use cpu::{CpuDevice, machine, missing_feature, string::summary::summary};
pub use device::{Device, OpCall, OperandSpec, Precision, Storage, Support};
pub use elementwise::scalar;
pub use error::{Error, Result};
pub use ferroflow_ir as ir;
pub use hash::{fingerprint::fingerprint64, murmur::hash64};
pub use kernel::{Io, Kernel, Operand, Target, check_size};
pub use threads::{ActiveCall, Threads};

/// A kind of devices besides the CPU.
#[derive(Debug)]
pub struct DeviceKind {
    /// Name of the kernel: the `GPU` of `/device:GPU:0`.
    pub name: &'static str,
    /// Those of this process. They are looked for once, when they are first asked for; without a
    /// driver there are none.
    pub devices: fn() -> Vec<Arc<dyn Device>>,
    /// The same, but none where they have not been asked for.
    pub connected: fn() -> Vec<Arc<dyn Device>>,
    /// Why there are none, if there are none.
    pub absence: fn() -> Option<String>,
}

/// The kinds that are compiled in.
pub const KINDS: &[DeviceKind] = &[
    #[cfg(feature = "cuda")]
    DeviceKind {
        name: "GPU",
        devices: || cuda::devices().iter().map(|device| device.clone() as _).collect(),
        connected: || cuda::connected().iter().map(|device| device.clone() as _).collect(),
        absence: || cuda::probe().err().map(|reason| reason.to_string()),
    },
    #[cfg(feature = "wgpu")]
    DeviceKind {
        name: "WGPU",
        devices: || wgpu::devices().iter().map(|device| device.clone() as _).collect(),
        connected: || wgpu::connected().iter().map(|device| device.clone() as _).collect(),
        absence: || wgpu::devices().is_empty().then(|| "wgpu finds no adapter".into()),
    },
];

/// The devices of this process besides the CPU, of every kind.
pub fn accelerators() -> Vec<Arc<dyn Device>> {
    KINDS.iter().flat_map(|kind| (kind.devices)()).collect()
}
