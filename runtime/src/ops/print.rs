//! Printing.

use super::{Body, RuntimeCall};
use crate::{error::Result, execute::Results};
use ferroflow_ir::Error;
use std::{fs::OpenOptions, io::Write, path::Path};

/// Prints a text to where the attribute says: an output of the process, its log, or the end of a
/// file. A printer of the context takes the place of all of them.
fn print(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let text = call.inputs[0].host()?.strings()?.first().cloned().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let (stream, end) = (call.attrs.string("output_stream")?, call.attrs.string("end")?);
    if let Some(printer) = call.scope.context.printer() {
        printer(&format!("{text}{end}"));
        return Ok(Results::new());
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
    Ok(Results::new())
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

pub(super) const BODIES: &[(&str, Body)] = &[("PrintV2", print)];
