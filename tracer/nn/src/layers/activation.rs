//! Functions of single numbers that layers end with.

use super::{
    Layer, Mode,
    compute::{input, sum},
    rows,
};
use ferroflow_runtime::trackable::{Description, Trackable};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// The function applied to the results of a layer; also a layer of its own.
///
/// ```
/// use ferroflow_nn::{Activation, Layer, Mode};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let y = Activation::Relu.apply(&Tensor::from([-1.0f32, 2.0]))?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
/// let y = Activation::LeakyRelu(0.5).call(&Tensor::from([-1.0f32, 2.0]), Mode::Inference)?;
/// assert_eq!(y.to_vec::<f32>()?, [-0.5, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Activation {
    /// Nothing.
    #[default]
    Linear,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x` where it is positive, this part of it elsewhere.
    LeakyRelu(f32),
    /// `x` where it is positive, `exp(x) - 1` elsewhere.
    Elu,
    /// [`Elu`](Activation::Elu), scaled such that mean and variance are kept (Klambauer et al. 2017).
    Selu,
    /// `x` where it is positive, `alpha·(exp(x / alpha) - 1)` elsewhere (Barron 2017).
    Celu(f32),
    /// `x·Φ(x)`, where `Φ` is the cumulative normal distribution (Hendrycks and Gimpel 2016).
    Gelu,
    /// [`Gelu`](Activation::Gelu), approximated by a hyperbolic tangent.
    GeluTanh,
    /// `x·sigmoid(x)`.
    Silu,
    /// `x·hard_sigmoid(x)`.
    HardSilu,
    /// `x·tanh(softplus(x))` (Misra 2019).
    Mish,
    /// `log(1 + exp(x))`.
    Softplus,
    /// `(x + √(x² + b)) / 2`.
    Squareplus(f32),
    /// `x` above 1, `(x + 1)² / 4` from -1 to 1, 0 below.
    SparsePlus,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `min(max(x + 3, 0), 6) / 6`.
    HardSigmoid,
    /// `(x + 1) / 2`, from 0 to 1.
    SparseSigmoid,
    /// `log(sigmoid(x))`.
    LogSigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `min(max(x, -1), 1)`.
    HardTanh,
    /// `x - tanh(x)`.
    TanhShrink,
    /// `x` moved towards 0 by this much, and 0 where it is nearer.
    SoftShrink(f32),
    /// `x` where its magnitude is above this, 0 elsewhere.
    HardShrink(f32),
    /// `x` above the threshold, the value elsewhere.
    Threshold {
        /// The threshold.
        threshold: f32,
        /// The value up to it.
        value: f32,
    },
    /// `x / (1 + |x|)`.
    Softsign,
    /// `exp(x)`.
    Exponential,
    /// The first half of the last dimension, times `sigmoid` of the second (Dauphin et al. 2017).
    Glu,
    /// `exp(x)` over its sum along the last dimension.
    Softmax,
    /// The logarithm of [`Softmax`](Activation::Softmax).
    LogSoftmax,
    /// The nearest point of the probability simplex, along the last dimension (Martins and Astudillo
    /// 2016).
    Sparsemax,
}

impl Activation {
    /// The function of `x`.
    ///
    /// # Errors
    ///
    /// When `x` is not of floats; for [`Glu`](Activation::Glu) and
    /// [`Sparsemax`](Activation::Sparsemax) also when the last dimension is odd or not known.
    pub fn apply(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Activation::Linear => Ok(x.clone()),
            Activation::Relu => x.relu(),
            Activation::Relu6 => ops::relu6(x),
            Activation::LeakyRelu(alpha) => ops::leaky_relu_with(x, &ops::LeakyReluAttrs { alpha }),
            Activation::Elu => ops::elu(x),
            Activation::Selu => ops::selu(x),
            Activation::Celu(alpha) => {
                let below = ops::expm1(&(x.minimum(0.0)? / alpha)?)?;
                x.relu()? + (below * alpha)?
            }
            Activation::Gelu => {
                let below = (ops::erf(&(x * FRAC_1_SQRT_2)?)? + 1.0)?;
                (x * 0.5)? * below
            }
            Activation::GeluTanh => {
                let inner = (x + ((x.square()? * x)? * 0.044715)?)?;
                let below = ((inner * (FRAC_2_SQRT_PI * FRAC_1_SQRT_2))?.tanh()? + 1.0)?;
                (x * 0.5)? * below
            }
            Activation::Silu => x * x.sigmoid()?,
            Activation::HardSilu => x * Activation::HardSigmoid.apply(x)?,
            Activation::Mish => x * ops::softplus(x)?.tanh()?,
            Activation::Softplus => ops::softplus(x),
            Activation::Squareplus(b) => (x + (x.square()? + b)?.sqrt()?)? * 0.5,
            Activation::SparsePlus => {
                let middle = ((x + 1.0)?.square()? * 0.25)?;
                let upper = x.less(1.0)?.select(middle, x)?;
                x.less_equal(-1.0)?.select(x.zeros_like()?, upper)
            }
            Activation::Sigmoid => x.sigmoid(),
            Activation::HardSigmoid => ops::relu6(&(x + 3.0)?)? / 6.0,
            Activation::SparseSigmoid => {
                let upper = x.greater_equal(1.0)?.select(x.ones_like()?, ((x + 1.0)? * 0.5)?)?;
                x.less_equal(-1.0)?.select(x.zeros_like()?, upper)
            }
            Activation::LogSigmoid => ops::softplus(&x.neg()?)?.neg(),
            Activation::Tanh => x.tanh(),
            Activation::HardTanh => x.maximum(-1.0)?.minimum(1.0),
            Activation::TanhShrink => x - x.tanh()?,
            Activation::SoftShrink(by) => {
                let below = x.less(-by)?.select((x + by)?, x.zeros_like()?)?;
                x.greater(by)?.select((x - by)?, below)
            }
            Activation::HardShrink(by) => x.abs()?.greater(by)?.select(x, x.zeros_like()?),
            Activation::Threshold { threshold, value } => x.greater(threshold)?.select(x, value),
            Activation::Softsign => ops::softsign(x),
            Activation::Exponential => x.exp(),
            Activation::Glu => {
                let halves = ops::split(&Tensor::from(-1), x, 2)?;
                &halves[0] * halves[1].sigmoid()?
            }
            Activation::Softmax => x.softmax(),
            Activation::LogSoftmax => ops::log_softmax(x),
            Activation::Sparsemax => sparsemax(x),
        }
    }
}

/// `max(x - tau, 0)`, where `tau` is such that the sum is 1: it follows from the largest elements,
/// those above `(sum of the larger ones - 1) / their number`.
fn sparsemax(x: &Tensor) -> Result<Tensor> {
    let size = rows::size(x, -1)? as i32;
    let [sorted, _] = ops::top_k_v2(x, &Tensor::from(size))?;
    let sums = ops::cumsum(&sorted, &Tensor::from(-1))?;
    let counts = ops::range(&Tensor::from(1), &Tensor::from(size + 1), &Tensor::from(1))?;
    let thresholds = ((&sums - 1.0)? / counts.cast(x.dtype())?)?;
    let is_in = sorted.greater(&thresholds)?;
    let count = sum(&is_in.cast(x.dtype())?, &[-1])?;
    let total = sum(&is_in.select(&sorted, 0.0)?, &[-1])?;
    (x - ((total - 1.0)? / count)?)?.relu()
}

impl Trackable for Activation {
    fn describe(&self, _: &mut Description<'_>) {}
}

impl Layer for Activation {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.apply(&input(x)?)
    }
}
