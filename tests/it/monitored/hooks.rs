//! Order in which hooks are called, and what they do to runs.

use super::{
    Failing, HookList, Log, Noting, chief, fed, is_monitored, notes, scaffold, train,
    train_to_the_end,
};
use ferroflow::{
    ir::{Code, HostTensor},
    runtime::Context,
    saved_model::{
        Error, Result,
        monitored::{
            ChiefSessionCreator, FeedFnHook, FinalOpsHook, GlobalStepWaiterHook, HookInterval,
            LoggingTensorHook, ManualTimeSource, MonitoredError, MonitoredSession, NanTensorHook,
            StopAtStepHook,
        },
    },
};
use std::{sync::Arc, time::Duration};

/// The calls of two hooks for so many runs.
fn runs(n: usize) -> String {
    "a.before_run b.before_run a.after_run b.after_run ".repeat(n)
}

// spec: 221
#[test]
fn hooks_are_called_in_their_order_around_each_run() -> Result<()> {
    let log = Log::default();
    let scaffold = scaffold()?;
    let stop = StopAtStepHook::last_step(&scaffold, 7)?;
    let session = MonitoredSession::new(
        ChiefSessionCreator::new(&Context::new(), scaffold),
        vec![
            Box::new(Noting("a", log.clone())),
            Box::new(stop),
            Box::new(Noting("b", log.clone())),
        ],
    )?;
    assert_eq!(notes(&log), "a.begin b.begin a.created b.created");
    assert_eq!(train_to_the_end(session, 0)?, 7);
    let expected = format!("a.begin b.begin a.created b.created {}a.end b.end", runs(7));
    assert_eq!(notes(&log), expected);
    Ok(())
}

#[test]
fn nan_stops_or_is_an_error() -> Result<()> {
    let train_on_nan = |hook: NanTensorHook| -> Result<(Result<()>, usize, String)> {
        let (log, mut n) = (Log::default(), 0);
        let hooks: HookList = vec![
            Box::new(Noting("a", log.clone())),
            Box::new(hook),
            Box::new(Noting("b", log.clone())),
        ];
        let session = MonitoredSession::new(chief()?, hooks)?;
        let result = session.run_until_stop(|session| {
            n += 1;
            let last = if n == 3 { f32::NAN } else { 4.0 };
            session.run(&fed(last)?, &[], &["train"]).map(drop)
        });
        Ok((result, n, notes(&log)))
    };
    let begin = format!("a.begin b.begin a.created b.created {}", runs(2));
    let (result, n, log) = train_on_nan(NanTensorHook::failing("loss:0"))?;
    is_monitored(&result.unwrap_err(), "tensor `loss:0` is NaN");
    assert_eq!((n, log), (3, format!("{begin}a.before_run b.before_run a.after_run")));
    let (result, n, log) = train_on_nan(NanTensorHook::stopping("loss:0"))?;
    result?;
    assert_eq!((n, log), (3, format!("{begin}{}a.end b.end", runs(1))));
    Ok(())
}

#[test]
fn the_end_of_the_data_ends_quietly_and_other_errors_do_not() -> Result<()> {
    for (code, end) in [(Code::OutOfRange, " a.end"), (Code::InvalidArgument, "")] {
        let (log, mut n) = (Log::default(), 0);
        let session = MonitoredSession::new(
            chief()?,
            vec![Box::new(Noting("a", log.clone())), Box::new(Failing::before(4, code))],
        )?;
        let result = session.run_until_stop(|session| {
            train(session)?;
            n += 1;
            Ok(())
        });
        assert_eq!(result.err().map(|error| error.code()), end.is_empty().then_some(code));
        let runs = "a.before_run a.after_run ".repeat(3);
        assert_eq!(notes(&log), format!("a.begin a.created {runs}a.before_run{end}"));
        assert_eq!(n, 3);
    }
    Ok(())
}

#[test]
fn a_stopped_session_runs_no_more() -> Result<()> {
    let log = Log::default();
    let scaffold = scaffold()?;
    let stop = StopAtStepHook::num_steps(&scaffold, 1)?;
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let hooks: HookList = vec![Box::new(Noting("a", log.clone())), Box::new(stop)];
    let mut session = MonitoredSession::new(creator, hooks)?;
    assert!(!session.should_stop());
    train(&mut session)?;
    assert!(session.should_stop());
    is_monitored(&train(&mut session).unwrap_err(), "asked to stop");
    session.close()?;
    assert_eq!(notes(&log), "a.begin a.created a.before_run a.after_run a.end");
    Ok(())
}

#[test]
fn steps_run_with_hooks_and_without_and_stop() -> Result<()> {
    let log = Log::default();
    let hook = Box::new(Noting("a", log.clone()));
    let session = MonitoredSession::new(chief()?, vec![hook])?;
    session.run_until_stop(|session| {
        session.run_step_fn(|step| {
            let count = step.session().run(&[], &["global_step/Read/ReadVariableOp:0"], &[])?;
            match count[0].host()?.as_scalar::<i64>()? {
                2.. => Err(step.request_stop()),
                _ => step.run_with_hooks(&[], &[], &["train"]).map(drop),
            }
        })
    })?;
    let runs = "a.before_run a.after_run ".repeat(2);
    assert_eq!(notes(&log), format!("a.begin a.created {runs}a.end"));
    Ok(())
}

#[test]
fn a_tensor_is_fed_once() -> Result<()> {
    let feed = || {
        Box::new(FeedFnHook::new(|| {
            Ok(fed(3.0)?.map(|(name, value)| (name.to_string(), value)).to_vec())
        }))
    };
    let mut session = MonitoredSession::new(chief()?, vec![feed()])?;
    let loss = session.run(&[], &["loss:0"], &[])?[0].host()?.as_scalar::<f32>()?;
    assert_eq!(loss, (9.0 + 25.0 + 49.0 + 49.0) / 4.0);
    let error = session.run(&fed(4.0)?, &["loss:0"], &[]).unwrap_err();
    is_monitored(&error, "tensor `x:0` is fed by the caller and by hook 0");
    let mut session = MonitoredSession::new(chief()?, vec![feed(), feed()])?;
    let error = session.run(&[], &["loss:0"], &[]).unwrap_err();
    is_monitored(&error, "tensor `x:0` is fed by hook 0 and by hook 1");
    Ok(())
}

/// The lines that a hook logs.
fn logged(hook: LoggingTensorHook, lines: &Log) -> LoggingTensorHook {
    let lines = lines.clone();
    hook.log_to(move |line| lines.borrow_mut().push(line.into()))
}

#[test]
fn tensors_are_logged_and_fetched_at_the_end() -> Result<()> {
    let (time, lines) = (Arc::new(ManualTimeSource::default()), Log::default());
    let mut scaffold = scaffold()?;
    scaffold.time = time.clone();
    let [loss, w] = [("loss", "loss:0"), ("w", "w/Read/ReadVariableOp:0")];
    let every = LoggingTensorHook::new(&scaffold, &[loss], HookInterval::Steps(2));
    let at_end = LoggingTensorHook::new(&scaffold, &[w], HookInterval::Never).at_end();
    let stop = StopAtStepHook::last_step(&scaffold, 4)?;
    let mut last = FinalOpsHook::new(["global_step/Read/ReadVariableOp:0"]);
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let session = MonitoredSession::new(
        creator,
        vec![
            Box::new(logged(every, &lines)),
            Box::new(logged(at_end, &lines)),
            Box::new(stop),
            Box::new(&mut last),
        ],
    )?;
    session.run_until_stop(|session| {
        time.advance(Duration::from_millis(1500));
        train(session).map(drop)
    })?;
    let step = &last.values().unwrap()[0];
    assert_eq!(step.host()?.as_scalar::<i64>()?, 4);
    let lines = lines.take();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], "loss = 41.0");
    assert!(lines[1].starts_with("loss = 0.0432719"), "{lines:?}");
    assert!(lines[1].ends_with(" (3.000 sec)"), "{lines:?}");
    assert!(lines[2].starts_with("w = 2.0902"), "{lines:?}");
    Ok(())
}

#[test]
fn hooks_need_a_global_step() -> Result<()> {
    let mut scaffold = scaffold()?;
    scaffold.global_step = None;
    let error = StopAtStepHook::last_step(&scaffold, 1).unwrap_err();
    is_monitored(&error, "StopAtStepHook needs the global step");
    Ok(())
}

#[test]
fn waiting_for_a_step_ends() -> Result<()> {
    let mut scaffold = scaffold()?;
    scaffold.time = Arc::new(ManualTimeSource::default());
    let second = Duration::from_secs(1);
    let waiter = GlobalStepWaiterHook::new(&scaffold, 3)?.max_wait(second);
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let mut session = MonitoredSession::new(creator, vec![Box::new(waiter)])?;
    let error = train(&mut session).unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    let missing = "the global step is 0, not yet 3".to_string();
    let expected = MonitoredError::NeverReady { waited: second, missing };
    assert!(matches!(error, Error::Monitored(found) if *found == expected));
    let three = HostTensor::scalar(3i64);
    let variables = session.session().map(|session| session.variables()).transpose()?;
    variables.unwrap_or_default()["global_step"].assign(three)?;
    train(&mut session).map(drop)
}
