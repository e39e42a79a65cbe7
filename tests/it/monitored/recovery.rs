//! Sessions that are made again, and go on from checkpoints.

use super::{
    Failing, HookList, LOSSES, Log, Noting, chief, golden, notes, scaffold, train, train_to_the_end,
};
use ferroflow::{
    ir::Code,
    runtime::Context,
    saved_model::{
        Result,
        monitored::{
            CheckpointSaverHook, ChiefSessionCreator, HookInterval, MonitoredSession, Scaffold,
            StopAtStepHook,
        },
    },
};

#[test]
fn an_aborted_run_is_tried_again_from_the_newest_checkpoint() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let (log, scaffold) = (Log::default(), scaffold()?);
    let save = CheckpointSaverHook::new(&scaffold, folder.path(), HookInterval::Steps(2))?;
    let stop = StopAtStepHook::num_steps(&scaffold, 6)?;
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold).checkpoint_dir(folder.path());
    let session = MonitoredSession::new(
        creator,
        vec![
            Box::new(Noting("a", log.clone())),
            Box::new(save),
            Box::new(Failing::before(4, Code::Aborted)),
            Box::new(Failing::after(5, Code::Unavailable)),
            Box::new(Noting("b", log.clone())),
            Box::new(stop),
        ],
    )?;
    let mut losses = Vec::new();
    session.run_until_stop(|session| {
        losses.push(train(session)?);
        Ok(())
    })?;
    // The third step was lost with the first session, the fourth was saved before it failed.
    let expected = [0, 1, 2, 2, 4, 5].map(|step: usize| LOSSES[step]);
    assert!(losses.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5 * b), "{losses:?}");
    assert_eq!(losses.len(), 6);
    let run = "a.before_run b.before_run a.after_run b.after_run";
    let expected = [
        "a.begin b.begin a.created b.created",
        &[run; 3].join(" "),
        "a.before_run a.created b.created",
        run,
        "a.before_run b.before_run a.after_run a.created b.created",
        &[run; 2].join(" "),
        "a.end b.end",
    ];
    assert_eq!(notes(&log), expected.join(" "));
    let found = ferroflow::saved_model::CheckpointState::read(folder.path())?;
    let names = ["model.ckpt-0", "model.ckpt-2", "model.ckpt-4", "model.ckpt-6"];
    assert_eq!(found.all_model_checkpoint_paths, names.map(|name| folder.path().join(name)));
    Ok(())
}

#[test]
fn recoveries_are_bounded() -> Result<()> {
    let failing = |n| -> HookList {
        (0..n).map(|_| Box::new(Failing::before(1, Code::Unavailable)) as _).collect()
    };
    let mut session = MonitoredSession::recovering(chief()?, failing(2), 2)?;
    train(&mut session)?;
    let mut session = MonitoredSession::recovering(chief()?, failing(3), 2)?;
    assert_eq!(train(&mut session).unwrap_err().code(), Code::Unavailable);
    assert!(session.session().is_none());
    let mut session = MonitoredSession::recovering(chief()?, failing(1), 0)?;
    assert_eq!(train(&mut session).unwrap_err().code(), Code::Unavailable);
    Ok(())
}

#[test]
fn a_checkpoint_of_tensorflow_is_restored() -> Result<()> {
    for graph in ["linear.meta", "references.meta", "plain.meta"] {
        let scaffold = Scaffold::read(golden(graph))?;
        let stop = StopAtStepHook::num_steps(&scaffold, 4)?;
        let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
        let creator = creator.checkpoint_dir(golden("trained"));
        let session = MonitoredSession::new(creator, vec![Box::new(stop)])?;
        assert_eq!(train_to_the_end(session, 3)?, 4, "{graph}");
    }
    Ok(())
}

#[test]
fn graphs_of_all_kinds_begin_with_their_initialisers() -> Result<()> {
    for graph in ["linear.meta", "references.meta", "plain.meta"] {
        let folder = tempfile::tempdir().unwrap();
        for (last_step, from, n) in [(5, 0, 5), (8, 5, 3)] {
            let scaffold = Scaffold::read(golden(graph))?;
            let save = CheckpointSaverHook::new(&scaffold, folder.path(), HookInterval::Never)?;
            let stop = StopAtStepHook::last_step(&scaffold, last_step)?;
            let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
            let creator = creator.checkpoint_dir(folder.path());
            let hooks: HookList = vec![Box::new(save), Box::new(stop)];
            assert_eq!(
                train_to_the_end(MonitoredSession::new(creator, hooks)?, from)?,
                n,
                "{graph}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_checkpoint_that_is_listed_and_gone_is_an_error() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("checkpoint"), "model_checkpoint_path: \"m-1\"\n").unwrap();
    let creator = chief()?.checkpoint_dir(folder.path());
    let error = MonitoredSession::new(creator, Vec::new()).unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    Ok(())
}
