//! Outputs of a call, and what is told about it.

use super::{Report, array_json};
use anyhow::{Context as _, Result, bail, ensure};
use ferroflow::{
    npy,
    runtime::{EagerTensor, MemoryEstimate, Placement},
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::Path};

/// Adds an estimate to a report, beside the placement if that is there.
pub(super) fn add_estimate(report: &mut Report, estimate: &MemoryEstimate, beside_placement: bool) {
    let MemoryEstimate { arena, constants, tensors, results, n_unknown } = *estimate;
    let open = match n_unknown {
        0 => String::new(),
        n => format!("; the sizes of {n} values depend on the inputs"),
    };
    report.text = format!(
        "{}\nmemory: {} bytes ({arena} arena, {constants} constants, {tensors} tensors, of which {results} \
         results){open}",
        report.text,
        estimate.total()
    );
    if !beside_placement {
        report.json = json!({ "outputs": report.json });
    }
    report.json["memory"] = json!({
        "arena": arena, "constants": constants, "tensors": tensors, "results": results,
        "n_unknown": n_unknown, "total": estimate.total() });
}

/// Adds what ran where to a report.
pub(super) fn add_placement(report: &mut Report, placements: &[Placement]) {
    let texts: Vec<String> = placements.iter().map(Placement::to_string).collect();
    let nothing = "everything ran on the CPU\n".to_string();
    let text = if texts.is_empty() { nothing } else { texts.join("") };
    report.text = format!("{}\n{}", report.text, text.trim_end());
    let calls = placements.iter().flat_map(|placement| &placement.calls).map(|call| {
        json!({ "node": call.node, "op": call.op, "device": call.device,
                "reason": call.reason.to_string() })
    });
    let copies = placements.iter().flat_map(|placement| &placement.copies).map(|copy| {
        json!({ "node": copy.node, "from": copy.from, "to": copy.to, "bytes": copy.bytes,
                "once": copy.once })
    });
    let (calls, copies): (Vec<Value>, Vec<Value>) = (calls.collect(), copies.collect());
    report.json =
        json!({ "outputs": report.json, "placement": { "calls": calls, "copies": copies } });
}

/// The outputs of a call.
pub(super) fn report(outputs: &BTreeMap<String, EagerTensor>) -> Result<Report> {
    let mut texts = Vec::new();
    let mut fields = Map::new();
    for (name, tensor) in outputs {
        let tensor = tensor.host()?;
        texts.push(format!("{name}: {}{}\n{tensor}", tensor.dtype(), tensor.shape()));
        fields.insert(name.clone(), array_json::tensor(tensor));
    }
    Ok(Report { text: texts.join("\n"), json: Value::Object(fields) })
}

/// Writes all outputs, or none if one of the files must not be replaced. A `/` in the name of an output stands for
/// a folder.
pub(super) fn write(
    folder: &Path,
    outputs: &BTreeMap<String, EagerTensor>,
    overwrite: bool,
) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for (name, tensor) in outputs {
        ensure!(name.split('/').all(is_file_name), "output `{name}` names no file");
        let path = folder.join(format!("{name}.npy"));
        if path.exists() && !overwrite {
            bail!("{}: the file exists; --overwrite replaces it", path.display());
        }
        files.push((path, tensor));
    }
    for (path, tensor) in files {
        let folder = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        npy::write(path, tensor.host()?)?;
    }
    Ok(())
}

/// Whether this names a file or a folder in the one that it is looked for in.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow::ir::HostTensor;

    #[test]
    fn outputs_are_written_in_folders_and_never_outside() {
        let folder = tempfile::tempdir().expect("a folder");
        let one = |name: &str| {
            let tensor = EagerTensor::from(HostTensor::scalar(2.5f32));
            write(folder.path(), &BTreeMap::from([(name.to_string(), tensor)]), false)
        };
        one("state/0").expect("a file in a folder");
        let written = npy::read(folder.path().join("state/0.npy")).expect("a tensor");
        assert_eq!(written, HostTensor::scalar(2.5f32));
        for name in ["../x", "a/../../x", "/x", "a//x", "..", "a\\x", ""] {
            assert!(one(name).is_err(), "{name}");
        }
    }
}
