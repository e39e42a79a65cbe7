//! The examples run: in short forms, for what they print and leave behind.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Where cargo puts the examples that it builds with the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("tests lie in a folder of their profile");
    let program =
        profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "{} has not been built: run all tests", program.display());
    program
}

/// Runs an example in a folder; what it printed.
fn run(name: &str, args: &[&str], folder: &Path) -> String {
    let output = Command::new(program(name)).args(args).current_dir(folder).output();
    let output = output.expect("the example can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} failed: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn digits_are_learned_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let printed = run("digits", &["1", "1"], folder.path());
    assert!(printed.contains("\naccuracy 0."), "{printed}");
    assert!(folder.path().join("digits.svg").exists());
}

#[test]
fn a_model_is_tuned_and_saved() {
    let folder = tempfile::tempdir().unwrap();
    let printed = run("finetune", &["1", "2"], folder.path());
    assert!(printed.contains("accuracy 0."), "{printed}");
    assert!(folder.path().join("finetuned/saved_model.pb").exists());
}

#[test]
fn text_is_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    run("char_rnn", &["2"], folder.path());
}

#[test]
fn a_loop_by_hand_trains() {
    let folder = tempfile::tempdir().unwrap();
    run("custom_training_loop", &["2"], folder.path());
}

#[test]
fn devices_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo/k3_cnn_batchnorm/model");
    let printed = run("device_placement", &[model.to_str().unwrap()], folder.path());
    assert!(!printed.is_empty());
}

#[test]
fn summaries_are_written() {
    let folder = tempfile::tempdir().unwrap();
    run("summaries", &[], folder.path());
    let n_files = folder.path().join("logs").read_dir().unwrap().count();
    assert_eq!(n_files, 1);
}
