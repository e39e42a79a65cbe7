//! Predictions of runs equal those of direct calls.

use crate::support::{
    assert_close, direct, features, floats, lists, mlp_job, model, numbers, read, run_mlp, write,
};
use datafusion::arrow::{
    array::{Array, ArrayRef, AsArray, LargeListArray, ListArray},
    buffer::OffsetBuffer,
    datatypes::{DataType, Field, Float32Type, Int64Type},
};
use ferroflow_batch::{
    BatchJob, BatchPredictor, BatchProgress, ParquetCompression, PredictorOptions, run,
};
use std::{
    fs,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

const N_ROWS: usize = 10_007;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_row_groups_is_predicted_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    write(&input, &features(N_ROWS), 1000);
    let job = BatchJob { rows_per_part: 2500, ..mlp_job(&input, &output) };
    let summary = run_mlp(job).await.unwrap();
    assert_eq!((summary.rows, summary.parts, summary.resumed), (N_ROWS as u64, 5, 0));
    let found = read(&output);
    let ids = found.column_by_name("id").unwrap().as_primitive::<Int64Type>();
    assert!(ids.values().iter().copied().eq(0..N_ROWS as i64));
    assert_eq!(floats(&found, "x"), numbers(N_ROWS * 8));
    assert_close(&floats(&found, "output_0"), &direct(&numbers(N_ROWS * 8)));
    assert!(!folder.path().join("out.parquet.parts").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_of_batches_do_not_change_rows() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.parquet");
    write(&input, &features(3001), 700);
    let expected = direct(&numbers(3001 * 8));
    for size in [1usize, 7, 256, 3001, 100_000] {
        let output = folder.path().join(format!("{size}.parquet"));
        let options =
            PredictorOptions { batch_size: NonZeroUsize::new(size), ..PredictorOptions::default() };
        let job = mlp_job(&input, &output);
        run(model("k3_mlp"), &options, job, Arc::new(|_| {})).await.unwrap();
        assert_close(&floats(&read(&output), "output_0"), &expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_files_becomes_a_folder_of_parts() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir_all(input.join("deeper")).unwrap();
    let all = features(900);
    write(&input.join("a.parquet"), &all.slice(0, 300), 100);
    write(&input.join("b.parquet"), &all.slice(300, 250), 100);
    write(&input.join("deeper/c.parquet"), &all.slice(550, 350), 100);
    fs::write(input.join("_SUCCESS"), "").unwrap();
    let rows = Arc::new(AtomicU64::new(0));
    let counted = rows.clone();
    let listen = Arc::new(move |step| {
        if let BatchProgress::Rows(more) = step {
            counted.fetch_add(more, Ordering::Relaxed);
        }
    });
    let job = BatchJob {
        keep: Some(vec!["id".into()]),
        threads: NonZeroUsize::new(3),
        compression: ParquetCompression::Zstd,
        ..mlp_job(&input, &output)
    };
    let summary = run(model("k3_mlp"), &PredictorOptions::default(), job, listen).await.unwrap();
    assert_eq!((summary.rows, summary.parts), (900, 3));
    assert_eq!(rows.load(Ordering::Relaxed), 900);
    let parts = (0..3).map(|index| read(&output.join(format!("part-{index:05}.parquet"))));
    let found: Vec<f32> = parts.flat_map(|part| floats(&part, "output_0")).collect();
    assert_close(&found, &direct(&numbers(900 * 8)));
    assert_eq!(read(&output.join("part-00000.parquet")).num_columns(), 2);
}

#[test]
fn lists_of_all_kinds_are_the_same_rows() {
    let predictor = BatchPredictor::load(model("k3_mlp"), &PredictorOptions::default()).unwrap();
    let fixed = lists(numbers(80), 8);
    let values = fixed.as_fixed_size_list().values().clone();
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let short = OffsetBuffer::from_repeated_length(8, 10);
    let long = OffsetBuffer::from_repeated_length(8, 10);
    let list: ArrayRef =
        Arc::new(ListArray::try_new(item.clone(), short, values.clone(), None).unwrap());
    let large: ArrayRef = Arc::new(LargeListArray::try_new(item, long, values, None).unwrap());
    let predict = |rows: ArrayRef| {
        let outputs = predictor.predict(&[("keras_tensor", "x", rows)], 0).unwrap();
        let lists = outputs[0].as_fixed_size_list();
        lists.values().as_primitive::<Float32Type>().values().to_vec()
    };
    let expected = direct(&numbers(80));
    for rows in [&fixed, &list, &large] {
        assert_eq!(predict(rows.clone()), expected);
        assert_eq!(predict(rows.slice(3, 5)), expected[12..32]);
        assert!(predict(rows.slice(0, 0)).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_files_become_an_empty_file() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    write(&input, &features(0), 10);
    assert_eq!(run_mlp(mlp_job(&input, &output)).await.unwrap().rows, 0);
    let found = read(&output);
    assert_eq!((found.num_rows(), found.num_columns()), (0, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_whose_names_are_odd_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a [1] %20 #é?.parquet");
    write(&input, &features(10), 10);
    let output = folder.path().join("out.parquet");
    assert_eq!(run_mlp(mlp_job(&input, &output)).await.unwrap().rows, 10);
    let pattern = folder.path().join("a*.parquet");
    let output = folder.path().join("globbed.parquet");
    assert_eq!(run_mlp(mlp_job(&pattern, &output)).await.unwrap().rows, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_is_predicted_through_a_query() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.csv"), folder.path().join("out.parquet"));
    fs::write(&input, "a,b\n1.5,2\n-3,0.25\n").unwrap();
    let query = "SELECT a, predict(arrow_cast(make_array(a, b, 0, 0, 0, 0, 0, 0), 'List(Float32)')) \
                 AS y FROM input";
    let job =
        BatchJob { query: Some(query.into()), ..BatchJob::new([input.to_str().unwrap()], &output) };
    assert_eq!(run_mlp(job).await.unwrap().rows, 2);
    let rows = [1.5, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_close(&floats(&read(&output), "y"), &direct(&rows));
}
