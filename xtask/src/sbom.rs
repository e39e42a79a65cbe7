//! `sbom`: a software bill of materials (SPDX 2.3, JSON) of everything that the library and the command
//! line program are built from, from the lock file.

use crate::command;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

#[derive(Args)]
pub(crate) struct SbomFlags {
    /// The file to write; `target/sbom.spdx.json` if there is none.
    #[arg(long)]
    output: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, flags: &SbomFlags) -> Result<()> {
    let arguments = ["metadata", "--format-version", "1", "--all-features", "--locked"];
    let metadata = command::output(command::cargo(root, &arguments))?;
    let metadata: Value = serde_json::from_slice(&metadata)?;
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    let bill = bill(&metadata, &checksums(&lock))?;
    let path = flags.output.clone().unwrap_or_else(|| root.join("target/sbom.spdx.json"));
    fs::write(&path, serde_json::to_string_pretty(&bill)? + "\n")?;
    let n_packages = bill["packages"].as_array().map_or(0, Vec::len);
    println!("{}: {n_packages} packages", path.display());
    Ok(())
}

/// The checksums of a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"').to_string())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("cargo tells no `{key}`"))
}

/// The packages that the root package needs when it is built and run, tests and models left out.
fn needed(metadata: &Value) -> Result<BTreeMap<String, Vec<String>>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo resolves dependencies")?;
    let mut all = BTreeMap::new();
    for node in nodes {
        let is_built = |dep: &&Value| {
            let kinds = dep["dep_kinds"].as_array();
            let is_needed =
                |kind: &Value| kind["kind"] != "dev" && kind["target"] != "cfg(shuttle)";
            kinds.is_some_and(|kinds| kinds.iter().any(is_needed))
        };
        let deps = node["deps"].as_array().into_iter().flatten().filter(is_built);
        let deps = deps.map(|dep| text(dep, "pkg").map(String::from));
        all.insert(text(node, "id")?.to_string(), deps.collect::<Result<Vec<_>>>()?);
    }
    let mut waiting = vec![text(&metadata["resolve"], "root")?.to_string()];
    let mut found = BTreeMap::new();
    while let Some(id) = waiting.pop() {
        if let Some(deps) = all.remove(&id) {
            waiting.extend(deps.iter().cloned());
            found.insert(id, deps);
        }
    }
    Ok(found)
}

fn bill(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let needed = needed(metadata)?;
    let packages = metadata["packages"].as_array().context("cargo lists packages")?;
    let mut names = BTreeMap::new();
    let mut listed = Vec::new();
    for package in packages {
        let (id, name, version) =
            (text(package, "id")?, text(package, "name")?, text(package, "version")?);
        if !needed.contains_key(id) {
            continue;
        }
        let spdx = format!("SPDXRef-{name}-{version}").replace(['_', '+'], "-");
        names.insert(id, spdx.clone());
        listed.push(entry(package, &spdx, checksums.get(&(name.into(), version.into())))?);
    }
    let root = text(&metadata["resolve"], "root")?;
    let related = |from: &str, kind: &str, to: &str| json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to });
    let mut relations = vec![related("SPDXRef-DOCUMENT", "DESCRIBES", &names[root])];
    for (id, deps) in &needed {
        let deps: BTreeSet<&String> = deps.iter().filter_map(|dep| names.get(&**dep)).collect();
        relations.extend(deps.into_iter().map(|dep| related(&names[&**id], "DEPENDS_ON", dep)));
    }
    let version = packages.iter().find(|package| package["id"] == root);
    let version = version.map_or("", |package| package["version"].as_str().unwrap_or(""));
    Ok(json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("ferroflow-{version}"),
        "documentNamespace": format!("https://spdx.org/spdxdocs/ferroflow-{version}"),
        // The same lock file gives the same bill.
        "creationInfo": { "created": "1970-01-01T00:00:00Z", "creators": ["Tool: cargo-xtask-sbom"] },
        "packages": listed,
        "relationships": relations,
    }))
}

fn entry(package: &Value, spdx: &str, checksum: Option<&String>) -> Result<Value> {
    let (name, version) = (text(package, "name")?, text(package, "version")?);
    let license = package["license"].as_str().unwrap_or("NOASSERTION").replace('/', " OR ");
    let is_ours = package["source"].is_null();
    let location = match is_ours {
        true => "NOASSERTION".to_string(),
        false => format!("https://crates.io/api/v1/crates/{name}/{version}/download"),
    };
    let mut entry = json!({
        "SPDXID": spdx,
        "name": name,
        "versionInfo": version,
        "downloadLocation": location,
        "licenseDeclared": license,
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "filesAnalyzed": false,
    });
    if !is_ours {
        entry["externalRefs"] = json!([{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{name}@{version}"),
        }]);
    }
    if let Some(checksum) = checksum {
        entry["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": checksum }]);
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n\n\
                    [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        let found = checksums(lock);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&("a".to_string(), "1.0.0".to_string())], "00ff");
    }
}
