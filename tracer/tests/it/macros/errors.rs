//! Messages of the compiler about code that the macros cannot rewrite (`tests/ui`).
//!
//! `rustc` compiles each case with the crate that is built already, in the folder of this program: under cargo
//! it would be built once more with all that it needs.

use expect_test::expect_file;
use serde_json::Value;
use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

// spec: 197
#[test]
fn errors_point_at_what_is_wrong() {
    let library = &library();
    let mut cases: Vec<PathBuf> = fs::read_dir("tests/ui")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for cases in cases.chunks(cases.len().div_ceil(n_threads)) {
            scope.spawn(move || {
                for case in cases {
                    let expected = env::current_dir().unwrap().join(case.with_extension("stderr"));
                    expect_file![expected].assert_eq(&errors(case, library));
                }
            });
        }
    });
}

/// The crate as it was built last.
fn library() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let built = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libferroflow_tracer-") && name.ends_with(".rlib")
    });
    built.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap()).unwrap()
}

/// Errors of a case: the messages, and where in the case they point.
fn errors(case: &Path, library: &Path) -> String {
    let name = "ferroflow_tracer";
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--error-format=json"]);
    rustc.args(["--cap-lints=allow", "--verbose", "-o"]).arg(env::temp_dir().join("never_made"));
    rustc.arg("--extern").arg(format!("{name}={}", library.display()));
    rustc.arg("-L").arg(format!("dependency={}", library.parent().unwrap().display()));
    let output = rustc.arg(case).output().unwrap();
    assert!(!output.status.success(), "{} is compiled", case.display());
    let mut text = String::new();
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        let has_place = message["spans"].as_array().is_some_and(|spans| !spans.is_empty());
        if message["level"] == "error" && (has_place || message["code"] != Value::Null) {
            describe(&message, case, 0, &mut text);
        }
    }
    text
}

fn describe(message: &Value, case: &Path, depth: usize, to: &mut String) {
    let (indent, level) = (" ".repeat(depth), message["level"].as_str().unwrap());
    let code = message["code"]["code"].as_str().map(|code| format!("[{code}]")).unwrap_or_default();
    // Other types that have a trait are no matter of the case.
    let text = message["message"].as_str().unwrap();
    let first_line = text.lines().next().unwrap_or_default();
    writeln!(to, "{indent}{level}{code}: {first_line}").unwrap();
    for span in message["spans"].as_array().into_iter().flatten() {
        if span["file_name"].as_str().is_none_or(|file| Path::new(file) != case) {
            continue;
        }
        let number = |key: &str| span[key].as_u64().unwrap();
        let marked = span["text"][0]["text"].as_str().map_or("", |line| {
            let (from, to) =
                (number("column_start") as usize - 1, number("column_end") as usize - 1);
            match number("line_start") == number("line_end") {
                true => line.get(from..to).unwrap_or(line),
                false => line.get(from..).unwrap_or(line),
            }
        });
        let (line, column) = (number("line_start"), number("column_start"));
        let label = span["label"].as_str().map(|label| format!(": {label}")).unwrap_or_default();
        writeln!(to, "{indent}  {line}:{column} `{marked}`{label}").unwrap();
    }
    for child in message["children"].as_array().into_iter().flatten() {
        describe(child, case, depth + 2, to);
    }
}
