//! Partitioning: the program of one device of a mesh, of a function on whole tensors (SPMD).
//!
//! [`partition`] takes a specialised function, whose shapes are known, and layouts of its arguments. It walks
//! over the nodes in the order in which they run and decides for each how its result is distributed:
//!
//! - *Rules* (`rules/`) tell which dimensions of operands and results are split together. Of the splits that
//!   operands have, those win that most bytes have; other operands are sliced or gathered to fit.
//! - Where a contracted dimension is split, the result of a device is a *term*: the value is partial. It is
//!   merged where a use needs it whole (all-reduce) or split along the same mesh dimension (reduce-scatter).
//!   Sums of terms stay terms, so that one collective serves for all of them.
//! - An op without a rule has its operands gathered. That is always correct; [`LayoutReport`] names such
//!   nodes, and every collective with its size.
//! - Shapes in a program are those of whole tensors. Specialisation has computed what asks for a shape, and
//!   shape operands of ops whose result is a piece are replaced by the sizes of that.
//! - Each device has its piece of a variable and changes that alone. Effects on what devices share, random
//!   numbers from hidden state among them, are left to the first device, which sends its results to the
//!   others ([`Partitioned::is_led`]).
//!
//! Gradients are nodes like others: a function is differentiated first and partitioned then.
//!
//! **Invariant:** all devices bring their tensors to the same collectives in the same order. The program is
//! one for all devices; coordinates and the keys of groups are arguments ([`mesh_arguments`]).
//!
//! Functions of loops and branches are partitioned as well (`control.rs`).
//!
//! The idea is that of GSPMD (Xu et al., 2021, <https://arxiv.org/abs/2105.04663>).

mod compute;
mod control;
mod local;
mod lookup;
mod report;
mod rules;
mod sharding;
mod state;
mod walk;

use super::specialize::Specialized;
use crate::{
    attr::Attrs,
    dtype::DType,
    error::{Error, Result},
    function::FunctionDef,
    graph::Outlet,
    layout::{Layout, Mesh},
    shape::PartialShape,
    spec::ValueType,
};
use sharding::Sharding;
use walk::{Program, Walk};

pub use report::{CollectiveKind, InsertedCollective, LayoutReport, NodeLayout};

/// Layouts that a function is partitioned for.
#[derive(Debug, Clone, Copy)]
pub struct PartitionRequest<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// The layout of each argument, captures included; of a variable, that of its value. An argument without
    /// one is whole on every device; a variable without one is split as the variables that it is changed with.
    pub arguments: &'a [Option<Layout>],
    /// The layout of each result; where there is none, the result stays as it is computed.
    pub results: &'a [Option<Layout>],
    /// The number of arguments before the captures.
    pub n_inputs: usize,
    /// Whether the program is for the first device.
    pub is_leader: bool,
}

/// The program of one device.
#[derive(Debug, Clone)]
pub struct Partitioned {
    /// The function. Its arguments are those of the source, with [`mesh_arguments`] before the captures.
    pub def: FunctionDef,
    /// The functions of its loops and branches.
    pub functions: Vec<FunctionDef>,
    /// The layout of each argument of the source; of a variable, that of its value.
    pub arguments: Vec<Layout>,
    /// The layout of each result.
    pub results: Vec<Layout>,
    /// The layouts of the nodes, and the collectives.
    pub report: LayoutReport,
    /// Whether the first device has another program than the others.
    pub is_led: bool,
}

/// Arguments that tell a device where it is: its coordinate in each dimension of the mesh, then the key of
/// its group for every set of dimensions, numbered by their bits from 1 on.
pub fn mesh_arguments(mesh: &Mesh, device: usize) -> Vec<i32> {
    let coordinates = mesh.coordinates(device).into_iter().map(|coordinate| coordinate as i32);
    let keys = (1..1u32 << mesh.rank()).map(|dims| mesh.group_key(device, dims));
    coordinates.chain(keys).collect()
}

/// The program of one device of a mesh.
///
/// # Errors
///
/// [`Error::Layout`] for layouts that do not fit shapes or each other, [`Error::Unsupported`] for what cannot
/// be distributed, both with the node; the error of a function that fails whatever its arguments.
pub fn partition(
    body: &Specialized,
    name: &str,
    request: &PartitionRequest<'_>,
) -> Result<Partitioned> {
    if let Some(failure) = &body.failure {
        return Err(failure.clone());
    }
    let mut walk = Walk::new(body, request.mesh, request.is_leader)?;
    walk.program.name = name.into();
    let (args, arguments) = arguments(&mut walk, request)?;
    walk.nodes()?;
    let (outlets, results) = results(&mut walk, request, name)?;
    let Walk { local, program, .. } = walk;
    let (inputs, captures) = args.split_at(request.n_inputs.min(args.len()));
    let args = inputs.iter().copied().chain(local.mesh_args()).chain(captures.iter().copied());
    let def = FunctionDef {
        name: format!("{name}_part").into(),
        args: args.map(|outlet| outlet.node).collect(),
        results: named(outlets),
        graph: local.graph,
        control_results: Vec::new(),
        attrs: Attrs::new(),
    };
    let Program { report, functions, has_leader, .. } = program;
    Ok(Partitioned { def, functions, arguments, results, report, is_led: has_leader })
}

/// Results of a function, by names.
fn named(outlets: Vec<Outlet>) -> Vec<(String, Outlet)> {
    let outlets = outlets.into_iter().enumerate();
    outlets.map(|(index, outlet)| (format!("result_{index}"), outlet)).collect()
}

/// Adds the arguments of a device; returns them, and their layouts.
fn arguments(
    walk: &mut Walk<'_>,
    request: &PartitionRequest<'_>,
) -> Result<(Vec<Outlet>, Vec<Layout>)> {
    let body = walk.body;
    let is_variable = |outlet: &Outlet| body.graph.ty(*outlet).is_some_and(state::is_variable);
    for (index, outlet) in body.args.iter().enumerate().filter(|(_, outlet)| is_variable(outlet)) {
        if let Some(Some(layout)) = request.arguments.get(index) {
            walk.variables.insert(*outlet, Sharding::of_layout(layout));
        }
    }
    state::infer_slots(body, &mut walk.variables);
    let (mut args, mut layouts) = (Vec::new(), Vec::new());
    for (index, &outlet) in body.args.iter().enumerate() {
        let layout = request.arguments.get(index).cloned().flatten();
        let (local, layout) =
            argument(walk, outlet, layout).map_err(body.graph[outlet.node].locate(""))?;
        args.push(local);
        layouts.push(layout);
    }
    Ok((args, layouts))
}

fn argument(
    walk: &mut Walk<'_>,
    outlet: Outlet,
    layout: Option<Layout>,
) -> Result<(Outlet, Layout)> {
    let (ty, name) = (walk.ty(outlet)?.clone(), &walk.source()[outlet.node].name);
    let is_variable = state::is_variable(&ty);
    let shape = match &ty.pointee {
        Some(spec) if is_variable => spec.shape.clone(),
        _ => ty.shape.clone(),
    };
    let replicated = || Sharding::replicated(shape.rank());
    let sharding = match (layout, is_variable) {
        (_, true) => walk.variables.entry(outlet).or_insert_with(replicated).clone(),
        (Some(layout), false) => Sharding::of_layout(&layout),
        (None, false) => replicated(),
    };
    let layout = Layout::of_dims(&walk.mesh, sharding.dims.iter().copied())?;
    check_piece(&layout, &shape, name)?;
    if ty.dtype == DType::Resource && !is_variable {
        walk.shared.insert(outlet);
    }
    let own = if is_variable { Sharding::replicated(Some(0)) } else { sharding };
    Ok((walk.argument(outlet, &own)?, layout))
}

/// Checks that a value of the function can have a layout.
fn check_piece(layout: &Layout, shape: &PartialShape, name: &str) -> Result<()> {
    match shape.known() {
        Some(known) => layout.piece_shape(&known).map(drop).map_err(|error| about(error, name)),
        None if layout.is_replicated() => Ok(()),
        None => {
            let (what, layout) = (format!("`{name}`").into(), layout.to_string());
            let problem = format!("its shape {shape} is not known");
            Err(Error::Layout { what, layout, problem })
        }
    }
}

/// An error about a layout, with the name of the value.
fn about(error: Error, name: &str) -> Error {
    match error {
        Error::Layout { layout, problem, .. } => {
            Error::Layout { what: format!("`{name}`").into(), layout, problem }
        }
        other => other,
    }
}

/// The results of a device, and their layouts.
fn results(
    walk: &mut Walk<'_>,
    request: &PartitionRequest<'_>,
    name: &str,
) -> Result<(Vec<Outlet>, Vec<Layout>)> {
    let body = walk.body;
    let (mut outlets, mut layouts) = (Vec::new(), Vec::new());
    for (index, &outlet) in body.results.iter().enumerate() {
        let node = &body.graph[outlet.node];
        let own = walk.value(outlet)?.sharding;
        let layout = match request.results.get(index).cloned().flatten() {
            Some(layout) => layout,
            None => Layout::of_dims(request.mesh, own.dims.iter().copied())?,
        };
        let ty: &ValueType = walk.ty(outlet)?;
        check_piece(&layout, &ty.shape, &node.name).map_err(node.locate(name))?;
        let sharding = Sharding::of_layout(&layout);
        outlets.push(walk.in_sharding(outlet, &sharding, "").map_err(node.locate(name))?);
        layouts.push(layout);
    }
    Ok((outlets, layouts))
}

#[cfg(test)]
mod tests;
