//! Placement: every node of a specialised function gets a device, and copies become nodes.
//!
//! It is a function of the graph, of where arguments are, and of what devices say they support; it
//! runs before fusion, so that fused nodes and regions are on one device by construction.
//!
//! - A node's `device` is the name of the device that runs it, empty for the host. Its results are in
//!   that device's memory, unless the attribute [`LOCATIONS`] lists another device for each.
//! - A value that a node needs elsewhere goes through a `_Copy` node, made before the first node that
//!   needs it. A constant is a constant of its own on each device.
//! - Loops and branches run on the host. What they carry on devices is told by [`LOCATIONS`] of their
//!   nodes and by the devices of the arguments of their bodies.
//! - A step of an optimizer on variables of a device becomes reads, fused nodes and assignments.
//!
//! **Invariant** (held by [`verify_devices`](super::verify::verify_devices)): a node reads its operands on its own device,
//! but for host operands of kernels, and for ops that take tensors wherever they are.

mod body;
mod control;
mod optimizer;
mod reason;

#[cfg(test)]
mod tests;

use super::specialize::Specialized;
use crate::{
    attr::{AttrValue, Attrs},
    dtype::DType,
    error::Result,
    expr::Expr,
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::OpDef,
    spec::ValueType,
};
use std::sync::Arc;

pub use reason::Reason;

/// The attribute with the devices of the results of a node, where these are not all the node's own.
pub const LOCATIONS: &str = "_locations";

/// A device besides the host, by its position among the [`Targets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub usize);

/// The devices that nodes may be placed on besides the host.
pub trait Targets {
    /// The device of nodes that ask for none; the host if `None`.
    fn default_device(&self) -> Option<DeviceId>;

    /// The device of a name that a node asks for; `None` for the host.
    fn find(&self, name: &str) -> Option<DeviceId>;

    /// The name of a device.
    fn name(&self, device: DeviceId) -> &str;

    /// Whether tensors of a dtype can be in the memory of a device.
    fn supports_dtype(&self, device: DeviceId, dtype: DType) -> bool;

    /// Whether elements of `from` in the memory of a device can be read as as many elements of
    /// `to`.
    fn same_layout(&self, device: DeviceId, from: DType, to: DType) -> bool;

    /// Whether a device has a kernel for a node of a graph, whose input types are known. It has
    /// none for a node that does not fit its op: the host reports that.
    fn supports(&self, device: DeviceId, graph: &Graph, node: &NodeDef) -> bool;

    /// Whether an op takes and returns tensors in the memory of any device.
    fn takes_any_device(&self, op: &'static OpDef) -> bool;

    /// The assignments that a step of an optimizer stands for, in order; `None` for other ops.
    /// `dtypes` are those of its inputs, where variables stand for their values.
    ///
    /// # Errors
    ///
    /// When an attribute is missing.
    fn optimizer(
        &self,
        op: &'static OpDef,
        attrs: &Attrs,
        dtypes: &[DType],
    ) -> Result<Option<Vec<Assignment>>>;
}

/// An assignment of an optimizer step.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The position of the input that is assigned to.
    pub position: usize,
    /// The new value, of the values of all inputs after the assignments before.
    pub expr: Expr,
}

/// The memory that an argument is in.
#[derive(Debug, Clone, Default)]
pub struct PlacedArgument {
    /// The device whose memory it is in; the host's if `None`.
    pub device: Option<DeviceId>,
    /// For the handle of a variable on a device: that device, and the type of the variable's value.
    pub variable: Option<(DeviceId, ValueType)>,
}

/// Assigns devices to a specialised function, whose arguments are where `args` says.
///
/// # Errors
///
/// When a node does not fit its op, with the node.
pub fn assign_devices(
    function: &mut Specialized,
    args: &[PlacedArgument],
    targets: &dyn Targets,
) -> Result<()> {
    *function = body::assign_body(function, args, None, targets, 0)?;
    Ok(())
}

/// The name of the device whose memory an outlet is in; empty for the host.
pub fn location(graph: &Graph, outlet: Outlet) -> &str {
    own_location(&graph[outlet.node], outlet.index as usize)
}

/// The name of the device whose memory a result of a node is in; empty for the host.
pub(super) fn own_location(node: &NodeDef, index: usize) -> &str {
    let Some(AttrValue::Strings(locations)) = node.attrs.get(LOCATIONS) else {
        return &node.device;
    };
    let name = locations.get(index).and_then(|name| std::str::from_utf8(name).ok());
    name.unwrap_or(&node.device)
}

/// Puts all nodes of a body on the host, whatever devices they name.
pub fn assign_host(body: &mut Specialized) {
    let ids: Vec<NodeId> = body.graph.ids().collect();
    for id in ids {
        let node = body.graph.node_mut(id);
        if !node.device.is_empty() {
            *node.device = "".into();
        }
        if node.attrs.get(LOCATIONS).is_some() {
            Arc::make_mut(node.attrs).remove(LOCATIONS);
        }
    }
}

/// Sets the devices whose memory the results of a node are in. What a file says of them is dropped.
pub(super) fn set_locations(node: &mut NodeDef, locations: &[Box<str>]) {
    if node.attrs.get(LOCATIONS).is_some() {
        Arc::make_mut(&mut node.attrs).remove(LOCATIONS);
    }
    if locations.iter().any(|location| *location != node.device) {
        let names: Vec<&str> = locations.iter().map(|name| &**name).collect();
        Arc::make_mut(&mut node.attrs).set(LOCATIONS, &*names);
    }
}
