//! The loop of a training.

use super::{
    Callback, CallbackResult, ExampleBatches, Examples, FitHistory, Logs, TrainError, Training,
    step::StepParts,
};
use crate::{
    DTypePolicy, Layer, Mode,
    losses::Loss,
    metrics::{Mean, Metric},
    optimizers::Optimizer,
    state::state,
};
use ferroflow_ir::DType;
use ferroflow_runtime::trackable::Description;
use ferroflow_tracer::{
    Error, Function, FunctionOptions, Result, Tensor, Trackable, Variable, function_with,
};
use std::{fmt, ops::ControlFlow, sync::Arc};

type Step = Function<(Tensor, Tensor, Option<Tensor>), Tensor>;

/// A network with what trains it. Clones of a network, an optimizer or a metric that is passed
/// share its variables, so they see the training.
///
/// In object graphs and checkpoints it is `network`, `optimizer`, `epoch` and `batch`, the numbers of
/// epochs and of batches of the present one that are finished, `mean_loss` and `metrics` with the sums
/// of that epoch, and `seed_generators` with the counts of layers that draw numbers: a training that is
/// restored from a checkpoint within an epoch goes on with the next batch, bit for bit.
pub struct Trainer {
    parts: Arc<StepParts>,
    training: Training,
    step: Step,
    test: Step,
    predict: Function<(Tensor,), Tensor>,
}

/// Options of a training besides its data.
#[derive(Default)]
pub struct FitOptions<'a> {
    validation: Option<&'a dyn Examples>,
    callbacks: Vec<&'a mut dyn Callback>,
}

impl<'a> FitOptions<'a> {
    /// Examples on which the network is evaluated after each epoch.
    #[must_use]
    pub fn validation(self, examples: &'a dyn Examples) -> FitOptions<'a> {
        FitOptions { validation: Some(examples), ..self }
    }

    /// Adds a callback; they are called in this order.
    #[must_use]
    pub fn callback(mut self, callback: &'a mut dyn Callback) -> FitOptions<'a> {
        self.callbacks.push(callback);
        self
    }
}

impl Trainer {
    /// A trainer of a network: the optimizer minimises the mean of the loss of all examples, and
    /// what regularizers add.
    ///
    /// # Errors
    ///
    /// None at present: its state is made outside all traces.
    pub fn new(
        network: impl Layer + 'static,
        optimizer: Optimizer,
        loss: impl Loss + 'static,
    ) -> Result<Trainer> {
        let parts = StepParts {
            network: Arc::new(network),
            optimizer,
            loss: Arc::new(loss),
            mean_loss: Mean::new()?,
            metrics: Vec::new(),
            policy: None,
        };
        Ok(Trainer::of(parts, state("epoch", 0i64.into())?, state("batch", 0i64.into())?))
    }

    fn of(parts: StepParts, epoch: Variable, batch: Variable) -> Trainer {
        let StepParts { network, optimizer, .. } = parts.clone();
        let training = Training { network, optimizer, epoch, batch };
        // One trace for all batches, also the last one of an epoch, which may be smaller.
        let options = |name: &str| FunctionOptions {
            name: name.into(),
            reduce_retracing: true,
            ..FunctionOptions::default()
        };
        let parts = Arc::new(parts);
        let (stepping, testing, predicting) = (parts.clone(), parts.clone(), parts.clone());
        Trainer {
            training,
            step: function_with(
                options("train_step"),
                move |x: Tensor, y: Tensor, w: Option<Tensor>| stepping.train(&x, &y, w.as_ref()),
            ),
            test: function_with(
                options("test_step"),
                move |x: Tensor, y: Tensor, w: Option<Tensor>| testing.test(&x, &y, w.as_ref()),
            ),
            predict: function_with(options("predict_step"), move |x: Tensor| {
                predicting.predict(&x, Mode::Inference).map(|prediction| prediction.tensor)
            }),
            parts,
        }
    }

    fn with_parts(self, change: impl FnOnce(&mut StepParts)) -> Trainer {
        let mut parts = StepParts::clone(&self.parts);
        change(&mut parts);
        Trainer::of(parts, self.training.epoch, self.training.batch)
    }

    /// The same trainer with one more metric.
    #[must_use]
    pub fn metric(self, metric: impl Metric + 'static) -> Trainer {
        self.with_parts(|parts| parts.metrics.push(Arc::new(metric)))
    }

    /// The same trainer, whose network computes by a policy: in `bfloat16`, or in `float16`, for which the
    /// optimizer needs a loss scale ([`DTypePolicy::loss_scale`]). Predictions, losses and metrics stay
    /// `float32`. Layers of a [`Sequential`](crate::Sequential) compute in that dtype throughout; in a
    /// structure of layers so do those that get their input by [`Layer::propagate`] or from such.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when an optimizer without a loss scale is to train in `float16`.
    pub fn with_policy(self, policy: DTypePolicy) -> Result<Trainer> {
        if policy.compute_dtype() == DType::F16 && self.optimizer().loss_scale().is_none() {
            return Err(Error::Conversion {
                expected: format!("an optimizer with a loss scale, as {policy} needs"),
                found: format!("{:?}", self.optimizer()),
            });
        }
        Ok(self.with_parts(|parts| parts.policy = Some(policy)))
    }

    /// The network.
    pub fn network(&self) -> &Arc<dyn Layer> {
        self.training.network()
    }

    /// The optimizer.
    pub fn optimizer(&self) -> &Optimizer {
        self.training.optimizer()
    }

    /// The number of epochs that are finished, an `int64`.
    pub fn epoch(&self) -> &Variable {
        self.training.epoch()
    }

    /// The number of batches that are finished of the present epoch, an `int64`.
    pub fn batch(&self) -> &Variable {
        self.training.batch()
    }

    /// Training as callbacks see it.
    pub fn training(&self) -> &Training {
        &self.training
    }

    /// Trains until so many epochs are finished, counted from the first `fit` on. From a checkpoint that
    /// was saved within an epoch it goes on with the batch after it; an epoch that a callback or an
    /// error ended is begun anew.
    ///
    /// # Errors
    ///
    /// A batch that the network refuses, and errors of examples and callbacks, each with its place.
    pub fn fit(
        &self,
        examples: &dyn Examples,
        epochs: u64,
        mut options: FitOptions<'_>,
    ) -> Result<FitHistory, TrainError> {
        let first = self.finished()?;
        let mut history = FitHistory { first_epoch: first, epochs: Vec::new() };
        for epoch in first..epochs {
            let flow = self.fit_epoch(examples, epoch, &mut options, &mut history);
            self.training.batch.assign(0i64)?;
            if flow?.is_break() {
                break;
            }
        }
        let last = self.finished()?.saturating_sub(1);
        for callback in &mut options.callbacks {
            let ended = callback.train_end(&self.training);
            ended.map_err(|source| TrainError::Callback { epoch: last, source })?;
        }
        Ok(history)
    }

    fn finished(&self) -> Result<u64> {
        Ok(self.training.epoch.read()?.to_scalar::<i64>()?.max(0).unsigned_abs())
    }

    fn fit_epoch(
        &self,
        examples: &dyn Examples,
        epoch: u64,
        options: &mut FitOptions<'_>,
        history: &mut FitHistory,
    ) -> Result<ControlFlow<()>, TrainError> {
        let callbacks = &mut options.callbacks;
        let n_batches = examples.n_batches();
        let begin = all(callbacks, epoch, |callback| {
            callback.epoch_begin(&self.training, epoch, n_batches)
        })?;
        if begin.is_break() {
            return Ok(begin);
        }
        let n_done = self.training.n_batches_done()?;
        if n_done == 0 {
            self.parts.reset()?;
        }
        let batches = examples.epoch_from(epoch, n_done);
        let flow = each_batch(&self.step, batches, [epoch, n_done as u64], &mut |batch, loss| {
            self.training.batch.assign(batch as i64 + 1)?;
            if callbacks.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            let loss = f64::from(loss.to_scalar::<f32>()?);
            all(callbacks, epoch, |callback| callback.batch_end(&self.training, batch, loss))
        })?;
        if flow.is_break() {
            return Ok(flow);
        }
        let mut logs = self.parts.logs()?;
        if let Some(validation) = options.validation {
            logs.extend_validation(self.evaluate_epoch(validation, epoch)?);
        }
        self.training.epoch.assign(epoch as i64 + 1)?;
        self.training.batch.assign(0i64)?;
        let flow =
            all(callbacks, epoch, |callback| callback.epoch_end(&self.training, epoch, &logs))?;
        history.epochs.push(logs);
        Ok(flow)
    }

    /// The loss and all metrics on examples, without training.
    ///
    /// # Errors
    ///
    /// As [`fit`](Trainer::fit).
    pub fn evaluate(&self, examples: &dyn Examples) -> Result<Logs, TrainError> {
        if self.training.n_batches_done()? == 0 {
            return self.evaluate_epoch(examples, 0);
        }
        // The sums are those of an epoch that a checkpoint has left unfinished.
        let sums: Vec<Variable> = self.parts.sums().cloned().collect();
        let kept = sums.iter().map(Variable::read).collect::<Result<Vec<Tensor>>>()?;
        let logs = self.evaluate_epoch(examples, 0);
        sums.iter().zip(&kept).try_for_each(|(sum, kept)| sum.assign(kept))?;
        logs
    }

    fn evaluate_epoch(&self, examples: &dyn Examples, epoch: u64) -> Result<Logs, TrainError> {
        self.parts.reset()?;
        let mut go_on = |_, _| Ok(ControlFlow::Continue(()));
        let _ = each_batch(&self.test, examples.epoch(epoch), [epoch, 0], &mut go_on)?;
        Ok(self.parts.logs()?)
    }

    /// The predictions for inputs.
    ///
    /// # Errors
    ///
    /// When the inputs do not fit the network.
    pub fn predict(&self, x: &Tensor) -> Result<Tensor> {
        self.predict.call((x,))
    }
}

/// Calls a step for each batch of an epoch, of which the first has a number, until `then` ends it.
fn each_batch(
    step: &Step,
    batches: ExampleBatches<'_>,
    [epoch, first]: [u64; 2],
    then: &mut dyn FnMut(usize, Tensor) -> Result<ControlFlow<()>, TrainError>,
) -> Result<ControlFlow<()>, TrainError> {
    for (batch, tensors) in (first as usize..).zip(batches) {
        let tensors = tensors.map_err(|source| TrainError::Examples { epoch, batch, source })?;
        let (x, y, w) = match &tensors[..] {
            [x, y] => (x, y, None),
            [x, y, w] => (x, y, Some(w.clone())),
            other => return Err(TrainError::Batch { epoch, batch, found: other.len() }),
        };
        let loss = step.call((x, y, w));
        let loss =
            loss.map_err(|error| TrainError::Step { epoch, batch, source: Box::new(error) })?;
        if then(batch, loss)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Calls all callbacks; the training ends if one of them says so.
fn all(
    callbacks: &mut [&mut dyn Callback],
    epoch: u64,
    mut call: impl FnMut(&mut dyn Callback) -> CallbackResult,
) -> Result<ControlFlow<()>, TrainError> {
    let mut flow = ControlFlow::Continue(());
    for callback in callbacks {
        let next = call(&mut **callback);
        if next.map_err(|source| TrainError::Callback { epoch, source })?.is_break() {
            flow = ControlFlow::Break(());
        }
    }
    Ok(flow)
}

impl Trackable for Trainer {
    fn describe(&self, object: &mut Description<'_>) {
        object.child("network", &self.training.network);
        object.child("optimizer", &self.training.optimizer);
        object.child("epoch", &self.training.epoch);
        object.child("batch", &self.training.batch);
        object.child("mean_loss", &self.parts.mean_loss);
        object.child("metrics", &self.parts.metrics);
        object.child("seed_generators", &self.parts.seed_states());
    }
}

impl fmt::Debug for Trainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parts.metrics.iter().map(|metric| metric.name()).collect();
        f.debug_struct("Trainer")
            .field("metrics", &names)
            .field("epoch", &self.training.epoch)
            .finish()
    }
}
