use crate::cases::{Case, cases, golden, golden_folder};
use ferroflow_format::{CheckpointState, Result, bundle::Reader, convert::StoredHandle};
use ferroflow_ir::{DType, Limits};
use std::collections::BTreeSet;

fn open(case: &Case) -> Result<Reader> {
    Reader::open(case.path("prefix"), &Limits::default())
}

#[test]
fn every_tensor_has_the_recorded_value() {
    for case in cases("ckpt_") {
        let reader = open(&case).unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        let expected = case.json["entries"].as_object().unwrap();
        let names: BTreeSet<&str> = reader.entries().map(|(name, _)| name).collect();
        assert_eq!(names, expected.keys().map(String::as_str).collect(), "{}", case.name());
        for (name, value) in expected {
            let tensor = reader.read(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(tensor, case.tensor(value), "{}: {name}", case.name());
            let entry = reader.entry(name).unwrap();
            assert_eq!((entry.dtype, &entry.shape), (tensor.dtype(), tensor.shape()));
        }
    }
}

#[test]
fn the_state_file_names_the_newest_checkpoint() {
    for case in cases("ckpt_") {
        let folder = case.path("prefix").parent().unwrap().to_path_buf();
        if let Some(latest) = case.json["latest"].as_str() {
            let state = CheckpointState::read(&folder).unwrap();
            assert_eq!(state.model_checkpoint_path, folder.join(latest), "{}", case.name());
            let kept = case.json["kept"].as_array().map_or(vec![latest], |kept| {
                kept.iter().map(|path| path.as_str().unwrap()).collect()
            });
            let kept: Vec<_> = kept.iter().map(|name| folder.join(name)).collect();
            assert_eq!(state.all_model_checkpoint_paths, kept, "{}", case.name());
        }
    }
}

#[test]
fn damaged_checkpoints_are_errors() {
    for case in cases("bad_ckpt_") {
        let read_all = || -> Result<()> {
            let reader = open(&case)?;
            reader.entries().try_for_each(|(name, _)| reader.read(name).map(drop))
        };
        match read_all() {
            Ok(()) => assert!(!case.must_fail(), "{}: no error", case.name()),
            Err(error) => eprintln!("{}: {error} ({:?})", case.name(), error.code()),
        }
    }
}

#[test]
fn damaged_variables_of_models_are_errors() {
    const DAMAGED: &[&str] = &[
        "bad_data_flipped",
        "bad_data_truncated",
        "bad_index_flipped",
        "bad_index_magic",
        "bad_index_truncated",
        "bad_no_data_shard",
        "bad_no_variables",
    ];
    for case in cases("bad_").into_iter().filter(|case| DAMAGED.contains(&case.name())) {
        let read_all = || -> Result<()> {
            let prefix = case.folder.join("model/variables/variables");
            let reader = Reader::open(prefix, &Limits::default())?;
            reader.entries().try_for_each(|(name, _)| reader.read(name).map(drop))
        };
        assert!(read_all().is_err(), "{}: no error", case.name());
    }
}

#[test]
fn slices_of_partitioned_tensors() {
    let reader = open(&golden("ckpt_slices")).unwrap();
    assert_eq!(reader.entry("numbers").unwrap().slices.len(), 3);
    let whole = reader.read("numbers").unwrap();
    let check = |spec: &str, rows: std::ops::Range<usize>| {
        let slice = reader.read_slice("numbers", &spec.parse().unwrap()).unwrap();
        assert_eq!(slice, whole.rows(rows).unwrap(), "{spec}");
    };
    check("6 4 -:-", 0..6);
    check("6 4 0,6:0,4", 0..6);
    check("6 4 1,3:-", 1..4);
    check("6 4 5,1:-", 5..6);
    let column = reader.read_slice("numbers", &"6 4 -:1,1".parse().unwrap()).unwrap();
    assert_eq!(column.shape().dims(), [6, 1]);
    assert_eq!(column.as_slice::<f32>().unwrap(), [1.0, 5.0, 9.0, 13.0, 17.0, 21.0]);
    let corner = reader.read_slice("strings", &"6 4 4,2:0,2".parse().unwrap()).unwrap();
    assert_eq!(corner.strings().unwrap(), ["4,0", "4,1", "5,0", "5,1"]);
}

#[test]
fn slices_of_whole_tensors() {
    let reader = open(&golden("ckpt_dtypes")).unwrap();
    let whole = reader.read("int32").unwrap();
    let row = reader.read_slice("int32", &"2 3 1,1:-".parse().unwrap()).unwrap();
    assert_eq!(row, whole.rows(1..2).unwrap());
    let strings = reader.read_slice("string", &"2 2 -:0,1".parse().unwrap()).unwrap();
    assert_eq!(strings.strings().unwrap(), [&b"alpha"[..], b"\x00\xff\xfe"]);
}

#[test]
fn variants_keep_their_messages() {
    let prefix = golden_folder().join("variants/model/m");
    let reader = Reader::open(prefix, &Limits::default()).unwrap();
    let both = reader.read("two").unwrap();
    assert_eq!((both.dtype(), both.shape().dims()), (DType::Variant, &[2usize][..]));
    for handle in both.handles().unwrap() {
        let Some(StoredHandle::Variant(list)) = handle.as_any().downcast_ref() else {
            panic!("{handle:?} is not as it was stored");
        };
        assert_eq!(list.type_name, "tensorflow::TensorList");
    }
}

#[test]
fn mistaken_requests_name_what_is_wrong() {
    let reader = open(&golden("ckpt_slices")).unwrap();
    let message =
        |spec: &str| reader.read_slice("numbers", &spec.parse().unwrap()).unwrap_err().to_string();
    assert_eq!(
        message("6 5 -:-"),
        "tensor `numbers`: slice `6 5 -:-` of a tensor of shape [6,4]: is of another shape"
    );
    assert_eq!(
        message("6 4 4,3:-"),
        "tensor `numbers`: slice `4,3:-` of a tensor of shape [6,4]: leaves the tensor"
    );
    let error = reader.read("nothing").unwrap_err().to_string();
    assert!(error.ends_with("the checkpoint has no tensor `nothing`"), "{error}");
    let error = Reader::open("no/such/checkpoint", &Limits::default()).unwrap_err();
    assert_eq!(error.code(), ferroflow_ir::Code::NotFound);
}

#[test]
fn a_tensor_beyond_the_limit_is_not_read() {
    let prefix = golden("ckpt_slices").path("prefix");
    let limits = Limits { tensor_bytes: 200, ..Limits::default() };
    let error = Reader::open(&prefix, &limits).unwrap_err();
    assert_eq!(error.code(), ferroflow_ir::Code::ResourceExhausted);
    let limits = Limits { tensor_bytes: 700, ..Limits::default() };
    let reader = Reader::open(&prefix, &limits).unwrap();
    assert!(reader.read("numbers").is_ok());
    let error = reader.read("strings").unwrap_err();
    assert_eq!(error.code(), ferroflow_ir::Code::ResourceExhausted);
}

#[test]
fn many_threads_read_one_checkpoint() {
    let reader = open(&golden("ckpt_dtypes")).unwrap();
    let names: Vec<&str> = reader.entries().map(|(name, _)| name).collect();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| names.iter().for_each(|name| drop(reader.read(name).unwrap())));
        }
    });
}

#[test]
fn variables_of_models_are_all_there() {
    for case in cases("") {
        let Some(expected) = case.json["inspect"]["checkpoint"].as_object() else { continue };
        let prefix = case.folder.join("model/variables/variables");
        let reader = Reader::open(prefix, &Limits::default())
            .unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        for (name, expected) in expected {
            let tensor = reader.read(name).unwrap();
            let dims: Vec<u64> = tensor.shape().iter().map(|&dim| dim as u64).collect();
            assert_eq!(expected["dtype"], tensor.dtype().name(), "{}: {name}", case.name());
            assert_eq!(expected["shape"], serde_json::json!(dims), "{}: {name}", case.name());
        }
        assert_eq!(reader.entries().len(), expected.len(), "{}", case.name());
    }
}
