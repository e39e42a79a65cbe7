//! Queues that threads fill while a session lasts.

use super::{Log, Noting, golden, notes};
use ferroflow::{
    ir::Code,
    runtime::Context,
    saved_model::{
        Result,
        monitored::{ChiefSessionCreator, MonitoredSession, Scaffold},
    },
};

/// Runs until the data end, or a queue runner fails; returns the batches, and notes calls of a
/// hook.
fn batches(graph: &str, log: &Log) -> Result<(Vec<Vec<f32>>, Result<()>)> {
    let scaffold = Scaffold::read(golden(graph))?;
    let hook = Box::new(Noting("a", log.clone()));
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let session = MonitoredSession::new(creator, vec![hook])?;
    let mut batches = Vec::new();
    let result = session.run_until_stop(|session| {
        let batch = session.run(&[], &["batch:0"], &[])?;
        batches.push(batch[0].host()?.as_slice::<f32>()?.to_vec());
        Ok(())
    });
    Ok((batches, result))
}

#[test]
fn queue_runners_fill_queues_until_the_data_end() -> Result<()> {
    let log = Log::default();
    let (batches, result) = batches("queues.meta", &log)?;
    result?;
    assert_eq!(batches, [[1.0, 2.0], [3.0, 1.0], [2.0, 3.0]]);
    let runs = "a.before_run a.after_run ".repeat(3);
    assert_eq!(notes(&log), format!("a.begin a.created {runs}a.before_run a.end"));
    Ok(())
}

#[test]
fn the_error_of_a_queue_runner_comes_back_at_the_end() -> Result<()> {
    let log = Log::default();
    let (batches, result) = batches("bad_queues.meta", &log)?;
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("StringToNumber"), "{error}");
    // The thread may fail before the first batch is asked for, or after.
    assert!(batches.is_empty() || batches == [[1.0, 2.0]], "{batches:?}");
    assert!(notes(&log).ends_with("a.end"), "{}", notes(&log));
    Ok(())
}

#[test]
fn queue_runners_end_with_a_session_that_is_dropped() -> Result<()> {
    let scaffold = Scaffold::read(golden("queues.meta"))?;
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let mut session = MonitoredSession::new(creator, Vec::new())?;
    session.run(&[], &["batch:0"], &[])?;
    drop(session);
    Ok(())
}
