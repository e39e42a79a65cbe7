//! Files for `cargo fuzz`: what is done with them, and how they are mutated, as `fuzz/files` has it.

#[path = "../files/mutate.rs"]
mod mutate;
mod programs {
    //! Random choices, where the modules of `fuzz/files` look for them.
    pub(crate) use super::rng;
}
#[path = "../programs/rng.rs"]
#[allow(dead_code, reason = "a fuzzer of programs makes more choices")]
mod rng;
#[path = "../files/seeds.rs"]
mod seeds;
#[path = "../files/targets.rs"]
mod targets;
#[path = "../../conformance/ops/value.rs"]
#[allow(dead_code, reason = "seeds are strings in recorded calls")]
mod value;

use programs::rng::FuzzRng;
use std::{cell::OnceCell, panic, path::Path, process};
use targets::{TARGETS, FileTarget};

fn find(name: &str) -> &'static FileTarget {
    TARGETS.iter().find(|target| target.name == name).expect("a known target")
}

/// Reads a file. A panic that is caught on its way ends the process, as the fuzzer wants to see it.
pub fn read(name: &str, bytes: &[u8]) {
    thread_local! {
        static SCRATCH: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
    }
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        hook(info);
        process::abort();
    }));
    SCRATCH.with(|scratch| {
        let scratch = scratch.get_or_init(|| tempfile::tempdir().expect("a temporary folder"));
        targets::run(find(name), bytes, scratch.path());
    });
    drop(panic::take_hook());
}

/// Mutates a file in place; its new size.
pub fn mutated(name: &str, data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut rng = FuzzRng::new(seed.into(), size as u64);
    let old = data[..size].to_vec();
    let new = mutate::mutate(find(name).format, &old, &old, &mut rng);
    let len = new.len().min(most);
    data[..len].copy_from_slice(&new[..len]);
    len
}

/// Writes the files that mutants begin as to a folder, which is the corpus of a target.
pub fn write_seeds(name: &str, root: &Path, corpus: &Path) -> anyhow::Result<usize> {
    std::fs::create_dir_all(corpus)?;
    let seeds = seeds::of(find(name).source, root, &[])?;
    for (number, seed) in seeds.iter().enumerate() {
        std::fs::write(corpus.join(format!("seed-{number:03}")), seed)?;
    }
    Ok(seeds.len())
}

/// The functions that libFuzzer calls.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
            if seed % 4 == 0 {
                libfuzzer_sys::fuzzer_mutate(data, size, most)
            } else {
                $crate::mutated($name, data, size, most, seed)
            }
        });
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::read($name, data));
    };
}
