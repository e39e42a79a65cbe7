//! Trainings by the trainer: interrupted, resumed, ended early, and what they leave behind.

use ferroflow::{
    Checkpoint, CheckpointManager, GradientTape, ManagerOptions, Module, Tensor, Variable,
    data::{Arrays, BatchOptions, DataPipeline, read_idx},
    function,
    ir::{DType, Limits},
    latest_checkpoint,
    nn::{
        Activation, BatchNorm, Conv2D, ConvOptions, DTypePolicy, Dense, Dropout, GaussianNoise,
        Mode, SeedGenerator, Sequential, Weights, flatten,
        losses::{Prediction, sparse_categorical_cross_entropy},
        max_pool,
        metrics::sparse_categorical_accuracy,
        optimizers::{
            Adam, LearningRate, LossScale, LossScaleOptions, Optimizer, OptimizerOptions,
        },
    },
    runtime::trackable::ObjectGraph,
    saved_model::{
        events,
        proto::{event::What, summary::value::Value},
    },
    train::{
        CallbackResult, Checkpoints, CsvLog, EarlyStopping, EpochEnd, Examples, FitOptions,
        ReduceOnPlateau, StopOnNan, TensorBoard, TrainError, Trainer, Training,
    },
};
use std::{
    error::Error,
    ops::ControlFlow,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

pub(super) type Outcome = Result<(), Box<dyn Error>>;

const FOLDER: &str = "FERROFLOW_TEST_TRAINING";
const EPOCHS: u64 = 6;

/// 96 digits to train on and 64 others.
pub(super) fn digits() -> Result<(impl Examples, impl Examples), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/digits");
    let images = Tensor::from(read_idx(folder.join("images.idx3.gz"))?);
    let images = (images.cast(DType::F32)? / 16.0)?.expand_dims(-1)?.host()?.clone();
    let labels = Tensor::from(read_idx(folder.join("labels.idx1.gz"))?).cast(DType::I32)?;
    let labels = labels.host()?.clone();
    let part = |rows: std::ops::Range<usize>, options: BatchOptions| {
        let arrays = Arrays::new([images.rows(rows.clone())?, labels.rows(rows)?])?;
        Ok::<_, Box<dyn Error>>(arrays.epochs(&options))
    };
    let shuffled = BatchOptions { size: 20, shuffle: Some(3), ..BatchOptions::default() };
    Ok((part(0..96, shuffled)?, part(96..160, BatchOptions::default())?))
}

pub(super) fn trainer() -> Result<Trainer, Box<dyn Error>> {
    let weights = &mut Weights::seeded(5);
    let options = ConvOptions { activation: Activation::Relu, ..ConvOptions::default() };
    let network = Sequential::new()
        .then(Conv2D::new(weights, [3, 3], 1, 4, &options)?)
        .then(BatchNorm::new(weights, 4)?)
        .map(|x| max_pool(x, [2, 2]))
        .map(flatten)
        .then(Dense::new(weights, 36, 10)?);
    let loss = |y: &Tensor, x: &Tensor| sparse_categorical_cross_entropy(y, x, Prediction::Logits);
    let trainer = Trainer::new(network, Optimizer::new(Adam::default(), 1e-2)?, loss)?;
    Ok(trainer.metric(sparse_categorical_accuracy()?.named("accuracy")))
}

pub(super) fn values(trainer: &Training) -> Result<Vec<Vec<f32>>, Box<dyn Error>> {
    let variables =
        trainer.network().variables()?.into_iter().chain(trainer.optimizer().variables());
    let values = variables.map(|variable| variable.read()?.cast(DType::F32)?.to_vec());
    Ok(values.collect::<Result<_, ferroflow::tracer::Error>>()?)
}

/// The program that is killed; without its folder it does nothing.
#[test]
fn trains_until_it_is_killed() -> Outcome {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let ((train, _), trainer) = (digits()?, trainer()?);
    let checkpoint = Checkpoint::of(&trainer);
    let mut manager = CheckpointManager::new(checkpoint, folder, ManagerOptions::default())?;
    manager.restore_or_initialize(|| Ok(()))?;
    let mut checkpoints = Checkpoints::new(&mut manager);
    trainer.fit(&train, 1_000_000, FitOptions::default().callback(&mut checkpoints))?;
    Ok(())
}

#[test]
fn a_training_that_is_killed_and_resumed_ends_as_one_that_was_not() -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut killed = Command::new(std::env::current_exe()?)
        .args(["--exact", "training::trains_until_it_is_killed"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let began = Instant::now();
    while latest_checkpoint(folder.path())?.is_none() {
        assert!(began.elapsed() < Duration::from_secs(120), "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.kill()?;
    killed.wait()?;

    let ((train, _), resumed) = (digits()?, trainer()?);
    let manager =
        CheckpointManager::new(Checkpoint::of(&resumed), folder.path(), Default::default())?;
    let status = manager.restore_or_initialize(|| Ok(()))?.ok_or("a checkpoint")?;
    status.assert_existing_objects_matched()?;
    let first = resumed.epoch().read()?.to_scalar::<i64>()?.unsigned_abs();
    let last = EPOCHS.max(first + 1);
    let history = resumed.fit(&train, last, FitOptions::default())?;
    assert!(
        first > 0 && history.first_epoch == first && history.epochs.len() as u64 == last - first
    );

    let undisturbed = trainer()?;
    let whole = undisturbed.fit(&train, last, FitOptions::default())?;
    assert_eq!(whole.epochs[first as usize..], history.epochs);
    assert_eq!(values(undisturbed.training())?, values(resumed.training())?);
    assert!(whole.last("loss") < whole.epochs[0].get("loss"));
    Ok(())
}

type Batches = DataPipeline<Vec<Tensor>>;

/// A network that drops, and a metric; examples by a pipeline, 8 batches in an epoch.
fn dropping() -> Result<(Trainer, Batches), Box<dyn Error>> {
    let weights = &mut Weights::seeded(6);
    let network = Sequential::new()
        .then(Dense::new(weights, 3, 8)?)
        .then(Dropout::new(0.3)?)
        .then(GaussianNoise::new(0.1)?)
        .then(Dense::new(weights, 8, 2)?);
    let loss = |y: &Tensor, x: &Tensor| sparse_categorical_cross_entropy(y, x, Prediction::Logits);
    let trainer = Trainer::new(network, Optimizer::new(Adam::default(), 1e-2)?, loss)?
        .metric(sparse_categorical_accuracy()?.named("accuracy"));
    let examples = DataPipeline::of((0..40).collect::<Vec<i32>>()).shuffle(40, 9).map(|n| {
        let n = n as f32;
        vec![Tensor::from([n.sin(), n.cos(), n / 40.0]), Tensor::from(i32::from(n.sin() > 0.0))]
    });
    Ok((trainer, examples.batch(5, false).prefetch(2)))
}

const BATCH_FOLDER: &str = "FERROFLOW_TEST_TRAINING_BATCHES";

/// The program that is killed within an epoch; without its folder it does nothing.
#[test]
fn trains_until_it_is_killed_within_an_epoch() -> Outcome {
    let Some(folder) = std::env::var_os(BATCH_FOLDER) else { return Ok(()) };
    let (trainer, examples) = dropping()?;
    let mut stop = EarlyStopping::on("loss").patience(1_000_000);
    let seen = stop.clone();
    let checkpoint = Checkpoint::new().with("trainer", &trainer).with("stop", &seen);
    let mut manager = CheckpointManager::new(checkpoint, &folder, ManagerOptions::default())?;
    let mut checkpoints = Checkpoints::new(&mut manager).each_batches(3);
    // It hangs after batch 6 of epoch 2, of which the last checkpoint has 6.
    let mut hang = HangAt([2, 6]);
    let options = FitOptions::default();
    let options = options.callback(&mut stop).callback(&mut checkpoints).callback(&mut hang);
    trainer.fit(&examples, 1_000_000, options)?;
    Ok(())
}

/// The layers of a network that draw numbers.
fn generators(trainer: &Trainer) -> Result<Vec<SeedGenerator>, Box<dyn Error>> {
    let graph = ObjectGraph::of(trainer)?;
    let origins = graph.nodes.iter().filter_map(|node| node.origin.as_ref());
    Ok(origins.filter_map(|origin| origin.downcast_ref::<SeedGenerator>()).cloned().collect())
}

/// Seed and count of each of them.
fn seeds(trainer: &Trainer) -> Result<Vec<Vec<i64>>, Box<dyn Error>> {
    let state = |generator: &SeedGenerator| generator.state()?.read()?.to_vec::<i64>();
    Ok(generators(trainer)?.iter().map(state).collect::<Result<_, _>>()?)
}

struct HangAt([usize; 2]);

impl ferroflow::train::Callback for HangAt {
    fn batch_end(&mut self, training: &Training, batch: usize, _: f64) -> CallbackResult {
        let epoch = training.epoch().read()?.to_scalar::<i64>()? as usize;
        if [epoch, batch] == self.0 {
            let folder = std::env::var_os(BATCH_FOLDER).ok_or("a folder")?;
            std::fs::write(Path::new(&folder).join("hangs"), "")?;
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[test]
fn a_training_that_is_killed_within_an_epoch_goes_on_with_the_next_batch() -> Outcome {
    let folder = tempfile::tempdir()?;
    let mut killed = Command::new(std::env::current_exe()?)
        .args(["--exact", "training::trains_until_it_is_killed_within_an_epoch"])
        .env(BATCH_FOLDER, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let began = Instant::now();
    while !folder.path().join("hangs").exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "it does not come so far");
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.kill()?;
    killed.wait()?;

    let (resumed, examples) = dropping()?;
    let mut stop = EarlyStopping::on("loss").patience(1_000_000);
    let seen = stop.clone();
    let checkpoint = Checkpoint::new().with("trainer", &resumed).with("stop", &seen);
    let manager = CheckpointManager::new(checkpoint, folder.path(), Default::default())?;
    let status = manager.restore_or_initialize(|| Ok(()))?.ok_or("a checkpoint")?;
    status.assert_existing_objects_matched()?;
    let at = |of: &Variable| of.read()?.to_scalar::<i64>();
    assert_eq!([at(resumed.epoch())?, at(resumed.batch())?], [2, 6]);
    let best = stop.best().ok_or("epochs were seen")?;
    let (undisturbed, _) = dropping()?;
    // Layers without a seed have another one each time: the resumed ones have those of the killed ones.
    let seeds = seeds(&resumed)?;
    assert!(seeds.len() == 2 && seeds.iter().all(|seed| seed[1] == 2 * 8 + 6), "{seeds:?}");
    for (generator, seed) in generators(&undisturbed)?.iter().zip(&seeds) {
        generator.state()?.assign(Tensor::from([seed[0], 0]))?;
    }
    // An evaluation does not disturb the figures of the epoch that goes on.
    resumed.evaluate(&examples)?;
    let history = resumed.fit(&examples, 4, FitOptions::default().callback(&mut stop))?;
    let whole = undisturbed.fit(&examples, 4, FitOptions::default())?;
    assert_eq!((history.first_epoch, &history.epochs[..]), (2, &whole.epochs[2..]));
    assert_eq!(values(undisturbed.training())?, values(resumed.training())?);
    assert_eq!(self::seeds(&undisturbed)?, self::seeds(&resumed)?);
    let losses = whole.all("loss");
    assert_eq!(best, losses[0].min(losses[1]));
    Ok(())
}

#[test]
fn epochs_that_a_callback_ends_begin_anew() -> Outcome {
    let (trainer, examples) = dropping()?;
    let mut n = 0;
    let mut stop = StopAfter(&mut n, 3);
    trainer.fit(&examples, 1, FitOptions::default().callback(&mut stop))?;
    assert_eq!(trainer.batch().read()?.to_scalar::<i64>()?, 0);
    let mut stop = StopAfter(&mut n, 100);
    trainer.fit(&examples, 1, FitOptions::default().callback(&mut stop))?;
    assert_eq!(n, 3 + 8);
    Ok(())
}

struct StopAfter<'a>(&'a mut usize, usize);

impl ferroflow::train::Callback for StopAfter<'_> {
    fn batch_end(&mut self, _: &Training, _: usize, _: f64) -> CallbackResult {
        *self.0 += 1;
        let is_over = *self.0 == self.1;
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

#[test]
fn figures_of_epochs_are_those_of_files() -> Outcome {
    let folder = tempfile::tempdir()?;
    let ((train, test), trainer) = (digits()?, trainer()?);
    let csv = folder.path().join("log.csv");
    for last in [2, 3] {
        let (mut log, mut board) = (CsvLog::append(&csv)?, TensorBoard::new(folder.path())?);
        let options = FitOptions::default().validation(&test);
        trainer.fit(&train, last, options.callback(&mut log).callback(&mut board))?;
    }
    let text = std::fs::read_to_string(&csv)?;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0], ["epoch", "loss", "accuracy", "val_loss", "val_accuracy"]);
    assert_eq!(lines[1..].iter().map(|line| line[0]).collect::<Vec<_>>(), ["0", "1", "2"]);
    let evaluated = trainer.evaluate(&test)?;
    assert_eq!(lines[3][3].parse::<f64>()?, evaluated.get("loss").ok_or("a loss")?);

    let mut written = Vec::new();
    for run in ["train", "validation"] {
        for file in std::fs::read_dir(folder.path().join(run))? {
            for event in events::read(&file?.path(), &Limits::default())? {
                let event = event?;
                let Some(What::Summary(summary)) = event.what else { continue };
                for value in summary.value {
                    let Some(Value::Tensor(tensor)) = value.value else { continue };
                    written.push((run, event.step, value.tag, tensor.float_val));
                }
            }
        }
    }
    assert_eq!(written.len(), 2 * 2 * 3);
    let loss = lines[3][3].parse::<f64>()? as f32;
    assert!(written.contains(&("validation", 2, "epoch_loss".into(), vec![loss])), "{written:?}");
    Ok(())
}

#[test]
fn a_training_that_gets_no_better_ends_with_its_best_weights() -> Outcome {
    let ((train, test), trainer) = (digits()?, trainer()?);
    let mut best = Vec::new();
    let mut seen = f64::INFINITY;
    let mut remember = EpochEnd(|training: &Training, _, logs: &ferroflow::train::Logs| {
        let loss = logs.get("val_loss").ok_or("validated")?;
        if loss < seen {
            (seen, best) = (loss, values(training).map_err(|error| error.to_string())?);
        }
        Ok(ControlFlow::Continue(()))
    });
    let mut stop = EarlyStopping::on("val_loss").patience(2).restore_best_weights();
    let options = FitOptions::default().validation(&test);
    let history = trainer.fit(&train, 1000, options.callback(&mut remember).callback(&mut stop))?;
    let losses = history.all("val_loss");
    let n = losses.len();
    assert!(n < 1000 && stop.stopped() == Some(n as u64 - 1), "{losses:?}");
    assert!(
        losses[n - 2..].iter().all(|loss| *loss >= seen) && losses[n - 3] == seen,
        "{losses:?}"
    );
    let weights = trainer.network().variables()?.len();
    assert_eq!(values(trainer.training())?[..weights], best[..weights]);
    assert_eq!(trainer.evaluate(&test)?.get("loss"), Some(seen));
    Ok(())
}

#[test]
fn learning_rates_fall_on_plateaus() -> Outcome {
    let rate = Variable::new(0.5f32)?;
    let optimizer = Optimizer::new(Adam::default(), LearningRate::from(&rate))?;
    let network = Dense::new(&mut Weights::seeded(1), 1, 1)?;
    let no_loss = |y: &Tensor, x: &Tensor| (x - y)?.zeros_like()? * (x - y)?;
    let trainer = Trainer::new(network, optimizer, no_loss)?;
    let batch = Tensor::from([[1.0f32]]);
    let mut plateau = ReduceOnPlateau::new(&rate, "loss").patience(2).min_rate(0.01);
    trainer.fit(
        &vec![vec![batch.clone(), batch]],
        9,
        FitOptions::default().callback(&mut plateau),
    )?;
    assert_eq!(rate.read()?.to_scalar::<f32>()?, 0.01);
    Ok(())
}

#[test]
fn what_goes_wrong_has_its_place() -> Outcome {
    let trainer = trainer()?;
    let image = Tensor::from_slice(&[1, 8, 8, 1], &[0.5f32; 64])?;
    let label = Tensor::from([3i32]);
    let good = vec![image.clone(), label.clone()];
    let fit = |batch: Vec<Tensor>| {
        trainer.fit(&vec![good.clone(), batch], 1000, FitOptions::default()).unwrap_err()
    };
    let error = fit(vec![image.clone()]);
    assert!(matches!(error, TrainError::Batch { epoch: 0, batch: 1, found: 1 }), "{error}");
    let error = fit(vec![label.clone(), label.clone()]);
    assert!(matches!(error, TrainError::Step { epoch: 0, batch: 1, .. }), "{error}");
    let mut stop = EarlyStopping::on("val_loss");
    let options = FitOptions::default().callback(&mut stop);
    let error = trainer.fit(&vec![good.clone()], 1, options).unwrap_err().to_string();
    assert!(
        error.contains("no figure `val_loss` is logged; there are `loss`, `accuracy`"),
        "{error}"
    );
    let nan = vec![Tensor::from_slice(&[1, 8, 8, 1], &[f32::NAN; 64])?, label];
    let history = trainer.fit(&vec![nan], 5, FitOptions::default().callback(&mut StopOnNan))?;
    assert!(history.epochs.is_empty());
    Ok(())
}

#[test]
fn networks_compute_in_bfloat16_with_weights_of_float32() -> Outcome {
    let ((train, _), plain) = (digits()?, trainer()?);
    let mixed = trainer()?.with_policy(DTypePolicy::MIXED_BFLOAT16)?;
    let losses = |trainer: &Trainer| {
        Ok::<_, TrainError>(trainer.fit(&train, 3, FitOptions::default())?.all("loss"))
    };
    let (exact, rounded) = (losses(&plain)?, losses(&mixed)?);
    assert!(exact != rounded, "nothing is rounded");
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.1 * a;
    assert!(exact.iter().zip(&rounded).all(near), "{exact:?} and {rounded:?}");
    for variable in mixed.network().variables()? {
        assert_eq!(variable.dtype(), DType::F32);
    }
    let image = Tensor::from_slice(&[1, 8, 8, 1], &[0.5f32; 64])?;
    let (found, expected) =
        (mixed.predict(&image)?, mixed.network().call(&image.cast(DType::BF16)?, Mode::Inference)?);
    assert_eq!(found.to_vec::<f32>()?, expected.cast(DType::F32)?.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn slots_take_restored_values_when_they_are_made() -> Outcome {
    check_slots(false)?;
    check_slots(true)
}

fn check_slots(is_scaled: bool) -> Outcome {
    let start = || {
        let w = Variable::new([1.0f32, -2.0])?;
        let loss_scale = is_scaled.then(|| LossScale::new(LossScaleOptions::default()));
        let options = OptimizerOptions {
            learning_rate: 0.1.into(),
            loss_scale: loss_scale.transpose()?,
            ..OptimizerOptions::default()
        };
        let optimizer = Optimizer::with_options(Adam::default(), options)?;
        Ok::<_, ferroflow::tracer::Error>((w, optimizer))
    };
    let step = |w: &Variable, optimizer: &Optimizer| {
        let tape = GradientTape::new();
        let loss = w.read()?.square()?.sum_all()?;
        optimizer.minimize(tape, &loss, std::slice::from_ref(w))
    };
    let folder = tempfile::tempdir()?;
    let (w, optimizer) = start()?;
    let saved = Checkpoint::new().with("w", &w).with("optimizer", &optimizer);
    let mut prefixes = Vec::new();
    for _ in 0..2 {
        step(&w, &optimizer)?;
        prefixes.push(saved.save(folder.path().join("state"))?);
    }
    step(&w, &optimizer)?;
    let expected = w.read()?.to_vec::<f32>()?;

    // The second checkpoint takes the place of the first, whose values waited.
    let (w, optimizer) = start()?;
    let restored = Checkpoint::new().with("w", &w).with("optimizer", &optimizer);
    for prefix in &prefixes {
        restored.restore(prefix)?.assert_existing_objects_matched()?;
    }
    let in_function = function({
        let (w, optimizer) = (w.clone(), optimizer.clone());
        move || step(&w, &optimizer)
    });
    in_function.call(())?;
    assert_eq!(w.read()?.to_vec::<f32>()?, expected);
    restored.restore(&prefixes[1])?.assert_consumed()?;

    let (wide, optimizer) = (Variable::new([1.0f32, 2.0, 3.0])?, start()?.1);
    let other = Checkpoint::new().with("optimizer", &optimizer);
    other.restore(&prefixes[0])?.expect_partial();
    let error = step(&wide, &optimizer).unwrap_err().to_string();
    assert!(error.contains("[2]") && error.contains("optimizer"), "{error}");
    Ok(())
}
