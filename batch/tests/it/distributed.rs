//! Runs whose parts executors work on.

use crate::support::{direct, features, floats, mlp_job, numbers, read, run_mlp, table, write};
use datafusion::arrow::{
    array::{ArrayRef, FixedSizeListArray, Float32Array},
    datatypes::{DataType, Field},
};
use ferroflow_batch::BatchJob;
use std::{
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Processes that end with the test.
struct Cluster {
    scheduler: u16,
    processes: Vec<Child>,
}

impl Cluster {
    fn new(n_executors: usize) -> Cluster {
        let scheduler = free_port();
        let mut cluster = Cluster { scheduler, processes: Vec::new() };
        cluster.start(&["scheduler", "--address", &local(scheduler), "--timeout", "4"]);
        wait_for(scheduler);
        for _ in 0..n_executors {
            let (port, task_port) = (free_port(), free_port().to_string());
            let address = local(port);
            let scheduler = local(scheduler);
            cluster.start(&[
                "executor",
                "--scheduler",
                &scheduler,
                "--address",
                &address,
                "--task-port",
                &task_port,
                "--threads",
                "1",
                "--heartbeat",
                "1",
            ]);
            wait_for(port);
        }
        cluster
    }

    fn start(&mut self, args: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferroflow-batch"));
        command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        self.processes.push(command.spawn().unwrap());
    }

    fn job(&self, input: &Path, output: &Path) -> BatchJob {
        let scheduler = Some(format!("df://{}", local(self.scheduler)));
        BatchJob { scheduler, rows_per_part: 1000, ..mlp_job(input, output) }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_for(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(local(port)).is_err() {
        assert!(Instant::now() < deadline, "no process listens within a minute");
        thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn executors_predict_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    write(&input, &features(6000), 500);
    let cluster = Cluster::new(2);
    let summary = run_mlp(cluster.job(&input, &output)).await.unwrap();
    assert_eq!((summary.rows, summary.parts), (6000, 6));
    let found = read(&output);
    assert_eq!(floats(&found, "x"), numbers(6000 * 8));
    crate::support::assert_close(&floats(&found, "output_0"), &direct(&numbers(6000 * 8)));

    let query = Some("SELECT id, predict(x) AS y FROM input WHERE id >= 4500".to_string());
    let output = folder.path().join("queried.parquet");
    let job = BatchJob { query, columns: Default::default(), ..cluster.job(&input, &output) };
    assert_eq!(run_mlp(job).await.unwrap().rows, 1500);
    assert_eq!(floats(&read(&output), "y"), floats(&found, "output_0")[4500 * 4..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_executor_costs_time_only() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    write(&input, &features(60_000), 1000);
    let mut cluster = Cluster::new(3);
    let job = cluster.job(&input, &output);
    let running = tokio::spawn(run_mlp(job));
    let parts = folder.path().join("out.parquet.parts");
    while !parts.join("part-00005.parquet").exists() {
        assert!(!running.is_finished(), "{:?}", running.await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cluster.processes[1].kill().unwrap();
    assert_eq!(running.await.unwrap().unwrap().rows, 60_000);
    let here = folder.path().join("here.parquet");
    run_mlp(BatchJob { rows_per_part: 1000, ..mlp_job(&input, &here) }).await.unwrap();
    assert_eq!(read(&output), read(&here));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_rows_arrive_as_text_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    let mut values: Vec<Option<f32>> = numbers(3000 * 8).into_iter().map(Some).collect();
    values[2345 * 8] = None;
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let values = Arc::new(Float32Array::from(values));
    let x: ArrayRef = Arc::new(FixedSizeListArray::try_new(item, 8, values, None).unwrap());
    write(&input, &table(vec![("x", x)]), 1000);
    let cluster = Cluster::new(1);
    let error = run_mlp(cluster.job(&input, &output)).await.unwrap_err().to_string();
    assert!(
        error.contains("in.parquet") && error.contains("column `x`, row 2345: null"),
        "{error}"
    );
}
