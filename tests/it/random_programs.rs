//! Random programs return the same eagerly and traced, with shapes known and unknown, with every pass
//! of the compiler switched off, with several threads and on every device.

#[path = "../../fuzz/programs/mod.rs"]
mod programs;

use programs::{
    PROFILES,
    check::{RunSettings, Verdict, check, right_ways},
    generate,
    program::FuzzProgram,
    shrink::{shrink, variants},
};
use std::{fs, path::Path, time::Duration};

/// Checks a program; shows the smallest one with its fault.
fn checked(name: &str, mut program: FuzzProgram, settings: RunSettings) {
    match check(&mut program, settings) {
        Verdict::Passed => {}
        Verdict::Unsupported(fault) => eprintln!("{name}: {}", fault.detail),
        Verdict::Dropped(why) => assert!(name.starts_with("seed"), "{name}: {why}"),
        Verdict::Failed(fault) => {
            let (program, fault) = shrink(program, fault, Duration::from_secs(20));
            let right = right_ways(&program);
            let (class, mode, detail) = (fault.class, fault.mode(), fault.detail);
            panic!("{name}: {class} with {mode}: {detail}\nright with {right:?}\n{program}");
        }
    }
}

#[test]
fn device_programs_return_the_same_in_all_ways() {
    for seed in 0..4 {
        for profile in PROFILES {
            if let Some(program) = generate(seed, profile.name) {
                let settings = RunSettings::Some { n: 5, turn: seed as usize };
                checked(&format!("seed {seed} of {}", profile.name), program, settings);
            }
        }
    }
}

/// Programs that were once wrong.
#[test]
fn device_programs_that_were_wrong() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut n = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let program = text.parse().unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        checked(&path.file_name().unwrap().to_string_lossy(), program, RunSettings::All);
        n += 1;
    }
    assert!(n > 0);
}

#[test]
fn programs_are_read_as_they_are_printed() {
    for seed in 0..20 {
        for profile in PROFILES {
            let Some(program) = generate(seed, profile.name) else { continue };
            let text = program.to_string();
            let read: FuzzProgram =
                text.parse().unwrap_or_else(|error| panic!("{error:#}\n{text}"));
            assert_eq!(read.to_string(), text);
        }
    }
}

#[test]
fn smaller_programs_are_smaller() {
    let program = generate(1, "mix").unwrap();
    let variants = variants(&program);
    assert!(variants.len() > 10);
    assert!(variants.iter().all(|smaller| smaller.to_string().len() < program.to_string().len()));
}
