//! Monitored sessions of 1.x graphs. Expected numbers, names and orders are those of TensorFlow
//! 2.21, for the graphs of `tests/golden/monitored.py`.

mod files;
mod hooks;
mod queues;
mod recovery;
mod scaffolds;
mod workers;

use ferroflow::{
    ir::{Code, HostTensor},
    runtime::{Context, EagerTensor},
    saved_model::{
        self, Result, Session,
        monitored::{
            ChiefSessionCreator, MonitoredSession, Scaffold, SessionRunArgs, SessionRunContext,
            SessionRunHook, hook_error,
        },
    },
};
use std::{cell::RefCell, path::PathBuf, rc::Rc};

/// The losses of the steps from the first on.
const LOSSES: [f32; 10] = [
    41.0,
    1.1287502,
    0.04327195,
    0.013357607,
    0.0121815745,
    0.011798393,
    0.01144729,
    0.0111071,
    0.010777072,
    0.010456784,
];

fn golden(name: &str) -> PathBuf {
    ["tests/golden/monitored", name].iter().collect()
}

fn scaffold() -> Result<Scaffold> {
    Scaffold::read(golden("linear.meta"))
}

fn chief() -> Result<ChiefSessionCreator> {
    Ok(ChiefSessionCreator::new(&Context::new(), scaffold()?))
}

/// A run of a step; returns its loss.
fn train(session: &mut MonitoredSession<'_>) -> Result<f32> {
    let loss = session.run(&[], &["loss:0"], &["train"])?;
    Ok(loss[0].host()?.as_scalar::<f32>()?)
}

/// Trains until the session stops, and compares the losses with those from a step on.
fn train_to_the_end(session: MonitoredSession<'_>, from: usize) -> Result<usize> {
    let mut losses = Vec::new();
    session.run_until_stop(|session| {
        losses.push(train(session)?);
        Ok(())
    })?;
    for (index, loss) in losses.iter().enumerate() {
        let expected = LOSSES[from + index];
        assert!((loss - expected).abs() <= 1e-5 * expected, "{index}: {loss}, not {expected}");
    }
    Ok(losses.len())
}

/// Feeds `x`, whose last element is this.
fn fed(last: f32) -> Result<[(&'static str, EagerTensor); 1]> {
    Ok([("x:0", HostTensor::vector(&[1.0, 2.0, 3.0, last])?.into())])
}

/// Hooks of a session.
type HookList = Vec<Box<dyn SessionRunHook>>;

/// Notes of hooks, which tests keep.
type Log = Rc<RefCell<Vec<String>>>;

/// Notes the calls of its methods.
struct Noting(&'static str, Log);

impl Noting {
    fn note(&self, method: &str) -> Result<()> {
        self.1.borrow_mut().push(format!("{}.{method}", self.0));
        Ok(())
    }
}

impl SessionRunHook for Noting {
    fn begin(&mut self, _: &mut Scaffold) -> Result<()> {
        self.note("begin")
    }

    fn after_create_session(&mut self, _: &Session, _: &Scaffold) -> Result<()> {
        self.note("after_create_session")
    }

    fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        self.note("before_run")?;
        Ok(SessionRunArgs::default())
    }

    fn after_run(&mut self, _: &mut SessionRunContext<'_>, _: &[EagerTensor]) -> Result<()> {
        self.note("after_run")
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        self.note("end")
    }
}

/// Fails once, at the so-manieth call before or after a run.
struct Failing {
    before: Option<usize>,
    after: Option<usize>,
    code: Code,
}

impl Failing {
    fn before(n: usize, code: Code) -> Failing {
        Failing { before: Some(n), after: None, code }
    }

    fn after(n: usize, code: Code) -> Failing {
        Failing { before: None, after: Some(n), code }
    }
}

fn count_down(counter: &mut Option<usize>, code: Code) -> Result<()> {
    *counter = counter.and_then(|n| n.checked_sub(1));
    if *counter == Some(0) { Err(hook_error(code, "on purpose")) } else { Ok(()) }
}

impl SessionRunHook for Failing {
    fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        count_down(&mut self.before, self.code)?;
        Ok(SessionRunArgs::default())
    }

    fn after_run(&mut self, _: &mut SessionRunContext<'_>, _: &[EagerTensor]) -> Result<()> {
        count_down(&mut self.after, self.code)
    }
}

/// The notes, with a shorter name for the calls after a session was made.
fn notes(log: &Log) -> String {
    log.borrow().join(" ").replace("after_create_session", "created")
}

fn is_monitored(error: &saved_model::Error, expected: &str) {
    assert!(matches!(error, saved_model::Error::Monitored(_)), "{error:?}");
    assert!(error.to_string().contains(expected), "{error}");
}
