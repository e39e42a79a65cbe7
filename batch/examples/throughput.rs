//! Throughput of runs beside bare calls: `throughput rows FILE N WIDTH`, then
//! `throughput bare MODEL FILE` and `throughput run MODEL FILE OUTPUT [COLUMN TO KEEP…]`.
//!
//! The first writes Parquet with a column `id` and a column `x` of lists of `WIDTH` floats. The second
//! reads it into memory and calls the model with batches of 8192 rows, without any table; only calls
//! are timed. The third is a run of the engine, files included. Both print rows per second and the
//! peak of the resident memory of the process.

use datafusion::{
    arrow::{
        array::{ArrayRef, AsArray, FixedSizeListArray, Float32Array, Int64Array, RecordBatch},
        datatypes::{DataType, Field, Float32Type},
    },
    parquet::{
        arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
        file::properties::WriterProperties,
    },
};
use ferroflow_batch::{BatchJob, PredictorOptions, run};
use ferroflow_ir::{HostTensor, Shape};
use ferroflow_runtime::{Context, ContextOptions, EagerTensor};
use ferroflow_saved_model::{LoadOptions, SavedModel, load};
use std::{
    collections::BTreeMap,
    error::Error,
    fs::{self, File},
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const BATCH: usize = 8192;
const ROW_GROUP: usize = 1 << 17;
const SIGNATURE: &str = "serving_default";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match &args[..] {
        ["rows", file, n, width] => rows(file, n.parse()?, width.parse()?),
        ["bare", model, file] => bare(model, file),
        ["run", model, file, output, keep @ ..] => engine(model, file, output, keep),
        _ => Err("rows FILE N WIDTH | bare MODEL FILE | run MODEL FILE OUTPUT [COLUMN…]".into()),
    }
}

fn rows(file: &str, n: usize, width: usize) -> Result<()> {
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(ROW_GROUP)).build();
    let mut writer: Option<ArrowWriter<File>> = None;
    let mut state = 7u32;
    for first in (0..n).step_by(ROW_GROUP) {
        let batch = random(first..n.min(first + ROW_GROUP), width, &mut state)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(ArrowWriter::try_new(
                File::create(file)?,
                batch.schema(),
                Some(properties.clone()),
            )?),
        };
        writer.write(&batch)?;
    }
    writer.map(ArrowWriter::close).transpose()?;
    Ok(())
}

fn random(rows: std::ops::Range<usize>, width: usize, state: &mut u32) -> Result<RecordBatch> {
    let mut next = || {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..rows.len() * width).map(|_| next()).collect();
    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let values = Arc::new(Float32Array::from(values));
    let x: ArrayRef =
        Arc::new(FixedSizeListArray::try_new(item, i32::try_from(width)?, values, None)?);
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.map(|row| row as i64)));
    Ok(RecordBatch::try_from_iter([("id", id), ("x", x)])?)
}

/// The tensors of a file, in batches.
fn tensors(file: &str) -> Result<Vec<HostTensor>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?;
    let mut tensors = Vec::new();
    for batch in reader.with_batch_size(BATCH).build()? {
        let batch = batch?;
        let lists = batch.column_by_name("x").ok_or("no column x")?.as_fixed_size_list();
        let values = lists.values().as_primitive::<Float32Type>().values();
        let shape = Shape::new([batch.num_rows(), lists.value_length() as usize])?;
        tensors.push(HostTensor::from_slice(shape, values)?);
    }
    Ok(tensors)
}

fn bare(model: &str, file: &str) -> Result<()> {
    let tensors = tensors(file)?;
    let n_rows: usize = tensors.iter().map(|tensor| tensor.shape()[0]).sum();
    let n_cores = thread::available_parallelism()?.get();
    for (callers, threads) in [(1, n_cores), (n_cores, 1), (n_cores, n_cores)] {
        let options =
            ContextOptions { threads: NonZeroUsize::new(threads), ..ContextOptions::default() };
        let model = load(&Context::with_options(options), model, &LoadOptions::default())?;
        let input = model.signature_inputs(SIGNATURE)?.remove(0).0;
        call(&model, &input, &tensors[0]);
        let began = Instant::now();
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..callers {
                scope.spawn(|| {
                    while let Some(x) = tensors.get(next.fetch_add(1, Ordering::Relaxed)) {
                        call(&model, &input, x);
                    }
                });
            }
        });
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "bare, {callers} callers, {threads} threads: {:.0} rows/s",
            n_rows as f64 / seconds
        );
    }
    Ok(())
}

fn call(model: &SavedModel, input: &str, x: &HostTensor) {
    let inputs = BTreeMap::from([(input.to_string(), EagerTensor::from(x.clone()))]);
    let outputs = model.call_signature(SIGNATURE, &inputs).expect("the model takes these rows");
    assert!(!outputs.is_empty());
}

fn engine(model: &str, file: &str, output: &str, keep: &[&str]) -> Result<()> {
    let found = load(&Context::new(), model, &LoadOptions::default())?;
    let input = found.signature_inputs(SIGNATURE)?.remove(0).0;
    let keep = (!keep.is_empty()).then(|| keep.iter().map(ToString::to_string).collect());
    let columns = BTreeMap::from([(input, "x".to_string())]);
    let job = BatchJob { columns, keep, overwrite: true, ..BatchJob::new([file], output) };
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let began = Instant::now();
    let options = PredictorOptions::default();
    let running = run(model, &options, job, Arc::new(|_| {}));
    let summary = runtime.block_on(running)?;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "run: {} rows in {seconds:.2} s, {:.0} rows/s, peak memory {}",
        summary.rows,
        summary.rows as f64 / seconds,
        peak_memory()?
    );
    Ok(())
}

/// The peak of the resident memory, as Linux tells it.
fn peak_memory() -> Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(peak.ok_or("no VmHWM")?.trim().to_string())
}
