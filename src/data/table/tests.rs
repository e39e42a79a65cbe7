use super::*;
use crate::data::Arrays;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float64Array, Int64Array, ListArray, RecordBatch,
    StringArray,
    types::{Float32Type, Int64Type},
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};
use std::{
    fs::{self, File},
    path::Path,
};

/// Rows `from..to` of a table: a number, its name, whether it is odd, a pair, and as many ones.
fn rows(from: i64, to: i64) -> RecordBatch {
    let numbers = || from..to;
    let column = |values: ArrayRef| values;
    let pairs = numbers().map(|n| Some([Some(n as f32), Some(-n as f32)]));
    let ones = numbers().map(|n| Some(vec![Some(1); n as usize % 4]));
    RecordBatch::try_from_iter([
        ("ones", column(Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(ones)))),
        ("number", column(Arc::new(Int64Array::from_iter_values(numbers())))),
        (
            "half",
            column(Arc::new(Float64Array::from_iter_values(numbers().map(|n| n as f64 / 2.0)))),
        ),
        ("name", column(Arc::new(StringArray::from_iter_values(numbers().map(|n| n.to_string()))))),
        ("odd", column(Arc::new(BooleanArray::from_iter(numbers().map(|n| Some(n % 2 == 1)))))),
        (
            "pair",
            column(Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
                pairs, 2,
            ))),
        ),
    ])
    .unwrap()
}

fn write_parquet(path: &Path, parts: &[RecordBatch]) {
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(7))
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, parts[0].schema(), Some(properties)).unwrap();
    parts.iter().for_each(|part| writer.write(part).unwrap());
    writer.close().unwrap();
}

fn write_file(path: &Path, parts: &[RecordBatch]) {
    let file = File::create(path).unwrap();
    let mut writer = FileWriter::try_new(file, &parts[0].schema()).unwrap();
    parts.iter().for_each(|part| writer.write(part).unwrap());
    writer.finish().unwrap();
}

fn write_stream(path: &Path, parts: &[RecordBatch]) {
    let file = File::create(path).unwrap();
    let mut writer = StreamWriter::try_new(file, &parts[0].schema()).unwrap();
    parts.iter().for_each(|part| writer.write(part).unwrap());
    writer.finish().unwrap();
}

/// A file of each format, of 10, 12 and 8 rows.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = ["a.parquet", "b.feather", "c.arrow"].map(|name| folder.join(name));
    write_parquet(&paths[0], &[rows(0, 10)]);
    write_file(&paths[1], &[rows(10, 11), rows(11, 19), rows(19, 22)]);
    write_stream(&paths[2], &[rows(22, 25), rows(25, 30)]);
    paths.into()
}

fn numbers(example: &Example, column: usize) -> Vec<i32> {
    example[column].to_vec().unwrap()
}

#[test]
fn formats_and_files_make_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let columns = [
        ("number", DType::I32),
        ("half", DType::F32),
        ("pair", DType::F64),
        ("name", DType::String),
        ("odd", DType::F32),
        ("number", DType::F32),
    ];
    let table = TableFiles::open(files(folder.path()), &columns).unwrap();
    assert_eq!(table.n_rows(), 30);
    let all = table.read().unwrap();
    assert_eq!(all[0].as_slice::<i32>().unwrap(), (0..30).collect::<Vec<_>>());
    assert_eq!(all[1].as_slice::<f32>().unwrap()[3], 1.5);
    assert_eq!(all[2].shape().dims(), [30, 2]);
    assert_eq!(all[2].as_slice::<f64>().unwrap()[22..24], [11.0, -11.0]);
    assert_eq!(all[3].strings().unwrap()[29], "29");
    assert_eq!(all[4].as_slice::<f32>().unwrap()[..3], [0.0, 1.0, 0.0]);
    assert_eq!(all[5].as_slice::<f32>().unwrap()[29], 29.0);
    assert_eq!(Arrays::new(all).unwrap().len(), 30);
}

#[test]
fn batches_go_on_over_the_ends_of_files_and_from_any_position() {
    let folder = tempfile::tempdir().unwrap();
    let table = TableFiles::open(files(folder.path()), &[("number", DType::I32)]).unwrap();
    for size in [1, 4, 7, 30, 31] {
        let batches = table.batches(size);
        assert_eq!(batches.len(), Some(30usize.div_ceil(size)));
        let seen = |n_done| -> Vec<Vec<i32>> {
            let items = batches.epoch_from(0, n_done);
            items.map(|batch| numbers(&batch.unwrap(), 0)).collect()
        };
        let all = seen(0);
        assert_eq!(all.concat(), (0..30).collect::<Vec<_>>());
        assert!(all[..all.len() - 1].iter().all(|batch| batch.len() == size));
        for n_done in 0..=all.len() {
            assert_eq!(seen(n_done), all[n_done..]);
        }
    }
    for n_done in 0..=30 {
        let rest = table.rows().epoch_from(3, n_done);
        let rest: Vec<i32> = rest.map(|row| numbers(&row.unwrap(), 0)[0]).collect();
        assert_eq!(rest, (n_done as i32..30).collect::<Vec<_>>());
    }
}

#[test]
fn rows_may_have_lists_of_different_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let table =
        TableFiles::open(files(folder.path()), &[("ones", DType::I64), ("number", DType::I32)])
            .unwrap();
    for (index, row) in table.rows().epoch(0).enumerate() {
        let row = row.unwrap();
        assert_eq!(row[0].shape().dims(), Some(&[Some(index % 4)][..]));
        assert_eq!(numbers(&row, 1), [index as i32]);
    }
    let padded = table.rows().padded_batch(10, false).epoch(0).next().unwrap().unwrap();
    assert_eq!(padded[0].host().unwrap().shape().dims(), [10, 3]);
    let error = table.batches(4).epoch(0).next().unwrap().unwrap_err().to_string();
    assert!(
        error.ends_with(
            "a.parquet: column `ones`, row 1: a list of 1 elements, where 0 are expected"
        )
    );
}

#[test]
fn what_is_no_table_of_tensors_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let paths = files(folder.path());
    let error = |path: &Path, columns: &[(&str, DType)]| {
        let table = TableFiles::open([path], columns).and_then(|table| table.read());
        table.unwrap_err().to_string()
    };
    let message = error(&paths[0], &[("n", DType::F32)]);
    assert!(
        message.contains("there is no column `n`; there are [\"ones\", \"number\""),
        "{message}"
    );
    let message = error(&paths[1], &[("half", DType::I32)]);
    assert!(
        message.ends_with("column `half` is Float64, which does not become int32"),
        "{message}"
    );
    let text = folder.path().join("t.csv");
    fs::write(&text, "a,b\n").unwrap();
    assert!(error(&text, &[]).ends_with("t.csv: neither Parquet nor a file or stream of Arrow"));
    assert!(matches!(TableFiles::open(["/none"], &[]), Err(Error::Io { .. })));

    let large = folder.path().join("large.parquet");
    write_parquet(&large, &[rows(0, 9), rows(250, 260)]);
    let message = error(&large, &[("number", DType::U8)]);
    assert!(
        message.ends_with("column `number`, row 15: a value of int64 that is none of uint8"),
        "{message}"
    );

    let null = folder.path().join("null.arrow");
    let values: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None]));
    write_stream(&null, &[RecordBatch::try_from_iter([("half", values)]).unwrap()]);
    let message = error(&null, &[("half", DType::F32)]);
    assert!(message.ends_with("column `half`, row 1: a value is missing (null)"), "{message}");

    let other = folder.path().join("other.parquet");
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    write_parquet(&other, &[RecordBatch::try_from_iter([("half", values)]).unwrap()]);
    let two = TableFiles::open([&paths[0], &other], &[("half", DType::F32)]);
    let message = two.unwrap_err().to_string();
    assert!(message.contains("column `half` is Int64, but Float64 in "), "{message}");
}

#[test]
fn tables_without_rows_are_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.parquet");
    write_parquet(&path, &[rows(0, 0)]);
    let table = TableFiles::open([path], &[("name", DType::String), ("half", DType::F32)]).unwrap();
    assert_eq!(table.read().unwrap()[1].shape().dims(), [0]);
    assert!(table.batches(3).epoch(0).next().is_none());
    assert!(table.rows().epoch(0).next().is_none());
    assert!(TableFiles::open(Vec::<PathBuf>::new(), &[]).unwrap().read().is_err());
}

#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = crate::data::random::SplitMix::new(1, 0);
    for path in files(folder.path()) {
        let whole = fs::read(&path).unwrap();
        for _ in 0..300 {
            let mut damaged = whole.clone();
            match random.below(3) {
                0 => damaged.truncate(random.below(whole.len())),
                _ => damaged[random.below(whole.len())] ^= 1 << random.below(8),
            }
            fs::write(&path, damaged).unwrap();
            let columns = [("name", DType::String), ("pair", DType::F32), ("number", DType::I32)];
            let Ok(table) = TableFiles::open([&path], &columns) else { continue };
            table.rows().epoch(0).take(100).for_each(drop);
        }
    }
}
