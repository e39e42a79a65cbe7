//! Saving where it cannot be done: errors that say why, and old data as it was.

use ferroflow::{
    Checkpoint, Variable,
    ir::Code,
    latest_checkpoint,
    runtime::Context,
    save,
    saved_model::{self, LoadOptions, SaveOptions, load},
};
use std::{error::Error, path::Path, process::Command};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn is_io(error: &saved_model::Error) -> bool {
    match error {
        saved_model::Error::Tensor { source, .. } => is_io(source),
        error => matches!(error, saved_model::Error::Io { .. }),
    }
}

/// The value of `v` in a checkpoint or a model.
fn stored(path: &Path) -> Outcome<Vec<f32>> {
    let v = Variable::new(vec![0.0f32; N])?;
    Checkpoint::new().with("v", &v).read(path)?.assert_existing_objects_matched()?;
    Ok(v.read()?.to_vec()?)
}

const N: usize = 200_000;

fn filled(value: f32) -> Outcome<Variable> {
    Ok(Variable::new(vec![value; N])?)
}

/// The names of all files in a folder and below.
fn files(folder: &Path) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found.sort();
    Ok(found)
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_cannot_be_written() -> Outcome {
    let v = filled(1.0)?;
    let checkpoint = Checkpoint::new().with("v", &v);
    let error = checkpoint.save("/proc/self/ferroflow/m").unwrap_err();
    assert!(is_io(&error) && error.to_string().contains("/proc/self/ferroflow"), "{error}");
    let error = save(&checkpoint, "/proc/self/ferroflow", &SaveOptions::default()).unwrap_err();
    assert!(is_io(&error), "{error}");
    Ok(())
}

const FOLDER: &str = "FERROFLOW_TEST_FULL";

/// The program whose files may not become large, as on a disk that is full; without its folder it
/// does nothing.
#[test]
fn writes_until_the_disk_is_full() -> Outcome {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let folder = Path::new(&folder);
    let v = filled(2.0)?;
    let checkpoint = Checkpoint::new().with("v", &v);
    let failures = [
        checkpoint.save(folder.join("m")).unwrap_err(),
        checkpoint.write(folder.join("m-1")).unwrap_err(),
        save(&checkpoint, folder.join("model"), &SaveOptions::default()).unwrap_err(),
    ];
    for error in failures {
        assert!(is_io(&error), "{error}");
    }
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_what_was_there() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = filled(1.0)?;
    let checkpoint = Checkpoint::new().with("v", &v);
    let saved = checkpoint.save(folder.path().join("m"))?;
    let model = folder.path().join("model");
    save(&Checkpoint::new().with("v", &v), &model, &SaveOptions::default())?;
    let before = files(folder.path())?;
    // The signal that comes with the limit is ignored, so that writing fails.
    let program =
        "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact bad_output::writes_until_the_disk_is_full";
    let writer = Command::new("bash")
        .args(["-c", program])
        .arg(std::env::current_exe()?)
        .env(FOLDER, folder.path())
        .output()?;
    assert!(String::from_utf8(writer.stdout)?.contains("1 passed"));
    assert_eq!(files(folder.path())?, before);
    assert_eq!(latest_checkpoint(folder.path())?.as_deref(), Some(&*saved));
    assert!(stored(&saved)?.iter().chain(&stored(&model)?).all(|value| *value == 1.0));
    Ok(())
}

#[test]
fn writers_of_one_name_leave_the_checkpoint_of_one_of_them() -> Outcome {
    let folder = tempfile::tempdir()?;
    let prefix = folder.path().join("shared");
    for _ in 0..10 {
        std::thread::scope(|scope| {
            let writers: Vec<_> = (1..=4)
                .map(|writer| {
                    let prefix = &prefix;
                    scope.spawn(move || -> Result<(), String> {
                        let text = |error: &dyn std::fmt::Display| error.to_string();
                        let v = Variable::new(vec![writer as f32; N]).map_err(|e| text(&e))?;
                        let checkpoint = Checkpoint::new().with("v", &v);
                        checkpoint.write(prefix).map(drop).map_err(|e| text(&e))
                    })
                })
                .collect();
            for writer in writers {
                assert_eq!(writer.join().expect("writers do not panic"), Ok(()));
            }
        });
        let values = stored(&prefix)?;
        assert!(values[0] > 0.0 && values.iter().all(|value| *value == values[0]));
        assert_eq!(files(folder.path())?, ["shared.data-00000-of-00001", "shared.index"]);
    }
    Ok(())
}

#[test]
#[cfg(unix)]
fn names_that_are_not_utf8() -> Outcome {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir()?;
    let name = std::ffi::OsStr::from_bytes(b"m\xff");
    let v = filled(3.0)?;
    let checkpoint = Checkpoint::new().with("v", &v);
    // The file that lists checkpoints is text.
    let error = checkpoint.save(folder.path().join(name)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("UTF-8"), "{error}");
    assert_eq!(files(folder.path())?, Vec::<String>::new());
    let written = checkpoint.write(folder.path().join(name))?;
    assert_eq!(stored(&written)?, vec![3.0; N]);
    let model = folder.path().join(std::ffi::OsStr::from_bytes(b"model\xff"));
    save(&Checkpoint::new().with("v", &v), &model, &SaveOptions::default())?;
    load(&Context::new(), &model, &LoadOptions::default())?;
    assert_eq!(stored(&model)?, vec![3.0; N]);
    Ok(())
}

#[test]
fn names_that_collide() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (v, w) = (Variable::named("v", 1.0f32)?, Variable::named("v", 2.0f32)?);
    let twice = Checkpoint::new().with("v", &v).with("v", &w);
    let error = twice.write(folder.path().join("m")).unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    let error = save(&twice, folder.path().join("model"), &SaveOptions::default()).unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    let by_name = Checkpoint::new().with("a", &v).with("b", &w);
    let error = by_name.write_named(folder.path().join("m")).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    // Of different objects, names of variables may be equal, and edges may have any names.
    let inner = Checkpoint::new().with("b", &w);
    let odd = Checkpoint::new().with("a/b", &v).with("a", &inner);
    odd.write(folder.path().join("odd"))?;
    let restored = [Variable::new(0.0f32)?, Variable::new(0.0f32)?];
    let inner = Checkpoint::new().with("b", &restored[1]);
    let checkpoint = Checkpoint::new().with("a/b", &restored[0]).with("a", &inner);
    checkpoint.read(folder.path().join("odd"))?.assert_consumed()?;
    let values = [restored[0].read()?.to_scalar::<f32>()?, restored[1].read()?.to_scalar()?];
    assert_eq!(values, [1.0, 2.0]);
    assert!(files(folder.path())?.iter().all(|name| name.starts_with("odd")));
    Ok(())
}

#[test]
fn objects_that_changed_since_they_were_saved() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new([1.0f32, 2.0])?;
    let saved = Checkpoint::new().with("v", &v).write(folder.path().join("m"))?;
    let other = Variable::new(vec![7i64])?;
    let error = Checkpoint::new().with("v", &other).read(&saved).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert_eq!(other.read()?.to_vec::<i64>()?, [7]);
    let nested = Checkpoint::new().with("v", &other);
    let error = Checkpoint::new().with("v", &nested).read(&saved)?.assert_consumed().map(drop);
    assert_eq!(error.unwrap_err().code(), Code::NotFound);
    assert_eq!(other.read()?.to_vec::<i64>()?, [7]);
    Ok(())
}

#[test]
#[cfg(unix)]
fn links_that_lead_out_of_a_model_are_not_followed() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = folder.path().join("model");
    let vocabulary = folder.path().join("words.txt");
    std::fs::write(&vocabulary, "a\nb\n")?;
    let asset = ferroflow::runtime::trackable::Asset::new(&vocabulary);
    save(&Checkpoint::new().with("words", &asset), &model, &SaveOptions::default())?;
    let copied = model.join("assets/words.txt");
    assert_eq!(std::fs::read(&copied)?, b"a\nb\n");
    std::fs::remove_file(&copied)?;
    std::os::unix::fs::symlink(&vocabulary, &copied)?;
    let error = load(&Context::new(), &model, &LoadOptions::default()).map(drop).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied, "{error}");
    // What is saved takes the place of the link; what that led to stays as it is.
    let words = folder.path().join("more/words.txt");
    std::fs::create_dir(folder.path().join("more"))?;
    std::fs::write(&words, "c\n")?;
    let asset = ferroflow::runtime::trackable::Asset::new(&words);
    save(&Checkpoint::new().with("words", &asset), &model, &SaveOptions::default())?;
    assert_eq!(
        (std::fs::read(&copied)?, std::fs::read(&vocabulary)?),
        (b"c\n".into(), b"a\nb\n".into())
    );
    load(&Context::new(), &model, &LoadOptions::default())?;
    Ok(())
}

#[test]
fn what_loaders_leave_alone_goes_along() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (first, second) = (folder.path().join("1"), folder.path().join("2"));
    let v = Variable::new(1.0f32)?;
    save(&Checkpoint::new().with("v", &v), &first, &SaveOptions::default())?;
    let kept = ["assets.extra/tf_serving_warmup_requests", "debug/saved_model_debug_info.pb"];
    for name in kept {
        std::fs::create_dir_all(first.join(name).parent().ok_or("a folder")?)?;
        std::fs::write(first.join(name), name)?;
    }
    let model = load(&Context::new(), &first, &LoadOptions::default())?;
    let root = model.root().ok_or("a model with objects")?;
    save(&root, &second, &SaveOptions::default())?;
    for name in kept {
        assert_eq!(std::fs::read_to_string(second.join(name))?, name);
    }
    // A part of another object is not the model.
    let third = folder.path().join("3");
    save(&Checkpoint::new().with("part", &root), &third, &SaveOptions::default())?;
    assert!(!third.join("assets.extra").exists());
    Ok(())
}
