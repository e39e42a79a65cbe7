//! `ferroflow scan`: what a model could do outside of itself.

use super::{ModelFolder, Report, columns, file_kind::FileKind, recognize::model_folder};
use anyhow::Result;
use clap::Args;
use ferroflow::{coverage, runtime::Context, saved_model::load::read_saved_model};
use serde_json::json;

/// Arguments of the command.
#[derive(Args)]
pub(super) struct ScanArguments {
    #[command(flatten)]
    folder: ModelFolder,
}

pub(super) fn scan(arguments: ScanArguments) -> Result<Report> {
    let path = arguments.folder.path();
    let ops = match FileKind::of(path) {
        FileKind::GraphDef => coverage::ops_of_graph(path)?,
        _ => coverage::ops_of_model(&read_saved_model(&model_folder(path)?)?),
    };
    let context = Context::new();
    let of = |op: &str| coverage::outside_access(&context, op);
    let found: Vec<(&String, usize, String)> =
        ops.iter().filter_map(|(op, &nodes)| Some((op, nodes, of(op)?.to_string()))).collect();
    let rows: Vec<(String, String)> = found
        .iter()
        .map(|(op, nodes, what)| {
            let nodes = if *nodes == 1 { "1 node".into() } else { format!("{nodes} nodes") };
            ((*op).clone(), format!("{nodes}, {what}"))
        })
        .collect();
    let summary = match found.len() {
        0 => format!("none of the {} ops reaches outside of the model", ops.len()),
        n => format!(
            "{n} of {} ops reach outside of the model; files elsewhere than in its folder are refused \
             unless the context grants `FileAccess::Any`",
            ops.len()
        ),
    };
    let text = if rows.is_empty() { summary } else { format!("{}\n{summary}", columns(&rows, "")) };
    let found =
        found.iter().map(|(op, nodes, what)| json!({ "op": op, "nodes": nodes, "does": what }));
    let json = json!({ "ops": ops.len(), "found": found.collect::<Vec<_>>() });
    Ok(Report { text, json })
}
