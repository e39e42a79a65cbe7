//! Time to load, compile and run graphs by their number of nodes: for each family of graphs, how the
//! time grows when the graph does. A family whose time grows faster than its nodes is one by which a
//! file of some megabytes takes hours.

mod families;

use anyhow::{Context as _, Result};
use families::{FAMILIES, Family, GraphText};
use ferroflow::{
    ir::{
        DType, FunctionDef, HostTensor, Limits, Shape, ValueType,
        gradient::function::{Kept, differentiate},
        pass::carve::OtherEffects,
    },
    runtime::{CallableFunction, Context, ContextOptions, EagerTensor},
    saved_model::{
        LoadedGraph, add_ops, convert::function_message, graph::Request, proto, read_message,
    },
};
use prost::Message as _;
use serde_json::{Value, json};
use std::{fs, num::NonZeroUsize, sync::Arc, time::Instant};

/// The names of all families.
pub(crate) fn names() -> Vec<&'static str> {
    FAMILIES.iter().map(|family| family.name).collect()
}

/// Seconds of the stages of a graph: reading its text, converting, cutting out what is fetched, the
/// first call, which compiles, the second, writing it as a message, making its gradient, and the first
/// calls of that.
pub(crate) fn run(job: &Value) -> Result<Value> {
    let name = job["family"].as_str().context("a family")?;
    let n = job["nodes"].as_u64().context("a number `nodes`")? as usize;
    let family = FAMILIES.iter().find(|family| family.name == name).context("a known family")?;
    let written = (family.write)(n);
    let (stages, why) = match stages(family, &written) {
        Ok(stages) => (stages, None),
        Err(why) => (Vec::new(), Some(format!("{why:#}"))),
    };
    Ok(json!({ "stages": stages, "why": why }))
}

fn stages(family: &Family, written: &GraphText) -> Result<Vec<(&'static str, f64)>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("graph.pbtxt");
    fs::write(&path, written.text())?;
    let mut stages = Vec::new();
    let mut start = Instant::now();
    let mut end = |stage| {
        stages.push((stage, start.elapsed().as_secs_f64()));
        start = Instant::now();
    };
    let graph: proto::GraphDef = read_message(&path)?;
    end("read");
    let limits = Limits { nodes: 1 << 22, ..Limits::default() };
    let threads = NonZeroUsize::new(1);
    let context =
        Context::with_options(ContextOptions { threads, limits, ..ContextOptions::default() });
    add_ops(&context);
    context.set_printer(|_| {});
    let graph = LoadedGraph::new(graph, context.registry(), context.limits())?;
    end("convert");
    let names = |names: &[String]| names.to_vec();
    let request = Request {
        feeds: names(&written.feeds),
        fetches: names(&written.fetches),
        targets: names(&written.targets),
    };
    let def = graph.part(family.name, &request, OtherEffects::Drop)?;
    end("cut");
    let def = Arc::new(def);
    let callable = |def: &Arc<FunctionDef>| {
        let (library, resources) = (graph.library().clone(), context.resources().clone());
        CallableFunction::with_captures(&context, def.clone(), library, resources, Vec::new())
    };
    let function = callable(&def);
    let args: Vec<EagerTensor> =
        (0..def.args.len()).map(|index| arg(def.arg_type(index))).collect::<Result<_>>()?;
    function.call(&args)?;
    end("first call");
    function.call(&args)?;
    end("call");
    let message = function_message(&def, graph.library())?;
    fs::write(&path, message.encode_to_vec())?;
    end("write");
    // Not every family has a gradient.
    let wanted: Vec<bool> =
        (0..def.args.len()).map(|index| def.arg_type(index).dtype == DType::F32).collect();
    let Ok(gradient) = differentiate(graph.library(), &def, &wanted) else { return Ok(stages) };
    end("gradient");
    let results = callable(&gradient.forward).call(&args)?;
    let seeds = gradient.seeds.iter().map(|&index| results[index].clone());
    let kept = gradient.kept.iter().map(|kept| match *kept {
        Kept::Argument(index) => args[index].clone(),
        Kept::Result(index) => results[index].clone(),
    });
    let inputs: Vec<EagerTensor> = seeds.chain(kept).collect();
    callable(&gradient.backward).call(&inputs)?;
    end("gradient's calls");
    Ok(stages)
}

fn arg(ty: &ValueType) -> Result<EagerTensor> {
    let dims = ty.shape.dims().unwrap_or_default().iter().map(|dim| dim.unwrap_or(2));
    Ok(HostTensor::zeros(ty.dtype, Shape::new(dims)?)?.into())
}
