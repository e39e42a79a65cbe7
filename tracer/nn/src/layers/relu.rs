//! Activations with parameters, as layers.

use super::{
    Activation, Layer, LayerValue, Mode, Weights,
    compute::{input, input_for, max, sum},
};
use crate::initializers::Initializer;
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A ReLU: 0 up to a threshold or, with a slope, `slope·(x - threshold)`; `x` above it, up to a
/// largest value.
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Default)]
pub struct Relu {
    /// The largest value.
    #[trackable(skip)]
    pub max: Option<f64>,
    /// The slope up to the threshold.
    #[trackable(skip)]
    pub slope: f64,
    /// The threshold.
    #[trackable(skip)]
    pub threshold: f64,
}

impl Layer for Relu {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = &input(x)?;
        let above = match self.threshold {
            0.0 => x.relu()?,
            threshold => x.greater(threshold)?.select(x, 0.0)?,
        };
        let above = match self.max {
            Some(max) => above.maximum(0.0)?.minimum(max)?,
            None => above,
        };
        if self.slope == 0.0 {
            return Ok(above);
        }
        above - ((self.threshold - x)?.relu()? * self.slope)?
    }
}

/// `x` where it is positive, `alpha·(exp(x) - 1)` elsewhere (Clevert et al. 2015).
#[derive(Trackable, Debug, Clone, Copy, PartialEq)]
pub struct Elu {
    /// The factor of what is not positive.
    #[trackable(skip)]
    pub alpha: f64,
}

impl Default for Elu {
    fn default() -> Elu {
        Elu { alpha: 1.0 }
    }
}

impl Layer for Elu {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input(x)?;
        let y = Activation::Elu.apply(&x)?;
        x.greater(0.0)?.select(&y, (&y * self.alpha)?)
    }
}

/// A ReLU whose slopes below 0 are learned (He et al. 2015): `[batch, ..] → [batch, ..]`.
///
/// Weights: `alpha`, of the shape of an example, with sizes of 1 where slopes are shared.
#[derive(Trackable, Debug, Clone)]
pub struct PRelu {
    alpha: Variable,
}

impl PRelu {
    /// A layer with slopes of this shape, which begin with 0.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, shape: &[usize]) -> Result<PRelu> {
        PRelu::with_initializer(weights, shape, Initializer::Zeros)
    }

    /// A layer with slopes of this shape.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn with_initializer(
        weights: &mut Weights,
        shape: &[usize],
        initial: Initializer,
    ) -> Result<PRelu> {
        Ok(PRelu { alpha: weights.make("alpha", initial, shape)? })
    }

    /// The slopes.
    pub fn alpha(&self) -> &Variable {
        &self.alpha
    }
}

impl Layer for PRelu {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for(&self.alpha, x)?;
        let alpha = self.alpha.read()?.cast(x.dtype())?;
        x.relu()? - (alpha * x.neg()?.relu()?)?
    }
}

/// `exp(x)` over its sum along some axes.
#[derive(Trackable, Debug, Clone, PartialEq)]
pub struct Softmax {
    #[trackable(skip)]
    axes: Vec<i32>,
}

impl Softmax {
    /// A layer over these axes, of which negative ones count from the end.
    pub fn new(axes: impl Into<Vec<i32>>) -> Softmax {
        Softmax { axes: axes.into() }
    }

    /// The softmax of the elements where the mask, of a shape that broadcasts to that of `x`, is
    /// true; 0 elsewhere.
    ///
    /// # Errors
    ///
    /// When the shapes do not fit, or an axis is not there.
    pub fn masked(&self, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let x = input(x)?;
        let y = self.of(&mask.select(&x, lowest(x.dtype()))?)?;
        mask.select(y, 0.0)
    }

    fn of(&self, x: &Tensor) -> Result<Tensor> {
        if self.axes == [-1] {
            return x.softmax();
        }
        let y = (x - max(x, &self.axes)?.stop_gradient()?)?.exp()?;
        &y / sum(&y, &self.axes)?
    }
}

impl Default for Softmax {
    /// A layer over the last dimension.
    fn default() -> Softmax {
        Softmax::new([-1])
    }
}

impl Layer for Softmax {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.of(&input(x)?)
    }

    /// A mask of the rank of `x` is one of its elements.
    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let of_elements = |mask: &&Tensor| mask.shape().rank() == x.tensor.shape().rank();
        Ok(x.with_tensor(match x.mask.as_ref().filter(of_elements) {
            Some(mask) => self.masked(&x.tensor, mask)?,
            None => self.call(&x.tensor, mode)?,
        }))
    }
}

/// A score that is too low to matter, and leaves sums finite.
pub(super) fn lowest(dtype: DType) -> f64 {
    if dtype == DType::F16 { -3e4 } else { -1e9 }
}
