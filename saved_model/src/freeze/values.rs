//! Tensors and handles of variables in a frozen graph.

use super::op;
use crate::error::Result;
use ferroflow_ir::{Attrs, DType, Graph, HostTensor, NodeDef, Outlet, ValueType};
use std::collections::HashMap;

/// Frozen form of a tensor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Frozen {
    Tensor(Outlet),
    /// The handle of a variable: where its value is.
    Variable(Outlet),
}

impl Frozen {
    /// The tensor, or the value of the variable.
    pub(super) fn outlet(self) -> Outlet {
        match self {
            Frozen::Tensor(outlet) | Frozen::Variable(outlet) => outlet,
        }
    }
}

/// A graph in the making.
pub(super) struct FrozenBody<'b> {
    pub(super) graph: &'b mut Graph,
    /// The constants of variables.
    pub(super) constants: HashMap<String, Outlet>,
}

/// A constant of a graph.
pub(super) fn constant(body: &mut FrozenBody<'_>, name: &str, value: HostTensor) -> Result<Outlet> {
    let ty = ValueType::new(value.dtype(), value.shape());
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
    let name = body.graph.unique_name(name);
    Ok(body.graph.add(NodeDef::new(name, op("Const"), attrs).with_outputs([ty]))?.into())
}

/// Rows of a variable are rows of its value.
pub(super) fn gathered(
    body: &mut FrozenBody<'_>,
    node: &NodeDef,
    [value, indices]: [Outlet; 2],
    name: &str,
) -> Result<Vec<Frozen>> {
    let batch_dims = node.attrs.int("batch_dims")?;
    let axis = constant(body, &format!("{name}/axis"), HostTensor::scalar(batch_dims as i32))?;
    let attrs = Attrs::new()
        .with("Tparams", node.attrs.dtype("dtype")?)
        .with("Tindices", node.attrs.dtype("Tindices")?)
        .with("Taxis", DType::I32)
        .with("batch_dims", batch_dims);
    let name = body.graph.unique_name(name);
    let gather = NodeDef::new(name, op("GatherV2"), attrs)
        .with_inputs([value, indices, axis])
        .with_outputs(node.outputs().iter().cloned());
    Ok(vec![Frozen::Tensor(body.graph.add(gather)?.into())])
}
