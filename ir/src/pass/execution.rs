//! Executions: the ways in which the nodes of a specialised graph run.

use crate::{
    dtype::DType,
    error::Result,
    expr::Expr,
    graph::{Graph, NodeDef, Outlet},
    host_tensor::HostTensor,
    op::{CallKind, Lowering},
    ops::copy::is_copy,
    ops::names,
    spec::ValueType,
};
use smallvec::SmallVec;

/// The way in which a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// It is an argument or a constant.
    Source,
    /// Its result is its input under another shape.
    Alias,
    /// Its result is its input in the memory of another device.
    Copy,
    /// A kernel runs it: everything about it is known.
    Kernel,
    /// A kernel of the host runs it: shapes are known, and which window of its input it reads, or of its result
    /// it writes, turns out when it runs.
    MovingWindow,
    /// It is run as an op of its own, with what its inputs turn out to be.
    Op,
    /// It is a loop or a branch.
    Call,
}

impl Execution {
    /// The execution of a node of this graph.
    ///
    /// # Errors
    ///
    /// When an attribute that tells it is missing.
    pub fn of(graph: &Graph, node: &NodeDef) -> Result<Execution> {
        let Some(op) = node.op.def() else { return Ok(Execution::Op) };
        if op.call != CallKind::None {
            return Ok(Execution::Call);
        }
        if is_copy(op) {
            return Ok(Execution::Copy);
        }
        if op.name == names::ARG || node.constant().is_some() {
            return Ok(Execution::Source);
        }
        let is_known = |ty: &ValueType| ty.shape.known().is_some();
        let types = || node.inputs().iter().map(|&input| graph.ty(input));
        let inputs_known = types().all(|ty| ty.is_some_and(is_known));
        Ok(match op.lowering {
            Lowering::Runtime | Lowering::Interface | Lowering::Composite(_) => Execution::Op,
            Lowering::Alias(_) => {
                let source = types().next().flatten();
                let output = &node.outputs()[0];
                let same_bits = source.is_some_and(|ty| ty.dtype.size() == output.dtype.size());
                let fits = is_known(output) && inputs_known && same_bits;
                if fits { Execution::Alias } else { Execution::Op }
            }
            Lowering::Elementwise(_)
            | Lowering::Fused
            | Lowering::Reduce(_)
            | Lowering::View(_)
            | Lowering::Kernel
            | Lowering::HostKernel(_) => {
                let host = op.host_inputs(&node.attrs)?;
                let mut operands = node.inputs().iter().zip(&host);
                let values_known =
                    operands.all(|(&input, &host)| !host || constant(graph, input).is_some());
                let has_window = matches!(op.lowering, Lowering::View(_)) || op.writes_window;
                let can_move = has_window && node.device.is_empty();
                match (inputs_known, values_known) {
                    (true, true) => Execution::Kernel,
                    (true, false) if can_move && node.outputs().iter().all(is_known) => {
                        Execution::MovingWindow
                    }
                    _ => Execution::Op,
                }
            }
        })
    }
}

/// The value of an outlet that is a constant.
pub fn constant(graph: &Graph, outlet: Outlet) -> Option<&HostTensor> {
    graph[outlet.node].constant()
}

/// Whether an elementwise node returns a result whatever its operands are.
pub(super) fn cannot_fail(graph: &Graph, node: &NodeDef) -> bool {
    let Some(op) = node.op.def() else { return false };
    let dtypes: Option<SmallVec<[DType; 4]>> =
        node.inputs().iter().map(|&input| Some(graph.ty(input)?.dtype)).collect();
    let result = node.outputs().first().map(|ty| ty.dtype);
    let (Some(dtypes), Some(result)) = (dtypes, result) else { return false };
    Expr::of(op, &node.attrs, &dtypes, result).is_ok_and(|expr| !expr.is_fallible())
}
