//! The table of all ops, as the book shows it.

use super::{is_supported, reason};
use ferroflow_ir::{
    DType, Lowering, OpDef,
    gradient::Gradient,
    op::{Allowed, AttrDef, AttrKind},
    ops::{decision_forest_names, tensorflow_names, tensorflow_text_names},
};
use ferroflow_runtime::Context;
use ferroflow_saved_model::convert::op_of_file;
use std::{collections::BTreeMap, fmt::Write};

/// The ops of TensorFlow, of tensorflow_text and of Decision Forests as Markdown: a row for each that can run, with its
/// dtypes, its gradient and its devices, and lists of the others by reason.
///
/// ```
/// use ferroflow::{coverage::table, runtime::Context};
/// let table = table(&Context::new());
/// assert!(table.contains("| `MatMul` | T: "));
/// ```
pub fn table(context: &Context) -> String {
    let (running, others): (Vec<&str>, Vec<&str>) = tensorflow_names()
        .chain(tensorflow_text_names())
        .chain(decision_forest_names())
        .partition(|name| is_supported(context, name));
    let mut text = format!(
        "{} ops can run, {} others are known.\n\n\
         | Op | dtypes | Gradient | Devices |\n|---|---|---|---|\n",
        running.len(),
        others.len(),
    );
    for name in running {
        let _ = writeln!(text, "{}", row(context, name));
    }
    let mut absent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in others {
        absent.entry(reason(name).unwrap_or("not built yet")).or_default().push(name);
    }
    for (reason, names) in absent {
        let _ = write!(text, "\n## Cannot run: {reason} ({})\n\n", names.len());
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(text, "{}", names.join(", "));
    }
    text
}

fn row(context: &Context, name: &str) -> String {
    match op_of_file(context.registry(), name) {
        Some(op) => {
            let (dtypes, gradient, devices) = (dtypes(op), gradient(op), devices(op));
            format!("| `{name}` | {dtypes} | {gradient} | {devices} |")
        }
        None => format!("| `{name}` | any | as its calls | all |"),
    }
}

/// The dtypes that each of the type attributes takes.
fn dtypes(op: &OpDef) -> String {
    let types =
        op.attrs.iter().filter(|attr| matches!(attr.kind, AttrKind::Type | AttrKind::Types));
    let sets: Vec<String> =
        types.map(|attr| format!("{}: {}", attr.name, dtypes_of(attr))).collect();
    sets.join("; ")
}

fn dtypes_of(attr: &AttrDef) -> String {
    let Allowed::Types(types) = attr.allowed else { return "any".into() };
    let names: Vec<&str> = types.iter().copied().map(DType::name).collect();
    names.join(" ")
}

/// Whether gradients go through the op.
fn gradient(op: &OpDef) -> &'static str {
    match (op.gradient, op.lowering) {
        (Gradient::Missing, Lowering::Composite(_)) => "of its parts",
        (Gradient::Missing, _) => "",
        (Gradient::Zero, _) => "none by definition",
        _ => "yes",
    }
}

/// Where the op runs.
fn devices(op: &OpDef) -> &'static str {
    match op.lowering {
        Lowering::Composite(_) => "those of its parts",
        Lowering::HostKernel(_) | Lowering::Runtime | Lowering::Interface => "CPU",
        _ => "all",
    }
}
