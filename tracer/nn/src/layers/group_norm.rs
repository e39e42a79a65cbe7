//! Normalization of each example by groups of its channels.

use super::{
    Layer, Mode, Weights,
    compute::{input_for_some, moments, wide},
    rows,
    shapes::{rank, wrong},
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// Group normalization (Wu and He 2018): the channels of each example are split into groups, each of
/// which is brought to mean 0 and variance 1 together with all positions, then scaled and shifted by
/// channel: `[batch, .., channels] → [batch, .., channels]`. With as many groups as channels it is
/// instance normalization.
///
/// Weights: `gamma` and `beta`, both `[channels]`, where the options ask for them.
#[doc(alias("GroupNormalization"))]
#[derive(Trackable, Debug, Clone)]
pub struct GroupNorm {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    #[trackable(skip)]
    channels: usize,
    #[trackable(skip)]
    options: GroupNormOptions,
}

/// The options of a [`GroupNorm`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupNormOptions {
    /// The number of groups.
    pub groups: usize,
    /// The term added to the variance.
    pub epsilon: f64,
    /// Whether channels are shifted.
    pub center: bool,
    /// Whether channels are scaled.
    pub scale: bool,
}

impl Default for GroupNormOptions {
    fn default() -> GroupNormOptions {
        GroupNormOptions { groups: 32, epsilon: 1e-3, center: true, scale: true }
    }
}

impl GroupNorm {
    /// A layer over so many channels, in 32 groups.
    ///
    /// # Errors
    ///
    /// As [`with_options`](GroupNorm::with_options).
    pub fn new(weights: &mut Weights, channels: usize) -> Result<GroupNorm> {
        GroupNorm::with_options(weights, channels, &GroupNormOptions::default())
    }

    /// A layer over so many channels.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the channels do not make so
    /// many groups; as [`Weights::make`].
    pub fn with_options(
        weights: &mut Weights,
        channels: usize,
        options: &GroupNormOptions,
    ) -> Result<GroupNorm> {
        let (groups, options) = (options.groups, *options);
        if groups == 0 || channels == 0 || !channels.is_multiple_of(groups) {
            let found = format!("{channels} channels in {groups} groups");
            return Err(wrong("channels that can be divided into groups", found));
        }
        let mut make = |name: &str, first: Initializer, is_there: bool| {
            is_there.then(|| weights.make(name, first, &[channels])).transpose()
        };
        Ok(GroupNorm {
            gamma: make("gamma", Initializer::Ones, options.scale)?,
            beta: make("beta", Initializer::Zeros, options.center)?,
            channels,
            options,
        })
    }
}

impl Layer for GroupNorm {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for_some(self.gamma.as_ref().or(self.beta.as_ref()), x)?;
        let (groups, channels) = (self.options.groups as i64, self.channels as i64);
        let grouped = [groups, channels / groups];
        let y = rows::with_last(&x.cast(wide(x.dtype()))?, &x, &grouped)?;
        // All axes but those of the batch and the groups.
        let last = rank(&x)? as i32;
        let axes: Vec<i32> = (1..last - 1).chain([last]).collect();
        let (mean, variance) = moments(&y, &axes)?;
        let by_group = |weight: &Variable| weight.read()?.cast(y.dtype())?.reshape(&grouped);
        let mut scale = ops::rsqrt(&(variance + self.options.epsilon)?)?;
        if let Some(gamma) = &self.gamma {
            scale = (scale * by_group(gamma)?)?;
        }
        let mut shift = (-(mean * &scale)?)?;
        if let Some(beta) = &self.beta {
            shift = (shift + by_group(beta)?)?;
        }
        let y = ((y * scale)? + shift)?;
        rows::with_last(&y, &x, &[channels])?.cast(x.dtype())
    }
}
