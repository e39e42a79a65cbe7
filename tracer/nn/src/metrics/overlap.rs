//! Intersection over union of the classes of elements.

use super::Metric;
use crate::{losses::EPSILON, state::sum_of};
use ferroflow_ir::DType;
use ferroflow_tracer::{Result, Tensor, Variable, ops};
use ferroflow_tracer_macros::Trackable;

/// The options of an [`IntersectionOverUnion`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IouOptions {
    /// The classes whose mean is taken; all if there are none here.
    pub classes: Vec<i64>,
    /// A class of targets that does not count.
    pub ignored: Option<i64>,
    /// Whether targets are one-hot, or have a value for each class, in the last dimension.
    pub one_hot_target: bool,
    /// Whether predictions have a value for each class in the last dimension.
    pub one_hot_prediction: bool,
    /// Predictions are 1 from here on, else 0: for two classes.
    pub threshold: Option<f64>,
}

/// The mean over classes of the elements that target and prediction share, by those that either
/// has.
///
/// State: `total_cm`, the `int64` counts `[classes of targets, classes of predictions]`.
#[derive(Trackable, Debug, Clone)]
pub struct IntersectionOverUnion {
    total_cm: Variable,
    #[trackable(skip)]
    n_classes: usize,
    #[trackable(skip)]
    options: IouOptions,
}

/// The intersection over union of two classes: predictions from `threshold` on, 0.5 in Keras, are
/// 1.
///
/// # Errors
///
/// As [`IntersectionOverUnion::with_options`].
pub fn binary_iou(threshold: f64) -> Result<IntersectionOverUnion> {
    let options = IouOptions { threshold: Some(threshold), ..IouOptions::default() };
    IntersectionOverUnion::with_options(2, options)
}

impl IntersectionOverUnion {
    /// The mean over so many classes, whose numbers targets and predictions are.
    ///
    /// # Errors
    ///
    /// As [`with_options`](IntersectionOverUnion::with_options).
    pub fn new(n_classes: usize) -> Result<IntersectionOverUnion> {
        IntersectionOverUnion::with_options(n_classes, IouOptions::default())
    }

    /// The mean over some of so many classes.
    ///
    /// # Errors
    ///
    /// None at present: its state is made outside all traces.
    pub fn with_options(n_classes: usize, options: IouOptions) -> Result<IntersectionOverUnion> {
        let total_cm = sum_of("total_confusion_matrix", &[n_classes; 2], DType::I64)?;
        Ok(IntersectionOverUnion { total_cm, n_classes, options })
    }

    fn numbers(x: &Tensor, is_one_hot: bool) -> Result<Tensor> {
        let numbers = if is_one_hot { x.argmax(-1)? } else { x.cast(DType::I64)? };
        numbers.reshape(&[-1])
    }

    /// The elements whose classes are known and count.
    fn counted(&self, target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
        let n = self.n_classes as i64;
        let inside = |x: &Tensor| x.greater_equal(0)?.logical_and(&x.less(n)?);
        let counted = inside(target)?.logical_and(&inside(prediction)?)?;
        match self.options.ignored {
            Some(class) => counted.logical_and(&target.not_equal(class)?),
            None => Ok(counted),
        }
    }
}

impl Metric for IntersectionOverUnion {
    fn name(&self) -> &str {
        match (self.options.threshold, &self.options.classes[..]) {
            (Some(_), _) => "binary_io_u",
            (None, []) => "mean_io_u",
            (None, _) => "io_u",
        }
    }

    fn update_weighted(
        &self,
        target: &Tensor,
        prediction: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<()> {
        let prediction = match self.options.threshold {
            Some(threshold) => prediction.greater_equal(threshold)?,
            None => prediction.clone(),
        };
        let target = Self::numbers(target, self.options.one_hot_target)?;
        let prediction = Self::numbers(&prediction, self.options.one_hot_prediction)?;
        let weights = match weights {
            Some(weights) => {
                let weights = weights.cast(DType::I64)?;
                let weights = if weights.shape().rank() == Some(0) {
                    weights
                } else {
                    weights.reshape(&[-1])?
                };
                ops::broadcast_to(&weights, &target.shape_tensor()?)?
            }
            None => target.ones_like()?,
        };
        let counted = self.counted(&target, &prediction)?;
        let counted_only = |x: &Tensor| counted.select(x, 0);
        let indices = ops::pack_with(
            &[&counted_only(&target)?, &counted_only(&prediction)?],
            &ops::PackAttrs { axis: 1 },
        )?;
        let shape = Tensor::from([self.n_classes as i64; 2]);
        self.total_cm.assign_add(ops::scatter_nd(&indices, &counted_only(&weights)?, &shape)?)
    }

    fn result(&self) -> Result<Tensor> {
        let counts = self.total_cm.read()?;
        let shared = ops::diag_part(&counts)?;
        let either = ((counts.sum(&[0])? + counts.sum(&[1])?)? - &shared)?;
        let chosen = |x: &Tensor| match &self.options.classes[..] {
            [] => x.cast(DType::F32),
            classes => x.gather(&Tensor::from(classes.to_vec()))?.cast(DType::F32),
        };
        let (shared, either) = (chosen(&shared)?, chosen(&either)?);
        let occurs = either.greater(1e-9)?;
        let each = occurs.select(&(shared / (either + EPSILON)?)?, 0.0)?;
        each.sum_all()? / (occurs.cast(DType::F32)?.sum_all()? + EPSILON)?
    }

    fn state(&self) -> Vec<&Variable> {
        vec![&self.total_cm]
    }
}
