//! NVIDIA's compiler makes code of every text, for two generations of devices. It needs none of
//! them, nor a driver. What devices compute is tested with those of other kinds.

use super::{
    CAPS,
    compile::{Architecture, compile, is_present},
    devices, probe,
};
use crate::shader::{
    Dialect,
    tests::{is_required, programs},
};
use rayon::prelude::*;

const ARCHITECTURES: [Architecture; 2] =
    [Architecture { major: 8, minor: 0 }, Architecture { major: 9, minor: 0 }];

#[test]
fn every_text_becomes_code() {
    if !is_present() {
        assert!(!is_required("nvrtc"), "NVRTC was not found");
        eprintln!("skipped: NVRTC was not found");
        return;
    }
    let programs = programs(Dialect::Cuda, CAPS);
    let wrong: Vec<String> = programs
        .par_iter()
        .flat_map_iter(|program| ARCHITECTURES.map(|architecture| (program, architecture)))
        .filter_map(|((text, name), architecture)| match compile(text, architecture) {
            Ok(code) => (!code.starts_with(b"\x7fELF")).then(|| format!("{name}: no code")),
            Err(error) => Some(format!("{name}: {error}\n{text}")),
        })
        .collect();
    let (n, first) = (wrong.len(), wrong.first());
    assert!(
        wrong.is_empty(),
        "{n} of {}, first {}",
        programs.len(),
        first.unwrap_or(&String::new())
    );
    assert!(programs.len() > 500, "{} texts were compiled", programs.len());
}

#[test]
fn without_a_device_there_is_a_reason() {
    match probe() {
        Ok(count) => assert_eq!(devices().len(), count as usize, "every device is connected to"),
        Err(reason) => {
            assert!(!is_required("cuda"), "{reason}");
            assert!(devices().is_empty());
            assert!(!reason.to_string().is_empty());
        }
    }
}

#[test]
fn what_does_not_compile_is_refused() {
    let [architecture, _] = ARCHITECTURES;
    let unknown = Architecture { major: 1, minor: 7 };
    let program = "extern \"C\" __global__ void entry() {}";
    for (text, architecture) in
        [("not a program", architecture), ("\0", architecture), (program, unknown)]
    {
        assert!(compile(text, architecture).is_err(), "{text}");
    }
    assert_eq!(compile(program, architecture).is_ok(), is_present());
}
