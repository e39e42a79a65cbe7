//! Tables, files and other state that functions make and fill.

use ferroflow::{
    Checkpoint, Functions, HasFunctions, Tensor, Trackable, TrackableResource, Variable, function,
    ir::{DType, HostTensor},
    lookup::{MutableHashTable, StaticVocabularyTable, TableInitializer},
    ops,
    runtime::{Asset, Context, ContextOptions, EagerTensor, FileAccess},
    save,
    saved_model::{
        LoadOptions, Object, SaveOptions, load, load_session, proto, proto::saved_object::Kind,
        read_message,
    },
    spec,
    tracer::{self, with_context},
};
use std::{collections::BTreeMap, error::Error, path::Path};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn loaded(folder: &Path) -> Outcome<Object> {
    let model = load(&Context::new(), folder, &LoadOptions::default())?;
    Ok(model.root().ok_or("a model with objects")?)
}

fn eager(tensor: impl Into<Tensor>) -> EagerTensor {
    tensor.into().eager().expect("a tensor of eager code").clone()
}

fn call(root: &Object, path: &str, arg: impl Into<Tensor>) -> Outcome<HostTensor> {
    let value = root.get(path)?.function()?.call(&[eager(arg).into()], &BTreeMap::new())?;
    Ok(value.tensor().ok_or("a tensor")?.host()?.clone())
}

/// The mean of the rows of `embeddings` that belong to each text.
fn mean_of_rows(
    embeddings: &Variable,
    texts: &Tensor,
    table: &StaticVocabularyTable,
) -> tracer::Result<Tensor> {
    let [indices, words, _] = ops::string_split_v2(texts, &" ".into())?;
    let ids = table.lookup(&words)?;
    let rows = ops::gather_v2(&embeddings.read()?, &ids, &Tensor::from(0i32))?;
    let first = ops::slice(&indices, &vec![0i64, 0].into(), &vec![-1i64, 1].into())?;
    let segments = ops::reshape(&first, &vec![-1i64].into())?;
    ops::segment_mean(&rows, &segments)
}

#[derive(Trackable, HasFunctions)]
struct TextModel {
    table: StaticVocabularyTable,
    embeddings: Variable,
    functions: Functions,
}

impl TextModel {
    fn new(vocabulary: &Path, dim: usize) -> tracer::Result<TextModel> {
        let table = StaticVocabularyTable::new(TableInitializer::vocabulary(vocabulary), 1)?;
        let n_words = table.size()?.to_scalar::<i64>()?;
        let values: Vec<f32> = (0..n_words as usize * dim).map(|n| n as f32).collect();
        let shape = Tensor::from(vec![n_words, dim as i64]);
        let embeddings = Variable::new(ops::reshape(&Tensor::from(values), &shape)?)?;
        Ok(TextModel { table, embeddings, functions: Functions::default() })
    }

    #[function(input_signature = [spec(string, [None])])]
    fn embed(&self, sentences: &Tensor) -> tracer::Result<Tensor> {
        mean_of_rows(&self.embeddings, sentences, &self.table)
    }
}

/// A vocabulary in a folder of its own, and the model of it, saved beside.
fn text_model(folder: &Path) -> Outcome<TextModel> {
    let vocabulary = folder.join("words.txt");
    std::fs::write(&vocabulary, "hello\nworld\n")?;
    with_context(&with_files(), || {
        let model = TextModel::new(&vocabulary, 64)?;
        let concrete = model.embed_concrete([spec(DType::String, [None])])?;
        save(&model, folder.join("model"), &SaveOptions::default().signature(&concrete)?)?;
        Ok(model)
    })
}

/// Surroundings in which programs may read files that belong to no model.
fn with_files() -> Context {
    Context::with_options(ContextOptions { files: FileAccess::Any, ..ContextOptions::default() })
}

// spec: 236, 238, 239, 266, 310, 312, 313, b51
#[test]
fn a_text_model_takes_its_vocabulary_along() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = text_model(folder.path())?;
    let expected = model.embed(&Tensor::from(["hello world"]))?.to_vec::<f32>()?;
    // Neither the file nor the place of the model matter.
    std::fs::remove_file(folder.path().join("words.txt"))?;
    let moved = folder.path().join("moved");
    std::fs::rename(folder.path().join("model"), &moved)?;
    let root = loaded(&moved)?;
    let found = call(&root, "embed", ["hello world"])?;
    assert_eq!(found.shape().dims(), [1, 64]);
    assert_eq!(found.as_slice::<f32>()?, expected);
    assert_eq!(expected[0], 32.0);
    // Words that are not in the vocabulary have the bucket behind it.
    assert_eq!(call(&root, "embed", ["nobody"])?.as_slice::<f32>()?[0], 128.0);
    let table = root.get("table")?;
    assert!(matches!(table.kind(), Some(Kind::Resource(_))));
    assert!(table.child("lookup").is_none());
    assert_eq!(std::fs::read_dir(moved.join("assets"))?.count(), 1);
    Ok(())
}

// spec: 305, 308, 314, 319, 348, 351
#[test]
fn sessions_feed_the_path_of_the_file() -> Outcome {
    let folder = tempfile::tempdir()?;
    text_model(folder.path())?;
    let folder = folder.path().join("model");
    let model: proto::SavedModel = read_message(&folder.join("saved_model.pb"))?;
    let meta_graph = &model.meta_graphs[0];
    assert_eq!(meta_graph.asset_file_def.len(), 1);
    assert_eq!(meta_graph.asset_file_def[0].filename, "words.txt");
    let saver = meta_graph.saver_def.as_ref().ok_or("a saver")?;
    let graph = meta_graph.graph_def.as_ref().ok_or("a graph")?;
    let op =
        |name: &str| graph.node.iter().find(|node| node.name == name).map(|node| node.op.as_str());
    assert_eq!(op(&saver.restore_op_name), Some("StatefulPartitionedCall"));
    assert_eq!(op("saver_filename"), Some("Placeholder"));
    let session = load_session(&Context::new(), &folder, &LoadOptions::default())?;
    let inputs = BTreeMap::from([("sentences".to_string(), eager(["world"]))]);
    let y = session.call_signature("serving_default", &inputs)?;
    assert_eq!(y["output_0"].host()?.as_slice::<f32>()?[0], 64.0);
    Ok(())
}

// spec: 294, 295, 297, 303, 311, 315
#[test]
fn loaded_tables_and_files_are_saved_again() -> Outcome {
    let folder = tempfile::tempdir()?;
    text_model(folder.path())?;
    let (first, second) = (folder.path().join("model"), folder.path().join("again"));
    let root = loaded(&first)?;
    let path = root.get("table._initializer._filename")?.tensor()?;
    let inside = first.join("assets/words.txt");
    assert_eq!(path.strings()?[0], inside.to_string_lossy().as_bytes());
    save(&root, &second, &SaveOptions::default())?;
    drop(root);
    std::fs::remove_dir_all(&first)?;
    let root = loaded(&second)?;
    assert_eq!(call(&root, "embed", ["hello"])?.as_slice::<f32>()?[0], 0.0);
    let names = root.get("table")?.children();
    assert!(names.iter().any(|name| name == "_create_resource"), "{names:?}");
    // The path is no value of a checkpoint.
    let prefix = second.join("variables/variables");
    let reader = ferroflow::saved_model::bundle::Reader::open(prefix, &Default::default())?;
    let keys: Vec<&str> = reader.entries().map(|(key, _)| key).collect();
    assert_eq!(keys, ["_CHECKPOINTABLE_OBJECT_GRAPH", "embeddings/.ATTRIBUTES/VARIABLE_VALUE"]);
    Ok(())
}

// spec: 306, 307
#[test]
fn state_ends_with_its_object() -> Outcome {
    let table = MutableHashTable::new(DType::String, 0i64)?;
    table.insert(&["a"].into(), &vec![1i64].into())?;
    let f = {
        let handle = table.clone();
        let f = function(move |x: Tensor| handle.lookup(&x)).with_name("f");
        f(Tensor::from(["a"]))?;
        f
    };
    let concrete = f.concrete_functions().remove(0);
    assert_eq!(concrete.captures().len(), 1);
    assert_eq!(concrete.call(&[Tensor::from(["a"]).into()])?.tensor()?.to_vec::<i64>()?, [1]);
    drop((f, table));
    let error = concrete.call(&[Tensor::from(["a"]).into()]).unwrap_err();
    assert!(matches!(error, tracer::Error::Dropped { .. }), "{error}");
    Ok(())
}

#[test]
fn tables_that_change_are_in_checkpoints_and_models() -> Outcome {
    let folder = tempfile::tempdir()?;
    let table = MutableHashTable::new(DType::String, 0i64)?;
    table.insert(&["a", "b"].into(), &vec![1i64, 2].into())?;
    let checkpoint = Checkpoint::new().with("table", &table);
    let written = checkpoint.write(folder.path().join("ckpt"))?;
    table.remove(&["a"].into())?;
    table.insert(&["c"].into(), &vec![3i64].into())?;
    let f = function({
        let table = table.clone();
        move |x: Tensor| table.lookup(&x)
    });
    let f = f.with_parameters(["x"]).with_input_signature([spec(DType::String, [None])]);
    let root = Checkpoint::new().with("table", &table).with("f", &f);
    save(&root, folder.path().join("model"), &SaveOptions::default())?;
    let model = loaded(&folder.path().join("model"))?;
    assert_eq!(call(&model, "f", ["a", "b", "c"])?.as_slice::<i64>()?, [0, 2, 3]);
    let session =
        load_session(&Context::new(), folder.path().join("model"), &LoadOptions::default())?;
    let inputs = BTreeMap::from([("x".to_string(), eager(["c", "a"]))]);
    let y = session.call_signature("serving_default", &inputs)?;
    assert_eq!(y["output_0"].host()?.as_slice::<i64>()?, [3, 0]);
    checkpoint.read(&written)?.assert_consumed()?;
    assert_eq!(f(["a", "b", "c"].into())?.to_vec::<i64>()?, [1, 2, 0]);
    Ok(())
}

// spec: 309
#[test]
fn state_of_users_is_matched_with_what_functions_capture() -> Outcome {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("pairs.txt");
    std::fs::write(&file, "x\t5\ny\t6\n")?;
    let asset = Asset::new(&file);
    let path = asset.clone();
    let table = with_context(&with_files(), || {
        TrackableResource::new(
            || ops::hash_table_v2(DType::String, DType::I64),
            move |table| {
                let path = path.tensor().into();
                ops::initialize_table_from_text_file_v2(table, &path, 0, 1)
            },
        )
    })?;
    let table = table.with_child("pairs", asset);
    let f = function({
        let table = table.clone();
        move |x: Tensor| ops::lookup_table_find_v2(&table.handle(), &x, &Tensor::from(-1i64))
    });
    f(Tensor::from(["y"]))?;
    let untracked =
        save(&Checkpoint::new().with("f", &f), folder.path().join("no"), &SaveOptions::default());
    assert!(untracked.unwrap_err().to_string().contains("which the saved object does not lead to"));
    let root = Checkpoint::new().with("f", &f).with("table", &table);
    save(&root, folder.path().join("model"), &SaveOptions::default())?;
    std::fs::remove_file(&file)?;
    let found = call(&loaded(&folder.path().join("model"))?, "f", ["y"])?;
    assert_eq!(found.as_slice::<i64>()?, [6]);
    Ok(())
}

#[test]
fn a_file_that_a_model_lacks_is_named() -> Outcome {
    let folder = tempfile::tempdir()?;
    text_model(folder.path())?;
    let model = folder.path().join("model");
    // The file goes first, then its folder.
    for gone in [model.join("assets/words.txt"), model.join("assets")] {
        if gone.is_dir() {
            std::fs::remove_dir(&gone)?
        } else {
            std::fs::remove_file(&gone)?
        }
        let error = loaded(&model).unwrap_err().to_string();
        assert!(error.contains("assets/words.txt: No such file"), "{error}");
    }
    Ok(())
}
