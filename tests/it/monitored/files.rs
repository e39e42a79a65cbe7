//! Checkpoints and event files of a training.

use super::{HookList, Log, golden, scaffold, train, train_to_the_end};
use ferroflow::{
    ir::Limits,
    runtime::Context,
    saved_model::{
        Result, Session,
        bundle::Reader,
        events,
        monitored::{
            CheckpointSaverHook, CheckpointSaverListener, ChiefSessionCreator, HookInterval,
            ManualTimeSource, MonitoredSession, MonitoredTrainingOptions, Saver, Scaffold,
            SessionRunArgs, SessionRunContext, SessionRunHook, StepCounterHook, StopAtStepHook,
            SummarySaverHook, monitored_training_session,
        },
        proto::{MetaGraphDef, event::What, summary::value::Value},
        read_message,
    },
};
use std::{collections::BTreeSet, fs, path::Path, sync::Arc, time::Duration};

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

/// The events of the files in a folder, as texts.
fn events_of(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in names(folder).iter().filter(|name| name.starts_with("events.out.tfevents.")) {
        for event in events::read(&folder.join(name), &Limits::default())? {
            let event = event?;
            found.push(match event.what {
                Some(What::Summary(summary)) => {
                    let value = &summary.value[0];
                    let number = match value.value {
                        Some(Value::SimpleValue(number)) => number,
                        _ => f32::NAN,
                    };
                    format!("{} {} {number:.4}", event.step, value.tag)
                }
                Some(What::SessionLog(log)) => {
                    let path = Path::new(&log.checkpoint_path).file_name();
                    format!("{} {:?} {:?}", event.step, log.status(), path.unwrap_or_default())
                }
                Some(What::GraphDef(_)) => format!("{} graph", event.step),
                Some(What::MetaGraphDef(_)) => format!("{} meta graph", event.step),
                Some(What::FileVersion(version)) => version,
                other => format!("{other:?}"),
            });
        }
    }
    Ok(found)
}

/// Trains with the hooks of a training; each step takes half a second.
fn training(folder: &Path, last_step: i64, from: usize) -> Result<usize> {
    let time = Arc::new(ManualTimeSource::default());
    let mut scaffold = scaffold()?;
    scaffold.time = time.clone();
    let options = MonitoredTrainingOptions {
        checkpoint_dir: Some(folder.into()),
        save_checkpoint: HookInterval::Steps(3),
        save_summaries: HookInterval::Steps(2),
        log_step_count: HookInterval::Steps(2),
        ..MonitoredTrainingOptions::default()
    };
    let stop = StopAtStepHook::last_step(&scaffold, last_step)?;
    let clock = Clock(time);
    let hooks: HookList = vec![Box::new(stop), Box::new(clock)];
    train_to_the_end(monitored_training_session(&Context::new(), scaffold, hooks, &options)?, from)
}

/// Sets the clock forward by half a second before each run.
struct Clock(Arc<ManualTimeSource>);

impl SessionRunHook for Clock {
    fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        self.0.advance(Duration::from_millis(500));
        Ok(Default::default())
    }
}

#[test]
fn a_training_writes_the_checkpoints_and_events_of_tensorflow() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(training(folder, 7, 0)?, 7);
    let mut expected = BTreeSet::from(["checkpoint".to_string(), "graph.pbtxt".into()]);
    for step in [0, 3, 6, 7] {
        for end in ["data-00000-of-00001", "index", "meta"] {
            expected.insert(format!("model.ckpt-{step}.{end}"));
        }
    }
    let mut found = names(folder);
    found.retain(|name| !name.starts_with("events."));
    assert_eq!(found, expected);
    let state = fs::read_to_string(folder.join("checkpoint")).unwrap();
    let all = [0, 3, 6, 7].map(|n| format!("all_model_checkpoint_paths: \"model.ckpt-{n}\"\n"));
    assert_eq!(state, format!("model_checkpoint_path: \"model.ckpt-7\"\n{}", all.concat()));
    let expected = [
        "brain.Event:2",
        "0 graph",
        "0 meta graph",
        "0 graph",
        "0 meta graph",
        "0 Checkpoint \"model.ckpt\"",
        "1 Start \"\"",
        "1 loss_1 41.0000",
        "3 global_step/sec 2.0000",
        "3 loss_1 0.0433",
        "3 Checkpoint \"model.ckpt\"",
        "5 global_step/sec 2.0000",
        "5 loss_1 0.0122",
        "6 Checkpoint \"model.ckpt\"",
        "7 global_step/sec 2.0000",
        "7 loss_1 0.0114",
        "7 Checkpoint \"model.ckpt\"",
    ];
    assert_eq!(events_of(folder)?, expected);

    assert_eq!(training(folder, 10, 7)?, 3);
    let state = fs::read_to_string(folder.join("checkpoint")).unwrap();
    let all = [0, 3, 6, 7, 10].map(|n| format!("all_model_checkpoint_paths: \"model.ckpt-{n}\"\n"));
    assert_eq!(state, format!("model_checkpoint_path: \"model.ckpt-10\"\n{}", all.concat()));
    let again = [
        "7 Checkpoint \"model.ckpt\"",
        "8 Start \"\"",
        "8 loss_1 0.0111",
        "10 global_step/sec 2.0000",
        "10 loss_1 0.0105",
        "10 Checkpoint \"model.ckpt\"",
    ];
    assert!(events_of(folder)?.ends_with(&again.map(String::from)), "{:?}", events_of(folder));
    Ok(())
}

/// Notes the calls of a listener, and asks to stop at the fourth step.
struct Listening(Log);

impl Listening {
    fn note(&self, call: String) -> Result<()> {
        self.0.borrow_mut().push(call);
        Ok(())
    }
}

impl CheckpointSaverListener for Listening {
    fn begin(&mut self) -> Result<()> {
        self.note("begin".into())
    }

    fn before_save(&mut self, _: &Session, step: i64) -> Result<()> {
        self.note(format!("before {step}"))
    }

    fn after_save(&mut self, _: &Session, step: i64) -> Result<bool> {
        self.note(format!("after {step}"))?;
        Ok(step == 4)
    }

    fn end(&mut self, _: &Session, step: i64) -> Result<()> {
        self.note(format!("end {step}"))
    }
}

#[test]
fn listeners_are_called_around_checkpoints_and_may_stop() -> Result<()> {
    let (folder, log) = (tempfile::tempdir().unwrap(), Log::default());
    let scaffold = scaffold()?;
    let save = CheckpointSaverHook::new(&scaffold, folder.path(), HookInterval::Steps(2))?;
    let save = save.listener(Listening(log.clone()));
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let session = MonitoredSession::new(creator, vec![Box::new(save)])?;
    assert_eq!(train_to_the_end(session, 0)?, 4);
    let expected =
        ["begin", "before 0", "after 0", "before 2", "after 2", "before 4", "after 4", "end 4"];
    assert_eq!(*log.borrow(), expected);
    Ok(())
}

#[test]
fn old_checkpoints_are_removed_with_their_graphs() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut scaffold = Scaffold::read(golden("plain.meta"))?;
    scaffold.saver = Arc::new(Saver::of_variables(["w", "global_step"]).keeping(2));
    let save = CheckpointSaverHook::new(&scaffold, folder, HookInterval::Steps(1))?;
    let save = save.checkpoint_basename("m");
    let stop = StopAtStepHook::last_step(&scaffold, 4)?;
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let session = MonitoredSession::new(creator, vec![Box::new(save), Box::new(stop)])?;
    session.run_until_stop(|session| train(session).map(drop))?;
    let found = names(folder);
    let of_checkpoints: Vec<&str> =
        found.iter().filter(|name| name.starts_with("m-")).map(String::as_str).collect();
    let expected = ["3.data-00000-of-00001", "3.index", "3.meta", "4.data-00000-of-00001"];
    let expected = expected.into_iter().chain(["4.index", "4.meta"]).map(|end| format!("m-{end}"));
    assert_eq!(of_checkpoints, expected.collect::<Vec<_>>());
    let reader = Reader::open(folder.join("m-4"), &Limits::default())?;
    assert_eq!(reader.entries().map(|(name, _)| name).collect::<Vec<_>>(), ["global_step", "w"]);
    assert_eq!(reader.read("global_step")?.as_scalar::<i64>()?, 4);
    let meta_graph: MetaGraphDef = read_message(&folder.join("m-4.meta"))?;
    assert!(meta_graph.collection_def.contains_key("variables"));
    Ok(())
}

#[test]
fn seconds_trigger_by_the_clock_of_the_scaffold() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let time = Arc::new(ManualTimeSource::default());
    let mut scaffold = Scaffold::read(golden("plain.meta"))?;
    scaffold.time = time.clone();
    let seconds = |n| HookInterval::Time(Duration::from_secs(n));
    let summaries = SummarySaverHook::new(&scaffold, folder, seconds(3))?;
    let save = CheckpointSaverHook::new(&scaffold, folder, seconds(2))?.without_graph_def();
    let counter = HookInterval::Time(Duration::from_millis(1500));
    let counter = StepCounterHook::new(&scaffold, folder, counter)?;
    let stop = StopAtStepHook::last_step(&scaffold, 10)?;
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let hooks: HookList = vec![
        Box::new(summaries),
        Box::new(save),
        Box::new(counter),
        Box::new(stop),
        Box::new(Clock(time)),
    ];
    train_to_the_end(MonitoredSession::new(creator, hooks)?, 0)?;
    let found = events_of(folder)?;
    let steps = |of: &str| -> Vec<String> {
        let events = found.iter().filter(|event| event.contains(of));
        events.map(|event| event.split(' ').next().unwrap_or_default().to_string()).collect()
    };
    assert_eq!(steps("Checkpoint"), ["0", "4", "8", "10"], "{found:?}");
    assert_eq!(steps("global_step/sec 2.0000"), ["4", "7", "10"], "{found:?}");
    // A run is asked before its half second has passed.
    assert_eq!(steps("loss_1"), ["1", "8"], "{found:?}");
    assert!(!names(folder).contains("graph.pbtxt"));
    Ok(())
}
