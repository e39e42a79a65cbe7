//! `ci`: everything that CI checks, cheapest first.

use crate::{alone, codegen, command, metrics, package, spec, tidy};
use anyhow::{Context, Result};
use std::{fs, path::Path, time::Instant};

pub(crate) fn run(root: &Path) -> Result<()> {
    step("fmt", || cargo(root, &["fmt", "--all", "--check"]))?;
    step("tidy", || tidy::run(root))?;
    step("metrics", || metrics::run(root, &metrics::Flags::check()))?;
    step("spec", || spec::run(root, &spec::Flags::check()))?;
    step("codegen", || codegen::run(root, &codegen::Flags::check_all()))?;
    step("clippy", || {
        let what = ["clippy", "--workspace", "--all-targets", "--all-features"];
        cargo(root, &[&what[..], &["--", "-D", "warnings"]].concat())
    })?;
    step("clippy without features", || {
        for package in ["ferroflow", "ferroflow-format"] {
            let what = ["clippy", "--package", package, "--lib", "--no-default-features"];
            cargo(root, &[&what[..], &["--", "-D", "warnings"]].concat())?;
        }
        Ok(())
    })?;
    step("doc", || {
        let mut doc = command::cargo(root, &["doc", "--workspace", "--no-deps", "--all-features"]);
        doc.env("RUSTDOCFLAGS", "-D warnings");
        command::run(doc)
    })?;
    step("package", || package::run(root))?;
    step("test", || test(root))?;
    step("alone", || alone::run(root))
}

/// Tests of what is written for each instruction set.
const OF_PROCESSORS: &str = "package(ferroflow-kernels) & test(/^cpu::|^elementwise::/) \
                             + package(ferroflow) & test(recorded)";

fn test(root: &Path) -> Result<()> {
    let all = ["--workspace", "--all-features"];
    let nextest = command::output(command::cargo(root, &["nextest", "--version"]));
    if nextest.is_ok() {
        cargo(root, &[&["nextest", "run"], &all[..]].concat())?;
        // Without tile registers, AVX-512 is what all tests have run with.
        let levels = ["avx512", "avx2", "portable"];
        for level in &levels[usize::from(!has_tiles())..] {
            println!("== test with FERROFLOW_CPU={level}");
            let mut nextest = command::cargo(root, &["nextest", "run"]);
            nextest.args(all).args(["-E", OF_PROCESSORS]).env("FERROFLOW_CPU", level);
            command::run(nextest)?;
        }
        cargo(root, &[&["test", "--doc"], &all[..]].concat())
    } else {
        cargo(root, &[&["test"], &all[..]].concat())
    }
}

/// Whether the processor has tile registers; if in doubt, it does.
fn has_tiles() -> bool {
    fs::read_to_string("/proc/cpuinfo").map_or(true, |text| text.contains("amx_tile"))
}

fn cargo(root: &Path, args: &[&str]) -> Result<()> {
    command::run(command::cargo(root, args))
}

fn step(name: &str, check: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("== {name}");
    let start = Instant::now();
    check().with_context(|| format!("`{name}` failed"))?;
    println!("== {name}: {} s", start.elapsed().as_secs());
    Ok(())
}
