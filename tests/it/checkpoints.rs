//! Checkpoints: values of objects, by the names that lead to them.

use ferroflow::{
    Checkpoint, CheckpointManager, Functions, HasFunctions, ManagerOptions, Tensor, Trackable,
    Variable, function,
    ir::{HostTensor, Limits},
    latest_checkpoint,
    runtime::{
        self,
        trackable::{Description, Identity, ObjectKind},
    },
    saved_model::{
        self, CheckpointState,
        bundle::Reader,
        checkpoint::{SaveInterval, Snapshot, WriteOptions},
        proto::{TrackableObjectGraph, trackable_object_graph::trackable_object::ObjectReference},
        restore::{OBJECT_GRAPH_KEY, object_graph},
    },
    tracer,
};
use std::{
    collections::BTreeMap,
    error::Error,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

type Outcome = Result<(), Box<dyn Error>>;

fn scalar(variable: &Variable) -> Result<f32, tracer::Error> {
    variable.read()?.to_scalar()
}

fn keys(prefix: &Path) -> Vec<String> {
    let reader = Reader::open(prefix, &Limits::default()).unwrap();
    reader.entries().map(|(key, _)| key.to_string()).collect()
}

fn value_key(path: &str) -> String {
    format!("{path}/.ATTRIBUTES/VARIABLE_VALUE")
}

// spec: 225
#[test]
fn a_variable_gets_the_value_back_that_was_saved() -> Outcome {
    let folder = tempfile::tempdir()?;
    let w = Variable::new(0.0f32)?;
    let train = function({
        let w = w.clone();
        move || w.assign_add(1.0f32)
    });
    let checkpoint = Checkpoint::new().with("W", &w);
    train.call(())?;
    let saved = checkpoint.save(folder.path().join("model"))?;
    train.call(())?;
    assert_eq!(scalar(&w)?, 2.0);
    checkpoint.restore(&saved)?.assert_consumed()?;
    assert_eq!(scalar(&w)?, 1.0);
    Ok(())
}

// spec: 228
#[test]
fn saving_counts_and_writing_does_not() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(1.0f32)?;
    let checkpoint = Checkpoint::new().with("v", &v);
    let written = checkpoint.write(folder.path().join("plain"))?;
    assert_eq!(keys(&written), [OBJECT_GRAPH_KEY, &value_key("v")]);
    assert_eq!(latest_checkpoint(folder.path())?, None);
    let prefix = folder.path().join("ckpt");
    assert!(checkpoint.save(&prefix)?.ends_with("ckpt-1"));
    let second = checkpoint.save(&prefix)?;
    assert!(second.ends_with("ckpt-2"));
    assert_eq!(keys(&second), [OBJECT_GRAPH_KEY, &value_key("save_counter"), &value_key("v")]);
    assert_eq!(latest_checkpoint(folder.path())?, Some(second.clone()));
    let again = Checkpoint::new().with("v", &v);
    again.restore(&second)?.assert_consumed()?;
    assert!(again.save(&prefix)?.ends_with("ckpt-3"));
    // The checkpoint is an object like any other.
    let outer = Checkpoint::new().with("inner", &again);
    let keys = keys(&outer.write(folder.path().join("outer"))?);
    assert!(keys.contains(&value_key("inner/save_counter")), "{keys:?}");
    Ok(())
}

#[derive(Trackable, HasFunctions)]
struct Dense {
    w: Variable,
    #[trackable(name = "bias")]
    b: Option<Variable>,
    n_units: usize,
    #[trackable(skip)]
    cache: Vec<Variable>,
    functions: Functions,
}

#[derive(Trackable)]
struct Network {
    layers: Vec<Arc<Dense>>,
    last: Arc<Dense>,
}

impl Dense {
    fn new(value: f32) -> tracer::Result<Arc<Dense>> {
        let (w, b) = (Variable::new([value, value])?, Some(Variable::new(value)?));
        let cache = vec![Variable::new(7.0f32)?];
        Ok(Arc::new(Dense { w, b, n_units: 2, cache, functions: Functions::default() }))
    }

    #[function]
    fn apply(&self, x: &Tensor) -> tracer::Result<Tensor> {
        (x * &self.w)? * self.n_units as i64
    }
}

fn network(value: f32) -> tracer::Result<Network> {
    let (first, last) = (Dense::new(value)?, Dense::new(value)?);
    Ok(Network { layers: vec![first, last.clone()], last })
}

// spec: 224, 229
#[test]
fn values_belong_to_names_in_the_structure_that_code_builds() -> Outcome {
    let folder = tempfile::tempdir()?;
    let model = network(1.5)?;
    model.last.apply(&Tensor::from(1.0f32))?;
    assert_eq!(model.last.cache.len(), 1);
    let written = Checkpoint::of(&model).write(folder.path().join("m"))?;
    let edges = ["last/bias", "last/w", "layers/0/bias", "layers/0/w"].map(value_key);
    // An object that is reached in two ways is stored once, by the shorter one.
    assert_eq!(keys(&written)[1..], edges);
    // Who restores has built the same structure; the checkpoint itself has values and names only.
    let other = network(0.0)?;
    Checkpoint::of(&other).read(&written)?.assert_consumed()?;
    assert_eq!(other.layers[1].w.read()?.to_vec::<f32>()?, [1.5, 1.5]);
    assert_eq!(scalar(other.layers[0].b.as_ref().expect("a bias"))?, 1.5);
    let graph: TrackableObjectGraph = object_graph(&Reader::open(&written, &Limits::default())?)?;
    let names: Vec<&str> =
        graph.nodes[0].children.iter().map(|child| child.local_name.as_str()).collect();
    assert_eq!(names, ["layers", "last"]);
    Ok(())
}

// spec: b58
#[test]
fn values_wait_for_objects_that_come_later() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (a, b) = (Variable::new(1.0f32)?, Variable::new(2.0f32)?);
    let written = Checkpoint::new().with("a", &a).with("b", &b).write(folder.path().join("m"))?;
    let (a, b) = (Variable::new(0.0f32)?, Variable::new(0.0f32)?);
    let checkpoint = Checkpoint::new().with("a", &a);
    let status = checkpoint.read(&written)?.assert_existing_objects_matched()?;
    assert_eq!(scalar(&a)?, 1.0);
    assert_eq!(status.unused(), [value_key("b")]);
    let error = status.assert_consumed().unwrap_err();
    assert!(
        matches!(&error, saved_model::Error::NotConsumed { keys, .. } if *keys == [value_key("b")])
    );
    // What has changed since is not restored once more.
    a.assign(5.0f32)?;
    checkpoint.attach("b", &b)?;
    assert_eq!((scalar(&a)?, scalar(&b)?), (5.0, 2.0));
    Ok(())
}

#[derive(Default, Trackable, HasFunctions)]
struct Counter {
    total: OnceLock<Variable>,
    functions: Functions,
}

impl Counter {
    #[function]
    fn add(&self, amount: &Tensor) -> tracer::Result<Tensor> {
        let total = match self.total.get() {
            Some(total) => total,
            None => {
                let total = Variable::new(0.0f32)?;
                self.total.get_or_init(|| total)
            }
        };
        total.assign_add(amount)?;
        total.read()
    }
}

#[test]
fn variables_that_a_first_call_makes_take_over_their_values() -> Outcome {
    let folder = tempfile::tempdir()?;
    let counter = Counter::default();
    counter.add(&Tensor::from(3.0f32))?;
    let written = Checkpoint::of(&counter).write(folder.path().join("m"))?;
    let counter = Counter::default();
    let checkpoint = Checkpoint::of(&counter);
    checkpoint.read(&written)?.expect_partial();
    counter.add_concrete([ferroflow::spec(ferroflow::ir::DType::F32, [])])?;
    checkpoint.resume()?;
    assert_eq!(counter.add(&Tensor::from(1.0f32))?.to_scalar::<f32>()?, 4.0);
    Ok(())
}

#[test]
fn variables_without_a_value_are_named() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (a, b) = (Variable::named("a", 1.0f32)?, Variable::named("extra", 2.0f32)?);
    let written = Checkpoint::new().with("a", &a).write(folder.path().join("m"))?;
    let both = Checkpoint::new().with("a", &a).with("b", &b);
    let error = both.read(&written)?.assert_existing_objects_matched().unwrap_err();
    assert!(matches!(&error, saved_model::Error::NotRestored { names, .. } if names == &["extra"]));
    Ok(())
}

// spec: b59
#[test]
fn values_of_another_shape_are_refused_and_nothing_changes() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (v, w) = (Variable::new([1.0f32, 2.0])?, Variable::new(3.0f32)?);
    let written = Checkpoint::new().with("v", &v).with("a", &w).write(folder.path().join("m"))?;
    let (v, w) = (Variable::named("v", [0.0f32])?, Variable::new(0.0f32)?);
    let error = Checkpoint::new().with("v", &v).with("a", &w).read(&written).unwrap_err();
    let expected = "tensor `v/.ATTRIBUTES/VARIABLE_VALUE`: variable `v` holds float32[1], it cannot \
                    take a value of float32[2]";
    assert_eq!(error.to_string(), expected);
    assert_eq!((v.read()?.to_vec::<f32>()?, scalar(&w)?), (vec![0.0], 0.0));
    Ok(())
}

// spec: b60
#[test]
fn a_manager_removes_the_oldest() -> Outcome {
    let folder = tempfile::tempdir()?;
    let step = Variable::new(0i64)?;
    let options = ManagerOptions { max_to_keep: 3.try_into().ok(), ..Default::default() };
    let checkpoint = || Checkpoint::new().with("step", &step);
    let mut manager = CheckpointManager::new(checkpoint(), folder.path(), options.clone())?;
    assert!(manager.restore_or_initialize(|| Ok(()))?.is_none());
    for number in 1..=4i64 {
        step.assign(number)?;
        manager.save()?;
    }
    let path = |number: usize| folder.path().join(format!("ckpt-{number}"));
    assert_eq!(manager.checkpoints(), [path(2), path(3), path(4)]);
    let exists = |number| saved_model::bundle::files_of(&path(number)).map(|files| files.len());
    assert_eq!([exists(1)?, exists(2)?, exists(3)?, exists(4)?], [0, 2, 2, 2]);
    // Another process goes on where this one stopped.
    step.assign(0i64)?;
    let mut manager = CheckpointManager::new(checkpoint(), folder.path(), options)?;
    let status = manager.restore_or_initialize(|| unreachable!("there is a checkpoint"))?;
    status.expect("the newest").assert_consumed()?;
    assert_eq!(step.read()?.to_scalar::<i64>()?, 4);
    assert_eq!(manager.save()?, path(5));
    let state = CheckpointState::read(folder.path())?;
    assert_eq!(state.all_model_checkpoint_paths, [path(3), path(4), path(5)]);
    assert_eq!(latest_checkpoint(folder.path())?, Some(path(5)));
    Ok(())
}

#[test]
fn a_manager_leaves_alone_what_a_plain_save_left() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(1.0f32)?;
    let checkpoint = || Checkpoint::new().with("v", &v);
    let plain = checkpoint();
    let left = [plain.save(folder.path().join("x"))?, plain.save(folder.path().join("x"))?];
    let options = || ManagerOptions { max_to_keep: 1.try_into().ok(), ..Default::default() };
    let mut manager = CheckpointManager::new(checkpoint(), folder.path(), options())?;
    assert!(manager.checkpoints().is_empty());
    // It is the newest all the same.
    assert_eq!(manager.latest(), Some(&*left[1]));
    v.assign(5.0f32)?;
    manager.restore_or_initialize(|| unreachable!("there is a checkpoint"))?;
    assert_eq!(scalar(&v)?, 1.0);
    let saved = [manager.save()?, manager.save()?];
    assert_eq!(manager.checkpoints(), [&*saved[1]]);
    let n_files = |prefix: &Path| saved_model::bundle::files_of(prefix).map(|files| files.len());
    assert_eq!([n_files(&left[0])?, n_files(&left[1])?], [2, 2]);
    assert_eq!([n_files(&saved[0])?, n_files(&saved[1])?], [0, 2]);
    // Another manager goes on with what a manager left.
    let manager = CheckpointManager::new(checkpoint(), folder.path(), options())?;
    assert_eq!(manager.checkpoints(), [&*saved[1]]);
    Ok(())
}

#[test]
fn what_is_kept_for_good_is_taken_over_by_no_manager() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(1.0f32)?;
    let state = CheckpointState {
        model_checkpoint_path: folder.path().join("ckpt-3"),
        all_model_checkpoint_paths: (1..=3)
            .map(|n| folder.path().join(format!("ckpt-{n}")))
            .collect(),
        all_model_checkpoint_timestamps: vec![100.0, 200.0, 300.0],
        last_preserved_timestamp: 200.0,
    };
    state.write(folder.path())?;
    let checkpoint = Checkpoint::new().with("v", &v);
    let manager = CheckpointManager::new(checkpoint, folder.path(), ManagerOptions::default())?;
    assert_eq!(manager.checkpoints(), [folder.path().join("ckpt-3")]);
    Ok(())
}

#[test]
fn a_manager_saves_every_so_many_steps() -> Outcome {
    let folder = tempfile::tempdir()?;
    let step = Variable::new(0i64)?;
    let counter = step.owned().expect("a variable of eager code").clone();
    let options = || {
        let interval = Some(SaveInterval::new(&counter, 2));
        ManagerOptions { interval, ..Default::default() }
    };
    let checkpoint = || Checkpoint::new().with("step", &step);
    let mut manager = CheckpointManager::new(checkpoint(), folder.path(), options())?;
    let mut saved = Vec::new();
    for number in 0..5i64 {
        step.assign(number)?;
        saved.push(manager.save_if_due()?.is_some());
    }
    assert_eq!(saved, [true, false, true, false, true]);
    step.assign(5i64)?;
    assert!(manager.save_if_due()?.is_none());
    assert!(manager.save()?.ends_with("ckpt-4"));
    // The step that is restored counts as saved.
    let mut manager = CheckpointManager::new(checkpoint(), folder.path(), options())?;
    manager.restore_or_initialize(|| Ok(()))?;
    assert!(manager.save_if_due()?.is_none());
    step.assign(7i64)?;
    assert!(manager.save_if_due()?.is_some());
    Ok(())
}

#[test]
fn some_checkpoints_are_kept_for_good() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(1.0f32)?;
    let keep_every = Some(Duration::ZERO);
    let options =
        ManagerOptions { max_to_keep: 1.try_into().ok(), keep_every, ..Default::default() };
    let checkpoint = Checkpoint::new().with("v", &v);
    let mut manager = CheckpointManager::new(checkpoint, folder.path(), options)?;
    (0..3).try_for_each(|_| manager.save().map(drop))?;
    assert_eq!(manager.checkpoints().len(), 1);
    let first = folder.path().join("ckpt-1");
    assert_eq!(saved_model::bundle::files_of(&first)?.len(), 2);
    Ok(())
}

#[test]
fn values_are_spread_over_files() -> Outcome {
    let folder = tempfile::tempdir()?;
    let variables: Vec<Variable> =
        (0..10).map(|n| Variable::new(vec![n as f32; 100])).collect::<Result<_, _>>()?;
    let checkpoint = Checkpoint::of(&variables);
    let options = WriteOptions { shards: 3.try_into()?, ..WriteOptions::default() };
    let written = checkpoint.write_with(folder.path().join("sub/m"), &options)?;
    let files = saved_model::bundle::files_of(&written)?;
    let names: Vec<String> = files
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let data = |n: usize| format!("m.data-0000{n}-of-00003");
    assert_eq!(names, ["m.index".to_string(), data(0), data(1), data(2)]);
    assert_eq!(std::fs::read_dir(folder.path().join("sub"))?.count(), 4);
    variables.iter().try_for_each(|v| v.assign(Tensor::from(vec![0.0f32; 100])))?;
    checkpoint.read(&written)?.assert_consumed()?;
    assert_eq!(variables[9].read()?.to_vec::<f32>()?, [9.0; 100]);
    Ok(())
}

#[test]
fn training_goes_on_while_values_are_written() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(vec![1.0f32; 1000])?;
    let checkpoint = Checkpoint::new().with("v", &v);
    let writing = checkpoint.save_in_background(folder.path().join("m"))?;
    v.assign(Tensor::from(vec![2.0f32; 1000]))?;
    let saved = writing.join().expect("the writer ends")?;
    assert_eq!(latest_checkpoint(folder.path())?.as_ref(), Some(&saved));
    checkpoint.restore(&saved)?.assert_consumed()?;
    assert_eq!(v.read()?.to_vec::<f32>()?, [1.0; 1000]);
    Ok(())
}

/// An optimizer that keeps one more variable for each that it trains.
struct Momentum {
    rate: Variable,
    slots: Vec<(Variable, Variable)>,
}

impl Trackable for Momentum {
    fn describe(&self, object: &mut Description<'_>) {
        object.child("learning_rate", &self.rate);
        for (variable, slot) in &self.slots {
            object.slot("momentum", variable.owned().expect("eager"), slot.owned().expect("eager"));
        }
    }
}

// spec: 331
#[test]
fn slot_variables_go_with_the_variables_they_belong_to() -> Outcome {
    let folder = tempfile::tempdir()?;
    let build = |value: f32| -> Result<_, tracer::Error> {
        let variables = [Variable::new(value)?, Variable::new(value + 1.0)?];
        let slots = variables.clone().map(|v| (v, Variable::new(value + 2.0)));
        let slots = slots.into_iter().map(|(v, slot)| Ok((v, slot?)));
        let slots = slots.collect::<Result<_, tracer::Error>>()?;
        Ok((variables, Momentum { rate: Variable::new(value)?, slots }))
    };
    let (variables, optimizer) = build(1.0)?;
    let checkpoint = Checkpoint::new().with("model", &variables).with("opt", &optimizer);
    let written = checkpoint.write(folder.path().join("m"))?;
    let slot = "model/1/.OPTIMIZER_SLOT/opt/momentum/.ATTRIBUTES/VARIABLE_VALUE";
    assert!(keys(&written).iter().any(|key| key == slot));
    let ([a, b], optimizer) = build(0.0)?;
    // The variables have other places in the optimizer now; what counts is to whom a slot belongs.
    let Momentum { rate, mut slots } = optimizer;
    slots.reverse();
    let optimizer = Momentum { rate, slots };
    let checkpoint = Checkpoint::new().with("model", [&a, &b]).with("opt", &optimizer);
    checkpoint.read(&written)?.assert_consumed()?;
    let found = [&a, &b, &optimizer.slots[0].1, &optimizer.slots[1].1, &optimizer.rate].map(scalar);
    let found = found.into_iter().collect::<Result<Vec<f32>, _>>()?;
    assert_eq!(found, [1.0, 2.0, 3.0, 3.0, 1.0]);
    Ok(())
}

#[test]
fn checkpoints_of_tensorflow_1_are_restored_by_name() -> Outcome {
    let folder = tempfile::tempdir()?;
    let prefix = folder.path().join("model.ckpt");
    let mut writer = saved_model::bundle::Writer::create(&prefix)?;
    writer.add("dense/kernel", &HostTensor::scalar(4.0f32))?;
    writer.finish()?;
    let v = Variable::named("dense/kernel", 0.0f32)?;
    Checkpoint::new().with("anything", &v).read(&prefix)?.assert_consumed()?;
    assert_eq!(scalar(&v)?, 4.0);
    Ok(())
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_old_one() -> Outcome {
    let folder = tempfile::tempdir()?;
    let v = Variable::new(1.0f32)?;
    let checkpoint = Checkpoint::new().with("v", &v);
    let saved = checkpoint.save(folder.path().join("m"))?;
    let file = folder.path().join("file");
    std::fs::write(&file, "")?;
    let error = checkpoint.save(file.join("m")).unwrap_err();
    assert!(matches!(error, saved_model::Error::Io { .. }), "{error}");
    assert_eq!(latest_checkpoint(folder.path())?.as_ref(), Some(&saved));
    // Half a checkpoint has no name yet.
    let snapshot: Snapshot = checkpoint.snapshot()?;
    assert_eq!(snapshot.n_bytes(), 12);
    Ok(())
}

/// Objects of any structure.
enum Tree {
    Leaf(Variable),
    Node(BTreeMap<String, Tree>),
}

impl Trackable for Tree {
    fn describe(&self, object: &mut Description<'_>) {
        match self {
            Tree::Leaf(variable) => variable.describe(object),
            Tree::Node(children) => children.iter().for_each(|(name, child)| {
                object.child(name, child);
            }),
        }
    }

    fn identity(&self) -> Option<Identity> {
        match self {
            Tree::Leaf(variable) => variable.identity(),
            Tree::Node(_) => None,
        }
    }
}

/// The objects that a checkpoint was made of, without their values.
fn tree(reader: &Reader, graph: &TrackableObjectGraph, id: usize) -> Tree {
    let node = &graph.nodes[id];
    if let Some(attribute) = node.attributes.first() {
        let entry = reader.entry(&attribute.checkpoint_key).expect("the value of a variable");
        let variable = runtime::ResourceVariable::uninitialized(
            &*attribute.full_name,
            entry.dtype,
            (&entry.shape).into(),
            true,
        );
        return Tree::Leaf(variable.into());
    }
    let child = |child: &ObjectReference| {
        (child.local_name.clone(), tree(reader, graph, child.node_id as usize))
    };
    Tree::Node(node.children.iter().map(child).collect())
}

#[test]
fn checkpoints_of_tensorflow_are_restored() -> Outcome {
    let prefix = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo/ckpt_objects/model/ckpt-1");
    let reader = Reader::open(&prefix, &Limits::default())?;
    let stored = object_graph(&reader)?;
    let objects = tree(&reader, &stored, 0);
    Checkpoint::of(&objects).read(&prefix)?.assert_consumed()?;
    let graph = runtime::ObjectGraph::of(&objects)?;
    let mut n_compared = 0;
    for (path, node) in graph.paths().into_iter().zip(&graph.nodes) {
        if let ObjectKind::Variable(variable) = &node.kind {
            let key = value_key(&path.ok_or("a path")?.join("/"));
            assert_eq!(variable.read()?, reader.read(&key)?, "{key}");
            n_compared += 1;
        }
    }
    assert_eq!(n_compared, 19);
    Ok(())
}

#[test]
fn a_writer_that_is_killed_leaves_whole_checkpoints() -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut number = 0;
    for round in 0..400u64 {
        if number >= N_SAVES {
            break;
        }
        let mut writer = Command::new(std::env::current_exe()?)
            .args(["--exact", "checkpoints::writes_until_it_is_killed"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let before = latest_checkpoint(folder.path())?;
        let began = Instant::now();
        while latest_checkpoint(folder.path())? == before {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing is written");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(round * 7919 % 150_000));
        writer.kill()?;
        writer.wait()?;
        let v = Variable::new(vec![0.0f32; N_ELEMENTS])?;
        let checkpoint = Checkpoint::new().with("v", &v);
        let state = CheckpointState::read(folder.path())?;
        assert_eq!(latest_checkpoint(folder.path())?, Some(state.model_checkpoint_path));
        for prefix in state.all_model_checkpoint_paths {
            checkpoint.restore(&prefix)?.assert_consumed()?;
            let values = v.read()?.to_vec::<f32>()?;
            assert!(values[0] > 0.0 && values.iter().all(|value| *value == values[0]));
        }
        number = checkpoint.save_counter().read()?.as_scalar::<i64>()?;
    }
    assert!(number >= N_SAVES, "{number} checkpoints");
    Ok(())
}

/// Number of checkpoints that are written while their writers are killed.
const N_SAVES: i64 = 200;
const FOLDER: &str = "FERROFLOW_TEST_CHECKPOINTS";
const N_ELEMENTS: usize = 50_000;

/// The program that is killed; without its folder it does nothing.
#[test]
fn writes_until_it_is_killed() -> Outcome {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let v = Variable::new(vec![0.0f32; N_ELEMENTS])?;
    let options = ManagerOptions { max_to_keep: 2.try_into().ok(), ..Default::default() };
    let checkpoint = Checkpoint::new().with("v", &v);
    let mut manager = CheckpointManager::new(checkpoint, folder, options)?;
    manager.restore_or_initialize(|| Ok(()))?;
    for number in 1..=10_000 {
        v.assign(Tensor::from(vec![number as f32; N_ELEMENTS]))?;
        manager.save()?;
    }
    Ok(())
}
