//! What follows a matrix product on a device, as part of it: a bias for each column, and a rectifier.
//!
//! When the elementwise call that follows is planned, the product's call has been planned already. If
//! nothing else needs the product and the device has a kernel for both, that call goes again.

use super::{
    device::{DeviceDraft, DevicePlace},
    draft::{Body, Draft, DraftAction, origin},
    planner::Planner,
};
use crate::error::Result;
use ferroflow_ir::{
    Attrs, DType, Expr, Lowering, NodeDef, NodeId, Outlet, expr::Replacement, registry,
};
use ferroflow_kernels::{OpCall, OperandSpec};
use smallvec::SmallVec;

/// A call that follows a product and only does this to it.
struct Epilogue {
    product: Outlet,
    bias: Outlet,
    /// In the words of `_FusedMatMul`.
    then: &'static [&'static str],
}

/// What `then` stands for, on inputs 0 and 1, one of which is the product.
fn formula(then: &[&str], dtype: DType) -> Result<Expr> {
    let of = |op: &'static str, inputs: &[DType]| {
        let op = registry::find(op).expect("a built-in record");
        Expr::of(op, &Attrs::new().with("T", dtype), inputs, dtype)
    };
    let sum = of("AddV2", &[dtype, dtype])?;
    Ok(match then {
        [_] => sum,
        _ => of("Relu", &[dtype])?.substitute(&[Replacement::Expr(&sum)]),
    })
}

impl Planner<'_> {
    /// Plans a call as part of the product that it follows, if the device can do both at once.
    pub(super) fn follow(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        device: usize,
    ) -> Result<bool> {
        let Some(epilogue) = epilogue(body, id, node)? else { return Ok(false) };
        let Some(&place) = body.device_places.get(&epilogue.product) else { return Ok(false) };
        let gives = |action: &DraftAction| match action {
            DraftAction::Device(call) => call.sinks.iter().any(|(slot, ..)| *slot == place.slot),
            _ => false,
        };
        let found = body.actions.iter().rposition(|action| gives(&action.action));
        let (Some(at), Some(placing)) = (found, &self.placing) else { return Ok(false) };
        let DraftAction::Device(product) = &body.actions[at].action else { return Ok(false) };
        if product.device != device {
            return Ok(false);
        }
        let multiplying = &body.function.graph[epilogue.product.node];
        let mut specs = body.specs(multiplying)?;
        let ty = body.function.graph.ty(epilogue.bias);
        let Some(shape) = ty.and_then(|ty| ty.shape.known()) else { return Ok(false) };
        let dtype = node.outputs()[0].dtype;
        specs.push(OperandSpec::new(dtype, shape));
        let op = registry::find("_FusedMatMul").expect("a built-in record");
        let mut attrs = Attrs::new().with("T", dtype).with("num_args", 1i64);
        for name in ["transpose_a", "transpose_b"] {
            attrs = attrs.with(name, multiplying.attrs.bool(name)?);
        }
        let attrs = op.complete_attrs(attrs.with("fused_ops", epilogue.then))?;
        let call = OpCall::new(op, &attrs, &specs, None)?.with_precision(self.context.precision());
        let Some(kernel) = placing.devices[device].kernel(&call)? else { return Ok(false) };
        let mut sources: SmallVec<[Option<usize>; 4]> = product.sources.clone();
        let shape = call.output_shape(0)?;
        body.actions.remove(at);
        body.device_places.remove(&epilogue.product);
        sources.push(Some(self.send(body, epilogue.bias, device)?));
        sources.iter().flatten().for_each(|&slot| self.read(&Draft::Device(slot)));
        let slot = self.device_slot(device);
        body.device_places.insert(Outlet::new(id, 0), DevicePlace { device, slot });
        self.consumed(body, node);
        let origin = origin(node);
        self.note(&origin, device);
        let sinks = [(slot, dtype, shape)].into_iter().collect();
        let draft = DeviceDraft { device, kernel, sources, sinks, origin };
        self.push(body, DraftAction::Device(draft));
        Ok(true)
    }
}

/// What a call does to a product that nothing else needs, if it is that alone.
fn epilogue(body: &Body<'_>, id: NodeId, node: &NodeDef) -> Result<Option<Epilogue>> {
    let graph = &body.function.graph;
    let (&[first, second], [own]) = (node.inputs(), node.outputs()) else { return Ok(None) };
    let Some(op) = node.op.def() else { return Ok(None) };
    let dtype = own.dtype;
    let is_formula = matches!(op.lowering, Lowering::Elementwise(_) | Lowering::Fused);
    if !is_formula || !matches!(dtype, DType::F32 | DType::F16 | DType::BF16) {
        return Ok(None);
    }
    let is_product = |outlet: Outlet| {
        let alone = graph.data_consumers(outlet.node).collect::<Vec<_>>() == [id];
        let is_result = body.function.results.contains(&outlet);
        let known = graph.ty(outlet).map(|ty| (ty.dtype, &ty.shape));
        let of_op = graph[outlet.node].op.def().is_some_and(|op| op.name == "MatMul");
        let same = known == Some((dtype, &own.shape));
        of_op && alone && same && !is_result && !body.wanted.contains(&outlet)
    };
    let (product, bias) = match (is_product(first), is_product(second)) {
        (true, _) => (first, second),
        (false, true) => (second, first),
        (false, false) => return Ok(None),
    };
    let fits = graph.ty(bias).is_some_and(|ty| ty.dtype == dtype && ty.shape.rank() == Some(1));
    if !fits {
        return Ok(None);
    }
    let expr = match &node.expr {
        Some(expr) => (**expr).clone(),
        None => Expr::of(op, &node.attrs, &[dtype, dtype], dtype)?,
    };
    for then in [&["BiasAdd"][..], &["BiasAdd", "Relu"]] {
        if expr == formula(then, dtype)? {
            return Ok(Some(Epilogue { product, bias, then }));
        }
    }
    Ok(None)
}
