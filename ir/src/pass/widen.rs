//! Matmuls of bytes: a matmul of two casts from bytes to `int32` becomes one call that reads the
//! bytes.
//!
//! Casts that have other users stay for these. Calls on other devices than the host are left alone:
//! their programs widen as they read.

use super::call::record;
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::OpDef,
    ops::names,
};

/// The ops of the pass.
struct WideningOps {
    cast: &'static OpDef,
    product: &'static OpDef,
}

/// Makes one call of each matmul of bytes that were cast to `int32`.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn widen(graph: &mut Graph) -> Result<()> {
    let ops = WideningOps { cast: record(names::CAST)?, product: record(names::WIDENING_MAT_MUL)? };
    let ids: Vec<NodeId> = graph.ids().collect();
    for id in ids {
        let Some((attrs, inputs)) = ops.byte_matmul(graph, id) else { continue };
        let attrs = ops.product.complete_attrs(attrs)?;
        let controls = graph[id].controls().to_vec();
        let node = graph.node_mut(id);
        (*node.op, *node.attrs) = (ops.product.into(), attrs.into());
        graph.connect(id, inputs.to_vec(), controls)?;
    }
    Ok(())
}

impl WideningOps {
    /// Attributes and operands of a matmul of bytes, if a node is one.
    fn byte_matmul(&self, graph: &Graph, id: NodeId) -> Option<(Attrs, [Outlet; 2])> {
        let node = &graph[id];
        let [adj_x, adj_y] = node.op.def()?.matmul?;
        let [x, y] = node.inputs() else { return None };
        if !node.device.is_empty() {
            return None;
        }
        let (x, x_type) = self.bytes(graph, *x)?;
        let (y, y_type) = self.bytes(graph, *y)?;
        let flag = |name: &str| node.attrs.bool(name).ok();
        let (adj_x, adj_y) = (flag(adj_x)?, flag(adj_y)?);
        let attrs = Attrs::new().with("Ta", x_type).with("Tb", y_type);
        Some((attrs.with("adj_x", adj_x).with("adj_y", adj_y), [x, y]))
    }

    /// The bytes that were cast to `int32`, and their type.
    fn bytes(&self, graph: &Graph, outlet: Outlet) -> Option<(Outlet, DType)> {
        let node = &graph[outlet.node];
        if !is(node, self.cast) || !node.device.is_empty() {
            return None;
        }
        let (from, to) = (node.attrs.dtype("SrcT").ok()?, node.attrs.dtype("DstT").ok()?);
        let is_widened = matches!(from, DType::I8 | DType::U8) && to == DType::I32;
        is_widened.then_some((*node.inputs().first()?, from))
    }
}

fn is(node: &NodeDef, op: &'static OpDef) -> bool {
    node.op.def().is_some_and(|own| std::ptr::eq(own, op))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build::GraphBuilder, shape::Shape, spec::ValueType};

    fn op_after(dtypes: [DType; 2], to: DType, device: &str) -> String {
        let mut b = GraphBuilder::new();
        let mut side = |name: &str, dtype, dims: [usize; 2]| {
            let ty = ValueType::new(dtype, Shape::new(dims).unwrap());
            let arg = b.arg(name, ty).unwrap();
            let attrs = Attrs::new().with("DstT", to);
            b.call_with("Cast", &format!("{name}_wide"), attrs, &[arg]).unwrap()[0]
        };
        let (x, y) = (side("x", dtypes[0], [2, 3]), side("y", dtypes[1], [4, 3]));
        let attrs = Attrs::new().with("transpose_b", true);
        let matmul = b.call_with("MatMul", "product", attrs, &[x, y]).unwrap()[0];
        let mut function = b.finish_function("f", &[("product", matmul)]);
        *function.graph.node_mut(matmul.node).device = device.into();
        widen(&mut function.graph).unwrap();
        let node = &function.graph[matmul.node];
        if node.op.name() == "_WideningMatMul" {
            assert!(node.attrs.bool("adj_y").unwrap() && !node.attrs.bool("adj_x").unwrap());
            let inputs = node.inputs().iter().map(|input| &*function.graph[input.node].name);
            assert_eq!(inputs.collect::<Vec<_>>(), ["x", "y"]);
        }
        node.op.name().to_string()
    }

    #[test]
    fn matmuls_of_widened_bytes_read_the_bytes() {
        use DType::{F32, I8, I16, I32, U8};
        assert_eq!(op_after([I8, I8], I32, ""), "_WideningMatMul");
        assert_eq!(op_after([U8, I8], I32, ""), "_WideningMatMul");
        assert_eq!(op_after([I8, I16], I32, ""), "MatMul");
        assert_eq!(op_after([I8, I8], F32, ""), "MatMul");
        assert_eq!(op_after([I8, I8], I32, "/device:WGPU:0"), "MatMul");
    }
}
