//! The ops of a call as a file of Chrome's Trace Event Format, which `chrome://tracing` and
//! `ui.perfetto.dev` show.

use super::roofline::{self, Roofline};
use anyhow::{Context as _, Result};
use ferroflow::runtime::{Context, OpStats, RunMetadata};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path};

/// Writes what ran, a row for each device, with the limits of the processor.
///
/// # Errors
///
/// When the file cannot be written.
pub(super) fn write(path: &Path, context: &Context, metadata: &RunMetadata) -> Result<()> {
    let text = format!("{:#}\n", events(metadata, &Roofline::measure(context)));
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// Complete events (`ph` is `X`), with times in microseconds, and the names of the devices.
fn events(metadata: &RunMetadata, limits: &Roofline) -> Value {
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
            "args": details(op, limits),
        })
    });
    json!({
        "traceEvents": names.chain(ops).collect::<Vec<_>>(), "displayTimeUnit": "ms",
        "otherData": { "limits": limits.json() },
    })
}

/// Details of an op; bytes are those of its operands and results.
fn details(op: &OpStats, limits: &Roofline) -> Value {
    let mut details =
        json!({ "node": op.node, "function": op.function, "output_bytes": op.output_bytes });
    if let Some(least) = limits.least_time(op) {
        details["bytes"] = json!(op.cost.bytes);
        details["flops"] = json!(op.cost.flops);
        details["roofline_percent"] = json!(roofline::percent(least, op.elapsed));
    }
    details
}
