//! `ferroflow show`: what a SavedModel holds.

use super::{
    ModelFolder, Report, columns,
    file_kind::FileKind,
    graph, graph_file, objects, ops, progress,
    recognize::model_folder,
    signature::{self, INIT_OP},
};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use ferroflow::saved_model::{
    load::{read_saved_model, tags},
    proto::{MetaGraphDef, SavedModel, SignatureDef},
    read_message,
};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Arguments of the command.
#[derive(Args)]
pub(super) struct ShowArguments {
    #[command(flatten)]
    folder: ModelFolder,
    /// Everything: every MetaGraph with its signatures in full, variables and functions.
    #[arg(long, conflicts_with_all = ["tag_set", "signature_def"])]
    all: bool,
    /// The tags of a MetaGraph, with commas between them.
    #[arg(long = "tag_set", alias = "tag-set", value_name = "TAGS")]
    tag_set: Option<String>,
    /// A signature of that MetaGraph.
    #[arg(long = "signature_def", alias = "signature-def", value_name = "NAME")]
    signature_def: Option<String>,
    /// The ops that it uses, with the number of nodes of each.
    #[arg(long = "list_ops", alias = "list-ops", conflicts_with = "all")]
    list_ops: bool,
    /// The nodes of this function, or of the main graph if it is empty.
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1, default_missing_value = "")]
    graph: Option<String>,
    /// Print the graph for Graphviz, in the DOT language; the main graph unless `--graph` names
    /// another.
    #[arg(long)]
    dot: bool,
}

impl ShowArguments {
    /// The function whose nodes are asked for; empty for the main graph.
    fn function(&self) -> Option<&str> {
        self.graph.as_deref().or(self.dot.then_some(""))
    }
}

/// The same of a GraphDef, which has no signatures.
fn graph_file(path: &Path, arguments: &ShowArguments) -> Result<Report> {
    ensure!(
        arguments.tag_set.is_none() && arguments.signature_def.is_none(),
        "{} is a GraphDef, which has neither tags nor signatures",
        path.display()
    );
    if arguments.list_ops {
        return ops::of_model(path, false);
    }
    match arguments.function() {
        Some(function) => {
            let meta_graph =
                MetaGraphDef { graph_def: Some(read_message(path)?), ..MetaGraphDef::default() };
            graph::graph(&meta_graph, function, arguments.dot)
        }
        None => graph_file::overview(path),
    }
}

pub(super) fn show(arguments: ShowArguments) -> Result<Report> {
    let path = arguments.folder.path();
    if FileKind::of(path) == FileKind::GraphDef {
        return graph_file(path, &arguments);
    }
    let folder = model_folder(path)?;
    let model = progress::during("reading", || read_saved_model(&folder))?;
    if arguments.all {
        return Ok(all(&model));
    }
    if arguments.list_ops {
        return ops::of_model(&folder, false);
    }
    if let Some(function) = arguments.function() {
        let meta_graph = match (&arguments.tag_set, &model.meta_graphs[..]) {
            (Some(tags), _) => choose(&model, tags)?,
            (None, [only]) => only,
            (None, _) => {
                anyhow::bail!("--tag_set must say which MetaGraph: {}", tag_sets(&model))
            }
        };
        return graph::graph(meta_graph, function, arguments.dot);
    }
    let Some(tag_set) = arguments.tag_set else {
        return match (arguments.signature_def, &model.meta_graphs[..]) {
            (None, _) => Ok(overview(&model)),
            (Some(name), [only]) => one(only, &name),
            (Some(_), _) => {
                anyhow::bail!("--tag_set must say which MetaGraph: {}", tag_sets(&model))
            }
        };
    };
    let meta_graph = choose(&model, &tag_set)?;
    match arguments.signature_def {
        Some(name) => one(meta_graph, &name),
        None => Ok(signatures(meta_graph)),
    }
}

/// The MetaGraph with exactly these tags.
fn choose<'a>(model: &'a SavedModel, tag_set: &str) -> Result<&'a MetaGraphDef> {
    let sorted = |mut tags: Vec<String>| {
        tags.sort();
        tags
    };
    let wanted = sorted(split_tags(tag_set));
    model
        .meta_graphs
        .iter()
        .find(|meta_graph| sorted(tags(meta_graph).to_vec()) == wanted)
        .with_context(|| {
            format!("no MetaGraph has the tags `{tag_set}`; there are {}", tag_sets(model))
        })
}

/// Tags as the command line has them.
pub(super) fn split_tags(tag_set: &str) -> Vec<String> {
    tag_set.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_string).collect()
}

fn tag_set(meta_graph: &MetaGraphDef) -> String {
    tags(meta_graph).join(",")
}

fn tag_sets(model: &SavedModel) -> String {
    let sets = model.meta_graphs.iter().map(|meta_graph| format!("`{}`", tag_set(meta_graph)));
    sets.collect::<Vec<_>>().join(", ")
}

fn public(meta_graph: &MetaGraphDef) -> impl Iterator<Item = (&String, &SignatureDef)> {
    meta_graph.signature_def.iter().filter(|(name, _)| *name != INIT_OP)
}

fn overview(model: &SavedModel) -> Report {
    let texts: Vec<String> = model.meta_graphs.iter().map(brief).collect();
    let graphs: Vec<Value> = model
        .meta_graphs
        .iter()
        .map(|meta_graph| {
            let names: Vec<&String> = public(meta_graph).map(|(name, _)| name).collect();
            json!({
                "tags": tags(meta_graph), "tensorflow": version(meta_graph), "signatures": names,
            })
        })
        .collect();
    Report { text: texts.join("\n"), json: json!({ "meta_graphs": graphs }) }
}

fn brief(meta_graph: &MetaGraphDef) -> String {
    let rows: Vec<(String, String)> =
        public(meta_graph).map(|(name, def)| (name.clone(), signature::brief(def))).collect();
    let rows = match rows.is_empty() {
        true => "  no signatures".into(),
        false => columns(&rows, "  "),
    };
    format!("{}\n{rows}", heading(meta_graph))
}

fn heading(meta_graph: &MetaGraphDef) -> String {
    let version = match version(meta_graph) {
        "" => "an unknown version of TensorFlow".into(),
        version => format!("TensorFlow {version}"),
    };
    format!("tags `{}`, for {version}", tag_set(meta_graph))
}

fn version(meta_graph: &MetaGraphDef) -> &str {
    meta_graph.meta_info_def.as_ref().map_or("", |info| &info.tensorflow_version)
}

fn signatures(meta_graph: &MetaGraphDef) -> Report {
    let fields: Map<String, Value> =
        public(meta_graph).map(|(name, def)| (name.clone(), signature::json(def))).collect();
    let json = json!({ "tags": tags(meta_graph), "signatures": fields });
    Report { text: brief(meta_graph), json }
}

fn one(meta_graph: &MetaGraphDef, name: &str) -> Result<Report> {
    let (_, def) =
        public(meta_graph).find(|(signature, _)| *signature == name).with_context(|| {
            let names: Vec<&str> = public(meta_graph).map(|(name, _)| name.as_str()).collect();
            format!("there is no signature `{name}`; there are [{}]", names.join(", "))
        })?;
    Ok(Report { text: full(name, def), json: json!({ name: signature::json(def) }) })
}

/// A signature with the tensors of the graph that it names.
fn full(name: &str, def: &SignatureDef) -> String {
    let mut rows = Vec::new();
    for (what, side) in [("input", &def.inputs), ("output", &def.outputs)] {
        for (key, info) in side {
            let tensors = signature::tensors(info).join(", ");
            let default = signature::default(def, key).filter(|_| what == "input");
            let default = default.map_or(String::new(), |value| format!(", default {value}"));
            rows.push((
                format!("{what} {key}: {}", signature::ty(info)),
                format!("tensor {tensors}{default}"),
            ));
        }
    }
    let method = match def.method_name.as_str() {
        "" => String::new(),
        method => format!(" ({method})"),
    };
    format!("{name}{method}\n{}", columns(&rows, "  "))
}

fn all(model: &SavedModel) -> Report {
    let mut texts = Vec::new();
    let mut graphs = Vec::new();
    for meta_graph in &model.meta_graphs {
        let mut text = heading(meta_graph);
        text.push_str("\n  signatures");
        for (name, def) in public(meta_graph) {
            let indented = full(name, def).replace('\n', "\n    ");
            text.push_str(&format!("\n    {indented}"));
        }
        let objects = objects::text(meta_graph);
        if !objects.is_empty() {
            text.push_str(&format!("\n  objects\n{objects}"));
        }
        texts.push(text);
        let fields: Map<String, Value> =
            public(meta_graph).map(|(name, def)| (name.clone(), signature::json(def))).collect();
        graphs.push(json!({
            "tags": tags(meta_graph),
            "tensorflow": version(meta_graph),
            "signatures": fields,
            "objects": objects::json(meta_graph),
        }));
    }
    Report { text: texts.join("\n"), json: json!({ "meta_graphs": graphs }) }
}
