//! `ferroflow run`: calls of a signature, or of a graph.

use super::{
    ModelFolder, Report, chrome_trace,
    context::ContextArguments,
    file_kind::FileKind,
    graph_file, inputs,
    latency::Latencies,
    outputs::{add_estimate, add_placement, report, write},
    progress,
    recognize::model_folder,
    show::split_tags,
};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use ferroflow::{
    runtime::{CallOptions, Context, EagerTensor, RunOptions, TraceLevel},
    saved_model::{LoadOptions, Session, load},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct RunArguments {
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
    #[command(flatten)]
    inputs: inputs::InputArguments,
    /// The tensors to compute, such as `softmax:0`, where DIR is a GraphDef file.
    #[arg(long, value_name = "NAME:INDEX", value_delimiter = ',')]
    outputs: Vec<String>,
    /// Write each output to `NAME.npy` in this folder, besides printing it.
    #[arg(long, value_name = "DIR")]
    outdir: Option<PathBuf>,
    #[command(flatten)]
    context: ContextArguments,
    /// Call so many times more, and tell how long the calls took.
    #[arg(long, value_name = "N", conflicts_with = "placement")]
    repeat: Option<NonZeroUsize>,
    /// Write the ops of the call to this file, for `chrome://tracing` or Perfetto: their times, arithmetic and bytes, and
    /// the part of each time that the processor needs at least for them (`roofline_percent`).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["repeat", "outputs"])]
    profile: Option<PathBuf>,
    /// Tell which call ran where, and what was copied.
    #[arg(long)]
    placement: bool,
    /// Tell how much memory the call takes, as far as that is known before it.
    #[arg(long = "memory_estimate", alias = "memory-estimate")]
    memory_estimate: bool,
    #[command(flatten)]
    budget: BudgetFlags,
    /// Replace files that exist in that folder.
    #[arg(long, requires = "outdir")]
    overwrite: bool,
}

/// Budget of the call.
#[derive(Args)]
struct BudgetFlags {
    /// End the call after so many seconds.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
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

impl BudgetFlags {
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

pub(super) fn run(arguments: RunArguments) -> Result<Report> {
    let path = arguments.folder.path();
    let context = arguments.context.context()?;
    if FileKind::of(path) == FileKind::GraphDef {
        return run_graph(&context, path, &arguments);
    }
    let folder = model_folder(path)?;
    ensure!(
        arguments.outputs.is_empty(),
        "--outputs is for GraphDef files; a signature has its own"
    );
    let tags = arguments.tag_set.as_deref().map(split_tags);
    if arguments.placement {
        context.keep_placements();
    }
    let options = LoadOptions { tags, ..LoadOptions::default() };
    let model = progress::during("loading", || load(&context, &folder, &options))?;
    let key = &arguments.signature_def;
    let specs = model.signature_inputs(key)?;
    let inputs = arguments.inputs.tensors(&context, &specs)?;
    let estimate = match arguments.memory_estimate {
        true => Some(model.signature_memory(key, &inputs)?),
        false => None,
    };
    context.take_placements(); // Those of what runs while a model is loaded.
    let call = || match &arguments.profile {
        None => Ok(model.call_signature(key, &inputs)?),
        Some(path) => {
            let options = RunOptions { trace_level: TraceLevel::Ops };
            let (outputs, metadata) = model.call_signature_with(key, &inputs, &options)?;
            chrome_trace::write(path, &context, &metadata)?;
            Ok(outputs)
        }
    };
    let mut report = called(&context, &arguments, call)?;
    if arguments.placement {
        add_placement(&mut report, &context.take_placements());
    }
    if let Some(estimate) = estimate {
        add_estimate(&mut report, &estimate, arguments.placement);
    }
    Ok(report)
}

/// Makes the call that was asked for, as often as was asked for.
fn called(
    context: &Context,
    arguments: &RunArguments,
    call: impl Fn() -> Result<BTreeMap<String, EagerTensor>>,
) -> Result<Report> {
    let budgeted = || {
        let options = arguments.budget.options()?;
        context.within(&options, &call)
    };
    let outputs = progress::during("running", budgeted)?;
    if let Some(folder) = &arguments.outdir {
        write(folder, &outputs, arguments.overwrite)?;
    }
    let mut report = report(&outputs)?;
    if let Some(n) = arguments.repeat {
        let times =
            progress::during("repeating", || Latencies::measure(n.get(), || budgeted().map(drop)))?;
        report.text = format!("{}\n{}", report.text, times.text());
        report.json = json!({ "outputs": report.json, "latency": times.json() });
    }
    Ok(report)
}

/// Computes tensors of a graph without signatures.
fn run_graph(context: &Context, path: &Path, arguments: &RunArguments) -> Result<Report> {
    if arguments.outputs.is_empty() {
        let names = graph_file::output_names(path)?;
        let example = names.first().map_or(String::new(), |name| format!(", such as `{name}:0`"));
        bail!(
            "{} is a graph without signatures: --outputs says what to compute{example}",
            path.display()
        );
    }
    ensure!(!arguments.memory_estimate, "--memory_estimate is for signatures");
    if arguments.placement {
        context.keep_placements();
    }
    let session = progress::during("loading", || Session::of_graph(context, path))?;
    let names = arguments.inputs.names()?;
    let spec = |name: &str| -> Result<_> {
        let ty = session.graph().input_type(name)?;
        Ok((name.to_string(), ferroflow::ir::TensorSpec::new(ty.dtype, ty.shape)))
    };
    let specs: Vec<_> = names.into_iter().map(spec).collect::<Result<_>>()?;
    let inputs = arguments.inputs.tensors(context, &specs)?;
    let feeds: Vec<(&str, EagerTensor)> =
        inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let fetches: Vec<&str> = arguments.outputs.iter().map(String::as_str).collect();
    let mut report = called(context, arguments, || {
        let results = session.run(&feeds, &fetches, &[])?;
        Ok(arguments.outputs.iter().cloned().zip(results).collect())
    })?;
    if arguments.placement {
        add_placement(&mut report, &context.take_placements());
    }
    Ok(report)
}
