//! `ferroflow ops`: which ops there are, and which of them can run.

use super::{Report, columns, file_kind::FileKind, recognize::model_folder};
use anyhow::Result;
use clap::Args;
use ferroflow::{coverage, ir, runtime::Context, saved_model::load::read_saved_model};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct OpsArguments {
    /// Only the ops of this SavedModel (or GraphDef file) that cannot run here.
    #[arg(long, value_name = "DIR", conflicts_with = "model")]
    missing: Option<PathBuf>,
    /// Only the ops of this SavedModel (or GraphDef file).
    #[arg(value_name = "DIR")]
    model: Option<PathBuf>,
}

pub(super) fn ops(arguments: OpsArguments) -> Result<Report> {
    let only_missing = arguments.missing.is_some();
    match arguments.missing.or(arguments.model) {
        Some(path) => of_model(&path, only_missing),
        None => Ok(of_all()),
    }
}

/// The ops of a SavedModel or GraphDef file.
///
/// # Errors
///
/// When it is neither, or cannot be read.
pub(super) fn of_model(path: &Path, only_missing: bool) -> Result<Report> {
    let needed = match FileKind::of(path) {
        FileKind::GraphDef => coverage::ops_of_graph(path)?,
        _ => coverage::ops_of_model(&read_saved_model(&model_folder(path)?)?),
    };
    let context = Context::new();
    let (n_needed, n_nodes) = (needed.len(), needed.values().sum::<usize>());
    let row = |(op, nodes): (String, usize)| {
        let supported = coverage::is_supported(&context, &op);
        (op, nodes, supported)
    };
    let rows: Vec<(String, usize, bool)> = needed.into_iter().map(row).collect();
    let n_missing = rows.iter().filter(|(.., supported)| !supported).count();
    let shown = rows.iter().filter(|(.., supported)| !(only_missing && *supported));
    let cells: Vec<(String, String)> = shown
        .clone()
        .map(|(op, nodes, supported)| {
            let nodes = if *nodes == 1 { "1 node".into() } else { format!("{nodes} nodes") };
            let what = match (supported, coverage::reason(op)) {
                (true, _) => String::new(),
                (false, None) => ", cannot run here".into(),
                (false, Some(reason)) => format!(", cannot run here: {reason}"),
            };
            (op.clone(), format!("{nodes}{what}"))
        })
        .collect();
    let mut text = columns(&cells, "");
    if !cells.is_empty() {
        text.push('\n');
    }
    let summary = match n_missing {
        0 => format!("all {n_needed} ops ({n_nodes} nodes) can run"),
        _ => format!("{n_missing} of {n_needed} ops cannot run here"),
    };
    let row = |(op, nodes, supported): &(String, usize, bool)| {
        let reason = coverage::reason(op).filter(|_| !supported);
        json!({ "op": op, "nodes": nodes, "supported": supported, "reason": reason })
    };
    let json = json!({
        "needed": n_needed, "missing": n_missing, "ops": shown.map(row).collect::<Vec<_>>(),
    });
    Ok(Report { text: text + &summary, json })
}

fn of_all() -> Report {
    let context = Context::new();
    let supported = |op: &&str| coverage::is_supported(&context, op);
    let mut names: Vec<&str> = ir::ops::tensorflow_names().filter(supported).collect();
    let (n_supported, n_known) = (names.len(), ir::ops::tensorflow_names().count());
    let n_known_text = ir::ops::tensorflow_text_names().count();
    names.extend(ir::ops::tensorflow_text_names().filter(supported));
    let n_text = names.len() - n_supported;
    let n_known_forest = ir::ops::decision_forest_names().count();
    names.extend(ir::ops::decision_forest_names().filter(supported));
    let n_forest = names.len() - n_supported - n_text;
    let cells: Vec<(String, String)> = names
        .iter()
        .map(|name| {
            let record = context.registry().find(name);
            ((*name).to_string(), record.map_or("", |record| record.summary).to_string())
        })
        .collect();
    let summary = format!(
        "\n{n_supported} of TensorFlow's {n_known} ops can run\n\
         {n_text} of tensorflow_text's {n_known_text} ops can run\n\
         {n_forest} of TensorFlow Decision Forests' {n_known_forest} ops of inference can run"
    );
    let json = json!({ "ops": names, "known": n_known, "known_text": n_known_text });
    Report { text: columns(&cells, "") + &summary, json }
}
