//! Predictions inside of queries.

use crate::support::{
    assert_close, direct, features, floats, lists, mlp_job, model, numbers, read, run_mlp, table,
    write,
};
use datafusion::{
    arrow::{array::AsArray, datatypes::Int64Type},
    prelude::{SessionConfig, SessionContext},
};
use ferroflow_batch::{
    BatchJob, BatchPredictor, BatchSummary, PredictorOptions, Result, predict_udf,
};
use std::{path::Path, sync::Arc};

async fn query(folder: &Path, query: &str, output: &str) -> Result<BatchSummary> {
    let input = folder.join("in.parquet");
    let job = BatchJob {
        query: Some(query.into()),
        rows_per_part: 300,
        columns: Default::default(),
        ..mlp_job(&input, &folder.join(output))
    };
    run_mlp(job).await
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_of_rows_are_cut_into_parts_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("in.parquet"), &features(1000), 100);
    let expected = direct(&numbers(8000));

    let filtered = "SELECT id, predict(x) AS y FROM input WHERE id % 3 = 0";
    let summary = query(folder.path(), filtered, "filtered.parquet").await.unwrap();
    assert_eq!((summary.rows, summary.parts), (334, 4));
    let found = floats(&read(&folder.path().join("filtered.parquet")), "y");
    let thirds: Vec<f32> = expected.chunks(12).flat_map(|rows| rows[..4].to_vec()).collect();
    assert_close(&found, &thirds);

    let grouped = "SELECT count(*) AS n, sum(p[1]) AS s FROM (SELECT predict(x) AS p FROM input)";
    let summary = query(folder.path(), grouped, "grouped.parquet").await.unwrap();
    assert_eq!((summary.rows, summary.parts), (1, 1));
    let found = read(&folder.path().join("grouped.parquet"));
    let n = found.column_by_name("n").unwrap().as_primitive::<Int64Type>().value(0);
    assert_eq!(n, 1000);

    for whole in [
        "SELECT predict(x) AS y FROM input ORDER BY id DESC LIMIT 5",
        "SELECT predict(x) AS y FROM input WHERE id = (SELECT max(id) FROM input)",
    ] {
        let output = format!("{}.parquet", whole.len());
        assert_eq!(query(folder.path(), whole, &output).await.unwrap().parts, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_only_read() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("in.parquet"), &features(10), 100);
    for refused in ["DROP TABLE input", "SET a.b = 1", "CREATE TABLE t AS SELECT 1", "no query"] {
        assert!(query(folder.path(), refused, "out.parquet").await.is_err());
    }
    assert!(!folder.path().join("out.parquet.parts").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_function_works_in_a_session_of_its_own() {
    let predictor = BatchPredictor::load(model("k3_mlp"), &PredictorOptions::default()).unwrap();
    let session = SessionContext::new();
    let udf = predict_udf("score", Arc::new(predictor), &["keras_tensor"]).unwrap();
    session.register_udf(udf);
    session.register_batch("rows", features(20_000)).unwrap();
    let frame = session.sql("SELECT score(x) AS y FROM rows ORDER BY id").await.unwrap();
    let found = frame.collect().await.unwrap();
    let found: Vec<f32> = found.iter().flat_map(|batch| floats(batch, "y")).collect();
    assert_close(&found, &direct(&numbers(160_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_of_one_call_are_of_one_evaluation() {
    let options = PredictorOptions::default();
    let predictor = BatchPredictor::load(model("k3_cnn_batchnorm"), &options).unwrap();
    let mut config = SessionConfig::new();
    config.options_mut().optimizer.enable_leaf_expression_pushdown = false;
    let session = SessionContext::new_with_config(config);
    session.register_udf(predict_udf("predict", Arc::new(predictor), &[]).unwrap());
    session.register_batch("rows", table(vec![("x", lists(numbers(2400), 1200))])).unwrap();
    let query = "SELECT predict(x)['classes'] AS a, predict(x)['score'] AS b FROM rows";
    let frame = session.sql(query).await.unwrap();
    let plan = frame.clone().into_optimized_plan().unwrap().display_indent().to_string();
    assert_eq!(plan.matches("predict(").count(), 1, "{plan}");
    let found = frame.collect().await.unwrap();
    assert_eq!(found.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
}
