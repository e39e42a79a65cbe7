//! Errors name what is wrong: column, row, input, types.

use crate::support::{features, lists, mlp_job, model, numbers, run_mlp, table, write};
use datafusion::{
    arrow::{
        array::{ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int64Array, ListArray},
        buffer::OffsetBuffer,
        datatypes::{DataType, Field},
    },
    prelude::SessionContext,
};
use ferroflow_batch::{BatchJob, BatchPredictor, Error, PredictorOptions, predict_udf};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

/// The error of a run over a table with this column `x`.
async fn error_of(x: ArrayRef) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    write(&input, &table(vec![("x", x)]), 100);
    let job = BatchJob { rows_per_part: 100, ..mlp_job(&input, &output) };
    run_mlp(job).await.unwrap_err()
}

fn inner(error: Error) -> Error {
    match error {
        Error::InFile { source, .. } => *source,
        other => panic!("not in a file: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nulls_are_told_by_their_row_in_the_file() {
    let mut values: Vec<Option<f32>> = numbers(300 * 8).into_iter().map(Some).collect();
    values[250 * 8 + 3] = None;
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let values = Arc::new(Float32Array::from(values));
    let rows = FixedSizeListArray::try_new(item.clone(), 8, values, None).unwrap();
    let error = inner(error_of(Arc::new(rows)).await);
    assert!(matches!(error, Error::Null { ref column, row: 250 } if column == "x"), "{error}");

    let valid = (0..300).map(|row| row != 123).collect::<Vec<bool>>().into();
    let values = Arc::new(Float32Array::from(numbers(300 * 8)));
    let rows = FixedSizeListArray::try_new(item, 8, values, Some(valid)).unwrap();
    let error = inner(error_of(Arc::new(rows)).await);
    assert!(matches!(error, Error::Null { row: 123, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_types_and_shapes_are_refused() {
    let item = Arc::new(Field::new_list_field(DataType::Float64, true));
    let values = Arc::new(Float64Array::from(vec![0.0; 80]));
    let doubles = FixedSizeListArray::try_new(item, 8, values, None).unwrap();
    let error = error_of(Arc::new(doubles)).await;
    assert!(matches!(error, Error::ColumnType { ref input, .. } if input == "keras_tensor"));
    assert!(error.to_string().contains("float32") && error.to_string().contains("Float64"));

    let error = error_of(Arc::new(Int64Array::from(vec![1; 10]))).await;
    assert!(matches!(error, Error::ColumnType { .. }), "{error}");

    let error = inner(error_of(lists(numbers(70), 7)).await);
    assert!(matches!(error, Error::ColumnShape { .. }), "{error}");

    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let offsets = OffsetBuffer::from_lengths([8, 8, 5, 8]);
    let values = Arc::new(Float32Array::from(numbers(29)));
    let ragged = ListArray::try_new(item, offsets, values, None).unwrap();
    let error = inner(error_of(Arc::new(ragged)).await);
    assert!(matches!(error, Error::ListLength { row: 2, expected: 8, found: 5, .. }), "{error}");
}

/// The error of a job over good rows.
async fn refused(change: impl Fn(BatchJob, &Path) -> BatchJob) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    write(&input, &features(10), 100);
    run_mlp(change(mlp_job(&input, &output), folder.path())).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_are_told_with_those_that_are_there() {
    let columns = |input: &str, column: &str| BTreeMap::from([(input.into(), column.into())]);
    let error = refused(|job, _| BatchJob { columns: columns("keras_tensor", "z"), ..job }).await;
    assert!(matches!(error, Error::NoColumn { ref column, .. } if column == "z"), "{error}");
    let error = refused(|job, _| BatchJob { columns: columns("tensor", "x"), ..job }).await;
    assert!(matches!(error, Error::NoSuchInput { ref input, .. } if input == "tensor"), "{error}");
    let error = refused(|job, _| BatchJob { columns: BTreeMap::new(), ..job }).await;
    assert!(matches!(error, Error::NoColumn { .. }), "{error}");
    let error = refused(|job, _| BatchJob { keep: Some(vec!["y".into()]), ..job }).await;
    assert!(matches!(error, Error::NoKeptColumn { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_missing_or_foreign_are_refused() {
    let error = refused(|job, folder| {
        let input = vec![folder.join("absent*.parquet").to_str().unwrap().to_string()];
        BatchJob { input, ..job }
    });
    assert!(matches!(error.await, Error::NoInput { .. }));
    let error = refused(|job, folder| {
        fs::write(folder.join("bad.parquet"), "PAR1 is not enough").unwrap();
        BatchJob { input: vec![folder.to_str().unwrap().into()], ..job }
    });
    assert!(matches!(error.await, Error::Parquet { .. }));
    let error = refused(|job, folder| {
        write(&folder.join("other.parquet"), &table(vec![("x", lists(numbers(8), 4))]), 10);
        BatchJob { input: vec![folder.to_str().unwrap().into()], ..job }
    });
    assert!(matches!(error.await, Error::Schema { column: 0, .. }));
    let error = refused(|job, folder| {
        fs::write(folder.join("out.parquet"), "of somebody").unwrap();
        job
    });
    assert!(matches!(error.await, Error::Exists { .. }));
    let error = refused(|job, folder| BatchJob {
        output: folder.join("in.parquet"),
        overwrite: true,
        ..job
    });
    assert!(matches!(error.await, Error::OutputIsInput { .. }));
    let error = refused(|job, folder| {
        fs::create_dir(folder.join("photos")).unwrap();
        fs::write(folder.join("photos/a.jpeg"), "").unwrap();
        BatchJob { output: folder.join("photos"), overwrite: true, ..job }
    });
    assert!(matches!(error.await, Error::Exists { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_do_not_shadow_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    let rows = table(vec![("x", lists(numbers(8), 8)), ("output_0", lists(numbers(8), 8))]);
    write(&input, &rows, 10);
    let error = run_mlp(mlp_job(&input, &output)).await.unwrap_err();
    assert!(matches!(error, Error::OutputName { ref output } if output == "output_0"), "{error}");
}

#[test]
fn models_and_signatures_that_are_missing_are_told() {
    let error = BatchPredictor::load("no/such/model", &PredictorOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Model { .. }), "{error}");
    let options = PredictorOptions { signature: Some("other".into()), ..Default::default() };
    let error = BatchPredictor::load(model("k3_mlp"), &options).unwrap_err();
    assert!(error.to_string().contains("serving_default"), "{error}");
}

#[tokio::test]
async fn errors_come_through_queries_as_they_are() {
    let predictor = BatchPredictor::load(model("k3_mlp"), &PredictorOptions::default()).unwrap();
    let predictor = Arc::new(predictor);
    let wrong = predict_udf("predict", predictor.clone(), &["other"]).unwrap_err();
    assert!(matches!(wrong, Error::NoSuchInput { .. }));
    let session = SessionContext::new();
    session.register_udf(predict_udf("predict", predictor, &[]).unwrap());
    let planned = session.sql("SELECT predict(make_array(1.0, 2.0)) FROM (VALUES (1)) t(a)").await;
    let error = match planned {
        Err(error) => Error::from(error),
        Ok(frame) => Error::from(frame.collect().await.unwrap_err()),
    };
    assert!(matches!(error, Error::ColumnType { .. }), "{error:?}");
    let short =
        "SELECT predict(arrow_cast(make_array(a, 2), 'List(Float32)')) FROM (VALUES (1)) t(a)";
    let error = session.sql(short).await.unwrap().collect().await.unwrap_err();
    assert!(matches!(Error::from(error), Error::ColumnShape { .. }));
}
