//! Savers that are killed: a reader finds a whole checkpoint at every moment. `cargo xtask fuzz kills`
//! kills more of them.

use ferroflow::{ir::Limits, saved_model::bundle::Reader};
use std::{
    error::Error,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Savers that are killed in each way.
const KILLS: u64 = 12;

/// The value that all elements of a checkpoint have.
fn value(prefix: &Path) -> Result<f32> {
    let reader = Reader::open(prefix, &Limits::default())?;
    let mut values = Vec::new();
    for key in ["a", "b", "c"] {
        values.extend_from_slice(reader.read(key)?.as_slice::<f32>()?);
    }
    assert!(values.iter().all(|value| *value == values[0]), "a mixture of checkpoints");
    Ok(values[0])
}

/// Saves until it is killed, or `saves` times.
fn saver(folder: &Path, way: &str, first: u64, saves: Option<u64>) -> Result<std::process::Child> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fuzz"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let saves = saves.map_or(String::new(), |saves| format!(", \"saves\": {saves}"));
    let folder = folder.display();
    let mut stdin = child.stdin.take().ok_or("a saver has an input")?;
    writeln!(
        stdin,
        "{{\"kind\": \"save\", \"way\": \"{way}\", \"folder\": \"{folder}\", \"first\": {first}{saves}}}"
    )?;
    Ok(child)
}

fn check(way: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let prefix = folder.path().join("m");
    assert!(saver(folder.path(), way, 1, Some(1))?.wait()?.success());
    for number in 0..KILLS {
        let before = value(&prefix)?;
        let mut child = saver(folder.path(), way, 2 + number * 1000, None)?;
        let end = Instant::now() + Duration::from_secs(20);
        // It has begun when there is another checkpoint.
        while value(&prefix)? == before && Instant::now() < end {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(number * 1700 % 9000));
        child.kill()?;
        child.wait()?;
        assert!(value(&prefix)? > before);
    }
    assert!(saver(folder.path(), way, 1_000_000, Some(1))?.wait()?.success());
    assert_eq!(value(&prefix)?, 1_000_000.0);
    // An index and a data file; or one for each part, and an empty one in every other merge.
    let n_files = std::fs::read_dir(folder.path())?.count();
    assert!(if way == "name" { n_files == 2 } else { n_files == 4 || n_files == 5 }, "{n_files}");
    Ok(())
}

#[test]
fn savers_over_one_name_may_be_killed() -> Result<()> {
    check("name")
}

#[test]
fn merges_over_one_name_may_be_killed() -> Result<()> {
    check("merge")
}
