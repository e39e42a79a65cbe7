//! Who runs where, and what is copied for that.
//!
//! A call runs where it asks to, or where its variables are, or where the function was called, or
//! where its inputs are: in this order, and only if that device has a kernel for it. Everything
//! else runs on the CPU. Nothing of this is silent: [`Placement`] tells of each call where it runs
//! and why, and of each copy how large it is and how often it is made.

use ferroflow_ir::{
    Shape,
    device_name::DeviceName,
    host_tensor::byte_len,
    ops::copy::is_copy,
    pass::{execution::constant, placement::location, specialize::Specialized},
};
use ferroflow_kernels::Device;
use std::{fmt, sync::Arc};

pub use ferroflow_ir::pass::placement::Reason;

/// Where the calls of a function run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// The calls, in the order in which they run. What became part of others or was computed ahead
    /// is not among them.
    pub calls: Vec<PlacedCall>,
    /// Copies from one device to another.
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

/// A copy from one device to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedCopy {
    /// The node whose result is copied, or the argument; of a constant, the node that holds it on
    /// the device.
    pub node: String,
    /// The device it is on.
    pub from: String,
    /// The device it is needed on.
    pub to: String,
    /// Number of bytes.
    pub bytes: usize,
    /// Whether it is copied once for all runs: a constant.
    pub once: bool,
}

impl Placement {
    /// The calls that should run on a device and do not, as it has no kernel for them or cannot
    /// hold what they compute.
    pub fn fallbacks(&self) -> impl Iterator<Item = &PlacedCall> {
        let is_fallback = |reason: Reason| match reason {
            Reason::HostOnly(_) | Reason::NoKernel | Reason::Unheld => true,
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
pub(crate) struct PlacementRequest {
    /// The device that calls run on which ask for nothing; the CPU if `None`.
    pub(crate) device: Option<Arc<dyn Device>>,
    /// The devices that arguments are on; the host where `None`.
    pub(crate) args: Vec<Option<Arc<dyn Device>>>,
}

impl PlacementRequest {
    /// Whether it asks for no device and names none.
    pub(crate) fn is_on_host(&self) -> bool {
        self.device.is_none() && self.args.iter().all(Option::is_none)
    }
}

impl Placement {
    /// Where the nodes of a placed function run. `cpu` is the name of the host's device.
    pub(crate) fn of(function: &Specialized, cpu: &str) -> Placement {
        let mut placement = Placement::default();
        placement.add_body(function, cpu);
        placement
    }

    fn add_body(&mut self, function: &Specialized, cpu: &str) {
        let graph = &function.graph;
        let name = |device: &str| if device.is_empty() { cpu } else { device }.to_string();
        for (id, node) in graph.iter() {
            if let Some(&reason) = function.reasons.get(&id) {
                self.add_call(&node.name, node.op.name(), &name(&node.device), reason);
            }
            let is_copy = node.op.def().is_some_and(is_copy);
            let is_constant = constant(graph, id.into()).is_some() && !node.device.is_empty();
            if is_copy || is_constant {
                let source = node.inputs().first();
                let from = source.map_or(cpu, |&source| location(graph, source));
                let of = source.map_or(&*node.name, |source| &graph[source.node].name);
                let ty = &node.outputs()[0];
                let shape = ty.shape.known().unwrap_or_else(Shape::scalar);
                self.copies.push(PlacedCopy {
                    node: of.to_string(),
                    from: name(from),
                    to: name(&node.device),
                    bytes: byte_len(ty.dtype, &shape).unwrap_or(0),
                    once: is_constant,
                });
            }
            for body in function.nested.get(&id).into_iter().flatten() {
                self.add_body(body, cpu);
            }
        }
    }

    pub(crate) fn add_call(&mut self, node: &str, op: &str, device: &str, reason: Reason) {
        let (node, op) = (node.to_string(), op.to_string());
        self.calls.push(PlacedCall { node, op, device: device.into(), reason });
    }
}

/// Whether a name could be one of another device than the CPU.
pub(crate) fn is_elsewhere(name: &DeviceName) -> bool {
    name.kind.as_deref().is_some_and(|kind| kind != "CPU")
}
