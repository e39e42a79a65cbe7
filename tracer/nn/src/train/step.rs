//! The steps of a training: code that is traced.

use super::Logs;
use crate::{
    DTypePolicy, Layer, LayerValue, Mode, Module, SeedGenerator,
    losses::{Loss, masked_sum_weights, masked_weights, weighted_mean},
    metrics::{Mean, Metric},
    optimizers::Optimizer,
};
use ferroflow_ir::DType;
use ferroflow_runtime::trackable::ObjectGraph;
use ferroflow_tracer::{GradientTape, Result, Tensor, Variable};
use std::sync::Arc;

/// Objects that a step works with.
#[derive(Clone)]
pub(super) struct StepParts {
    pub(super) network: Arc<dyn Layer>,
    pub(super) optimizer: Optimizer,
    pub(super) loss: Arc<dyn Loss>,
    pub(super) mean_loss: Mean,
    pub(super) metrics: Vec<Arc<dyn Metric>>,
    pub(super) policy: Option<DTypePolicy>,
}

impl StepParts {
    /// The predictions, in `float32` where they are computed in another dtype, with their mask and the
    /// losses of layers.
    pub(super) fn predict(&self, x: &Tensor, mode: Mode) -> Result<LayerValue> {
        let Some(policy) = self.policy else { return self.network.propagate(&x.into(), mode) };
        let y = self.network.propagate(&LayerValue::from(x).under(policy)?, mode)?;
        Ok(if y.tensor.dtype() == policy.compute_dtype() {
            y.with_tensor(y.tensor.cast(DType::F32)?)
        } else {
            y
        })
    }

    fn loss(&self, y: &Tensor, prediction: &LayerValue, w: Option<&Tensor>) -> Result<Tensor> {
        let losses = self.loss.per_example(y, &prediction.tensor)?;
        let mut loss = match &prediction.mask {
            Some(mask) => weighted_mean(&losses, Some(&masked_weights(mask, w)?)),
            None => weighted_mean(&losses, w),
        }?;
        let penalties = self.network.regularization_losses()?;
        for penalty in penalties.iter().chain(&prediction.losses) {
            loss = (&loss + penalty.cast(loss.dtype())?)?;
        }
        Ok(loss)
    }

    /// A step along the gradients of a batch; its loss.
    pub(super) fn train(&self, x: &Tensor, y: &Tensor, w: Option<&Tensor>) -> Result<Tensor> {
        let tape = GradientTape::new();
        let prediction = self.predict(x, Mode::Training)?;
        let loss = self.loss(y, &prediction, w)?;
        self.optimizer.minimize(tape, &loss, &self.network.trainable_variables()?)?;
        self.count(&loss, y, &prediction, w)?;
        Ok(loss)
    }

    /// The loss of a batch, without a step.
    pub(super) fn test(&self, x: &Tensor, y: &Tensor, w: Option<&Tensor>) -> Result<Tensor> {
        let prediction = self.predict(x, Mode::Inference)?;
        let loss = self.loss(y, &prediction, w)?;
        self.count(&loss, y, &prediction, w)?;
        Ok(loss)
    }

    /// Updates the mean of losses, each by the size of its batch, and the metrics.
    fn count(&self, loss: &Tensor, y: &Tensor, x: &LayerValue, w: Option<&Tensor>) -> Result<()> {
        let size = x.tensor.shape_tensor()?.gather(&Tensor::from(0))?.cast(DType::F32)?;
        self.mean_loss.add(loss, Some(&size))?;
        let masked = x.mask.as_ref().map(|mask| masked_sum_weights(mask, w)).transpose()?;
        self.metrics.iter().try_for_each(|metric| {
            let masked = masked.as_ref().filter(|_| metric.supports_masking());
            metric.update_weighted(y, &x.tensor, masked.or(w))
        })
    }

    /// The counts of the layers that draw numbers.
    pub(super) fn seed_states(&self) -> Vec<Variable> {
        // A network that makes no graph is told of when the whole is made one.
        let nodes = ObjectGraph::of(&self.network).map(|graph| graph.nodes).unwrap_or_default();
        let origins = nodes.iter().filter_map(|node| node.origin.as_ref());
        let generators = origins.filter_map(|origin| origin.downcast_ref::<SeedGenerator>());
        generators.filter_map(|generator| generator.state().ok()).collect()
    }

    /// The sums of the mean loss and of all metrics.
    pub(super) fn sums(&self) -> impl Iterator<Item = &Variable> {
        let metrics = self.metrics.iter().flat_map(|metric| metric.state());
        self.mean_loss.state().into_iter().chain(metrics)
    }

    /// Forgets all batches.
    pub(super) fn reset(&self) -> Result<()> {
        for sum in self.mean_loss.state() {
            sum.assign(0.0f32)?;
        }
        self.metrics.iter().try_for_each(|metric| metric.reset())
    }

    /// The figures of all batches since the reset.
    pub(super) fn logs(&self) -> Result<Logs> {
        let mut logs = Logs::default();
        logs.push("loss", f64::from(self.mean_loss.result()?.to_scalar::<f32>()?));
        for metric in &self.metrics {
            let figures = metric.result()?.cast(DType::F32)?.to_vec::<f32>()?;
            match figures[..] {
                [figure] => logs.push(metric.name(), figure.into()),
                _ => {
                    for (index, figure) in figures.into_iter().enumerate() {
                        logs.push(format!("{}_{index}", metric.name()), figure.into());
                    }
                }
            }
        }
        Ok(logs)
    }
}
