//! Event files: every record and what it holds.

use super::{Case, value};
use crate::{compare::Compare, ops::base64, outcome::CaseOutcome};
use anyhow::{Context as _, Result, bail, ensure};
use ferroflow::{
    ir::Limits,
    saved_model::{
        convert, events,
        proto::{Event, GraphDef, Message as _, event::What, summary},
        record_file::RecordReader,
    },
};

use serde_json::{Value, json};

pub(crate) fn run(case: &Case) -> Result<CaseOutcome> {
    let path = case.folder.join(case.json["file"].as_str().context("a file")?);
    let limits = Limits::default();
    let events: Vec<Event> = events::read(&path, &limits)?.collect::<Result<_, _>>()?;
    let lengths: Vec<usize> = RecordReader::open(&path, &limits)?
        .map(|record| record.map(|record| record.len()))
        .collect::<Result<_, _>>()?;
    let expected = case.json["records"].as_array().context("records")?;
    ensure!(events.len() == expected.len(), "{} events of {}", events.len(), expected.len());
    for (index, ((event, length), expected)) in events.iter().zip(lengths).zip(expected).enumerate()
    {
        check(case, event, length, expected).with_context(|| format!("event {index}"))?;
    }
    Ok(CaseOutcome::Passed)
}

fn check(case: &Case, event: &Event, length: usize, expected: &Value) -> Result<()> {
    let what = event.what.as_ref().context("an event of nothing")?;
    let mut found = json!({
        "wall_time": event.wall_time,
        "step": event.step,
        "bytes": length,
        "what": name(what),
    });
    match what {
        What::FileVersion(version) => found["file_version"] = json!(version),
        What::GraphDef(bytes) => {
            let graph = GraphDef::decode(bytes.clone())?;
            let nodes = graph.node.iter().map(|node| json!([node.name, node.op]));
            found["nodes"] = nodes.collect();
            let functions = graph.library.unwrap_or_default().function;
            let mut names: Vec<String> =
                functions.into_iter().map(|def| def.signature.unwrap_or_default().name).collect();
            names.sort();
            found["functions"] = json!(names);
        }
        What::Summary(summary) => {
            let values = expected["values"].as_array().context("values")?;
            ensure!(summary.value.len() == values.len(), "{} values", summary.value.len());
            for (value, expected) in summary.value.iter().zip(values) {
                check_value(case, value, expected).with_context(|| value.tag.clone())?;
            }
            found["values"] = expected["values"].clone();
        }
        _ => {}
    }
    if found != *expected {
        bail!("{found} instead of {expected}");
    }
    Ok(())
}

fn name(what: &What) -> &'static str {
    match what {
        What::FileVersion(_) => "file_version",
        What::GraphDef(_) => "graph_def",
        What::Summary(_) => "summary",
        What::LogMessage(_) => "log_message",
        What::SessionLog(_) => "session_log",
        What::TaggedRunMetadata(_) => "tagged_run_metadata",
        What::MetaGraphDef(_) => "meta_graph_def",
    }
}

fn check_value(case: &Case, found: &summary::Value, expected: &Value) -> Result<()> {
    let plugin = found.metadata.clone().unwrap_or_default().plugin_data.unwrap_or_default();
    let (kind, key, value) = match found.value.as_ref().context("a value")? {
        summary::value::Value::SimpleValue(value) => ("simple_value", "simple_value", json!(value)),
        summary::value::Value::Histo(histo) => {
            let value = json!({
                "min": histo.min,
                "max": histo.max,
                "num": histo.num,
                "sum": histo.sum,
                "sum_squares": histo.sum_squares,
                "bucket_limit": histo.bucket_limit,
                "bucket": histo.bucket,
            });
            ("histo", "histo", value)
        }
        summary::value::Value::Tensor(message) => {
            let tensor = convert::tensor(message, &Limits::default())?;
            Compare::Exact.check(&tensor, &value::tensor(&expected["tensor"], &case.folder)?)?;
            ("tensor", "tensor", expected["tensor"].clone())
        }
        summary::value::Value::Image(image) => {
            let value = json!({
                "height": image.height,
                "width": image.width,
                "colorspace": image.colorspace,
                "bytes": image.encoded_image_string.len(),
            });
            ("image", "image", value)
        }
        // Of these the kind alone is recorded.
        summary::value::Value::Audio(_) => ("audio", "audio", expected["audio"].clone()),
        summary::value::Value::ObsoleteOldStyleHistogram(_) => {
            let kind = "obsolete_old_style_histogram";
            (kind, kind, expected[kind].clone())
        }
    };
    let content = base64(&expected["plugin_content"])?;
    ensure!(plugin.content == content, "content {:?} instead of {content:?}", plugin.content);
    let mut summary = json!({
        "tag": found.tag,
        "plugin": plugin.plugin_name,
        "plugin_content": expected["plugin_content"],
        "value": kind,
    });
    if !value.is_null() {
        summary[key] = value;
    }
    if summary != *expected {
        bail!("{summary} instead of {expected}");
    }
    Ok(())
}
