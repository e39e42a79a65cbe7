//! `ferroflow run`: one call of a signature.

use super::{ModelFolder, Report, array_json, inputs, progress, show::split_tags};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use ferroflow::{
    ir::device_name::DeviceName,
    npy,
    runtime::{CallOptions, Context, ContextOptions, EagerTensor, MemoryEstimate, Placement},
    saved_model::{LoadOptions, load},
};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
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
    /// Tell how much memory the call takes, as far as that is known before it.
    #[arg(long = "memory_estimate", alias = "memory-estimate")]
    memory_estimate: bool,
    #[command(flatten)]
    budget: Budget,
    /// Replace files that exist in that folder.
    #[arg(long, requires = "outdir")]
    overwrite: bool,
}

/// What the call may take.
#[derive(Args)]
struct Budget {
    /// End the call after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<f64>,
    /// The most bytes of host memory the call may hold at a time.
    #[arg(long, value_name = "BYTES")]
    memory: Option<usize>,
    /// The most rounds its loops may go, taken together.
    #[arg(long = "loop_rounds", alias = "loop-rounds", value_name = "N")]
    loop_rounds: Option<u64>,
    /// The most bytes of text the call may print.
    #[arg(long = "printed_bytes", alias = "printed-bytes", value_name = "BYTES")]
    printed_bytes: Option<u64>,
}

impl Budget {
    /// The options of a call that begins now.
    fn options(&self) -> Result<CallOptions> {
        let time = self.deadline.map(Duration::try_from_secs_f64).transpose();
        let time = time.context("--deadline takes a number of seconds")?;
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        let (loop_rounds, memory) = (self.loop_rounds, self.memory);
        let printed_bytes = self.printed_bytes;
        Ok(CallOptions { deadline, loop_rounds, memory, printed_bytes, cancellation: None })
    }
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
    let given: BTreeMap<String, EagerTensor> =
        given.into_iter().map(|(name, tensor)| (name, EagerTensor::from(tensor))).collect();
    let estimate = match arguments.memory_estimate {
        true => Some(model.signature_memory(key, &given)?),
        false => None,
    };
    context.take_placements(); // Those of what runs while a model is loaded.
    let options = arguments.budget.options()?;
    let call = || context.within(&options, || model.call_signature(key, &given));
    let outputs = progress::during("running", call)?;
    if let Some(folder) = &arguments.outdir {
        write(folder, &outputs, arguments.overwrite)?;
    }
    let mut report = report(&outputs)?;
    if arguments.placement {
        add_placement(&mut report, &context.take_placements());
    }
    if let Some(estimate) = estimate {
        add_estimate(&mut report, &estimate, arguments.placement);
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

/// Adds an estimate to a report, beside the placement if that is there.
fn add_estimate(report: &mut Report, estimate: &MemoryEstimate, beside_placement: bool) {
    let MemoryEstimate { arena, constants, tensors, results, n_unknown } = *estimate;
    let open = match n_unknown {
        0 => String::new(),
        n => format!("; the sizes of {n} values depend on the inputs"),
    };
    report.text = format!(
        "{}\nmemory: {} bytes ({arena} arena, {constants} constants, {tensors} tensors, of which {results} \
         results){open}",
        report.text,
        estimate.total()
    );
    if !beside_placement {
        report.json = json!({ "outputs": report.json });
    }
    report.json["memory"] = json!({
        "arena": arena, "constants": constants, "tensors": tensors, "results": results,
        "n_unknown": n_unknown, "total": estimate.total() });
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
