//! The ops of a call as a file of Chrome's Trace Event Format, which `chrome://tracing` and
//! `ui.perfetto.dev` show.

use anyhow::{Context as _, Result};
use ferroflow::runtime::RunMetadata;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path};

/// Writes what ran, a row for each device.
///
/// # Errors
///
/// When the file cannot be written.
pub(super) fn write(path: &Path, metadata: &RunMetadata) -> Result<()> {
    let text = format!("{:#}\n", events(metadata));
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Complete events (`ph` is `X`), with times in microseconds, and the names of the devices.
fn events(metadata: &RunMetadata) -> Value {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for op in &metadata.ops {
        let next = rows.len();
        rows.entry(&op.device).or_insert(next);
    }
    let names = rows.iter().map(|(device, row)| {
        json!({ "ph": "M", "name": "thread_name", "pid": 0, "tid": row, "args": { "name": device } })
    });
    let ops = metadata.ops.iter().map(|op| {
        json!({
            "ph": "X", "pid": 0, "tid": rows[op.device.as_str()], "name": op.op, "cat": op.function,
            "ts": op.start.as_secs_f64() * 1e6, "dur": op.elapsed.as_secs_f64() * 1e6,
            "args": { "node": op.node, "function": op.function, "output_bytes": op.output_bytes },
        })
    });
    json!({ "traceEvents": names.chain(ops).collect::<Vec<_>>(), "displayTimeUnit": "ms" })
}
