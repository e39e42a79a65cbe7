//! Targets: kinds of files, and what is done with one.

use ferroflow::{
    ir::{
        Attrs, DType, FunctionLibrary, HostTensor, Limits, Shape, ValueType,
        pass::carve::OtherEffects, wire,
    },
    keras_file, npy,
    runtime::{CallOptions, CallableFunction, Context, ContextOptions, EagerTensor, execute},
    safetensors,
    saved_model::{
        LoadOptions, LoadedGraph, SavedModel, add_ops, bundle, events, graph::Request, load, proto,
        read_message, record_file::RecordReader, stablehlo::import_artifact,
    },
};
use prost::Message as _;
use std::{
    collections::BTreeMap,
    fs,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::{Duration, Instant},
};

/// The form of a file, by which it is mutated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FileFormat {
    Bytes,
    Message,
    Text,
}

/// The sources of the first files.
#[derive(Clone, Copy, Debug)]
pub(super) enum SeedSource {
    /// Files whose names end so.
    Files(&'static str),
    /// Graphs of saved models.
    Graphs,
    /// Saved models as text.
    Texts,
    /// Strings among the inputs and attributes of recorded calls of these ops.
    Calls(&'static [&'static str]),
    /// Models of SentencePiece in recorded sequences of calls.
    Tokenizers,
    /// Portable artifacts of StableHLO.
    Artifacts,
    /// Files of records, which hold events.
    Records,
    /// Arrays in an archive.
    Archives,
    /// Tensors in a safetensors file.
    Tensors,
    /// The files of decision forests, each as one message.
    Forests,
}

/// A kind of files.
pub(super) struct FileTarget {
    pub(super) name: &'static str,
    pub(super) format: FileFormat,
    pub(super) source: SeedSource,
    run: fn(&[u8], &Path),
}

const fn target(
    name: &'static str,
    format: FileFormat,
    source: SeedSource,
    run: fn(&[u8], &Path),
) -> FileTarget {
    FileTarget { name, format, source, run }
}

pub(super) const TARGETS: &[FileTarget] = &[
    target("models", FileFormat::Message, SeedSource::Files("saved_model.pb"), model),
    target("graphs", FileFormat::Message, SeedSource::Graphs, graph),
    target("text", FileFormat::Text, SeedSource::Texts, text),
    target("index", FileFormat::Bytes, SeedSource::Files(".index"), index),
    target("data", FileFormat::Bytes, SeedSource::Files(".data-00000-of-00001"), data),
    target("events", FileFormat::Bytes, SeedSource::Records, event_file),
    target("records", FileFormat::Bytes, SeedSource::Records, records),
    target("npy", FileFormat::Bytes, SeedSource::Files(".npy"), array),
    target("npz", FileFormat::Bytes, SeedSource::Archives, archive),
    target("hdf5", FileFormat::Bytes, SeedSource::Files(".h5"), keras_file),
    target("keras", FileFormat::Bytes, SeedSource::Files(".keras"), keras_file),
    target("safetensors", FileFormat::Bytes, SeedSource::Tensors, tensors),
    target("images", FileFormat::Bytes, SeedSource::Calls(IMAGES), image),
    target("sounds", FileFormat::Bytes, SeedSource::Calls(&["DecodeWav"]), sound),
    target("artifacts", FileFormat::Bytes, SeedSource::Artifacts, artifact),
    target("tokenizers", FileFormat::Message, SeedSource::Tokenizers, tokenizer),
    target("forests", FileFormat::Message, SeedSource::Forests, forest),
];

const IMAGES: &[&str] =
    &["DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng", "DecodeWebP"];

/// Does with a file what its kind is for. What comes of it is of no interest, unless it panics.
pub(super) fn run(target: &FileTarget, bytes: &[u8], scratch: &Path) {
    let _ = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes, scratch)));
}

fn context() -> Context {
    let context = Context::with_options(ContextOptions {
        threads: NonZeroUsize::new(1),
        limits: limits(),
        ..ContextOptions::default()
    });
    context.set_printer(|_| {});
    add_ops(&context);
    context
}

/// No file of a few kilobytes has a reason to ask for more.
fn limits() -> Limits {
    Limits { tensor_bytes: 1 << 28, memory_bytes: 1 << 30, nodes: 1 << 16, ..Limits::default() }
}

fn options() -> CallOptions {
    let deadline = Some(Instant::now() + Duration::from_millis(300));
    CallOptions { deadline, printed_bytes: Some(1 << 16), ..CallOptions::default() }
}

/// A tensor that an input takes.
fn some(ty: &ValueType) -> Option<EagerTensor> {
    let dims = ty.shape.dims().unwrap_or_default().iter().map(|dim| dim.unwrap_or(1).min(64));
    let shape = Shape::new(dims).ok().filter(|shape| shape.num_elements() < 1 << 16)?;
    HostTensor::zeros(ty.dtype, shape).ok().map(EagerTensor::from)
}

fn model(bytes: &[u8], scratch: &Path) {
    let _ = fs::write(scratch.join("saved_model.pb"), bytes);
    let context = context();
    let loaded = context.within(&options(), || load(&context, scratch, &LoadOptions::default()));
    let Ok(model) = loaded else { return };
    for key in model.signatures().iter().take(4) {
        let _ = context.within(&options(), || signature(&model, key));
    }
}

fn signature(model: &SavedModel, key: &str) -> ferroflow::saved_model::Result<()> {
    let inputs = model.signature_inputs(key)?;
    let some = |(name, spec): (String, ferroflow::ir::TensorSpec)| {
        Some((name, some(&ValueType::new(spec.dtype, spec.shape))?))
    };
    let present: BTreeMap<String, EagerTensor> = inputs.into_iter().filter_map(some).collect();
    model.call_signature(key, &present).map(drop)
}

fn graph(bytes: &[u8], _: &Path) {
    let Ok(graph) = proto::GraphDef::decode(bytes) else { return };
    let names: Vec<String> = graph.node.iter().rev().map(|node| node.name.clone()).collect();
    let context = context();
    let Ok(graph) = LoadedGraph::new(graph, context.registry(), context.limits()) else { return };
    for name in names.iter().take(3) {
        let request = Request::new(&[], &[&format!("{name}:0")], &[]);
        let Ok(def) = graph.part("mutant", &request, OtherEffects::Drop) else { continue };
        let resources = context.resources().clone();
        let library = graph.library().clone();
        let function =
            CallableFunction::with_captures(&context, def.into(), library, resources, Vec::new());
        let args: Option<Vec<EagerTensor>> =
            (0..function.n_args()).map(|index| some(function.def().arg_type(index))).collect();
        if let Some(args) = args {
            let args: Vec<&EagerTensor> = args.iter().collect();
            let _ = function.call_within(&options(), &args);
        }
    }
}

fn text(bytes: &[u8], scratch: &Path) {
    let path = scratch.join("saved_model.pbtxt");
    let _ = fs::write(&path, bytes);
    let _ = read_message::<proto::SavedModel>(&path);
}

/// Reads all of a checkpoint.
fn read_all(prefix: &Path) {
    let Ok(reader) = bundle::Reader::open(prefix, &limits()) else { return };
    for (key, _) in reader.entries().take(64) {
        let _ = reader.read(key);
    }
}

fn index(bytes: &[u8], scratch: &Path) {
    let _ = fs::write(scratch.join("m.index"), bytes);
    let _ = fs::write(scratch.join("m.data-00000-of-00001"), [0; 4096]);
    read_all(&scratch.join("m"));
}

/// The bytes are those of a table, so that its blocks and their checksums are looked at, too.
fn data(bytes: &[u8], scratch: &Path) {
    let prefix = scratch.join("d");
    if !scratch.join("d.index").exists() {
        let mut writer = bundle::Writer::create(&prefix).expect("the scratch folder is writable");
        let texts = vec![bytes::Bytes::from_static(b"ab"); 3];
        let shape = Shape::new([3]).expect("a small shape");
        let texts = HostTensor::from_strings(shape, texts).expect("three strings");
        writer.add("texts", &texts).expect("a new key");
        writer.finish().expect("the scratch folder is writable");
    }
    let _ = fs::write(scratch.join("d.data-00000-of-00001"), bytes);
    read_all(&prefix);
}

fn event_file(bytes: &[u8], scratch: &Path) {
    let path = scratch.join("events");
    let _ = fs::write(&path, bytes);
    if let Ok(events) = events::read(&path, &limits()) {
        let _ = events.take(1000).take_while(Result::is_ok).count();
    }
}

fn records(bytes: &[u8], scratch: &Path) {
    let path = scratch.join("records");
    let _ = fs::write(&path, bytes);
    if let Ok(records) = RecordReader::open(&path, &limits()) {
        let _ = records.take(1000).take_while(Result::is_ok).count();
    }
}

fn array(bytes: &[u8], scratch: &Path) {
    let path = scratch.join("x.npy");
    let _ = fs::write(&path, bytes);
    let _ = npy::read(&path);
}

fn archive(bytes: &[u8], scratch: &Path) {
    let path = scratch.join("x.npz");
    let _ = fs::write(&path, bytes);
    let _ = npy::read_npz(&path, None);
    let _ = npy::read_npz(&path, Some("x"));
}

fn keras_file(bytes: &[u8], scratch: &Path) {
    let path = scratch.join("x.keras");
    let _ = fs::write(&path, bytes);
    let _ = keras_file::read_with(&path, &limits());
}

fn tensors(bytes: &[u8], scratch: &Path) {
    let path = scratch.join("x.safetensors");
    let _ = fs::write(&path, bytes);
    let _ = safetensors::read(&path);
}

/// Calls an op with a string.
fn call(op: &str, attrs: Attrs, bytes: &[u8]) {
    let context = context();
    let input = EagerTensor::from(HostTensor::scalar_string(bytes.to_vec()));
    let _ = context.within(&options(), || execute(&context, op, attrs, &[input]));
}

fn image(bytes: &[u8], _: &Path) {
    let op = IMAGES[bytes.len() % IMAGES.len()];
    call(op, Attrs::new(), bytes);
    call("DecodeImage", Attrs::new().with("expand_animations", true), bytes);
}

fn sound(bytes: &[u8], _: &Path) {
    call("DecodeWav", Attrs::new(), bytes);
}

fn artifact(bytes: &[u8], _: &Path) {
    let library = FunctionLibrary::new();
    let Ok(def) = import_artifact(bytes, &["CPU"], &library) else { return };
    let context = context();
    let (library, resources) = (library.into(), context.resources().clone());
    let function = CallableFunction::with_captures(&context, def, library, resources, Vec::new());
    let args: Option<Vec<EagerTensor>> =
        (0..function.n_args()).map(|index| some(function.def().arg_type(index))).collect();
    if let Some(args) = args {
        let args: Vec<&EagerTensor> = args.iter().collect();
        let _ = function.call_within(&options(), &args);
    }
}

fn tokenizer(bytes: &[u8], _: &Path) {
    let context = context();
    let model = ferroflow::ir::AttrValue::String(bytes.to_vec().into());
    let _ = context.within(&options(), || -> ferroflow::runtime::Result<()> {
        let made = execute(&context, "SentencepieceOp", Attrs::new().with("model", model), &[])?;
        let texts = HostTensor::scalar_string("the quick brown fox 東京");
        let mut inputs = vec![made[0].clone(), texts.into()];
        inputs.push(EagerTensor::scalar(0i32));
        inputs.push(EagerTensor::scalar(0f32));
        let off = HostTensor::scalar_bool(false);
        inputs.extend((0..3).map(|_| EagerTensor::from(off.clone())));
        let attrs = Attrs::new().with("out_type", DType::I32);
        execute(&context, "SentencepieceTokenizeOp", attrs, &inputs).map(drop)
    });
}

/// Names of the files of a forest; each is a field of the message that is mutated.
pub(super) const FOREST_FILES: [&str; 4] =
    ["header.pb", "data_spec.pb", "gradient_boosted_trees_header.pb", "nodes-00000-of-00001"];

/// Loads a forest from the fields of a message, of which those of number 4 are its nodes, and asks it
/// for predictions.
fn forest(bytes: &[u8], scratch: &Path) {
    let mut files = [const { Vec::new() }; 4];
    files[3].extend_from_slice(b"BS\x01\0\0\0\0\0");
    for field in wire::fields(bytes) {
        let Ok((number @ 1..=4, value)) = field else { return };
        let Ok(value) = value.bytes() else { return };
        if number == 4 {
            files[3].extend_from_slice(&(value.len() as u32).to_le_bytes());
        }
        files[number as usize - 1].extend_from_slice(value);
    }
    for (name, contents) in FOREST_FILES.iter().zip(&files) {
        let _ = fs::write(scratch.join(name), contents);
    }
    for kind in ["random_forest_header.pb", "isolation_forest_header.pb"] {
        let _ = fs::write(scratch.join(kind), &files[2]);
    }
    let context = context();
    let _ = context.within(&options(), || predict(&context, &files, scratch));
}

fn predict(
    context: &Context,
    files: &[Vec<u8>; 4],
    folder: &Path,
) -> ferroflow::runtime::Result<()> {
    let path = HostTensor::scalar_string(folder.to_string_lossy().into_owned());
    let identifier = || Attrs::new().with("model_identifier", "mutant");
    execute(context, "SimpleMLLoadModelFromPath", identifier(), &[path.into()])?;
    let header = proto::yggdrasil::ForestHeader::decode(&files[0][..]).unwrap_or_default();
    let spec = proto::yggdrasil::DataSpecification::decode(&files[1][..]).unwrap_or_default();
    let n_of = |kinds: &[i32]| {
        let types = header.input_features.iter().filter_map(|&index| {
            usize::try_from(index).ok().and_then(|index| spec.columns.get(index)?.r#type)
        });
        types.filter(|kind| kinds.contains(kind)).count()
    };
    const ROWS: usize = 3;
    let matrix = |dtype, width| HostTensor::zeros(dtype, Shape::new([ROWS, width])?);
    let n_sets = n_of(&[5]);
    let ends =
        |n: usize, step: usize| -> Vec<i64> { (0..=n).map(|at| (at * step) as i64).collect() };
    let vector = |ends: &[i64]| HostTensor::from_slice(Shape::new([ends.len()])?, ends);
    let inputs: [EagerTensor; 6] = [
        matrix(DType::F32, n_of(&[1, 9]))?.into(),
        matrix(DType::F32, n_of(&[7]))?.into(),
        matrix(DType::I32, n_of(&[4]))?.into(),
        HostTensor::zeros(DType::I32, Shape::new([ROWS * n_sets])?)?.into(),
        vector(&ends(ROWS * n_sets, 1))?.into(),
        vector(&ends(ROWS, n_sets))?.into(),
    ];
    for width in 1..5i64 {
        let attrs = identifier().with("dense_output_dim", width);
        if execute(context, "SimpleMLInferenceOp", attrs, &inputs).is_ok() {
            break;
        }
    }
    Ok(())
}
