//! `tidy`: the house rules that the compiler does not check.

use crate::{
    command,
    metrics::{glossary, tree},
    op_names, source,
};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::{fs, path::Path};

/// Each crate with the crates of the workspace it may depend on. Arrows point down only.
const ARROWS: &[(&str, &[&str])] = &[
    ("ferroflow-arrow", &["ferroflow-ir"]),
    (
        "ferroflow-cluster",
        &["ferroflow-format", "ferroflow-ir", "ferroflow-kernels", "ferroflow-runtime"],
    ),
    ("ferroflow-format", &["ferroflow-ir"]),
    ("ferroflow-ir", &[]),
    ("ferroflow-kernels", &["ferroflow-ir"]),
    ("ferroflow-simulator", &[]),
    ("ferroflow-runtime", &["ferroflow-ir", "ferroflow-kernels"]),
    (
        "ferroflow-tracer",
        &["ferroflow-ir", "ferroflow-kernels", "ferroflow-runtime", "ferroflow-tracer-macros"],
    ),
    ("ferroflow-tracer-macros", &[]),
    (
        "ferroflow-nn",
        &["ferroflow-ir", "ferroflow-runtime", "ferroflow-tracer", "ferroflow-tracer-macros"],
    ),
    (
        "ferroflow-saved-model",
        &["ferroflow-format", "ferroflow-ir", "ferroflow-kernels", "ferroflow-runtime"],
    ),
    (
        "ferroflow",
        &[
            "ferroflow-arrow",
            "ferroflow-cluster",
            "ferroflow-format",
            "ferroflow-ir",
            "ferroflow-kernels",
            "ferroflow-nn",
            "ferroflow-runtime",
            "ferroflow-saved-model",
            "ferroflow-tracer",
        ],
    ),
    ("xtask", &["ferroflow-ir"]),
];

/// The files that may hold `unsafe` code.
const UNSAFE_FILES: &[&str] = &[
    "kernels/src/cpu/depthwise/tile.rs",
    "kernels/src/cpu/gemm/dots.rs",
    "kernels/src/cpu/gemm/factor.rs",
    "kernels/src/cpu/gemm/interleave.rs",
    "kernels/src/cpu/gemm/line.rs",
    "kernels/src/cpu/gemm/linear.rs",
    "kernels/src/cpu/gemm/rect.rs",
    "kernels/src/cpu/gemm/amx.rs",
    "kernels/src/cpu/gemm/blocks/tiles.rs",
    "kernels/src/cpu/gemm/split/block.rs",
    "kernels/src/cpu/gemm/split/registers.rs",
    "kernels/src/cpu/gemm/blocks/vnni.rs",
    "kernels/src/cpu/gemm/tile.rs",
    "kernels/src/cpu/gemm/vector/avx.rs",
    "kernels/src/cpu/gemm/vector/mod.rs",
    "kernels/src/cpu/gemm/vector/quad.rs",
    "kernels/src/cpu/machine.rs",
    "kernels/src/cpu/nontemporal.rs",
    "kernels/src/cuda/compile.rs",
    "kernels/src/cuda/driver.rs",
    "kernels/src/cuda/graph.rs",
    "kernels/src/cuda/memory.rs",
    "kernels/src/cuda/staging.rs",
    "kernels/src/cuda/probe.rs",
    "kernels/src/cuda/matmul/library.rs",
    "kernels/src/cuda/matmul/multiply.rs",
    "kernels/simulator/src/calls.rs",
    "kernels/simulator/src/compiler.rs",
    "kernels/simulator/src/descriptions.rs",
    "kernels/simulator/src/device_calls.rs",
    "kernels/simulator/src/graph_calls.rs",
    "kernels/simulator/src/launch.rs",
    "kernels/simulator/src/memory.rs",
    "kernels/simulator/src/memory_calls.rs",
    "kernels/simulator/src/matmul.rs",
    "kernels/simulator/src/matmul_calls.rs",
    "kernels/src/elementwise/tile/lanes/array.rs",
    "kernels/src/elementwise/tile/lanes/avx2.rs",
    "kernels/src/elementwise/tile/lanes/avx512.rs",
    "kernels/src/elementwise/tile/lanes/mod.rs",
    "kernels/src/elementwise/tile/lanes/neon.rs",
    "kernels/src/elementwise/tile/lanes/simd128.rs",
    "kernels/src/elementwise/tile/line/mod.rs",
    "kernels/src/elementwise/tile/machine.rs",
    "kernels/src/elementwise/tile/mod.rs",
    "kernels/src/frame.rs",
    "kernels/src/simd.rs",
    "kernels/src/threads/joint.rs",
];

/// The sets of vector instructions that code is compiled for: those that `kernels/src/simd.rs` looks for.
/// With fewer, what a set lacks becomes calls, or instructions that nobody has looked for.
const VECTOR_SETS: &[&str] = &[
    "avx2,fma,f16c",
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c",
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c",
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c",
];

/// Macros that are for work in progress.
const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let mut findings = check_arrows(root)?;
    for path in source::rust_files(root)? {
        let name = source::name_of(root, &path)?;
        // Programs that must not compile break what rules they like.
        if name.contains("/tests/ui/") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        findings.extend(check_source(&name, &text));
    }
    let files = tree::source_files(root)?;
    findings.extend(op_names::findings(&files));
    for file in &files {
        let hits = glossary::hits(&file.name, &file.text);
        findings.extend(hits.iter().map(|hit| hit.finding(&file.name)));
    }
    findings.extend(conflict_markers(root)?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

/// Lines that an unfinished merge left in texts.
fn conflict_markers(root: &Path) -> Result<Vec<String>> {
    let mut git = std::process::Command::new("git");
    git.args(["grep", "-n", "-I", "-E", "^(<{7}|>{7}) "]).current_dir(root);
    let found = git.output().context("git is needed")?;
    let lines = String::from_utf8_lossy(&found.stdout);
    Ok(lines.lines().map(|line| format!("{line}: a merge is not finished")).collect())
}

fn check_arrows(root: &Path) -> Result<Vec<String>> {
    let args = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata: Value = serde_json::from_slice(&command::output(command::cargo(root, &args))?)?;
    let packages = metadata["packages"].as_array().context("cargo lists packages")?;
    let mut findings = Vec::new();
    let is_ours = |name: &str| packages.iter().any(|package| package["name"] == name);
    for package in packages {
        let name = package["name"].as_str().context("a package has a name")?;
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            findings.push(format!("{name}: no arrows are declared for this crate"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().context("a list")?;
        for to in dependencies.iter().filter_map(|dependency| dependency["name"].as_str()) {
            if is_ours(to) && !allowed.contains(&to) {
                findings.push(format!("{name}: must not depend on {to}"));
            }
        }
    }
    Ok(findings)
}

fn check_source(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in source::without_text(text).lines().enumerate() {
        let mut report = |what: &str| findings.push(format!("{name}:{}: {what}", index + 1));
        if source::words(line).any(|word| word == "unsafe") && !UNSAFE_FILES.contains(&name) {
            report("unsafe code belongs in the files listed for it");
        }
        for unfinished in UNFINISHED {
            if source::calls_macro(line, unfinished) {
                report(&format!("`{unfinished}!` is for work in progress"));
            }
        }
    }
    for (index, line) in text.lines().enumerate() {
        let set = line.trim().strip_prefix("#[target_feature(enable = \"");
        if let Some(set) = set.and_then(|rest| rest.strip_suffix("\")]"))
            && set.starts_with("avx")
            && !VECTOR_SETS.contains(&set)
        {
            findings.push(format!("{name}:{}: not a set that processors are asked for", index + 1));
        }
    }
    findings.extend(glossary::bad_beginnings(text).into_iter().map(|line| {
        format!("{name}:{line}: documentation begins with a noun, not with a question word")
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_file_and_line() {
        let source =
            "fn f() {\n    // unsafe in words\n    unsafe { g(\"todo!()\") };\n    todo!()\n}";
        let findings = check_source("ir/src/lib.rs", source);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].starts_with("ir/src/lib.rs:3: unsafe"));
        assert!(findings[1].starts_with("ir/src/lib.rs:4: `todo!`"));
        assert!(check_source("kernels/src/simd.rs", "unsafe {}").is_empty());
        let source = "#[target_feature(enable = \"avx512f,avx2,fma\")]\nfn f() {}";
        assert!(check_source("ir/src/lib.rs", source)[0].starts_with("ir/src/lib.rs:1: not a set"));
        let source = "/// Size.\n/// What follows.\nfn f() {}\n//! What it is.\n";
        let findings = check_source("ir/src/lib.rs", source);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("ir/src/lib.rs:4: documentation"));
    }
}
