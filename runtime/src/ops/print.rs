//! Printing.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    resource::{Resource, ResourceHandle},
};
use ferroflow_ir::{Error, budget};
use ferroflow_kernels::summary;
use std::{
    fs::OpenOptions,
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

/// Prints a text to where the attribute says: an output of the process, its log, or the end of a
/// file. A printer of the context takes the place of all of them.
fn print(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let text = call.inputs[0].host()?.strings()?.first().cloned().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    put(call, call.attrs.string("output_stream")?, &text, call.attrs.string("end")?)?;
    Ok(Results::new())
}

/// Prints a message and the first elements of tensors to standard error, as often as `first_n` says,
/// and passes input 0 on.
///
/// Source: `PrintOp` in TensorFlow's `logging_ops.cc`.
fn print_and_pass(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let first_n = call.attrs.int("first_n")?;
    if first_n < 0 || printed(call)?.0.fetch_add(1, Ordering::Relaxed) < first_n {
        let (message, limit) = (call.attrs.string("message")?, call.attrs.int("summarize")?);
        let mut text = message.to_string();
        for index in 1..call.inputs.len() {
            let shown = summary(call.host(index)?, limit);
            text.push_str(&format!("[{}]", String::from_utf8_lossy(&shown)));
        }
        put(call, "stderr", &text, "\n")?;
    }
    one(call.inputs[0].clone())
}

/// Number of prints of a node.
#[derive(Debug, Default)]
struct Printed(AtomicI64);

/// The count of the node that calls; of the message, in eager code.
fn printed(call: &RuntimeCall<'_>) -> Result<Arc<Printed>> {
    let name = match call.scope.origin {
        Some(origin) => format!("{}/{}", origin.function, origin.node),
        None => call.attrs.string("message")?.to_string(),
    };
    let create = || Ok(Arc::new(Printed::default()) as Arc<dyn Resource>);
    let found = call.scope.resources.find_or_create("Print", &name, create)?;
    ResourceHandle::owning(name, found).downcast("a count of messages")
}

impl Resource for Printed {
    fn kind(&self) -> &'static str {
        "a count of messages"
    }
}

/// Prints a text and its end to a stream.
fn put(call: &RuntimeCall<'_>, stream: &str, text: &str, end: &str) -> Result<()> {
    budget::print(text.len() + end.len())?;
    if let Some(printer) = call.scope.context.printer() {
        printer(&format!("{text}{end}"));
        return Ok(());
    }
    match stream {
        // An output that nobody reads any more is no failure of the program.
        "stdout" => drop(write!(std::io::stdout(), "{text}{end}")),
        "stderr" => drop(write!(std::io::stderr(), "{text}{end}")),
        "log(info)" => tracing::info!("{text}"),
        "log(warning)" => tracing::warn!("{text}"),
        "log(error)" => tracing::error!("{text}"),
        other => match other.strip_prefix("file://") {
            Some(path) => append(call, Path::new(path), &format!("{text}{end}"))?,
            None => {
                let expected = "an output, a log or a file";
                return Err(Error::argument("PrintV2", "output_stream", expected, other).into());
            }
        },
    }
    Ok(())
}

fn append(call: &RuntimeCall<'_>, path: &Path, text: &str) -> Result<()> {
    call.scope.context.check_file(path)?;
    let write =
        || OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes());
    write().map_err(|error| {
        let detail = format!("cannot write {}: {error}", path.display());
        let code = ferroflow_ir::Code::PermissionDenied;
        Error::Status { code, op: "PrintV2".into(), detail }.into()
    })
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] =
    &[("Print", print_and_pass), ("PrintV2", print)];
