//! `ferroflow bench`: how long the signatures of a model take, and which ops take it.

use super::{
    ModelFolder, Report, chrome_trace, columns,
    context::ContextArguments,
    latency::{Latencies, duration},
    one_line, progress,
    recognize::model_folder,
    roofline::{self, Roofline},
    show,
};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use ferroflow::{
    ir::{Attrs, DType, HostTensor, Shape, TensorSpec, ops::names},
    runtime::{Context, EagerTensor, OpStats, RunOptions, TraceLevel, execute},
    saved_model::{LoadOptions, SavedModel, load},
};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    num::NonZeroUsize,
    path::PathBuf,
    time::Duration,
};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct BenchArguments {
    #[command(flatten)]
    folder: ModelFolder,
    /// The tags of the MetaGraph, with commas between them; may be left out where there is one.
    #[arg(long = "tag_set", alias = "tag-set", value_name = "TAGS")]
    tag_set: Option<String>,
    /// The signature to measure; all by default.
    #[arg(long = "signature_def", alias = "signature-def", value_name = "NAME")]
    signature_def: Option<String>,
    /// The size of first dimensions that are not known; others are 1.
    #[arg(long, value_name = "N", default_value = "1")]
    batch: usize,
    /// The shape of an input, such as `x=8,224,224,3`.
    #[arg(long, value_name = "NAME=DIMS")]
    shape: Vec<String>,
    /// The number of calls that are measured.
    #[arg(long, value_name = "N", default_value = "50")]
    repeat: NonZeroUsize,
    /// The threads that call at once, as those of a server do; each calls as often.
    #[arg(long, value_name = "N", default_value = "1")]
    callers: NonZeroUsize,
    #[command(flatten)]
    context: ContextArguments,
    /// The number of ops to list, those that take longest.
    #[arg(long, value_name = "N", default_value = "10")]
    ops: usize,
    /// Write the ops of a call to this file, with their times and costs, for `chrome://tracing` or
    /// Perfetto; of the last signature, if there are several.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
}

/// Limit of the threads that call at once.
const MAX_CALLERS: usize = 1024;

pub(super) fn bench(arguments: BenchArguments) -> Result<Report> {
    ensure!(arguments.callers.get() <= MAX_CALLERS, "more than {MAX_CALLERS} callers");
    let folder = model_folder(arguments.folder.path())?;
    let context = arguments.context.context()?;
    let tags = arguments.tag_set.as_deref().map(show::split_tags);
    let options = LoadOptions { tags, ..LoadOptions::default() };
    let model = progress::during("loading", || load(&context, &folder, &options))?;
    let shapes = shapes(&arguments.shape)?;
    let keys = arguments.signature_def.clone().map_or_else(|| model.signatures(), |key| vec![key]);
    ensure!(!keys.is_empty(), "the model has no signature to measure");
    let is_one_of_several = keys.len() > 1;
    let roofline = Roofline::measure(&context);
    let (mut texts, mut fields, mut n_failed) = (Vec::new(), Map::new(), 0);
    for key in keys {
        let specs = model.signature_inputs(&key)?;
        let inputs = inputs(&context, &specs, &shapes, arguments.batch)?;
        let measured = measure(&model, (&key, &inputs), &arguments, (&context, &roofline))
            .with_context(|| format!("signature `{key}` with random inputs"));
        let (text, json) = match measured {
            Ok(measured) => measured,
            // Others may take random inputs.
            Err(error) if is_one_of_several => {
                n_failed += 1;
                let error = one_line(&error);
                (format!("not measured: {error}"), json!({ "error": error }))
            }
            Err(error) => return Err(error),
        };
        texts.push(text);
        fields.insert(key, json);
    }
    ensure!(n_failed < fields.len(), "no signature was measured: {}", texts.join("; "));
    Ok(Report { text: texts.join("\n"), json: Value::Object(fields) })
}

/// The shapes that were asked for, by input.
fn shapes(texts: &[String]) -> Result<HashMap<&str, Shape>> {
    let mut shapes = HashMap::new();
    for text in texts {
        let wrong = || format!("`{text}` is not of the form name=8,224,224,3");
        let (name, dims) = text.split_once('=').with_context(wrong)?;
        let dims = dims.split(',').filter(|dim| !dim.trim().is_empty());
        let dims: Vec<usize> =
            dims.map(|dim| dim.trim().parse()).collect::<Result<_, _>>().with_context(wrong)?;
        shapes.insert(name.trim(), Shape::new(dims)?);
    }
    Ok(shapes)
}

/// A random value for each input: floats from 0 to 1, integers 0 and 1, texts `a`.
fn inputs(
    context: &Context,
    specs: &[(String, TensorSpec)],
    shapes: &HashMap<&str, Shape>,
    batch: usize,
) -> Result<BTreeMap<String, EagerTensor>> {
    if let Some(name) = shapes.keys().find(|name| !specs.iter().any(|(input, _)| input == *name)) {
        let names: Vec<&str> = specs.iter().map(|(name, _)| name.as_str()).collect();
        anyhow::bail!("there is no input `{name}`; there are [{}]", names.join(", "));
    }
    let input = |(name, spec): &(String, TensorSpec)| {
        let shape = match shapes.get(name.as_str()) {
            Some(shape) => shape.clone(),
            None => {
                let dims = spec.shape.dims().unwrap_or_default().iter().enumerate();
                let default = |at: usize| if at == 0 { batch } else { 1 };
                Shape::new(dims.map(|(at, dim)| dim.unwrap_or_else(|| default(at))))?
            }
        };
        Ok((name.clone(), random(context, spec.dtype, shape)?))
    };
    specs.iter().map(input).collect()
}

fn random(context: &Context, dtype: DType, shape: Shape) -> Result<EagerTensor> {
    let n = shape.num_elements();
    if dtype == DType::String {
        return Ok(HostTensor::from_strings(shape, vec!["a".into(); n])?.into());
    }
    // A sequence without a pattern that a model could profit from; the same in each run.
    let bits = (0..n as u64).map(|at| (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
    let numbers: Vec<f32> = match dtype.is_float() || dtype.is_complex() {
        true => bits.map(|bits| bits as f32 / (1u64 << 24) as f32).collect(),
        false => bits.map(|bits| (bits & 1) as f32).collect(),
    };
    let numbers = HostTensor::from_slice(shape, &numbers)?;
    let attrs = Attrs::new().with("DstT", dtype);
    Ok(execute(context, names::CAST, attrs, &[numbers.into()])?.remove(0))
}

/// Measures a signature: the times of calls, and the ops of one more.
fn measure(
    model: &SavedModel,
    (key, inputs): (&str, &BTreeMap<String, EagerTensor>),
    arguments: &BenchArguments,
    (context, roofline): (&Context, &Roofline),
) -> Result<(String, Value)> {
    let times = progress::during(key, || {
        let call = || model.call_signature(key, inputs).map(drop);
        match (arguments.repeat.get(), arguments.callers.get()) {
            (n, 1) => Latencies::measure(n, call),
            (n, callers) => Latencies::measure_callers(n, callers, call),
        }
    })?;
    let options = RunOptions { trace_level: TraceLevel::Ops };
    let (_, metadata) = model.call_signature_with(key, inputs, &options)?;
    if let Some(path) = &arguments.profile {
        chrome_trace::write(path, context, &metadata)?;
    }
    let ops = by_op(&metadata.ops, roofline);
    let total: Duration = ops.iter().map(|op| op.time).sum();
    let shown = || ops.iter().take(arguments.ops);
    let rows: Vec<(String, String)> = shown().map(|op| (op.name.clone(), op.text(total))).collect();
    let text = format!("{key}: {}\n{}", times.text(), columns(&rows, "  "));
    let mut json = times.json();
    json["ops"] = shown().map(|op| op.json(total)).collect();
    json["arena_bytes"] = json!(metadata.arena_bytes);
    Ok((text.trim_end().to_string(), json))
}

/// The calls of an op.
struct OpSums {
    name: String,
    n: usize,
    time: Duration,
    /// The time of the calls whose cost is known, and the least time that they can take.
    known: (Duration, Duration),
    flops: u64,
}

impl OpSums {
    fn percent(&self, total: Duration) -> f64 {
        100.0 * self.time.as_secs_f64() / total.as_secs_f64().max(1e-12)
    }

    /// The part of the time that the processor needs at least; `None` where no cost is known.
    fn roofline(&self) -> Option<f64> {
        let (time, least) = self.known;
        (time > Duration::ZERO).then(|| roofline::percent(least, time))
    }

    fn text(&self, total: Duration) -> String {
        let calls = if self.n == 1 { "1 call".into() } else { format!("{} calls", self.n) };
        let roofline = self.roofline().map(|part| format!(", at {part:.0} % of the roofline"));
        let (time, percent) = (duration(self.time), self.percent(total));
        format!("{time}, {calls}, {percent:.1} %{}", roofline.unwrap_or_default())
    }

    fn json(&self, total: Duration) -> Value {
        let ms = self.time.as_secs_f64() * 1e3;
        let mut json = json!({
            "op": self.name, "calls": self.n, "ms": ms, "percent": self.percent(total),
        });
        if let Some(part) = self.roofline() {
            json["roofline_percent"] = json!(part);
            json["gflops"] = json!(self.flops as f64 / self.time.as_secs_f64().max(1e-12) / 1e9);
        }
        json
    }
}

/// The calls of each op, the one that took longest first.
fn by_op(ops: &[OpStats], roofline: &Roofline) -> Vec<OpSums> {
    let mut sums: BTreeMap<&str, OpSums> = BTreeMap::new();
    for op in ops {
        let sum = sums.entry(&op.op).or_insert_with(|| OpSums {
            name: op.op.clone(),
            n: 0,
            time: Duration::ZERO,
            known: (Duration::ZERO, Duration::ZERO),
            flops: 0,
        });
        sum.n += 1;
        sum.time += op.elapsed;
        sum.flops += op.cost.flops;
        if let Some(least) = roofline.least_time(op) {
            sum.known = (sum.known.0 + op.elapsed, sum.known.1 + least);
        }
    }
    let mut rows: Vec<OpSums> = sums.into_values().collect();
    rows.sort_by_key(|op| std::cmp::Reverse(op.time));
    rows
}
