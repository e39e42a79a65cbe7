//! From a function to what is planned: the passes, in their order.
//!
//! Specialisation, outlining, placement, transposes, hoisting, lists that become tensors, then for each body: common subexpressions,
//! elementwise fusion, attention, regions, fusion with several outputs, rows that are read where they are. Placement comes before fusion, so that each device is asked about
//! the fused nodes that it would run.

use crate::{
    assign_devices::{Placed, with_call},
    error::Result,
    placement::PlacementRequest,
    scope::OwnedScope,
};
use ferroflow_ir::{
    FunctionDef, Graph, HostTensor, Limits, NodeDef, ValueType, budget,
    pass::{
        attention::attention,
        cse::cse,
        dense_lists::dense_lists,
        depthwise::depthwise,
        fuse::fuse,
        fuse_outputs::fuse_outputs,
        hoist::hoist,
        loop_variables::prune_loop_variables,
        outline::outline,
        overlap::overlap_reductions,
        pad::pad_in_convolutions,
        prune::prune_body,
        region::{convolution_chains, regions, split_epilogues},
        row_calls::row_calls,
        specialize::{Argument, Evaluate, NoFolding, Specialized, Specializer},
        stack_updates::update_stacks,
        strides::move_strides,
        transpose::transposes_into_matmuls,
        verify::{effect_order, verify, verify_devices, verify_order, verify_results},
        widen::widen,
    },
};
use ferroflow_kernels::{OpCall, Support};

/// A function specialised for its arguments, of which the last are always `captured`, and for where
/// it is to run.
///
/// # Errors
///
/// What is wrong with the function.
pub(crate) fn optimize(
    scope: &OwnedScope,
    def: &FunctionDef,
    args: &[Argument],
    captured: &[HostTensor],
    request: &PlacementRequest,
) -> Result<Placed> {
    let context = &scope.context;
    let limits: &Limits = context.limits();
    let options = context.compile_options();
    let evaluate: &dyn Evaluate = if options.fold { context } else { &NoFolding };
    let specializer = Specializer { library: &scope.library, evaluate, limits };
    let mut specialized = specializer.specialize(def, args)?;
    if options.verify {
        verify(&specialized, "specialization")?;
    }
    let types: Vec<ValueType> = (0..specialized.results.len())
        .map_while(|index| specialized.result_type(index).cloned())
        .collect();
    let check = |specialized: &Specialized, after: &'static str| {
        // Each pass goes on to its end, and takes a time that is linear in the number of nodes.
        budget::tick();
        if !options.verify {
            return Ok(());
        }
        verify(specialized, after)
            .and_then(|()| verify_devices(specialized, after))
            .and_then(|()| verify_results(specialized, &types, after))
    };
    // Shapes of arguments that are not known are those of an outlined function that runs op by op.
    let all_known = args.iter().all(|arg| arg.ty.shape.known().is_some());
    let is_on_host = request.is_on_host() && context.default_device().is_none();
    if options.outline && all_known && is_on_host {
        outline(&mut specialized, def, &scope.library, options.small_regions)?;
        if options.verify {
            verify(&specialized, "outlining")?;
        }
    }
    let Placed { mut function, devices } = Placed::new(context, specialized, captured, request)?;
    check(&function, "placement")?;
    if options.fuse {
        function.for_each_body(&mut |body| transposes_into_matmuls(&mut body.graph))?;
        check(&function, "transposes")?;
    }
    if options.hoist {
        function.for_each_body(&mut |body| hoist(body, evaluate))?;
        check(&function, "hoisting")?;
        function.for_each_body(&mut |body| dense_lists(body, evaluate))?;
        check(&function, "dense lists")?;
        prune_loop_variables(&mut function)?;
        check(&function, "pruning of loop variables")?;
    }
    let device = |node: &NodeDef| match &*node.device {
        "" => None,
        name => devices.iter().find(|device| device.name() == name),
    };
    let supports = |graph: &Graph, node: &NodeDef| match device(node) {
        None => true,
        Some(device) => {
            budget::tick();
            let support = with_call(context, graph, node, |call| device.support(call));
            support.is_some_and(|support| support != Support::Missing)
        }
    };
    let is_profitable = |graph: &Graph, node: &NodeDef| {
        budget::tick();
        let support = |call: &OpCall<'_>| match device(node) {
            None => context.cpu().support(call),
            Some(device) => device.support(call),
        };
        let least = if options.small_regions { Support::Runs } else { Support::Pays };
        with_call(context, graph, node, support) >= Some(least)
    };
    if options.fuse {
        function.for_each_body(&mut update_stacks)?;
        check(&function, "updates of stacks")?;
        function.for_each_body(&mut depthwise)?;
        function.for_each_body(&mut move_strides)?;
        check(&function, "strides")?;
    }
    function.for_each_body(&mut |body| {
        let order = options.verify.then(|| effect_order(body));
        if options.cse {
            cse(&mut body.graph, &mut body.results);
        }
        prune_body(body)?;
        if options.fuse {
            budget::tick();
            widen(&mut body.graph)?;
            pad_in_convolutions(&mut body.graph)?;
            fuse(&mut body.graph, &body.results, supports)?;
            prune_body(body)?;
        }
        if options.attention {
            attention(&mut body.graph, &body.results, is_profitable)?;
        }
        prune_body(body)?;
        if options.regions {
            budget::tick();
            split_epilogues(body, is_profitable)?;
            prune_body(body)?;
            regions(&mut body.graph, &body.results, is_profitable)?;
            prune_body(body)?;
            convolution_chains(&mut body.graph, &body.results, is_profitable)?;
            prune_body(body)?;
            fuse_outputs(body, is_profitable)?;
            prune_body(body)?;
            row_calls(&mut *body, is_profitable)?;
        }
        prune_body(body)?;
        order.map_or(Ok(()), |order| verify_order(&order, body, "fusion"))
    })?;
    check(&function, "fusion")?;
    if options.overlap {
        function.for_each_body(&mut overlap_reductions)?;
        check(&function, "overlap of reductions")?;
    }
    Ok(Placed { function, devices })
}
