//! Runs: parts of the input, worked on in parallel, each written as a file.

use crate::{
    error::{Error, Result},
    input::InputFiles,
    job::{BatchJob, BatchProgress, BatchSummary},
    manifest::{Manifest, Part, Settings, parts, whole},
    options::{PredictorOptions, StringColumns},
    output::{PartWriter, PartsFolder},
    predictor::BatchPredictor,
    query::{SessionSettings, is_row_wise, plan},
    scan::FilesTable,
};
use datafusion::{
    execution::{memory_pool::FairSpillPool, runtime_env::RuntimeEnvBuilder},
    physical_plan::SendableRecordBatchStream,
};
use futures::StreamExt;
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinSet;

/// Attempts at a part whose rows were lost with the process that held them.
const MOST_ATTEMPTS: u32 = 5;
/// The time before the second attempt; longer before others.
const PAUSE: Duration = Duration::from_millis(500);

/// A listener to the progress of a run, called by several threads.
pub type ProgressListener = Arc<dyn Fn(BatchProgress) + Send + Sync>;

/// Runs a model over files: Parquet or CSV in, Parquet out.
///
/// The output is written as parts, each of row groups of one file. A part's rows are in the order of
/// the input, and so are the parts. A run that was ended goes on with the parts that are missing
/// when it is run again, and its output is the same. A query that sorts, joins, groups or limits rows
/// is one part.
///
/// Memory does not grow with the number of rows: batches of rows pass through, and row groups of at
/// most 64 MiB are written.
///
/// Calls must be made in a Tokio runtime, whose worker threads do the work.
///
/// ```no_run
/// use ferroflow_batch::{BatchJob, PredictorOptions, run};
/// use std::sync::Arc;
/// # #[tokio::main]
/// # async fn main() -> Result<(), ferroflow_batch::Error> {
/// let job = BatchJob::new(["in/*.parquet"], "out.parquet");
/// let summary = run("model", &PredictorOptions::default(), job, Arc::new(|_| {})).await?;
/// println!("{} rows", summary.rows);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When the model cannot be loaded, files cannot be read or written, columns do not fit the inputs,
/// the model fails, or another run has left its parts where this one writes. The first error ends the
/// run; parts that are complete stay.
pub async fn run(
    model: impl AsRef<Path>,
    options: &PredictorOptions,
    job: BatchJob,
    progress: ProgressListener,
) -> Result<BatchSummary> {
    let input = InputFiles::open(&job.input)?;
    check_output(&job.output, &input)?;
    let predictor = Arc::new(BatchPredictor::load(model.as_ref(), options)?);
    let worker = PartRunner::new(predictor, job, input, progress)?;
    let parts = worker.cut().await?;
    let settings = worker.settings(options);
    let overwrite = worker.job.overwrite;
    let folder = PartsFolder::open(&worker.job.output, overwrite)?;
    let manifest = folder.resume(Manifest::new(settings, &worker.input, parts), overwrite)?;
    let resumed = worker.run_all(&folder, &manifest).await?;
    (worker.progress)(BatchProgress::Joining);
    let parts = manifest.parts.len();
    Ok(BatchSummary { rows: folder.finish(manifest)?, parts, resumed })
}

/// Checks that no file of the input would be replaced.
fn check_output(output: &Path, input: &InputFiles) -> Result<()> {
    let same = |file: &Path| match (output.canonicalize(), file.canonicalize()) {
        (Ok(output), Ok(file)) => output == file,
        _ => false,
    };
    match input.files.iter().any(|file| same(&file.path)) {
        true => Err(Error::OutputIsInput { path: output.into() }),
        false => Ok(()),
    }
}

/// All that parts are worked on with.
#[derive(Clone)]
struct PartRunner {
    predictor: Arc<BatchPredictor>,
    job: Arc<BatchJob>,
    input: Arc<InputFiles>,
    progress: ProgressListener,
    session: SessionSettings,
    n_threads: usize,
}

impl PartRunner {
    fn new(
        predictor: Arc<BatchPredictor>,
        job: BatchJob,
        input: InputFiles,
        progress: ProgressListener,
    ) -> Result<PartRunner> {
        let pool = FairSpillPool::new(job.memory);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc()?;
        let available = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let n_threads = job.threads.map_or_else(available, NonZeroUsize::get);
        let target = job.target();
        Ok(PartRunner {
            predictor,
            job: Arc::new(job),
            input: Arc::new(input),
            progress,
            session: SessionSettings { runtime, partitions: 1, target },
            n_threads,
        })
    }

    /// The parts of the run. Finds out by the way whether it can be planned.
    async fn cut(&self) -> Result<Vec<Part>> {
        let table = FilesTable::whole(&self.input, self.n_threads);
        let planned =
            plan(&self.predictor, &self.job, &self.input, table, &self.session, 0).await?;
        let row_wise = self.job.query.is_none() || is_row_wise(planned.frame.logical_plan())?;
        let parts = match row_wise {
            true => parts(&self.input, self.job.rows_per_part),
            false => Vec::new(),
        };
        Ok(if parts.is_empty() { vec![whole(&self.input)] } else { parts })
    }

    fn settings(&self, options: &PredictorOptions) -> Settings {
        Settings {
            model: self.predictor.origin().map(|origin| origin.fingerprint.clone()),
            signature: self.predictor.signature().into(),
            columns: self.job.columns.clone(),
            keep: self.job.keep.clone(),
            query: self.job.query.clone(),
            binary: options.strings == StringColumns::Binary,
        }
    }

    /// Works on the parts that are missing. Returns the number of those that were there.
    async fn run_all(&self, folder: &PartsFolder, manifest: &Manifest) -> Result<usize> {
        let all: Vec<usize> = (0..manifest.parts.len()).collect();
        let (there, missing): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|&index| folder.part(index).exists());
        let rows = |index: &usize| manifest.parts[*index].rows;
        (self.progress)(BatchProgress::Planned {
            rows: manifest.parts.iter().map(|part| part.rows).sum(),
            done: there.iter().filter_map(rows).sum(),
        });
        let work =
            missing.into_iter().map(|index| (folder.part(index), manifest.parts[index].clone()));
        self.run_parts(work.collect()).await?;
        Ok(there.len())
    }

    /// Works on parts, as many at a time as there are threads, until all are done or one fails.
    async fn run_parts(&self, work: Vec<(PathBuf, Part)>) -> Result<()> {
        let (work, next) = (Arc::new(work), Arc::new(AtomicUsize::new(0)));
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for _ in 0..self.n_threads.min(work.len()) {
            let (runner, work, next, stop) =
                (self.clone(), work.clone(), next.clone(), stop.clone());
            tasks.spawn(async move {
                while let Some((path, part)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    runner.run_part(path, part, &stop).await?;
                }
                Ok(())
            });
        }
        let mut result = Ok(());
        while let Some(ended) = tasks.join_next().await {
            let ended = match ended {
                Ok(ended) => ended,
                Err(panic) if panic.is_panic() => std::panic::resume_unwind(panic.into_panic()),
                Err(_) => Ok(()),
            };
            if ended.is_err() && result.is_ok() {
                result = ended;
                stop.store(true, Ordering::Relaxed);
                next.store(work.len(), Ordering::Relaxed);
            }
        }
        result
    }

    async fn run_part(&self, path: &Path, part: &Part, stop: &AtomicBool) -> Result<()> {
        let file = part.file.and_then(|index| self.input.files.get(index));
        let table = match file {
            Some(file) => FilesTable::file(&self.input, file, part.bytes.clone()),
            None => FilesTable::whole(&self.input, self.n_threads),
        };
        let partitions = if file.is_some() { 1 } else { self.n_threads };
        let session = SessionSettings { partitions, ..self.session.clone() };
        let mut attempts = 0;
        loop {
            let mut n_rows = 0;
            let result =
                self.write_part(path, table.clone(), &session, part, stop, &mut n_rows).await;
            attempts += 1;
            match result {
                Err(error) if attempts < MOST_ATTEMPTS && session.target.is_transient(&error) => {
                    (self.progress)(BatchProgress::Repeated(n_rows));
                    tokio::time::sleep(PAUSE * attempts).await;
                }
                Err(error) => {
                    return Err(match file {
                        Some(file) => error.in_file(&file.path),
                        None => error,
                    });
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    async fn write_part(
        &self,
        path: &Path,
        table: FilesTable,
        session: &SessionSettings,
        part: &Part,
        stop: &AtomicBool,
        n_rows: &mut u64,
    ) -> Result<()> {
        let (predictor, job) = (&self.predictor, &self.job);
        let planned = plan(predictor, job, &self.input, table, session, part.first_row).await?;
        let mut writer = PartWriter::create(path.into(), planned.schema.clone(), job.compression)?;
        let mut rows: SendableRecordBatchStream = planned.frame.clone().execute_stream().await?;
        while let Some(batch) = rows.next().await {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let batch = planned.finish(batch?)?;
            writer.write(&batch)?;
            *n_rows += batch.num_rows() as u64;
            (self.progress)(BatchProgress::Rows(batch.num_rows() as u64));
        }
        if let Some(left) = part.rows.and_then(|rows| rows.checked_sub(*n_rows)) {
            (self.progress)(BatchProgress::Rows(left));
        }
        writer.finish()
    }
}
