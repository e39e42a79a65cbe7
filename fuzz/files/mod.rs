//! Mutated files of every kind that is read: a mutant may be read or refused; a panic is a fault, and the
//! process that drives the worker sees aborts and hangs.
//!
//! The same functions ([`targets`]) are the targets of `cargo fuzz`.

#[path = "../../conformance/mutants/hook.rs"]
mod hook;
mod mutate;
mod seeds;
mod targets;
#[path = "../../conformance/ops/value.rs"]
#[allow(dead_code, reason = "seeds are strings in recorded calls")]
mod value;

use crate::programs::rng::FuzzRng;
use anyhow::{Context as _, Result, ensure};
use mutate::mutate;
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};
use targets::{FileTarget, TARGETS};

/// Runs mutants `from` to `to` of the files of a target, or writes one to a file if the job names one.
pub(crate) fn run(job: &Value, report: &mut dyn FnMut(Value) -> Result<()>) -> Result<Value> {
    let number = |key: &str| job[key].as_u64().with_context(|| format!("a number `{key}`"));
    let name = job["target"].as_str().context("a target")?;
    let root = Path::new(job["root"].as_str().context("a folder `root`")?);
    let target = TARGETS.iter().find(|target| target.name == name).context("a known target")?;
    let corpus = job["corpus"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let corpus: Vec<PathBuf> = corpus.map(PathBuf::from).collect();
    let seeds = cached_seeds(target, root, &corpus)?;
    ensure!(!seeds.is_empty(), "{name} has files to begin with");
    let (seed, from, to) = (number("seed")?, number("from")?, number("to")?);
    hook::keep_panics();
    let scratch = tempfile::tempdir()?;
    for number in from..to {
        let mutant = mutant(target, &seeds, seed, number);
        if let Some(path) = job["write"].as_str() {
            fs::write(path, &mutant)?;
            continue;
        }
        report(json!({ "begin": number }))?;
        targets::run(target, &mutant, scratch.path());
        if let Some(panic) = hook::taken() {
            report(json!({ "panic": panic, "number": number }))?;
        }
    }
    Ok(json!({ "count": to - from }))
}

/// The files that mutants of a target begin as. A worker does thousands of mutants of them, in jobs of
/// some hundred.
fn cached_seeds(target: &FileTarget, root: &Path, corpus: &[PathBuf]) -> Result<Rc<[Vec<u8>]>> {
    type Key = (&'static str, PathBuf, Vec<PathBuf>);
    thread_local! {
        static CACHE: RefCell<HashMap<Key, Rc<[Vec<u8>]>>> = RefCell::default();
    }
    let key = (target.name, root.to_path_buf(), corpus.to_vec());
    if let Some(seeds) = CACHE.with_borrow(|cache| cache.get(&key).cloned()) {
        return Ok(seeds);
    }
    let seeds: Rc<[Vec<u8>]> = seeds::of(target.source, root, corpus)?.into();
    CACHE.with_borrow_mut(|cache| cache.insert(key, seeds.clone()));
    Ok(seeds)
}

/// The names of all targets.
pub(crate) fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|target| target.name).collect()
}

fn mutant(target: &FileTarget, seeds: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
    let mut rng = FuzzRng::new(seed ^ name_hash(target.name), number);
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    for _ in 0..rng.pick(&[1, 1, 1, 2, 2, 3, 5]) {
        let other = &seeds[rng.below(seeds.len())];
        bytes = mutate(target.format, &bytes, other, &mut rng);
    }
    bytes.truncate(1 << 22);
    bytes
}

fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
