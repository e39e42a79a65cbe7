//! Who runs where, and what is copied for that.
//!
//! A call runs where it asks to, or where its variables are, or where the function was called, or
//! where its inputs are: in this order, and only if that device has a kernel for it. Everything else
//! runs on the CPU. Nothing of this is silent: [`Placement`] tells of each call where it runs and
//! why, and of each copy how large it is and how often it is made.

use crate::plan::Origin;
use ferroflow_ir::{DType, Shape, device_name::DeviceName, host_tensor::byte_len};
use ferroflow_kernels::Device;
use std::{fmt, sync::Arc};

/// Where the calls of a function run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// The calls, in the order in which they run. What became part of others or was computed ahead
    /// is not among them.
    pub calls: Vec<PlacedCall>,
    /// What is copied from one device to another.
    pub copies: Vec<PlacedCopy>,
}

/// A call and where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedCall {
    /// The node.
    pub node: String,
    /// The op; `_Fused` and the like are several that run as one.
    pub op: String,
    /// The device.
    pub device: String,
    /// Why it runs there.
    pub reason: Reason,
}

/// Why a call runs where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The function was called there, or it says so itself, or its inputs are there.
    Asked,
    /// Nothing says otherwise.
    Default,
    /// It works on state of the host: variables, tables, files.
    State,
    /// It repeats or chooses, which the host does.
    Control,
    /// It computes single whole numbers in a loop, which the host needs to go on.
    Steering,
    /// Its shapes are not known before it runs.
    UnknownShape,
    /// The device that it should run on cannot hold a dtype of it.
    Unheld,
    /// No device but the CPU runs such ops, by design: [`ferroflow_kernels::host_only`] tells why.
    HostOnly,
    /// The device that it should run on has no kernel for it.
    NoKernel,
}

/// A copy from one device to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedCopy {
    /// The node whose result is copied, or the argument.
    pub node: String,
    /// The device it is on.
    pub from: String,
    /// The device it is needed on.
    pub to: String,
    /// How many bytes.
    pub bytes: usize,
    /// Whether it is copied once for all runs: a constant.
    pub once: bool,
}

impl Placement {
    /// The calls that should run on a device and do not, as it has no kernel for them or cannot hold
    /// what they compute.
    pub fn fallbacks(&self) -> impl Iterator<Item = &PlacedCall> {
        let is_fallback = |reason: Reason| match reason {
            Reason::HostOnly | Reason::NoKernel | Reason::Unheld => true,
            Reason::Asked
            | Reason::Default
            | Reason::State
            | Reason::Control
            | Reason::Steering
            | Reason::UnknownShape => false,
        };
        self.calls.iter().filter(move |call| is_fallback(call.reason))
    }

    /// The bytes copied in every run.
    pub fn bytes_per_run(&self) -> usize {
        self.copies.iter().filter(|copy| !copy.once).map(|copy| copy.bytes).sum()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Asked => "asked for",
            Reason::Default => "default",
            Reason::State => "works on state of the host",
            Reason::Control => "control flow",
            Reason::Steering => "steers a loop",
            Reason::UnknownShape => "shapes known at run time only",
            Reason::Unheld => "the device cannot hold a type of it",
            Reason::HostOnly => "such ops stay on the host",
            Reason::NoKernel => "no kernel on the device",
        })
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for call in &self.calls {
            let PlacedCall { node, op, device, reason } = call;
            writeln!(f, "{device}  {op}  {node}  ({reason})")?;
        }
        for copy in &self.copies {
            let PlacedCopy { node, from, to, bytes, once } = copy;
            let when = if *once { "once" } else { "every run" };
            writeln!(f, "copy  {node}  {from} -> {to}  {bytes} bytes, {when}")?;
        }
        Ok(())
    }
}

/// Where a function is to run, and what is there already.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// The device that calls run on which ask for nothing; the CPU if `None`.
    pub(crate) device: Option<Arc<dyn Device>>,
    /// The devices that arguments are on; the host where `None`.
    pub(crate) args: Vec<Option<Arc<dyn Device>>>,
}

/// Notes taken while a function is planned.
#[derive(Debug, Default)]
pub(crate) struct Notes(Placement);

impl Notes {
    pub(crate) fn call(&mut self, origin: &Origin, device: &str, reason: Reason) {
        let (node, op) = (origin.node.to_string(), origin.op.to_string());
        self.0.calls.push(PlacedCall { node, op, device: device.into(), reason });
    }

    pub(crate) fn copy(
        &mut self,
        node: &str,
        (from, to): (&str, &str),
        (dtype, shape): (DType, &Shape),
        once: bool,
    ) {
        let bytes = byte_len(dtype, shape).unwrap_or(0);
        let (node, from, to) = (node.to_string(), from.to_string(), to.to_string());
        self.0.copies.push(PlacedCopy { node, from, to, bytes, once });
    }

    pub(crate) fn into_placement(self) -> Placement {
        self.0
    }
}

/// Whether a name could be one of another device than the CPU.
pub(crate) fn is_elsewhere(name: &DeviceName) -> bool {
    name.kind.as_deref().is_some_and(|kind| kind != "CPU")
}
