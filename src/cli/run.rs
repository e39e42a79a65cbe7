//! `ferroflow run`: one call of a signature.

use super::{ModelFolder, Report, array_json, inputs, progress, show::split_tags};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use ferroflow::{
    ir::device_name::DeviceName,
    npy,
    runtime::{Context, ContextOptions, EagerTensor, Placement},
    saved_model::{LoadOptions, load},
};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// What is asked for.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    folder: ModelFolder,
    /// The tags of the MetaGraph, with commas between them; may be left out where there is one.
    #[arg(long = "tag_set", alias = "tag-set", value_name = "TAGS")]
    tag_set: Option<String>,
    /// The signature to call.
    #[arg(
        long = "signature_def",
        alias = "signature-def",
        value_name = "NAME",
        default_value = "serving_default"
    )]
    signature_def: String,
    /// Inputs from files: `x=file.npy`, `y=file.npz[key]`; several with semicolons between them.
    #[arg(long, value_name = "NAME=FILE")]
    inputs: Vec<String>,
    /// Inputs as Python literals: `x=[[1.0, 2.0]]`; several with semicolons between them.
    #[arg(long = "input_exprs", alias = "input-exprs", value_name = "NAME=LITERAL")]
    input_exprs: Vec<String>,
    /// Write each output to `NAME.npy` in this folder, besides printing it.
    #[arg(long, value_name = "DIR")]
    outdir: Option<PathBuf>,
    /// Run on this device, such as `WGPU` or `/device:WGPU:0`.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Tell which call ran where, and what was copied.
    #[arg(long)]
    placement: bool,
    /// Replace files that exist in that folder.
    #[arg(long, requires = "outdir")]
    overwrite: bool,
}

pub(super) fn run(arguments: Arguments) -> Result<Report> {
    let folder = arguments.folder.path();
    let tags = arguments.tag_set.as_deref().map(split_tags);
    let context = context(arguments.device.as_deref())?;
    if arguments.placement {
        context.keep_placements();
    }
    let options = LoadOptions { tags, ..LoadOptions::default() };
    let model = progress::during("loading", || load(&context, &folder, &options))?;
    let key = &arguments.signature_def;
    let specs = model.signature_inputs(key)?;
    let given = inputs::inputs(&context, &arguments.inputs, &arguments.input_exprs, &specs)?;
    let given = given.into_iter().map(|(name, tensor)| (name, EagerTensor::from(tensor))).collect();
    context.take_placements(); // Those of what runs while a model is loaded.
    let outputs = progress::during("running", || model.call_signature(key, &given))?;
    if let Some(folder) = &arguments.outdir {
        write(folder, &outputs, arguments.overwrite)?;
    }
    let mut report = report(&outputs)?;
    if arguments.placement {
        add_placement(&mut report, &context.take_placements());
    }
    Ok(report)
}

/// A context that runs what nothing places on this device, which must exist.
fn context(device: Option<&str>) -> Result<Context> {
    let Some(device) = device else { return Ok(Context::new()) };
    let name: DeviceName = device.parse()?;
    let options = ContextOptions { device: Some(name.clone()), ..ContextOptions::default() };
    let context = Context::with_options(options);
    if name.kind.as_deref() != Some("CPU") {
        context.device(&name)?;
    }
    Ok(context)
}

fn add_placement(report: &mut Report, placements: &[Placement]) {
    let texts: Vec<String> = placements.iter().map(Placement::to_string).collect();
    let nothing = "everything ran on the CPU\n".to_string();
    let text = if texts.is_empty() { nothing } else { texts.join("") };
    report.text = format!("{}\n{}", report.text, text.trim_end());
    let calls = placements.iter().flat_map(|placement| &placement.calls).map(|call| {
        json!({ "node": call.node, "op": call.op, "device": call.device,
                "reason": call.reason.to_string() })
    });
    let copies = placements.iter().flat_map(|placement| &placement.copies).map(|copy| {
        json!({ "node": copy.node, "from": copy.from, "to": copy.to, "bytes": copy.bytes,
                "once": copy.once })
    });
    let (calls, copies): (Vec<Value>, Vec<Value>) = (calls.collect(), copies.collect());
    report.json =
        json!({ "outputs": report.json, "placement": { "calls": calls, "copies": copies } });
}

fn report(outputs: &BTreeMap<String, EagerTensor>) -> Result<Report> {
    let mut texts = Vec::new();
    let mut fields = Map::new();
    for (name, tensor) in outputs {
        let tensor = tensor.host()?;
        texts.push(format!("{name}: {}{}\n{tensor}", tensor.dtype(), tensor.shape()));
        fields.insert(name.clone(), array_json::tensor(tensor));
    }
    Ok(Report { text: texts.join("\n"), json: Value::Object(fields) })
}

/// Writes all outputs, or none if one of the files must not be replaced.
fn write(folder: &Path, outputs: &BTreeMap<String, EagerTensor>, overwrite: bool) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for (name, tensor) in outputs {
        ensure!(!name.contains(['/', '\\', '\0']) && name != "..", "output `{name}` names no file");
        let path = folder.join(format!("{name}.npy"));
        if path.exists() && !overwrite {
            bail!("{}: the file exists; --overwrite replaces it", path.display());
        }
        files.push((path, tensor));
    }
    for (path, tensor) in files {
        npy::write(path, tensor.host()?)?;
    }
    Ok(())
}
