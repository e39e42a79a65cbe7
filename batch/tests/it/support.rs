//! Tables, models and runs that tests share.

use datafusion::{
    arrow::{
        array::{ArrayRef, AsArray, FixedSizeListArray, Float32Array, Int64Array, RecordBatch},
        compute::concat_batches,
        datatypes::{DataType, Field, Float32Type, Schema},
    },
    parquet::{
        arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
        file::properties::WriterProperties,
    },
};
use ferroflow_batch::{BatchJob, BatchSummary, PredictorOptions, Result, run};
use ferroflow_ir::{HostTensor, Shape};
use ferroflow_runtime::{Context, EagerTensor};
use ferroflow_saved_model::{LoadOptions, load};
use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The folder of a model of the zoo.
pub(crate) fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/zoo").join(name).join("model")
}

/// Numbers that look random and are the same in each run.
pub(crate) fn numbers(n: usize) -> Vec<f32> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Lists of fixed length.
pub(crate) fn lists(values: Vec<f32>, length: i32) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let values = Arc::new(Float32Array::from(values));
    Arc::new(FixedSizeListArray::try_new(item, length, values, None).unwrap())
}

/// A table of these columns.
pub(crate) fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

/// Rows of an `id` and eight features for the model `k3_mlp`.
pub(crate) fn features(n_rows: usize) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..n_rows as i64));
    table(vec![("id", ids), ("x", lists(numbers(n_rows * 8), 8))])
}

/// Writes Parquet of row groups of so many rows.
pub(crate) fn write(path: &Path, table: &RecordBatch, row_group: usize) {
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(row_group)).build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties)).unwrap();
    writer.write(table).unwrap();
    writer.close().unwrap();
}

/// All rows of a file of Parquet.
pub(crate) fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = Arc::new(Schema::new(reader.schema().fields().clone()));
    let batches = reader.build().unwrap().map(|batch| {
        RecordBatch::try_new(schema.clone(), batch.unwrap().columns().to_vec()).unwrap()
    });
    concat_batches(&schema, &batches.collect::<Vec<_>>()).unwrap()
}

/// The predictions of one direct call of `k3_mlp` with all rows.
pub(crate) fn direct(x: &[f32]) -> Vec<f32> {
    let model = load(&Context::new(), model("k3_mlp"), &LoadOptions::default()).unwrap();
    let x = HostTensor::from_slice(Shape::new([x.len() / 8, 8]).unwrap(), x).unwrap();
    let inputs = BTreeMap::from([("keras_tensor".to_string(), EagerTensor::from(x))]);
    let outputs = model.call_signature("serving_default", &inputs).unwrap();
    outputs["output_0"].host().unwrap().as_slice::<f32>().unwrap().to_vec()
}

/// The numbers inside of the lists of a column.
pub(crate) fn floats(table: &RecordBatch, column: &str) -> Vec<f32> {
    let lists = table.column_by_name(column).unwrap().as_fixed_size_list();
    lists.values().as_primitive::<Float32Type>().values().to_vec()
}

pub(crate) fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    let far = |(a, b): (&f32, &f32)| (a - b).abs() > 1e-6 * b.abs().max(1.0);
    assert_eq!(found.iter().zip(expected).position(far), None);
}

/// A run from `x` to the input of `k3_mlp`.
pub(crate) fn mlp_job(input: &Path, output: &Path) -> BatchJob {
    BatchJob {
        columns: BTreeMap::from([("keras_tensor".to_string(), "x".to_string())]),
        ..BatchJob::new([input.to_str().unwrap()], output)
    }
}

pub(crate) async fn run_mlp(job: BatchJob) -> Result<BatchSummary> {
    run(model("k3_mlp"), &PredictorOptions::default(), job, Arc::new(|_| {})).await
}
