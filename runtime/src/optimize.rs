//! From a function to what is planned: the passes, in their order.

use crate::{context::Context, error::Result, executor::Surroundings, placement::Request};
use ferroflow_ir::{
    Attrs, FunctionDef, Graph, HostTensor, Limits, NodeDef, OpDef, Outlet,
    infer::Input,
    pass::{
        attention::attention,
        cse::cse,
        fuse::fuse,
        hoist::hoist,
        prune::prune,
        region::regions,
        specialize::{Argument, Evaluate, Specialized, Specializer},
        verify::verify,
    },
};
use ferroflow_kernels::{OpCall, OperandSpec};
use smallvec::SmallVec;

/// A function specialised for its arguments, and for where it is to run.
///
/// # Errors
///
/// What is wrong with the function.
pub(crate) fn optimize(
    surroundings: &Surroundings,
    def: &FunctionDef,
    args: &[Argument],
    request: &Request,
) -> Result<Specialized> {
    let context = &surroundings.context;
    let limits: &Limits = context.limits();
    let options = context.compile_options();
    let evaluate: &dyn Evaluate = if options.fold { context } else { &NoFolding };
    let specializer = Specializer { library: &surroundings.library, evaluate, limits };
    let check = |specialized: &Specialized, after: &'static str| {
        if options.verify { verify(specialized, after) } else { Ok(()) }
    };
    let mut specialized = specializer.specialize(def, args)?;
    check(&specialized, "specialization")?;
    if options.hoist {
        specialized.for_each_body(&mut hoist)?;
        check(&specialized, "hoisting")?;
    }
    specialized.for_each_body(&mut |body| {
        let mut results = std::mem::take(&mut body.results);
        if options.cse {
            cse(&mut body.graph, |from, to| {
                let same = results.iter_mut().filter(|result| **result == from);
                same.for_each(|result| *result = to);
            });
        }
        prune_body(body, &results)?;
        if options.fuse {
            fuse(&mut body.graph, &results)?;
            prune_body(body, &results)?;
        }
        if options.attention {
            attention(&mut body.graph, &results, |graph, node| {
                gains(context, request, graph, node).unwrap_or(false)
            })?;
        }
        prune_body(body, &results)?;
        if options.regions {
            regions(&mut body.graph, &results, |graph, node| {
                gains(context, request, graph, node).unwrap_or(false)
            })?;
        }
        prune_body(body, &results)?;
        body.results = results;
        Ok(())
    })?;
    check(&specialized, "fusion")?;
    Ok(specialized)
}

/// Computes nothing ahead.
struct NoFolding;

impl Evaluate for NoFolding {
    fn evaluate(&self, _: &'static OpDef, _: &Attrs, _: &[Input<'_>]) -> Option<Vec<HostTensor>> {
        None
    }
}

fn prune_body(body: &mut Specialized, results: &[Outlet]) -> ferroflow_ir::Result<()> {
    let roots: Vec<_> = results.iter().chain(&body.args).map(|outlet| outlet.node).collect();
    prune(&mut body.graph, roots)
}

/// Whether every device that a call may come to run on gains by it. `None` where there is no telling.
fn gains(context: &Context, request: &Request, graph: &Graph, node: &NodeDef) -> Option<bool> {
    let spec = |&input: &Outlet| {
        let ty = graph.ty(input)?;
        Some(OperandSpec::new(ty.dtype, ty.shape.known()?))
    };
    let specs: Option<SmallVec<[OperandSpec; 4]>> = node.inputs().iter().map(spec).collect();
    let specs = specs?;
    let call = OpCall::new(node.op.def()?, &node.attrs, &specs, node.expr.as_deref()).ok()?;
    let named = if node.device.is_empty() { None } else { context.device_of(&node.device) };
    let asked = named.or_else(|| request.device.clone());
    let devices: SmallVec<[_; 2]> = match asked {
        Some(device) => SmallVec::from_iter([device]),
        None => request.args.iter().flatten().cloned().collect(),
    };
    let held = devices.iter().all(|device| device.gains(&call).unwrap_or(false));
    Some(if devices.is_empty() { context.cpu().gains(&call).ok()? } else { held })
}
