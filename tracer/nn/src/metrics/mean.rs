//! Means and sums of values.

use super::{Metric, quotient};
use crate::{losses::Loss, ranks::same_rank, state::sum_state};
use ferroflow_ir::DType;
use ferroflow_runtime::trackable::Description;
use ferroflow_tracer::{Result, Tensor, Trackable, Variable, ops};
use std::{fmt, sync::Arc};

/// The mean of values, such as losses of batches.
///
/// State: `total` and `count`, scalars.
#[derive(Trackable, Debug, Clone)]
pub struct Mean {
    total: Variable,
    count: Variable,
}

impl Mean {
    /// The mean of no values, which is 0.
    ///
    /// # Errors
    ///
    /// None at present: its state is made outside all traces.
    pub fn new() -> Result<Mean> {
        Ok(Mean { total: sum_state("total", &[])?, count: sum_state("count", &[])? })
    }

    /// Takes values in: the first dimension numbers examples, whose other values are averaged.
    ///
    /// # Errors
    ///
    /// When the weights do not broadcast to the values.
    pub fn add(&self, values: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        let (values, weights) = samples(values, weights, Tensor::mean)?;
        self.total.assign_add(values.sum_all()?)?;
        let number = match weights {
            Some(weights) => weights.sum_all()?,
            None => ops::size(&values)?.cast(DType::F32)?,
        };
        self.count.assign_add(number)
    }

    /// The mean, a scalar.
    ///
    /// # Errors
    ///
    /// When the state cannot be read.
    pub fn result(&self) -> Result<Tensor> {
        quotient(&self.total.read()?, &self.count.read()?)
    }

    /// Its sums.
    pub fn state(&self) -> [&Variable; 2] {
        [&self.total, &self.count]
    }
}

/// The sum of values.
///
/// State: `total`, a scalar.
#[derive(Trackable, Debug, Clone)]
pub struct Sum {
    total: Variable,
}

impl Sum {
    /// The sum of no values.
    ///
    /// # Errors
    ///
    /// None at present: its state is made outside all traces.
    pub fn new() -> Result<Sum> {
        Ok(Sum { total: sum_state("total", &[])? })
    }

    /// Takes values in, each times its weight.
    ///
    /// # Errors
    ///
    /// When the weights do not broadcast to the values.
    pub fn add(&self, values: &Tensor, weights: Option<&Tensor>) -> Result<()> {
        let (values, _) = samples(values, weights, Tensor::sum)?;
        self.total.assign_add(values.sum_all()?)
    }

    /// The sum, a scalar.
    ///
    /// # Errors
    ///
    /// When the state cannot be read.
    pub fn result(&self) -> Result<Tensor> {
        self.total.read()
    }
}

/// A value for each example, times its weight, and the weights (`reduce_to_samplewise_values`).
fn samples(
    values: &Tensor,
    weights: Option<&Tensor>,
    reduce: fn(&Tensor, &[i32]) -> Result<Tensor>,
) -> Result<(Tensor, Option<Tensor>)> {
    let mut values = values.cast(DType::F32)?;
    let rank = |x: &Tensor| x.shape().rank().map_or(1, |rank| rank as i32);
    let Some(weights) = weights else {
        let axes: Vec<i32> = (1..rank(&values)).collect();
        return Ok((if axes.is_empty() { values } else { reduce(&values, &axes)? }, None));
    };
    let (same, mut weights) = same_rank(&values, &weights.cast(DType::F32)?)?;
    values = same;
    let weighted = rank(&weights);
    if rank(&values) > weighted {
        values = reduce(&values, &(weighted..rank(&values)).collect::<Vec<_>>())?;
    }
    weights = ops::broadcast_to(&weights, &values.shape_tensor()?)?;
    values = (values * &weights)?;
    if weighted > 1 {
        weights = reduce(&weights, &(1..weighted).collect::<Vec<_>>())?;
    }
    if rank(&values) > 1 {
        values = reduce(&values, &(1..rank(&values)).collect::<Vec<_>>())?;
    }
    Ok((values, Some(weights)))
}

/// The mean of what a function returns for each example: any [`Loss`] is a metric by it.
///
/// State: `total` and `count`, scalars.
#[derive(Clone)]
pub struct MeanMetric {
    mean: Mean,
    name: String,
    each: Arc<dyn Loss>,
    root: bool,
}

impl MeanMetric {
    /// The mean of a function of targets and predictions.
    ///
    /// # Errors
    ///
    /// None at present: its state is made outside all traces.
    pub fn new(name: impl Into<String>, each: impl Loss + 'static) -> Result<MeanMetric> {
        let (name, each) = (name.into(), Arc::new(each));
        Ok(MeanMetric { mean: Mean::new()?, name, each, root: false })
    }

    /// The square root of the mean in place of the mean.
    #[must_use]
    pub fn root(self) -> MeanMetric {
        MeanMetric { root: true, ..self }
    }

    /// The same metric under another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> MeanMetric {
        MeanMetric { name: name.into(), ..self }
    }
}

impl Trackable for MeanMetric {
    fn describe(&self, object: &mut Description<'_>) {
        self.mean.describe(object);
    }
}

impl Metric for MeanMetric {
    fn supports_masking(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn update_weighted(
        &self,
        target: &Tensor,
        prediction: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<()> {
        self.mean.add(&self.each.per_example(target, prediction)?, weights)
    }

    fn result(&self) -> Result<Tensor> {
        let mean = self.mean.result()?;
        if self.root { mean.sqrt() } else { Ok(mean) }
    }

    fn state(&self) -> Vec<&Variable> {
        self.mean.state().into()
    }
}

impl fmt::Debug for MeanMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeanMetric").field("name", &self.name).field("mean", &self.mean).finish()
    }
}
