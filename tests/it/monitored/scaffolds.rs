//! Scaffolds of MetaGraphs, usual and odd ones.

use super::{golden, is_monitored};
use ferroflow::{
    ir::{Code, Limits},
    runtime::{Context, EagerTensor},
    saved_model::{
        Result,
        bundle::Reader,
        monitored::{
            CheckpointSaverHook, ChiefSessionCreator, HookInterval, MonitoredSession, Readiness,
            Scaffold, SessionRunArgs, SessionRunContext, SessionRunHook, StopAtStepHook,
        },
        proto::{CollectionDef, MetaGraphDef, NodeDef, QueueRunnerDef, collection_def},
        read_message,
    },
};

fn nodes(names: &[&str]) -> CollectionDef {
    let value = names.iter().map(|name| name.to_string()).collect();
    let kind = collection_def::Kind::NodeList(collection_def::NodeList { value });
    CollectionDef { kind: Some(kind) }
}

/// The scaffold of the plain graph with another collection.
fn with_collection(key: &str, items: CollectionDef) -> Result<Scaffold> {
    let mut meta_graph: MetaGraphDef = read_message(&golden("plain.meta"))?;
    meta_graph.collection_def.insert(key.into(), items);
    Scaffold::of_meta_graph(meta_graph)
}

#[test]
fn pieces_come_from_collections() -> Result<()> {
    let scaffold = Scaffold::read(golden("linear.meta"))?;
    assert_eq!(scaffold.init_op, ["group_deps"]);
    assert_eq!(scaffold.local_init_op, ["group_deps_1"]);
    assert_eq!(scaffold.ready_op, Readiness::Tensor("concat:0".into()));
    assert_eq!(scaffold.ready_for_local_init_op, Readiness::Tensor("concat_1:0".into()));
    assert_eq!(scaffold.summary_op, ["Merge/MergeSummary:0"]);
    assert_eq!(scaffold.saver.def().unwrap().restore_op_name, "save/restore_all");
    let plain = Scaffold::read(golden("plain.meta"))?;
    assert_eq!(plain.init_op, ["w/Assign", "b/Assign", "global_step/Assign"]);
    let variables = ["w", "b", "global_step"].map(String::from).to_vec();
    assert_eq!(plain.ready_op, Readiness::Variables(variables));
    assert!(plain.saver.def().is_none());
    for scaffold in [scaffold, plain] {
        assert_eq!(scaffold.global_step.unwrap().variable(), "global_step");
    }
    Ok(())
}

#[test]
fn odd_collections_are_errors() {
    let error = with_collection("init_op", nodes(&["a", "b"])).unwrap_err();
    is_monitored(&error, "collection `init_op` has 2 items");
    let error = with_collection("savers", nodes(&["a"])).unwrap_err();
    is_monitored(&error, "collection `savers` has no messages");
    let scaffold = with_collection("ready_op", nodes(&["nowhere:0"])).unwrap();
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let error = MonitoredSession::new(creator, Vec::new()).unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
}

/// Adds the double of the loss to the graph, and fetches it.
struct Doubling(Vec<f32>);

impl SessionRunHook for Doubling {
    fn begin(&mut self, scaffold: &mut Scaffold) -> Result<()> {
        let graph = scaffold.meta_graph.graph_def.get_or_insert_default();
        let loss = graph.node.iter().find(|node| node.name == "loss").unwrap();
        let attr = [("T".to_string(), loss.attr["T"].clone())].into();
        let input = vec!["loss".into(), "loss".into()];
        let (name, op) = ("double".into(), "AddV2".into());
        graph.node.push(NodeDef { name, op, input, attr, ..NodeDef::default() });
        Ok(())
    }

    fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        Ok(SessionRunArgs::fetching(["double:0"]))
    }

    fn after_run(&mut self, _: &mut SessionRunContext<'_>, values: &[EagerTensor]) -> Result<()> {
        self.0.push(values[0].host()?.as_scalar::<f32>()?);
        Ok(())
    }
}

#[test]
fn hooks_change_the_graph_before_there_is_a_session() -> Result<()> {
    let mut hook = Doubling(Vec::new());
    let creator = ChiefSessionCreator::new(&Context::new(), Scaffold::read(golden("linear.meta"))?);
    let mut session = MonitoredSession::new(creator, vec![Box::new(&mut hook)])?;
    session.run(&[], &[], &["train"])?;
    session.close()?;
    assert_eq!(hook.0, [82.0]);
    Ok(())
}

#[test]
fn the_threads_of_queue_runners_are_bounded() -> Result<()> {
    let mut scaffold = Scaffold::read(golden("plain.meta"))?;
    let enqueue_op_name = vec!["train".to_string(); 2000];
    scaffold.queue_runners = vec![QueueRunnerDef { enqueue_op_name, ..Default::default() }];
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let error = MonitoredSession::new(creator, Vec::new()).unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    Ok(())
}

#[test]
fn parts_of_a_variable_are_slices_of_one_tensor() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for last_step in [2, 3] {
        let scaffold = Scaffold::read(golden("parts.meta"))?;
        let save = CheckpointSaverHook::new(&scaffold, folder.path(), HookInterval::Never)?;
        let stop = StopAtStepHook::last_step(&scaffold, last_step)?;
        let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
        let creator = creator.checkpoint_dir(folder.path());
        let session = MonitoredSession::new(creator, vec![Box::new(save), Box::new(stop)])?;
        session.run_until_stop(|session| session.run(&[], &[], &["train"]).map(drop))?;
    }
    let reader = Reader::open(folder.path().join("model.ckpt-3"), &Limits::default())?;
    assert_eq!(reader.read("p")?.as_slice::<f32>()?, [3.0, 6.0, 3.0, 6.0]);
    Ok(())
}
