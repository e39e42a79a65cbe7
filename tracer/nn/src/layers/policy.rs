//! Dtypes of networks: that of weights, and that of what is computed.

use super::shapes::wrong;
use crate::optimizers::{LossScale, LossScaleOptions};
use ferroflow_ir::DType;
use ferroflow_tracer::error::{Error, Result};
use std::{fmt, str::FromStr};

/// The dtype that weights are kept in, and the one that layers compute in: a `DTypePolicy` of Keras, by
/// its names.
///
/// ```
/// use ferroflow_nn::{DTypePolicy, Weights};
/// use ferroflow_tracer::DType;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let policy: DTypePolicy = "mixed_bfloat16".parse()?;
/// assert_eq!(policy, DTypePolicy::MIXED_BFLOAT16);
/// assert_eq!((policy.compute_dtype(), policy.variable_dtype()), (DType::BF16, DType::F32));
/// assert!(policy.loss_scale()?.is_none());
/// let weights = Weights::seeded(1).with_policy(policy);
/// # Ok(())
/// # }
/// ```
///
/// [`Trainer::with_policy`](crate::train::Trainer::with_policy) trains by one. Losses, metrics and
/// statistics are `float32` in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DTypePolicy {
    compute: DType,
    variable: DType,
}

impl DTypePolicy {
    /// Everything in `float32`.
    pub const FLOAT32: DTypePolicy = DTypePolicy { compute: DType::F32, variable: DType::F32 };
    /// Weights of `float32`, computed with in `float16`. The optimizer needs a loss scale.
    pub const MIXED_FLOAT16: DTypePolicy =
        DTypePolicy { compute: DType::F16, variable: DType::F32 };
    /// Weights of `float32`, computed with in `bfloat16`.
    pub const MIXED_BFLOAT16: DTypePolicy =
        DTypePolicy { compute: DType::BF16, variable: DType::F32 };

    /// Everything in one dtype of floats.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] for a dtype that is none of floats.
    pub fn of(dtype: DType) -> Result<DTypePolicy> {
        if !dtype.is_float() {
            return Err(wrong("a dtype of floats", dtype.to_string()));
        }
        Ok(DTypePolicy { compute: dtype, variable: dtype })
    }

    /// The dtype that layers compute in.
    pub const fn compute_dtype(&self) -> DType {
        self.compute
    }

    /// The dtype of weights.
    pub const fn variable_dtype(&self) -> DType {
        self.variable
    }

    /// The loss scale that training needs so that small gradients do not vanish: one for `float16`.
    ///
    /// # Errors
    ///
    /// As [`LossScale::new`].
    pub fn loss_scale(&self) -> Result<Option<LossScale>> {
        let scale = || LossScale::new(LossScaleOptions::default());
        (self.compute == DType::F16).then(scale).transpose()
    }
}

impl Default for DTypePolicy {
    fn default() -> DTypePolicy {
        DTypePolicy::FLOAT32
    }
}

impl fmt::Display for DTypePolicy {
    /// The name that Keras has for it: `mixed_float16`, `float32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.compute == self.variable { "" } else { "mixed_" };
        write!(f, "{prefix}{}", self.compute)
    }
}

impl FromStr for DTypePolicy {
    type Err = Error;

    fn from_str(name: &str) -> Result<DTypePolicy> {
        match name {
            "mixed_float16" => Ok(DTypePolicy::MIXED_FLOAT16),
            "mixed_bfloat16" => Ok(DTypePolicy::MIXED_BFLOAT16),
            name => match name.parse() {
                Ok(dtype) => DTypePolicy::of(dtype),
                Err(_) => Err(wrong("the name of a dtype policy", name)),
            },
        }
    }
}
