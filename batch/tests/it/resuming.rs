//! Runs that are killed go on where they stopped.

use crate::support::{features, mlp_job, model, read, run_mlp, write};
use ferroflow_batch::{BatchJob, Error};
use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const N_ROWS: usize = 60_000;
const N_PARTS: usize = 60;

/// The program, over the rows of a folder.
fn program(folder: &Path, output: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferroflow-batch"));
    command.arg("run").arg(model("k3_mlp")).args(["--column", "keras_tensor=x"]);
    command.args(["--rows-per-part", "1000", "--batch-size", "50", "--threads", "2", "--input"]);
    command.arg(folder.join("in.parquet")).arg("--output").arg(folder.join(output));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn parts(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("part-")).count()
}

/// Kills the program as soon as it has written some parts. Returns their number.
fn kill_in_the_middle(mut child: Child, folder: &Path) -> usize {
    let deadline = Instant::now() + Duration::from_secs(60);
    while parts(folder) < 5 {
        assert!(child.try_wait().unwrap().is_none(), "ended before it was killed");
        assert!(Instant::now() < deadline, "no parts within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    parts(folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_goes_on_and_its_output_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("in.parquet"), &features(N_ROWS), 1000);
    let undisturbed = program(folder.path(), "undisturbed.parquet").output().unwrap();
    assert!(undisturbed.status.success(), "{}", String::from_utf8_lossy(&undisturbed.stderr));

    let left = folder.path().join("out.parquet.parts");
    let child = program(folder.path(), "out.parquet").spawn().unwrap();
    let n_left = kill_in_the_middle(child, &left);
    assert!((5..N_PARTS).contains(&n_left), "{n_left} parts");
    assert!(!folder.path().join("out.parquet").exists());

    let resumed = program(folder.path(), "out.parquet").output().unwrap();
    let said = String::from_utf8_lossy(&resumed.stdout).into_owned();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let expected =
        format!("{N_ROWS} rows in {N_PARTS} parts, {n_left} of which were there already");
    assert_eq!(said.trim(), expected);
    let (found, expected) = ("out.parquet", "undisturbed.parquet");
    assert_eq!(
        fs::read(folder.path().join(found)).unwrap(),
        fs::read(folder.path().join(expected)).unwrap()
    );
    assert_eq!(read(&folder.path().join(found)).num_rows(), N_ROWS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_only_with_its_own_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out"));
    write(&input, &features(100), 10);
    let job = BatchJob { rows_per_part: 10, ..mlp_job(&input, &output) };
    assert_eq!(run_mlp(job.clone()).await.unwrap().resumed, 0);

    // A part that is missing is made again; the others stay.
    fs::remove_file(output.join("part-00003.parquet")).unwrap();
    let again = run_mlp(BatchJob { rows_per_part: 1000, ..job.clone() }).await.unwrap();
    assert_eq!((again.parts, again.resumed, again.rows), (10, 9, 100));

    let keep = Some(vec!["id".to_string()]);
    let error = run_mlp(BatchJob { keep: keep.clone(), ..job.clone() }).await.unwrap_err();
    assert!(matches!(error, Error::OtherRun { what: "kept columns", .. }), "{error}");
    let anew = BatchJob { keep, overwrite: true, rows_per_part: 50, ..job.clone() };
    assert_eq!(run_mlp(anew).await.unwrap().parts, 2);
    assert_eq!(parts(&output), 2);

    write(&input, &features(101), 10);
    let keep = Some(vec!["id".to_string()]);
    let error = run_mlp(BatchJob { keep, ..job }).await.unwrap_err();
    assert!(matches!(error, Error::OtherRun { what: "inputs", .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out"));
    write(&input, &features(10), 10);
    fs::create_dir(&output).unwrap();
    let lock = fs::File::create(output.join("_ferroflow.lock")).unwrap();
    lock.lock().unwrap();
    let error = run_mlp(mlp_job(&input, &output)).await.unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    drop(lock);
    assert!(run_mlp(mlp_job(&input, &output)).await.is_ok());
}
