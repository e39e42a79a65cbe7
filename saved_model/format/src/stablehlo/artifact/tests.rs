use super::*;
use crate::stablehlo::import_artifact;
use ferroflow_ir::FunctionLibrary;

/// A program in several versions of the format, which `tests/stablehlo/make.py` writes.
const VERSIONS: [(&str, &[u8]); 4] = [
    ("0.9.0", include_bytes!("../../../tests/stablehlo/v0_9_0.mlirbc")),
    ("0.14.0", include_bytes!("../../../tests/stablehlo/v0_14_0.mlirbc")),
    ("1.0.0", include_bytes!("../../../tests/stablehlo/v1_0_0.mlirbc")),
    ("1.13.7", include_bytes!("../../../tests/stablehlo/v1_13_7.mlirbc")),
];

/// The names of operations, with those of regions behind them.
fn outline(region: &HloRegion, out: &mut String) {
    for op in &region.ops {
        out.push_str(&op.name);
        out.push_str(if op.regions.is_empty() { " " } else { "{" });
        op.regions.iter().for_each(|region| outline(region, out));
        out.push_str(if op.regions.is_empty() { "" } else { "} " });
    }
}

fn text(bytes: &[u8]) -> String {
    let module = read(bytes).unwrap();
    let mut names: Vec<&Arc<str>> = module.functions.keys().collect();
    names.sort();
    let mut text = String::new();
    for name in names {
        text.push_str(&format!("@{name}: "));
        outline(&module.functions[name].body, &mut text);
    }
    text
}

#[test]
fn versions_hold_the_same_program() {
    let newest = text(VERSIONS[3].1);
    assert!(newest.contains("while{"), "{newest}");
    for (version, bytes) in VERSIONS {
        assert_eq!(text(bytes), newest, "version {version}");
        let library = FunctionLibrary::new();
        let main = import_artifact(bytes, &["CPU"], &library).unwrap();
        assert_eq!((main.args.len(), main.results.len()), (1, 1));
    }
}

#[test]
fn other_platforms_are_refused() {
    let library = FunctionLibrary::new();
    let error = import_artifact(VERSIONS[3].1, &["TPU"], &library).unwrap_err();
    assert!(error.to_string().contains("a program for TPU only"), "{error}");
}

/// Reads and imports bytes that may be anything.
fn attempt(bytes: &[u8]) {
    if read(bytes).is_ok() {
        let _ = import_artifact(bytes, &["CPU"], &FunctionLibrary::new());
    }
}

#[test]
fn beginnings_are_no_artifacts() {
    for (_, bytes) in VERSIONS {
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err());
        }
    }
}

/// From a place that is changed to the next.
const APART: usize = 3;

#[test]
fn changed_bytes_are_errors_or_other_programs() {
    for (version, (_, bytes)) in VERSIONS.iter().enumerate() {
        let mut changed = bytes.to_vec();
        // Other places in each version: they are alike.
        for at in (version % APART..bytes.len()).step_by(APART) {
            // Another bit at each place, and all bits at some.
            let mask = if at % 16 == 0 { 0xff } else { 1 << (at % 8) };
            changed[at] = bytes[at] ^ mask;
            attempt(&changed);
            changed[at] = bytes[at];
        }
    }
}

#[test]
fn bytes_changed_in_many_places_are_errors_or_other_programs() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    for round in 0..4000 {
        let (_, bytes) = VERSIONS[round % VERSIONS.len()];
        let mut changed = bytes.to_vec();
        for _ in 0..=random(4) {
            let at = random(changed.len());
            match random(3) {
                0 => changed[at] = random(256) as u8,
                1 => drop(changed.remove(at)),
                _ => changed.insert(at, random(256) as u8),
            }
        }
        attempt(&changed);
    }
}
