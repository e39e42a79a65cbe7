//! Chiefs make a model ready, workers wait for it.

use super::{HookList, chief, golden, is_monitored, scaffold, train};
use ferroflow::{
    ir::Code,
    runtime::{Context, ResourceManager},
    saved_model::{
        Result,
        monitored::{
            ChiefSessionCreator, ManualTimeSource, MonitoredSession, Readiness, Scaffold,
            SessionCreator, StopAtStepHook, TimeSource, WorkerSessionCreator,
        },
    },
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

#[test]
fn a_model_without_values_is_not_ready() -> Result<()> {
    for graph in ["linear.meta", "references.meta", "plain.meta"] {
        let mut scaffold = Scaffold::read(golden(graph))?;
        scaffold.init_op = Vec::new();
        let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
        let error = MonitoredSession::new(creator, Vec::new()).unwrap_err();
        is_monitored(&error, "Variables not initialized: w, b, global_step");
        assert_eq!(error.code(), Code::FailedPrecondition);
    }
    Ok(())
}

#[test]
fn code_initialises_after_the_initialisers() -> Result<()> {
    let mut scaffold = scaffold()?;
    scaffold.init_fn = Some(Box::new(|session| {
        Ok(session.variables()?["w"].assign(ferroflow::ir::HostTensor::scalar(2.0f32))?)
    }));
    scaffold.ready_op = Readiness::Variables(vec!["w".into()]);
    let creator = ChiefSessionCreator::new(&Context::new(), scaffold);
    let mut session = MonitoredSession::new(creator, Vec::new())?;
    assert_eq!(train(&mut session)?, 1.0);
    Ok(())
}

/// A clock at whose second wait the chief makes the model ready.
#[derive(Debug)]
struct ChiefComes {
    clock: ManualTimeSource,
    chief: Mutex<Option<ChiefSessionCreator>>,
}

impl TimeSource for ChiefComes {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) -> Result<()> {
        self.clock.sleep(duration)?;
        if self.now() == Duration::from_secs(60) {
            let mut chief = self.chief.lock().unwrap_or_else(PoisonError::into_inner);
            chief.as_mut().map(|chief| chief.create_session()).transpose()?;
        }
        Ok(())
    }
}

#[test]
fn a_worker_waits_for_the_chief_and_shares_its_variables() -> Result<()> {
    let resources = Arc::new(ResourceManager::default());
    let chief = chief()?.sharing(&resources);
    let time = ChiefComes { clock: ManualTimeSource::default(), chief: Mutex::new(Some(chief)) };
    let mut scaffold = scaffold()?;
    scaffold.time = Arc::new(time);
    let time = scaffold.time.clone();
    let worker = WorkerSessionCreator::new(&Context::new(), scaffold, &resources);
    let mut session = MonitoredSession::new(worker, Vec::new())?;
    assert_eq!(time.now(), Duration::from_secs(60));
    assert_eq!(train(&mut session)?, 41.0);
    assert!(train(&mut session)? < 2.0);
    Ok(())
}

#[test]
fn a_worker_does_not_wait_for_ever() -> Result<()> {
    let mut scaffold = scaffold()?;
    let time = Arc::new(ManualTimeSource::default());
    scaffold.time = time.clone();
    let mut worker = WorkerSessionCreator::new(&Context::new(), scaffold, &Arc::default());
    worker.max_wait = Duration::from_secs(100);
    let error = MonitoredSession::new(worker, Vec::new()).unwrap_err();
    is_monitored(&error, "not ready after 100s: Variables not initialized: w, b, global_step");
    assert_eq!((error.code(), time.now()), (Code::DeadlineExceeded, Duration::from_secs(90)));
    Ok(())
}

#[test]
fn workers_in_threads_train_one_model() -> Result<()> {
    let (context, resources) = (Context::new(), Arc::new(ResourceManager::default()));
    let work = || -> Result<()> {
        let scaffold = scaffold()?;
        let hooks: HookList = vec![Box::new(StopAtStepHook::last_step(&scaffold, 40)?)];
        let worker = WorkerSessionCreator::new(&context, scaffold, &resources);
        let session = MonitoredSession::new(worker, hooks)?;
        session.run_until_stop(|session| train(session).map(drop))
    };
    let mut chief = ChiefSessionCreator::new(&context, scaffold()?).sharing(&resources);
    let ready = chief.create_session()?;
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work), scope.spawn(work)];
        workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    })?;
    let steps = chief.scaffold().global_step.clone().unwrap().read(&ready)?;
    assert!((40..43).contains(&steps), "{steps}");
    Ok(())
}
