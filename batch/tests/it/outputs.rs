//! Models of several inputs, several outputs, and strings.

use crate::support::{lists, model, numbers, read, table, write};
use base64::prelude::{BASE64_STANDARD, Engine};
use datafusion::arrow::{
    array::{Array, ArrayRef, AsArray, BinaryArray, DictionaryArray, RecordBatch},
    datatypes::{DataType, Float32Type, Int32Type},
};
use ferroflow_batch::{BatchJob, BatchPredictor, PredictorOptions, StringColumns, run};
use ferroflow_ir::{HostTensor, Shape};
use ferroflow_runtime::{Context, EagerTensor};
use ferroflow_saved_model::{LoadOptions, load};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

/// The outputs of a direct call.
fn call(
    name: &str,
    signature: &str,
    inputs: Vec<(&str, HostTensor)>,
) -> BTreeMap<String, HostTensor> {
    let model = load(&Context::new(), model(name), &LoadOptions::default()).unwrap();
    let inputs = inputs.into_iter().map(|(name, value)| (name.to_string(), value.into()));
    let outputs = model.call_signature(signature, &inputs.collect()).unwrap();
    let host = |(name, value): (String, EagerTensor)| (name, value.into_host().unwrap());
    outputs.into_iter().map(host).collect()
}

async fn predicted(name: &str, options: &PredictorOptions, rows: &RecordBatch) -> RecordBatch {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
    write(&input, rows, 3);
    let job =
        BatchJob { keep: Some(Vec::new()), ..BatchJob::new([input.to_str().unwrap()], &output) };
    run(model(name), options, job, Arc::new(|_| {})).await.unwrap();
    read(&output)
}

#[tokio::test(flavor = "multi_thread")]
async fn several_outputs_are_several_columns() {
    let pixels = numbers(7 * 1200);
    let rows = table(vec![("image", lists(pixels.clone(), 1200))]);
    let found = predicted("k3_cnn_batchnorm", &PredictorOptions::default(), &rows).await;
    let images = HostTensor::from_slice(Shape::new([7, 20, 20, 3]).unwrap(), &pixels).unwrap();
    let expected = call("k3_cnn_batchnorm", "serving_default", vec![("image", images)]);
    let classes = found.column_by_name("classes").unwrap().as_fixed_size_list();
    assert_eq!(classes.value_length(), 5);
    let classes = classes.values().as_primitive::<Float32Type>().values();
    crate::support::assert_close(classes, expected["classes"].as_slice().unwrap());
    // A number for each row is a column of numbers.
    let score = found.column_by_name("score").unwrap().as_primitive::<Float32Type>().values();
    crate::support::assert_close(score, expected["score"].as_slice().unwrap());
}

/// The serialized examples that come with the model.
fn examples() -> Vec<Vec<u8>> {
    let case =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/zoo/est_dnn_classifier/case.json");
    let case: serde_json::Value = serde_json::from_slice(&fs::read(case).unwrap()).unwrap();
    let values = case["calls"][0]["kwargs"]["inputs"]["values"].as_array().unwrap().clone();
    let decode =
        |value: &serde_json::Value| BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap();
    values.iter().map(decode).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn strings_go_in_and_come_out() {
    let examples: Vec<Vec<u8>> = examples().into_iter().cycle().take(10).collect();
    let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(&examples));
    let rows = table(vec![("inputs", column)]);
    let strings = examples.iter().map(|example| example.clone().into()).collect();
    let strings = HostTensor::from_strings(Shape::new([10]).unwrap(), strings).unwrap();
    let expected = call("est_dnn_classifier", "serving_default", vec![("inputs", strings)]);
    let expected_classes = expected["classes"].strings().unwrap();

    let found = predicted("est_dnn_classifier", &PredictorOptions::default(), &rows).await;
    // The graph tells no number of classes, so that these are lists of any length.
    let classes = found.column_by_name("classes").unwrap().as_list::<i32>();
    let texts = classes.values().as_string::<i32>();
    assert!(texts.iter().flatten().map(str::as_bytes).eq(expected_classes.iter()));
    let scores = found.column_by_name("scores").unwrap().as_list::<i32>();
    let scores = scores.values().as_primitive::<Float32Type>().values();
    crate::support::assert_close(scores, expected["scores"].as_slice().unwrap());

    let options =
        PredictorOptions { strings: StringColumns::Binary, ..PredictorOptions::default() };
    let found = predicted("est_dnn_classifier", &options, &rows).await;
    let classes = found.column_by_name("classes").unwrap().as_list::<i32>();
    let bytes = classes.values().as_binary::<i32>();
    assert!(bytes.iter().flatten().eq(expected_classes.iter()));
}

#[test]
fn strings_of_all_layouts_are_the_same() {
    let options = PredictorOptions::default();
    let predictor = BatchPredictor::load(model("est_dnn_classifier"), &options).unwrap();
    let column: ArrayRef = Arc::new(BinaryArray::from_iter_values(examples()));
    let expected = predictor.predict(&[("inputs", "e", column.clone())], 0).unwrap();
    for ty in [DataType::LargeBinary, DataType::BinaryView] {
        let same = datafusion::arrow::compute::cast(&column, &ty).unwrap();
        assert_eq!(predictor.predict(&[("inputs", "e", same)], 0).unwrap(), expected);
    }
    let keys = datafusion::arrow::array::Int32Array::from(vec![1, 0]);
    let repeated: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, column));
    let swapped = predictor.predict(&[("inputs", "e", repeated)], 0).unwrap();
    assert_eq!(swapped[1].slice(0, 1).as_ref(), expected[1].slice(1, 1).as_ref());
}
