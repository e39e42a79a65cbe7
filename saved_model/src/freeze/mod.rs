//! Frozen graphs: signatures as graphs without state, the values of variables being constants.
//!
//! Calls of functions become part of the graph. Branches and loops stay calls: where they are handed a
//! variable they are handed its value instead.

mod freezer;
mod values;

use crate::{
    convert::{self, FunctionGraph},
    error::{Error, Result},
    graph::Request,
    proto::{self, tensor_info::Encoding},
    session::Session,
};
use ferroflow_ir::{
    Attrs, FunctionDef, FunctionLibrary, NodeDef,
    pass::{carve::OtherEffects, infer_types::infer_types},
    registry,
};
use freezer::Freezer;
use std::collections::BTreeMap;

/// A signature as a graph of its own.
#[derive(Debug, Clone)]
pub struct FrozenGraph {
    /// The graph.
    pub graph_def: proto::GraphDef,
    /// The tensors to feed, by the names of the signature's inputs.
    pub inputs: BTreeMap<String, String>,
    /// The tensors to fetch, by the names of its outputs.
    pub outputs: BTreeMap<String, String>,
}

/// Makes a graph of a signature, in which variables are constants.
///
/// # Errors
///
/// When there is no such signature, it changes a variable, or it needs other state, such as a table.
pub fn freeze(session: &Session, key: &str) -> Result<FrozenGraph> {
    let FrozenFunction { def, library, inputs: feeds, outputs: fetches } =
        freeze_function(session, key)?;
    let FunctionGraph { graph_def, inputs, outputs, .. } = convert::function_graph(&def, &library)?;
    Ok(FrozenGraph {
        graph_def,
        inputs: feeds.into_iter().zip(inputs).collect(),
        outputs: fetches.into_iter().zip(outputs).collect(),
    })
}

/// A signature as a function without state.
#[derive(Debug)]
pub struct FrozenFunction {
    /// The function.
    pub def: FunctionDef,
    /// The functions that it calls.
    pub library: FunctionLibrary,
    /// The names of the signature's inputs, in the order of the arguments.
    pub inputs: Vec<String>,
    /// The names of its outputs, in the order of the results.
    pub outputs: Vec<String>,
}

/// Makes a function of a signature, in which variables are constants.
///
/// # Errors
///
/// As [`freeze`].
pub fn freeze_function(session: &Session, key: &str) -> Result<FrozenFunction> {
    let signature = session.signature(key)?;
    let (feeds, fetches) = (tensors(&signature.inputs)?, tensors(&signature.outputs)?);
    let names = |tensors: &[(String, String)]| -> Vec<String> {
        tensors.iter().map(|(_, tensor)| tensor.clone()).collect()
    };
    let (feed_names, fetch_names) = (names(&feeds), names(&fetches));
    let request = Request::new(
        &feed_names.iter().map(String::as_str).collect::<Vec<_>>(),
        &fetch_names.iter().map(String::as_str).collect::<Vec<_>>(),
        &[],
    );
    let mut def = session.graph().part("frozen", &request, OtherEffects::Drop)?;
    infer_types(&mut def.graph)?;
    let library = FunctionLibrary::new();
    library.share(session.graph().library())?;
    let limits = session.context().limits().clone();
    let mut freezer = Freezer::new(session.variables()?, library, limits);
    let mut frozen = freezer.function(&def, &vec![None; def.args.len()], "frozen".into())?;
    infer_types(&mut frozen.graph)?;
    name_results(&mut frozen, &fetches)?;
    let keys = |tensors: Vec<(String, String)>| tensors.into_iter().map(|(key, _)| key).collect();
    let (inputs, outputs) = (keys(feeds), keys(fetches));
    Ok(FrozenFunction { def: frozen, library: freezer.into_library(), inputs, outputs })
}

/// The tensors of a signature, by name.
fn tensors(infos: &BTreeMap<String, proto::TensorInfo>) -> Result<Vec<(String, String)>> {
    let tensor = |(name, info): (&String, &proto::TensorInfo)| match &info.encoding {
        Some(Encoding::Name(tensor)) => Ok((name.clone(), tensor.clone())),
        _ => {
            let (kind, expected) = ("frozen graph", "one tensor each");
            let found = format!("`{name}`, which is made of several");
            Err(ferroflow_ir::Error::argument(kind, "inputs and outputs", expected, found).into())
        }
    };
    infos.iter().map(tensor).collect()
}

/// Gives each result through a node that is called what the signature calls it.
fn name_results(def: &mut FunctionDef, names: &[(String, String)]) -> Result<()> {
    for ((_, result), (name, _)) in def.results.iter_mut().zip(names) {
        let ty = def.graph.ty(*result).cloned().ok_or_else(|| missing("type", name))?;
        let attrs = Attrs::new().with("T", ty.dtype);
        let name = def.graph.unique_name(&convert::clean_name(name));
        let node = NodeDef::new(name, op("Identity"), attrs);
        *result = def.graph.add(node.with_inputs([*result]).with_outputs([ty]))?.into();
    }
    Ok(())
}

fn op(name: &str) -> &'static ferroflow_ir::OpDef {
    registry::find(name).expect("a built-in record")
}

fn missing(kind: &'static str, name: &str) -> Error {
    ferroflow_ir::Error::NotFound { kind, name: name.into() }.into()
}
