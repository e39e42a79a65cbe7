//! A training as a person has it: begun, killed, resumed, ended early, written down, exported.

use crate::training::{Outcome, digits, trainer, values};
use ferroflow::{
    Checkpoint, CheckpointManager, Functions, HasFunctions, ManagerOptions, Tensor, function,
    ir::{DType, Limits},
    load,
    nn::{Layer, Mode},
    save,
    saved_model::{
        SaveOptions, events,
        proto::{event::What, summary::value::Value},
    },
    tracer::{self, Trackable},
    train::{
        Callback, CallbackResult, Checkpoints, CsvLog, EarlyStopping, Examples, FitHistory,
        FitOptions, TensorBoard, Trainer, Training,
    },
};
use std::{
    collections::BTreeMap,
    error::Error,
    ops::ControlFlow,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

const FOLDER: &str = "FERROFLOW_TEST_TRAINING_SESSION";

/// Epoch and batch at which the first program is killed.
const KILLED_AT: [usize; 2] = [3, 4];

/// Hangs before the batch, and says so by a file.
struct Hang<'a>(Option<&'a Path>);

impl Callback for Hang<'_> {
    fn batch_end(&mut self, training: &Training, batch: usize, _: f64) -> CallbackResult {
        let epoch = training.epoch().read()?.to_scalar::<i64>()? as usize;
        if let Some(folder) = self.0
            && [epoch, batch] == KILLED_AT
        {
            std::fs::write(folder.join("hangs"), "")?;
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Trains in a folder until it gets no better, from where a program before it was ended.
fn session(trainer: &Trainer, folder: &Path, hangs: bool) -> Result<FitHistory, Box<dyn Error>> {
    let (train, test) = digits()?;
    let mut stop = EarlyStopping::on("val_loss").patience(2).restore_best_weights();
    let seen = stop.clone();
    let state = Checkpoint::new().with("trainer", trainer).with("stop", &seen);
    let mut manager =
        CheckpointManager::new(state, folder.join("checkpoints"), ManagerOptions::default())?;
    manager.restore_or_initialize(|| Ok(()))?;
    let mut checkpoints = Checkpoints::new(&mut manager).each_batches(2);
    let mut log = CsvLog::append(folder.join("log.csv"))?;
    let mut board = TensorBoard::new(folder.join("board"))?;
    let mut hang = Hang(hangs.then_some(folder));
    let options = FitOptions::default().validation(&test);
    let options = options.callback(&mut stop).callback(&mut log).callback(&mut board);
    let options = options.callback(&mut checkpoints).callback(&mut hang);
    Ok(trainer.fit(&train, 200, options)?)
}

/// The program that is killed; without its folder it does nothing.
#[test]
fn a_session_that_is_killed() -> Outcome {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    session(&trainer()?, Path::new(&folder), true)?;
    Ok(())
}

/// Value of each figure in each step, as TensorBoard shows it.
type Scalars = BTreeMap<(String, i64, String), Vec<f32>>;

fn scalars(folder: &Path) -> Result<Scalars, Box<dyn Error>> {
    let mut found = Scalars::new();
    for run in ["train", "validation"] {
        for file in std::fs::read_dir(folder.join("board").join(run))? {
            for event in events::read(&file?.path(), &Limits::default())? {
                let event = event?;
                let Some(What::Summary(summary)) = event.what else { continue };
                for value in summary.value {
                    let Some(Value::Tensor(tensor)) = value.value else { continue };
                    found.insert((run.into(), event.step, value.tag), tensor.float_val);
                }
            }
        }
    }
    Ok(found)
}

#[derive(Trackable, HasFunctions)]
struct Digits {
    network: Arc<dyn Layer>,
    functions: Functions,
}

impl Digits {
    #[function(input_signature = [spec(f32, [None, 8, 8, 1])])]
    fn read(&self, images: &Tensor) -> tracer::Result<Tensor> {
        self.network.call(images, Mode::Inference)?.softmax()
    }
}

#[test]
fn a_session_that_is_killed_and_resumed_ends_as_one_that_was_not() -> Outcome {
    let (killed, whole) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut program = Command::new(std::env::current_exe()?)
        .args(["--exact", "training_session::a_session_that_is_killed"])
        .env(FOLDER, killed.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let began = Instant::now();
    while !killed.path().join("hangs").exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "it does not come so far");
        std::thread::sleep(Duration::from_millis(1));
    }
    program.kill()?;
    program.wait()?;

    let (resumed, undisturbed) = (trainer()?, trainer()?);
    let rest = session(&resumed, killed.path(), false)?;
    let history = session(&undisturbed, whole.path(), false)?;
    let first = KILLED_AT[0];
    assert_eq!((rest.first_epoch, &rest.epochs[..]), (first as u64, &history.epochs[first..]));
    assert!(history.epochs.len() < 200, "it ends early");
    assert_eq!(values(resumed.training())?, values(undisturbed.training())?);
    let log = |folder: &Path| std::fs::read_to_string(folder.join("log.csv"));
    assert_eq!(log(killed.path())?, log(whole.path())?);
    assert_eq!(scalars(killed.path())?, scalars(whole.path())?);
    assert_eq!(scalars(whole.path())?.len(), 2 * 2 * history.epochs.len());

    let model = Digits { network: resumed.network().clone(), functions: Functions::default() };
    let folder = killed.path().join("model");
    let read =
        model.read_concrete([ferroflow::spec(DType::F32, [None, Some(8), Some(8), Some(1)])])?;
    save(&model, &folder, &SaveOptions::default().signature(&read)?)?;
    let loaded = load(&folder)?;
    let (_, test) = digits()?;
    let batch = test.epoch(0).next().ok_or("a batch")?.map_err(|error| error.to_string())?;
    let found: Tensor = loaded.call("read", (batch[0].clone(),))?;
    assert_eq!(found.to_vec::<f32>()?, model.read(&batch[0])?.to_vec::<f32>()?);
    let right = found.argmax(-1)?.cast(batch[1].dtype())?.equal(&batch[1])?;
    let share = right.cast(DType::F32)?.mean_all()?.to_scalar::<f32>()?;
    assert!(share > 0.7, "{share} of the digits are read right");
    Ok(())
}
