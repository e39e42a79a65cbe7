//! Single ops against recorded results.

mod derivative;
mod grads;
mod graph;
mod single_results;
mod tape;
mod value;

use crate::{
    compare::{Compare, Tolerance},
    outcome::CaseOutcome,
};
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    ir::{
        Attrs, Code, OpDef,
        op::{ArgKind, ArgType},
    },
    runtime::{Context, EagerTensor, FileAccess, execute},
    saved_model::add_ops,
};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::{
    env,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};
pub(crate) use tape::{CallTape, gradients};
pub(crate) use value::{attrs, base64, tensor};

/// Runs the cases and sequences of one op from number `from` on.
pub(crate) fn run_file(
    path: &Path,
    from: u64,
    report: &mut dyn FnMut(Value) -> Result<()>,
) -> Result<()> {
    let cases = read(path)?;
    let op = cases["op"].as_str().context("an op")?;
    let family = cases["family"].as_str().unwrap_or("");
    let list = |key: &str| cases[key].as_array().cloned().unwrap_or_default();
    let _scratch = ScratchFolder::enter()?;
    let (singles, sequences) = (list("cases"), list("sequences"));
    let jobs = singles.iter().map(|case| (case, false)).chain(sequences.iter().map(|s| (s, true)));
    for (number, (case, is_sequence)) in jobs.enumerate().skip(from as usize) {
        report(json!({ "begin": number }))?;
        let outcome = CaseOutcome::of(|| {
            let context = context();
            if is_sequence { run_sequence(&context, case) } else { run_case(&context, op, case) }
        });
        let id = format!("{}{}", if is_sequence { "s" } else { "" }, case["id"]);
        let result = json!({ "op": op, "family": family, "case": id, "number": number });
        report(outcome.report(result.clone()))?;
        if case["grads"].is_object() {
            let outcome = CaseOutcome::of(|| grads::run(&context(), op, case));
            let mut result = result;
            result["case"] = json!(format!("{id} gradients"));
            report(outcome.report(result))?;
        }
    }
    Ok(())
}

/// The recorded cases of an op.
pub(crate) fn read(path: &Path) -> Result<Value> {
    let mut text = String::new();
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    GzDecoder::new(file).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// A context whose ops may touch files.
pub(crate) fn context() -> Context {
    let files = FileAccess::Any;
    let context = crate::device::context_with(files);
    add_ops(&context);
    context
}

/// A folder for the files of one op; the process is in it until this is dropped.
pub(crate) struct ScratchFolder {
    folder: PathBuf,
    before: PathBuf,
}

impl ScratchFolder {
    pub(crate) fn enter() -> Result<ScratchFolder> {
        let before = env::current_dir()?;
        let folder = env::temp_dir().join(format!("conformance-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        env::set_current_dir(&folder)?;
        Ok(ScratchFolder { folder, before })
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // What cannot be undone here harms no result.
        let _ = env::set_current_dir(&self.before);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn run_case(context: &Context, op: &str, case: &Value) -> Result<CaseOutcome> {
    let inputs = tensors(&case["inputs"])?;
    call(context, op, case, inputs).map(|(outcome, _)| outcome)
}

/// The attributes of a case or step. A recording has defaults for the dtypes of what earlier steps
/// gave: those follow from the inputs.
fn attrs_of(op: &OpDef, case: &Value) -> Result<Attrs> {
    let mut attrs = attrs(op, &case["attrs"])?;
    for (arg, input) in op.inputs.iter().zip(case["inputs"].as_array().into_iter().flatten()) {
        let first = input.as_array().and_then(|list| list.first()).unwrap_or(input);
        if let ArgKind::One(ArgType::Attr(name)) | ArgKind::Repeated { of: ArgType::Attr(name), .. } =
            arg.kind
            && first["from"].is_array()
        {
            attrs.remove(name);
        }
    }
    Ok(attrs)
}

/// Makes a call and compares what came of it with what was recorded.
fn call(
    context: &Context,
    op: &str,
    case: &Value,
    inputs: Vec<EagerTensor>,
) -> Result<(CaseOutcome, Vec<EagerTensor>)> {
    let Some(record) = context.registry().find(op) else {
        return Ok((CaseOutcome::Unsupported(op.into()), Vec::new()));
    };
    if !context.supports(record) {
        return Ok((CaseOutcome::Unsupported(op.into()), Vec::new()));
    }
    let attrs = attrs_of(record, case)?;
    let result = execute(context, op, attrs.clone(), &inputs)
        .map(|results| results.into_vec())
        .map_err(|error| (error.code(), error.to_string()));
    let (outcome, results) = judge(op, case, result)?;
    if matches!(outcome, CaseOutcome::Passed)
        && !crate::device::is_named()
        && let Some(index) = single_results::differing(context, record, &attrs, &inputs, &results)?
    {
        let why = format!("output {index} is another one where nothing reads the others");
        return Ok((CaseOutcome::Failed(why), results));
    }
    Ok((outcome, results))
}

/// Compares what came of a call with what was recorded.
fn judge(
    op: &str,
    case: &Value,
    result: Result<Vec<EagerTensor>, (Code, String)>,
) -> Result<(CaseOutcome, Vec<EagerTensor>)> {
    match (result, case["error"]["class"].as_str()) {
        (Ok(results), None) => Ok((compare(case, &results)?, results)),
        (Ok(results), Some("UnimplementedError")) => Ok((CaseOutcome::Passed, results)),
        (Ok(_), Some(_)) if crate::device::goes_on_in_spite_of(&case["error"]) => {
            Ok((CaseOutcome::Passed, Vec::new()))
        }
        (Ok(_), Some(class)) => Ok((CaseOutcome::Failed(format!("no {class}")), Vec::new())),
        (Err((code, message)), None) => Ok((CaseOutcome::of_error(code, message), Vec::new())),
        (Err((code, message)), Some(class)) => {
            Ok((same_class(op, code, &message, class), Vec::new()))
        }
    }
}

fn same_class(op: &str, code: Code, message: &str, class: &str) -> CaseOutcome {
    let found = code.class_name();
    if found == class {
        return CaseOutcome::Passed;
    }
    CaseOutcome::of_error(code, format!("{op}: {found} instead of {class}: {message}"))
}

fn compare(case: &Value, results: &[EagerTensor]) -> Result<CaseOutcome> {
    let expected = case["outputs"].as_array().context("outputs")?;
    let (rtol, atol) = (case["rtol"].as_f64(), case["atol"].as_f64());
    let tolerance = Tolerance { rtol: rtol.unwrap_or(1e-5), atol: atol.unwrap_or(1e-5) };
    let tolerance = crate::device::tolerance(&case["attrs"]["T"], tolerance);
    let word = |word: &Value| match word.as_str() {
        Some("close") => Compare::Close(tolerance),
        Some("spec") => Compare::Spec,
        Some("set") => Compare::Set,
        _ if rtol.is_some() && crate::device::is_named() => Compare::Close(tolerance),
        _ => Compare::Exact,
    };
    let mut position = 0;
    for (index, expected) in expected.iter().enumerate() {
        let compare = match case["compare"].as_array() {
            Some(words) => word(words.get(index).unwrap_or(&Value::Null)),
            None => word(&case["compare"]),
        };
        let flat = expected.as_array().cloned().unwrap_or_else(|| vec![expected.clone()]);
        for expected in flat {
            let Some(found) = results.get(position) else {
                return Ok(CaseOutcome::Failed(format!("no output {position}")));
            };
            position += 1;
            if expected["opaque"].as_bool() == Some(true) {
                continue;
            }
            if let Err(error) = compare.check(found.host()?, &value::tensor(&expected)?) {
                return Ok(CaseOutcome::Failed(format!("output {}: {error}", position - 1)));
            }
        }
    }
    Ok(CaseOutcome::Passed)
}

fn tensors(inputs: &Value) -> Result<Vec<EagerTensor>> {
    let mut flat = Vec::new();
    for input in inputs.as_array().context("inputs")? {
        match input.as_array() {
            Some(list) => {
                for input in list {
                    flat.push(value::tensor(input)?.into());
                }
            }
            None => flat.push(value::tensor(input)?.into()),
        }
    }
    Ok(flat)
}

fn run_sequence(context: &Context, sequence: &Value) -> Result<CaseOutcome> {
    let steps = sequence["steps"].as_array().context("steps")?;
    match sequence["mode"].as_str() {
        Some("graph") => return graph::run(context, steps),
        Some("graph_once") if needs_graph(context, steps) => {
            return graph::run_once(context, steps);
        }
        // A graph that runs once, each step after the one before it, does what the calls do.
        Some("eager" | "graph_once") => {}
        other => bail!("unknown mode {other:?}"),
    }
    let mut results: Vec<Vec<EagerTensor>> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let op = step["op"].as_str().context("an op")?;
        let mut inputs = Vec::new();
        for input in step["inputs"].as_array().context("inputs")? {
            let list = input.as_array().cloned().unwrap_or_else(|| vec![input.clone()]);
            for input in list {
                inputs.push(argument(&input, &results)?);
            }
        }
        let (outcome, outputs) = call(context, op, step, inputs)?;
        match outcome {
            CaseOutcome::Passed => results.push(outputs),
            CaseOutcome::Failed(why) => {
                return Ok(CaseOutcome::Failed(format!("step {number} {op}: {why}")));
            }
            unsupported => return Ok(unsupported),
        }
    }
    Ok(CaseOutcome::Passed)
}

/// Whether an op of a sequence is one of graphs only.
fn needs_graph(context: &Context, steps: &[Value]) -> bool {
    let ops = steps.iter().filter_map(|step| context.registry().find(step["op"].as_str()?));
    ops.into_iter().any(|op| !context.supports(op))
}

fn argument(input: &Value, results: &[Vec<EagerTensor>]) -> Result<EagerTensor> {
    let Some(from) = input["from"].as_array() else { return Ok(value::tensor(input)?.into()) };
    let position = |index: usize| from.get(index).and_then(Value::as_u64).map(|n| n as usize);
    let (Some(step), Some(output)) = (position(0), position(1)) else { bail!("a bad reference") };
    let result = results.get(step).and_then(|outputs| outputs.get(output));
    result.cloned().context("a reference to a result that is not there")
}
