//! The command line, as a user sees it.

use serde_json::Value;
use std::{fs, path::PathBuf, process::Command};

/// Exit code, standard output and standard error.
pub(crate) fn ferroflow(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ferroflow")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The same, where no driver of a GPU is found.
fn without_drivers(args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferroflow"));
    for variable in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
        command.env(variable, "/nowhere.json");
    }
    let output = command.args(args).env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn case(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/zoo").join(name)
}

fn model(name: &str) -> String {
    case(name).join("model").to_str().unwrap().to_string()
}

pub(crate) fn succeeds(args: &[&str]) -> String {
    let (code, stdout, stderr) = ferroflow(args);
    assert_eq!((code, stderr.as_str()), (0, ""), "{args:?}: {stdout}");
    stdout
}

#[test]
fn run_prints_what_the_model_gives() {
    let array = case("k3_mlp").join("io/c00_in.npy");
    let input = format!("keras_tensor={}", array.display());
    let text = succeeds(&["run", &model("k3_mlp"), "--inputs", &input]);
    assert!(text.starts_with("output_0: float32[5,4]\n[[0.3338"), "{text}");
    let literal = "keras_tensor=np.ones((2, 8))";
    let json = succeeds(&["run", &model("k3_mlp"), "--input_exprs", literal, "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["output_0"]["shape"], serde_json::json!([2, 4]));
}

#[test]
fn runs_are_bounded_and_tell_their_memory() {
    let model = model("k3_mlp");
    let run = ["run", &model, "--input_exprs", "keras_tensor=np.ones((2, 8))"];
    let text = succeeds(&[&run[..], &["--memory_estimate"]].concat());
    assert!(text.contains("\nmemory: "), "{text}");
    let json = succeeds(&[&run[..], &["--memory_estimate", "--placement", "--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let total = json["memory"]["total"].as_u64().unwrap();
    assert!(total > 64 && json["placement"].is_object() && json["outputs"].is_object(), "{json}");
    let enough = (total + 10_000).to_string();
    succeeds(&[&run[..], &["--memory", &enough, "--deadline", "60"]].concat());
    for (bound, expected) in [
        (["--memory", "40"], "the memory of the call"),
        (["--deadline", "0"], "its deadline has passed"),
        (["--deadline", "-1"], "--deadline"),
    ] {
        let (code, _, error) = ferroflow(&[&run[..], &bound].concat());
        assert!(code != 0 && error.contains(expected), "{error}");
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error_that_tells_which_are() {
    let input = "keras_tensor=np.ones((2, 8))";
    for device in ["WGPU", "/device:GPU:0", "GPU:7"] {
        let args = ["run", &model("k3_mlp"), "--input_exprs", input, "--device", device];
        let (code, error) = without_drivers(&args);
        assert_eq!(code, 1, "{error}");
        assert!(error.contains("there is no device") && error.contains("/device:CPU:0"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn run_writes_arrays_and_replaces_none() {
    let folder = tempfile::tempdir().unwrap();
    let folder_text = folder.path().to_str().unwrap();
    let model = model("k3_mlp");
    let args =
        ["run", &model, "--input_exprs", "keras_tensor=np.ones((2, 8))", "--outdir", folder_text];
    succeeds(&args);
    let written = ferroflow::npy::read(folder.path().join("output_0.npy")).unwrap();
    assert_eq!(written.shape().dims(), [2, 4]);
    assert!(ferroflow(&args).2.contains("--overwrite"));
    succeeds(&[&args[..], &["--overwrite"]].concat());
}

#[test]
fn show_tells_signatures_and_objects() {
    let model = model("k3_mlp");
    let brief = succeeds(&["show", &model]);
    assert!(
        brief.contains("serving_default  (keras_tensor: float32[?,8]) -> (output_0: float32[?,4])"),
        "{brief}"
    );
    let same = succeeds(&["show", "--dir", &model, "--tag_set", "serve"]);
    assert_eq!(brief, same);
    let one =
        succeeds(&["show", &model, "--tag_set", "serve", "--signature_def", "serving_default"]);
    assert!(one.contains("serving_default_keras_tensor:0"), "{one}");
    let all = succeeds(&["show", &model, "--all"]);
    assert!(all.contains("variables.0") && all.contains("float32[8,16]"), "{all}");
    let json: Value =
        serde_json::from_str(&succeeds(&["show", &model, "--all", "--json"])).unwrap();
    assert_eq!(json["meta_graphs"][0]["tags"], serde_json::json!(["serve"]));
}

#[test]
fn checkpoints_and_ops_are_listed() {
    let list = succeeds(&["checkpoint", "show", &model("k3_mlp"), "--verify"]);
    assert!(list.contains("all checksums verified"), "{list}");
    let json = succeeds(&["checkpoint", "show", &model("k3_mlp"), "--json"]);
    assert!(
        serde_json::from_str::<Value>(&json).unwrap()["tensors"].as_array().unwrap().len() > 10
    );
    assert!(succeeds(&["ops"]).contains("of TensorFlow's 1906 ops can run"));
    let json = succeeds(&["ops", "--missing", &model("k3_mlp"), "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["needed"].as_u64().unwrap() > 10, "{json}");
}

#[test]
fn failures_are_one_line() {
    let mlp = model("k3_mlp");
    let expr = |text| ["run", &mlp, "--input_exprs", text];
    let absent = model("bad_no_variables");
    let noise = model("bad_pb_noise");
    let mut wrong: Vec<(Vec<&str>, &str)> = vec![
        (vec!["show", "no/such/folder"], "no/such/folder"),
        (vec!["show", &noise], "saved_model.pb"),
        (vec!["show", &mlp, "--tag_set", "gpu"], "there are `serve`"),
        (vec!["show", &mlp, "--signature_def", "predict"], "there are [serve, serving_default]"),
        (vec!["run", &mlp, "--tag_set", "gpu"], "serve"),
        (vec!["run", &mlp, "--signature_def", "predict"], "serving_default"),
        (vec!["run", &mlp], "found nothing"),
        (vec!["run", &mlp, "--inputs", "keras_tensor=no.npy"], "no.npy"),
        (vec!["run", &absent], "variables"),
        (vec!["checkpoint", "show", "no/such/prefix"], "no/such/prefix"),
        (vec!["checkpoint", "show", &mlp, "--tensor", "KERNEL"], "there is no tensor `KERNEL`"),
    ];
    for (text, expected) in [
        ("x=[1.0]", "there are [keras_tensor]"),
        ("keras_tensor=['a']", "float32 is expected"),
        ("keras_tensor=np.ones((2, 7))", "float32[2,7]"),
        ("keras_tensor=[1, 2", "is not a literal"),
    ] {
        wrong.push((expr(text).to_vec(), expected));
    }
    for (args, expected) in wrong {
        let (code, stdout, stderr) = ferroflow(&args);
        assert_eq!((code, stdout.as_str()), (1, ""), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(expected), "{args:?}: {stderr}");
    }
}

#[test]
fn weights_go_to_other_formats_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let model = model("k3_mlp");
    let text = succeeds(&["convert", &model, &at("w.safetensors")]);
    assert!(text.contains("21 tensors; left out, as they are no numbers: _CHECKPOINT"), "{text}");
    succeeds(&["convert", &at("w.safetensors"), &at("copy"), "--like", &model]);
    let run =
        |model: &str| succeeds(&["run", model, "--input_exprs", "keras_tensor=np.ones((2, 8))"]);
    assert_eq!(run(&at("copy")), run(&model));
    // A folder of the same name as that of the checkpoint, elsewhere in the model.
    std::fs::create_dir_all(at("copy/assets/variables")).unwrap();
    std::fs::write(at("copy/assets/variables/words.txt"), "a").unwrap();
    succeeds(&["convert", &at("w.safetensors"), &at("again"), "--like", &at("copy")]);
    assert_eq!(std::fs::read(at("again/assets/variables/words.txt")).unwrap(), b"a");
    assert_eq!(run(&at("again")), run(&model));
    succeeds(&["convert", &at("w.safetensors"), &at("checkpoint")]);
    assert!(succeeds(&["checkpoint", "show", &at("checkpoint")]).contains("21 tensors"));
    let (code, _, error) =
        ferroflow(&["convert", &at("w.safetensors"), &at("copy"), "--like", &model]);
    assert_eq!((code, error.contains("exists already")), (1, true), "{error}");
}

#[test]
fn signatures_become_graphs_without_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frozen.pb");
    let to = path.to_str().unwrap();
    let text = succeeds(&["convert", &model("k3_mlp"), to]);
    assert!(
        text.contains(" nodes, from keras_tensor=") && text.contains(" to output_0="),
        "{text}"
    );
    assert!(path.exists());
    let (code, _, error) = ferroflow(&["convert", &model("k3_mlp"), to, "--signature", "other"]);
    assert_eq!((code, error.contains("serving_default")), (1, true), "{error}");
}

#[test]
fn checkpoints_are_renamed_pruned_and_merged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let model = model("k3_mlp");
    let first = ["checkpoint", "copy", &model, "--only", "variables/1/", "--to", &at("first")];
    assert!(succeeds(&first).ends_with("first: 1 tensors\n"));
    let second = ["--only", "variables/1/", "--rename", "variables=old", "--to", &at("second")];
    succeeds(&[&["checkpoint", "copy", &model][..], &second].concat());
    succeeds(&["checkpoint", "copy", &at("first"), &at("second"), "--to", &at("both")]);
    let both = succeeds(&["checkpoint", "show", &at("both")]);
    assert!(both.contains("old/1/") && both.contains("variables/1/"), "{both}");
    let twice = ["checkpoint", "copy", &at("first"), &at("first"), "--to", &at("twice")];
    let (code, _, error) = ferroflow(&twice);
    assert_eq!((code, error.contains("already")), (1, true), "{error}");
    assert!(!folder.path().join("twice.index").exists());
}

/// A file with these bytes.
fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn what_is_no_saved_model_is_named_with_the_way_on() {
    let folder = tempfile::tempdir().unwrap();
    let zoo = env!("CARGO_MANIFEST_DIR").to_string() + "/tests/zoo/k3_mlp";
    for (path, kind, advice) in [
        (file(&folder, "m.keras", b"PK\x03\x04"), "a Keras 3 archive", ".export(DIR)"),
        (file(&folder, "m.h5", b"\x89HDF\r\n\x1a\n"), "an HDF5 file", ".export(DIR)"),
        (file(&folder, "m.tflite", b"\x1c\0\0\0TFL3"), "a TensorFlow Lite model", "SavedModel"),
        (file(&folder, "m.onnx", b"\x08\x07"), "an ONNX model", "onnx2tf"),
        (file(&folder, "m.h5.gz", b"\x1f\x8b"), "a gzip file", "gunzip"),
        (
            file(&folder, "m.weights.h5", b"\x89HDF\r\n\x1a\n"),
            "weights and no model",
            "load_weights",
        ),
        (file(&folder, "cat.jpg", b"\xff\xd8\xff"), "an image", "NAME=@FILE"),
        (file(&folder, "empty.keras", b""), "an empty file", "not come to its end"),
        (model("k3_mlp") + "/variables/variables", "a checkpoint", "checkpoint show"),
        (zoo, "a folder of SavedModels", "/model"),
        (folder.path().join("gone").to_str().unwrap().into(), "no such file", ""),
    ] {
        for verb in ["show", "run", "scan", "ops", "bench"] {
            let (code, _, error) = ferroflow(&[verb, &path]);
            assert_eq!((code, error.lines().count()), (1, 1), "{verb} {path}: {error}");
            assert!(error.contains(kind) && error.contains(advice), "{verb} {path}: {error}");
        }
    }
    let graph_file = model("k3_mlp") + "/saved_model.pb";
    assert!(succeeds(&["show", &graph_file]).contains("serving_default"));
    let (code, _, error) = ferroflow(&["convert", &model("k3_mlp"), "out.h5"]);
    assert!(code == 1 && error.contains("`.h5` files are not written"), "{error}");
}

#[test]
fn inputs_come_from_files_and_from_standard_input() {
    use std::{io::Write, process::Stdio};
    let array = std::fs::read(case("k3_mlp").join("io/c00_in.npy")).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferroflow"))
        .args(["run", &model("k3_mlp"), "--inputs", "keras_tensor=-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&array).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("output_0: float32[5,4]\n[[0.3338"), "{text}");
    let (code, _, error) = ferroflow(&["run", &model("k3_mlp"), "--inputs", "other=-"]);
    assert!(code == 1 && error.contains("there is no input `other`"), "{error}");
    let missing = "keras_tensor=@/nowhere.jpg";
    let (code, _, error) = ferroflow(&["run", &model("k3_mlp"), "--inputs", missing]);
    assert!(code == 1 && error.contains("/nowhere.jpg"), "{error}");
}

#[test]
fn calls_are_timed() {
    let (model, input) = (model("k3_mlp"), "keras_tensor=np.ones((2, 8))");
    let repeated =
        ["run", &model, "--input_exprs", input, "--repeat", "3", "--threads", "1", "--json"];
    let found: Value = serde_json::from_str(&succeeds(&repeated)).unwrap();
    assert_eq!(found["latency"]["calls"], 3);
    assert_eq!(found["outputs"]["output_0"]["shape"], serde_json::json!([2, 4]));
    let args = ["bench", &model, "--shape", "keras_tensor=3,8", "--repeat", "2", "--json"];
    let found: Value = serde_json::from_str(&succeeds(&args)).unwrap();
    let signature = &found["serving_default"];
    assert_eq!(signature["calls"], 2);
    let ops = signature["ops"].as_array().unwrap();
    assert!(
        ops.iter().any(|op| op["roofline_percent"].is_f64() && op["gflops"].is_f64()),
        "{found}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    succeeds(&["run", &model, "--input_exprs", input, "--profile", file.to_str().unwrap()]);
    let trace: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let is_product = |event: &Value| event["ph"] == "X" && event["name"] == "MatMul";
    assert_eq!(events[0]["args"]["name"].as_str().unwrap().split(':').next_back(), Some("0"));
    let product = events.iter().find(|event| is_product(event) && event["dur"].is_f64()).unwrap();
    let details = &product["args"];
    assert!(details["flops"].as_u64() > Some(0) && details["bytes"].as_u64() > Some(0), "{trace}");
    assert!(details["roofline_percent"].is_f64(), "{trace}");
    assert!(trace["otherData"]["limits"]["gflops"].as_f64() > Some(0.0), "{trace}");
    let (code, _, error) = ferroflow(&["bench", &model, "--shape", "x=3"]);
    assert!(code == 1 && error.contains("there is no input `x`"), "{error}");
}

#[test]
fn graphs_are_shown_and_run() {
    let model = model("k3_mlp");
    let nodes = succeeds(&["show", &model, "--graph"]);
    assert!(nodes.contains(" = StatefulPartitionedCall("), "{nodes}");
    assert!(succeeds(&["show", &model, "--graph", "--dot"]).starts_with("digraph \"graph\" {"));
    assert!(succeeds(&["show", &model, "--list_ops"]).contains("MatMul"));
    assert!(succeeds(&["scan", &model]).contains("SaveV2"));
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("graph.pb").to_str().unwrap().to_string();
    let json: Value =
        serde_json::from_str(&succeeds(&["convert", &model, &graph, "--json"])).unwrap();
    let tensor = |side: &str, name: &str| json[side][name].as_str().unwrap().to_string();
    let (input, output) = (tensor("inputs", "keras_tensor"), tensor("outputs", "output_0"));
    let (_, _, error) = ferroflow(&["run", &graph]);
    assert!(error.contains("--outputs says what to compute"), "{error}");
    let expr = format!("{input}=np.ones((2, 8))");
    let found = succeeds(&["run", &graph, "--outputs", &output, "--input_exprs", &expr]);
    assert!(found.starts_with(&format!("{output}: float32[2,4]")), "{found}");
}

#[test]
fn shells_and_man_learn_all_verbs() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeeds(&["completions", shell]);
        assert!(["checkpoint", "input_exprs"].iter().all(|word| script.contains(word)), "{shell}");
    }
    assert!(succeeds(&["man"]).contains(".TH ferroflow 1"));
    let folder = tempfile::tempdir().unwrap();
    let json = succeeds(&["man", folder.path().to_str().unwrap(), "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let page = folder.path().join("ferroflow-run.1").to_str().unwrap().to_string();
    assert!(json["pages"].as_array().unwrap().contains(&Value::from(page.clone())), "{json}");
    assert!(fs::read_to_string(page).unwrap().contains("input_exprs"));
}
