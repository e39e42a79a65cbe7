//! Files of all kinds, as the command line takes and refuses them.

use crate::cli::{ferroflow, succeeds};
use ferroflow::{
    Checkpoint, FunctionOptions, Tensor, function, function_with,
    ir::{DType, HostTensor, Shape},
    npy, save,
    saved_model::SaveOptions,
    spec,
    tracer::{function_spec::ParameterSpec, ops},
};
use serde_json::Value;
use std::{fs, path::Path};

fn zoo(name: &str) -> String {
    format!("{}/tests/zoo/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A line of standard error about a call that fails.
fn fails(args: &[&str]) -> String {
    let (code, stdout, stderr) = ferroflow(args);
    assert_eq!((code, stdout.as_str(), stderr.lines().count()), (1, "", 1), "{args:?}: {stderr}");
    stderr
}

#[test]
fn checkpoints_are_found_by_each_of_their_files() {
    let model = zoo("k3_mlp/model");
    let all = succeeds(&["checkpoint", "show", &model]);
    for path in ["variables", "variables/variables.data-00000-of-00001", "saved_model.pb"] {
        assert_eq!(succeeds(&["checkpoint", "show", &format!("{model}/{path}")]), all, "{path}");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let here = at("");
    assert!(fails(&["checkpoint", "show", &here]).contains("a folder without a checkpoint"));
    for name in ["one", "two"] {
        succeeds(&["checkpoint", "copy", &model, "--to", &at(name)]);
    }
    let error = fails(&["checkpoint", "show", &here]);
    assert!(error.contains("several checkpoints") && error.contains(&at("two")), "{error}");
    fs::write(at("m.tflite"), b"\x1c\0\0\0TFL3").unwrap();
    for verb in [vec!["checkpoint", "show"], vec!["convert"]] {
        let (to, from) = (at("x.safetensors"), at("m.tflite"));
        let error = fails(&[&verb[..], &[&from], &[&to as &str][..verb.len() % 2]].concat());
        assert!(error.contains("a TensorFlow Lite model and no checkpoint"), "{error}");
    }
}

#[test]
fn formats_that_are_not_written_are_refused_by_every_verb() {
    let (model, folder) = (zoo("k3_mlp/model"), tempfile::tempdir().unwrap());
    for name in ["out.h5", "out.txt", "out.index"] {
        let to = folder.path().join(name).to_str().unwrap().to_string();
        for args in [
            ["convert", &model, &to].to_vec(),
            ["checkpoint", "copy", &model, "--to", &to].to_vec(),
        ] {
            assert!(fails(&args).contains("files are not written"), "{args:?}");
        }
    }
    let to = folder.path().join("none").to_str().unwrap().to_string();
    let error = fails(&["checkpoint", "copy", &model, "--only", "absent", "--to", &to]);
    assert!(error.contains("no tensor has a name that is asked for"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn graph_files_are_shown_and_scanned() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.pb").to_str().unwrap().to_string();
    succeeds(&["convert", &zoo("k3_mlp/model"), &graph]);
    let text = succeeds(&["show", &graph]);
    assert!(text.contains("  input serving_default_keras_tensor: float32[?,8]\n"), "{text}");
    let json: Value = serde_json::from_str(&succeeds(&["show", &graph, "--json"])).unwrap();
    let output = json["outputs"][0].as_str().unwrap();
    assert!(fails(&["run", &graph]).contains(&format!("such as `{output}:0`")));
    assert!(succeeds(&["show", &graph, "--graph"]).contains(" = MatMul("));
    assert!(succeeds(&["show", &graph, "--dot"]).starts_with("digraph"));
    assert!(succeeds(&["show", &graph, "--list_ops"]).contains("MatMul"));
    assert!(succeeds(&["scan", &graph]).starts_with("none of the "));
    assert!(fails(&["show", &graph, "--signature_def", "a"]).contains("neither tags nor"));
}

/// A model whose signature takes any `int32` values, and another that decodes an image.
fn save_model(folder: &Path) {
    let same = function(|x: Tensor| x.identity()).with_parameters(["x"]);
    let same = same.with_input_signature([spec(DType::I32, [None])]);
    let size = function(|image: Tensor| ops::shape(&ops::decode_image(&image)?));
    let size = size.with_parameters(["image"]).with_input_signature([spec(DType::String, [])]);
    let options = FunctionOptions {
        parameters: vec![
            ParameterSpec::new("x"),
            ParameterSpec::new("factor").or(Tensor::from(3.0f32)),
        ],
        ..FunctionOptions::default()
    };
    let scaled = function_with(options, |x: Tensor, factor: Tensor| x * factor);
    let scaled = scaled.with_input_signature([spec(DType::F32, []), spec(DType::F32, [])]);
    let options = SaveOptions::default().named_signature("same", &same).unwrap();
    let options = options.named_signature("scaled", &scaled).unwrap();
    let options = options.named_signature("size", &size).unwrap();
    let root = Checkpoint::new().with("same", &same).with("size", &size).with("scaled", &scaled);
    save(&root, folder, &options).unwrap();
}

#[test]
fn arrays_are_cast_and_faulty_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let model = at("a model");
    save_model(Path::new(&model));
    let run = |file: &str| {
        let input = format!("x={}", at(file));
        ferroflow(&["run", &model, "--signature_def", "same", "--inputs", &input])
    };
    npy::write(at("a.npy"), &HostTensor::vector(&[1.7f64, -2.0]).unwrap()).unwrap();
    let (code, text, warning) = run("a.npy");
    assert_eq!((code, text.as_str()), (0, "output_0: int32[2]\n[ 1 -2]\n"));
    assert!(warning.contains("warning: input `x`: 1 of 2 values change in the cast"), "{warning}");
    npy::write(at("b.npy"), &HostTensor::vector(&[f64::NAN]).unwrap()).unwrap();
    assert!(run("b.npy").2.contains("NaN of the float64 array is no int32"));
    let bytes = fs::read(at("a.npy")).unwrap();
    for (length, expected) in [(0, "ends within the header"), (20, "ends within the header")] {
        fs::write(at("cut.npy"), &bytes[..length]).unwrap();
        assert!(run("cut.npy").2.contains(expected));
    }
    let wrong =
        |inputs: &str| fails(&["run", &model, "--signature_def", "same", "--inputs", inputs]);
    assert!(wrong("x=").contains("no file is named"));
    assert!(wrong("=a.npy").contains("is not of the form name=value"));
    assert!(wrong(&format!("x=@{}", at("a.npy"))).contains("is passed without `@`"));
    fs::write(at("cat.jpg"), b"\xff\xd8\xff").unwrap();
    assert!(wrong(&format!("x=@{}", at("cat.jpg"))).contains("the input is int32[?]"));
    npy::write(
        at("c.npy"),
        &HostTensor::from_strings(Shape::new([1]).unwrap(), vec!["a".into()]).unwrap(),
    )
    .unwrap();
    let error = wrong(&format!("x={}", at("c.npy")));
    assert!(error.contains("x must be int32[?], found string[1]"), "{error}");
}

#[test]
fn inputs_with_a_default_are_told_and_may_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    save_model(folder.path());
    let model = folder.path().to_str().unwrap();
    let text = succeeds(&["show", model]);
    assert!(text.contains("(factor: float32[] = 3.0, x: float32[]) ->"), "{text}");
    let run = ["run", model, "--signature_def", "scaled", "--input_exprs", "x=2.0"];
    assert_eq!(succeeds(&run), "output_0: float32[]\n6.0\n");
}

#[test]
fn signatures_that_take_no_random_inputs_spoil_no_measurement() {
    let folder = tempfile::tempdir().unwrap();
    save_model(folder.path());
    let model = folder.path().to_str().unwrap();
    let text = succeeds(&["bench", model, "--repeat", "1"]);
    assert!(text.contains("same: 1 call: min "), "{text}");
    assert!(text.contains("not measured: signature `size` with random inputs"), "{text}");
    let json: Value =
        serde_json::from_str(&succeeds(&["bench", model, "--repeat", "2", "--json"])).unwrap();
    assert!(json["size"]["error"].is_string() && json["same"]["calls"] == 2, "{json}");
    fails(&["bench", model, "--signature_def", "size"]);
    let several = ["bench", model, "--repeat", "2", "--callers", "3", "--json"];
    let json: Value = serde_json::from_str(&succeeds(&several)).unwrap();
    assert_eq!(json["same"]["calls"], 6, "{json}");
    fails(&["bench", model, "--callers", "2000"]);
    for flag in ["--repeat", "--threads"] {
        assert_eq!(ferroflow(&["bench", model, flag, "0"]).0, 2);
        assert_eq!(ferroflow(&["run", model, flag, "0"]).0, 2);
    }
    assert!(
        ferroflow(&["run", model, "--threads", "1000000"]).2.contains("more than 1024 threads")
    );
}
