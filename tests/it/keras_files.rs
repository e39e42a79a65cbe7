//! Weights in files that Keras 3.15.1 wrote (`tests/golden/keras_files.py`).

use crate::cli::{ferroflow as run, succeeds as output};
use ferroflow::{
    Module, Tensor,
    ir::{DType, HostTensor},
    keras_file::{KerasFileProblem, load_weights, read, read_with},
    nn::{
        Bidirectional, Dense, Dropout, Embedding, Gru, Layer, Lstm, MergeMode, Mode, Sequential,
        Weights,
    },
    npy::read_npz,
};
use std::path::{Path, PathBuf};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/keras_files").join(name)
}

fn array(name: &str) -> HostTensor {
    read_npz(path("arrays.npz"), Some(name)).unwrap()
}

/// Checks that a file has these weights among others.
fn check(file: &str, expected: &[(&str, &str)]) {
    let weights = read(path(file)).unwrap();
    for (name, of) in expected {
        let weight = weights.iter().find(|(weight, _)| weight == name);
        let weight = &weight.unwrap_or_else(|| panic!("{file} has no `{name}`")).1;
        assert_eq!(weight, &array(of), "{name}");
    }
}

#[test]
fn archives_and_files_of_keras_2_are_read() {
    check(
        "small.keras",
        &[
            ("layers/dense/vars/0", "small.dense.kernel"),
            ("layers/dense/vars/1", "small.dense.bias"),
            ("layers/batch_normalization/vars/2", "small.batch_normalization.moving_mean"),
            ("layers/dense_1/vars/0", "small.dense_1.kernel"),
        ],
    );
    let names: Vec<String> =
        read(path("small.h5")).unwrap().into_iter().map(|(name, _)| name).collect();
    let kernel = names.iter().find(|name| name.ends_with("dense_1/kernel")).unwrap();
    check("small.h5", &[(kernel, "small.dense_1.kernel")]);
}

#[test]
fn weights_of_two_bytes_are_bfloat16() {
    let weights = read(path("half.weights.h5")).unwrap();
    let (_, kernel) = weights.iter().find(|(name, _)| name == "layers/dense/vars/0").unwrap();
    assert_eq!(kernel.dtype(), DType::BF16);
    let wide: Vec<f32> =
        kernel.as_slice::<half::bf16>().unwrap().iter().map(|x| x.to_f32()).collect();
    assert_eq!(wide, array("half.kernel").as_slice::<f32>().unwrap());
}

#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["small.keras", "small.h5", "half.weights.h5"] {
        let bytes = std::fs::read(path(name)).unwrap();
        let damaged = folder.path().join(name);
        for length in (0..bytes.len()).step_by(bytes.len() / 37) {
            std::fs::write(&damaged, &bytes[..length]).unwrap();
            assert!(read(&damaged).is_err(), "{name} cut to {length} bytes");
        }
        for at in (0..bytes.len()).step_by(61) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x55;
            std::fs::write(&damaged, &bytes).unwrap();
            let _ = read(&damaged); // Whatever is found, nothing panics.
        }
    }
    let limits = ferroflow::ir::Limits { tensor_bytes: 16, ..Default::default() };
    for name in ["small.keras", "small.h5"] {
        let error = read_with(&path(name), &limits).unwrap_err();
        let is_limit =
            matches!(error.problem, KerasFileProblem::Limit(_) | KerasFileProblem::Hdf5(_));
        assert!(is_limit, "{error}");
    }
}

#[test]
fn the_command_line_lists_and_converts_them() {
    let file = path("small.keras").display().to_string();
    let listed = output(&["checkpoint", "show", &file]);
    assert!(listed.contains("layers/dense/vars/0") && listed.contains("float32[4,3]"), "{listed}");
    let shown = output(&["checkpoint", "show", &file, "--tensor", "layers/dense/vars/1"]);
    assert!(shown.starts_with("layers/dense/vars/1: float32[3]"), "{shown}");
    let (_, _, error) = run(&["checkpoint", "show", &file, "--tensor", "vars/9"]);
    assert!(error.contains("there is no tensor `vars/9`"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("small.safetensors");
    output(&["convert", &file, to.to_str().unwrap()]);
    assert_eq!(ferroflow::safetensors::read(&to).unwrap(), read(path("small.keras")).unwrap());
}

/// The network that `words.keras` is of, with weights of its own.
fn words(units: usize) -> ferroflow::tracer::Result<Sequential> {
    let weights = &mut Weights::seeded(1);
    let forward = Lstm::of_sequences(weights, 4, units)?;
    let backward = Lstm::of_sequences(weights, 4, units)?.backwards();
    Ok(Sequential::new()
        .then(Embedding::new(weights, 7, 4)?)
        .then(Bidirectional::new(forward, backward, MergeMode::Concat)?)
        .then(Dropout::new(0.5)?)
        .then(Gru::new(weights, 2 * units, 2)?)
        .then(Dense::new(weights, 2, 1)?))
}

#[test]
fn networks_take_the_weights_of_archives() {
    let network = words(3).unwrap();
    assert_eq!(load_weights(&network, path("words.keras")).unwrap(), 12);
    let ids = Tensor::from(array("words.ids"));
    let answers = network.call(&ids, Mode::Inference).unwrap().to_vec::<f32>().unwrap();
    let expected = array("words.answers");
    for (found, expected) in answers.iter().zip(expected.as_slice::<f32>().unwrap()) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }
}

#[test]
fn networks_of_other_layers_keep_their_weights() {
    let check = |network: &Sequential, file: &str, message: &str| {
        let values = || -> Vec<HostTensor> {
            let variables = network.variables().unwrap();
            variables.iter().map(|v| v.read().unwrap().host().unwrap().clone()).collect()
        };
        let before = values();
        let error = load_weights(network, path(file)).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(before, values());
    };
    check(
        &words(2).unwrap(),
        "words.keras",
        "backward_layer/cell/vars/0: float32[4,12] in the archive",
    );
    check(&words(3).unwrap(), "small.keras", "4 layers with weights, the archive 3");
    check(&words(3).unwrap(), "half.weights.h5", "invalid Zip archive");
}
