//! Outcomes at many thresholds: areas under curves, and rates under a constraint.

use super::{Metric, confusion::beside, quotient};
use crate::{ranks::same_rank, state::sum_state};
use ferroflow_ir::DType;
use ferroflow_runtime::trackable::Description;
use ferroflow_tracer::{Error, Result, Tensor, Trackable, Variable, ops};

/// The outcomes at thresholds that divide 0 to 1 evenly.
#[derive(Trackable, Debug, Clone)]
struct Rates {
    true_positives: Variable,
    false_positives: Variable,
    true_negatives: Variable,
    false_negatives: Variable,
}

impl Rates {
    fn new(n_thresholds: usize) -> Result<Rates> {
        if n_thresholds < 2 {
            let (expected, found) = ("at least two thresholds".into(), n_thresholds.to_string());
            return Err(Error::Conversion { expected, found });
        }
        let sum = |name| sum_state(name, &[n_thresholds]);
        Ok(Rates {
            true_positives: sum("true_positives")?,
            false_positives: sum("false_positives")?,
            true_negatives: sum("true_negatives")?,
            false_negatives: sum("false_negatives")?,
        })
    }

    fn state(&self) -> Vec<&Variable> {
        vec![
            &self.true_positives,
            &self.false_positives,
            &self.true_negatives,
            &self.false_negatives,
        ]
    }

    fn n_thresholds(&self) -> usize {
        self.true_positives.shape().dim(0).unwrap_or(0)
    }

    /// Counts the predictions between each threshold and the next, and adds up from the last: those
    /// above a threshold are positive. `above_first` is whether predictions of 0 are above the first.
    fn update(
        &self,
        target: &Tensor,
        prediction: &Tensor,
        weights: Option<&Tensor>,
        above_first: bool,
    ) -> Result<()> {
        let (prediction, target) =
            same_rank(&prediction.cast(DType::F32)?, &target.cast(DType::F32)?)?;
        let weights = match weights {
            Some(weights) => beside(weights, &prediction)?,
            None => prediction.ones_like()?,
        };
        let weights = weights.reshape(&[-1])?;
        let target = target.cast(DType::Bool)?.cast(DType::F32)?.reshape(&[-1])?;
        let n = self.n_thresholds();
        let p = prediction.maximum(0.0)?.minimum(1.0)?.reshape(&[-1])?;
        let bucket = (ops::ceil(&(p * (n as f64 - 1.0))?)? - 1.0)?;
        let bucket = if above_first { bucket.maximum(0.0)? } else { bucket };
        let bucket = bucket.cast(DType::I32)?;
        let (are_true, are_false) = ((&target * &weights)?, ((1.0 - &target)? * &weights)?);
        let above = |counted: &Tensor| {
            let each = ops::unsorted_segment_sum(counted, &bucket, &Tensor::from(n as i32))?;
            let attrs = ops::CumsumAttrs { exclusive: false, reverse: true };
            ops::cumsum_with(&each, &Tensor::from(0), &attrs)
        };
        let (right, wrong) = (above(&are_true)?, above(&are_false)?);
        self.false_negatives.assign_add((are_true.sum_all()? - &right)?)?;
        self.true_negatives.assign_add((are_false.sum_all()? - &wrong)?)?;
        self.true_positives.assign_add(right)?;
        self.false_positives.assign_add(wrong)
    }

    /// `a / (a + b)` at each threshold.
    fn part(a: &Variable, b: &Variable) -> Result<Tensor> {
        let a = a.read()?;
        quotient(&a, &(&a + b.read()?)?)
    }

    /// True positives of all that is true: recall, the sensitivity.
    fn recall(&self) -> Result<Tensor> {
        Rates::part(&self.true_positives, &self.false_negatives)
    }

    /// True positives of all that is predicted.
    fn precision(&self) -> Result<Tensor> {
        Rates::part(&self.true_positives, &self.false_positives)
    }

    /// True negatives of all that is not true.
    fn specificity(&self) -> Result<Tensor> {
        Rates::part(&self.true_negatives, &self.false_positives)
    }

    /// False positives of all that is not true.
    fn false_positive_rate(&self) -> Result<Tensor> {
        Rates::part(&self.false_positives, &self.true_negatives)
    }
}

/// The curve under which an area is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Curve {
    /// Recall over the false positive rate: the receiver operating characteristic.
    #[default]
    Roc,
    /// Precision over recall.
    PrecisionRecall,
}

/// The sum that approximates the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Summation {
    /// The middle of each interval; for [`Curve::PrecisionRecall`] with positives that change evenly
    /// between thresholds (Davis and Goadrich 2006).
    #[default]
    Interpolation,
    /// A lower bound.
    Minoring,
    /// An upper bound.
    Majoring,
}

/// The options of an [`Auc`].
#[derive(Debug, Clone, PartialEq)]
pub struct AucOptions {
    /// The number of thresholds, evenly from 0 to 1.
    pub n_thresholds: usize,
    /// The curve.
    pub curve: Curve,
    /// The approximation.
    pub summation: Summation,
    /// Whether predictions are logits, of which the sigmoid is taken.
    pub logits: bool,
}

impl Default for AucOptions {
    fn default() -> AucOptions {
        AucOptions {
            n_thresholds: 200,
            curve: Curve::Roc,
            summation: Summation::Interpolation,
            logits: false,
        }
    }
}

/// The area under a curve that thresholds trace.
///
/// State: `true_positives`, `false_positives`, `true_negatives`, `false_negatives`, `[thresholds]`.
#[derive(Debug, Clone)]
pub struct Auc {
    rates: Rates,
    options: AucOptions,
}

impl Auc {
    /// The area under the receiver operating characteristic, by 200 thresholds.
    ///
    /// # Errors
    ///
    /// As [`with_options`](Auc::with_options).
    pub fn new() -> Result<Auc> {
        Auc::with_options(AucOptions::default())
    }

    /// An area.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] for fewer than two thresholds.
    pub fn with_options(options: AucOptions) -> Result<Auc> {
        let rates = Rates::new(options.n_thresholds)?;
        Ok(Auc { rates, options })
    }

    /// All but the last, and all but the first.
    fn neighbours(&self, x: &Tensor) -> Result<(Tensor, Tensor)> {
        let size = Tensor::from([self.options.n_thresholds as i32 - 1]);
        let from = |begin: i32| ops::slice(x, &Tensor::from([begin]), &size);
        Ok((from(0)?, from(1)?))
    }

    fn interpolated_precision_recall(&self) -> Result<Tensor> {
        let (right, wrong) =
            (self.rates.true_positives.read()?, self.rates.false_positives.read()?);
        let (right_low, right_high) = self.neighbours(&right)?;
        let (low, high) = self.neighbours(&(right + wrong)?)?;
        let (_, missed) = self.neighbours(&self.rates.false_negatives.read()?)?;
        let more = (right_low - &right_high)?;
        let slope = quotient(&more, &(&low - &high)?.maximum(0.0)?)?;
        let intercept = (&right_high - (&slope * &high)?)?;
        let both = low.greater(0.0)?.logical_and(&high.greater(0.0)?)?;
        let ratio = both.select(&quotient(&low, &high.maximum(0.0)?)?, 1.0)?;
        let area = (slope * (more + (intercept * ratio.log()?)?)?)?;
        quotient(&area, &(right_high + missed)?.maximum(0.0)?)?.sum_all()
    }
}

impl Trackable for Auc {
    fn describe(&self, object: &mut Description<'_>) {
        self.rates.describe(object);
    }
}

impl Metric for Auc {
    fn name(&self) -> &str {
        "auc"
    }

    fn update_weighted(
        &self,
        target: &Tensor,
        prediction: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<()> {
        let probability =
            if self.options.logits { prediction.sigmoid()? } else { prediction.clone() };
        self.rates.update(target, &probability, weights, true)
    }

    fn result(&self) -> Result<Tensor> {
        let (x, y) = match (self.options.curve, self.options.summation) {
            (Curve::PrecisionRecall, Summation::Interpolation) => {
                return self.interpolated_precision_recall();
            }
            (Curve::PrecisionRecall, _) => (self.rates.recall()?, self.rates.precision()?),
            (Curve::Roc, _) => (self.rates.false_positive_rate()?, self.rates.recall()?),
        };
        let ((y_low, y_high), (x_low, x_high)) = (self.neighbours(&y)?, self.neighbours(&x)?);
        let height = match self.options.summation {
            Summation::Interpolation => ((y_low + y_high)? / 2.0)?,
            Summation::Minoring => y_low.minimum(&y_high)?,
            Summation::Majoring => y_low.maximum(&y_high)?,
        };
        ((x_low - x_high)? * height)?.sum_all()
    }

    fn state(&self) -> Vec<&Variable> {
        self.rates.state()
    }
}

type Rate = fn(&Rates) -> Result<Tensor>;

/// The largest rate at a threshold where another rate is at least a bound:
/// [`precision_at_recall`] and its like.
///
/// State: that of [`Auc`].
#[derive(Debug, Clone)]
pub struct ConstrainedRate {
    rates: Rates,
    name: &'static str,
    bound: f64,
    of: Rate,
    under: Rate,
}

impl ConstrainedRate {
    fn new(name: &'static str, of: Rate, under: Rate, bound: f64, n: usize) -> Result<Self> {
        if !(0.0..=1.0).contains(&bound) {
            let (expected, found) = ("a bound from 0 to 1".into(), bound.to_string());
            return Err(Error::Conversion { expected, found });
        }
        let rates = Rates::new(n)?;
        Ok(ConstrainedRate { rates, name, bound, of, under })
    }
}

impl Trackable for ConstrainedRate {
    fn describe(&self, object: &mut Description<'_>) {
        self.rates.describe(object);
    }
}

impl Metric for ConstrainedRate {
    fn name(&self) -> &str {
        self.name
    }

    fn update_weighted(
        &self,
        target: &Tensor,
        prediction: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<()> {
        self.rates.update(target, prediction, weights, false)
    }

    fn result(&self) -> Result<Tensor> {
        let feasible = (self.under)(&self.rates)?.greater_equal(self.bound)?;
        feasible.select(&(self.of)(&self.rates)?, 0.0)?.max_all()
    }

    fn state(&self) -> Vec<&Variable> {
        self.rates.state()
    }
}

macro_rules! constrained {
    ($($(#[$doc:meta])* $name:ident($of:ident where $under:ident);)*) => {$(
        $(#[$doc])*
        /// There are 200 thresholds in Keras.
        ///
        /// # Errors
        ///
        /// [`Error::Conversion`] for a bound that is not from 0 to 1, or fewer than two thresholds.
        pub fn $name(bound: f64, n_thresholds: usize) -> Result<ConstrainedRate> {
            ConstrainedRate::new(stringify!($name), Rates::$of, Rates::$under, bound, n_thresholds)
        }
    )*};
}

constrained! {
    /// The largest precision where recall is at least `bound`.
    precision_at_recall(precision where recall);
    /// The largest recall where precision is at least `bound`.
    recall_at_precision(recall where precision);
    /// The largest sensitivity where specificity is at least `bound`.
    sensitivity_at_specificity(recall where specificity);
    /// The largest specificity where sensitivity is at least `bound`.
    specificity_at_sensitivity(specificity where recall);
}
