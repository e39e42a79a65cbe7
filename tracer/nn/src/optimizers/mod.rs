//! Optimizers: steps of variables along gradients.
//!
//! An [`Optimizer`] has an [`Algorithm`], a learning rate, and state: a count of the steps, and slot
//! variables beside each variable it has stepped. A step is a pure function of a variable, its slots
//! and its gradient, made of the ops that TensorFlow has for it; slots are looked up, and made when a
//! variable is first seen, outside the graph.
//!
//! Formulas are those of Keras 3 (`keras/src/optimizers`); where an op of TensorFlow differs, its
//! doc says so. Names of slots are those of Keras: `adam/dense_kernel_momentum`. The gradient of a
//! variable that was gathered has rows for some places only; as in Keras 3 the others have a gradient
//! of 0, which moves what has a momentum ([`OptimizerOptions::lazy_rows`] leaves them alone, as the
//! sparse ops of TensorFlow do).

mod adam;
mod adaptive;
mod algorithm;
mod clip;
#[cfg(test)]
mod keras;
mod lamb;
mod loss_scale;
mod optimizer;
mod schedule;
mod sgd;

pub use adam::{Adam, Adamax, Nadam};
pub use adaptive::{Adadelta, Adagrad, Ftrl, RmsProp};
pub use algorithm::{Algorithm, Slot, Step};
pub use clip::{Clip, clip_by_global_norm, clip_by_norm, clip_by_value, global_norm};
pub use lamb::Lamb;
pub use loss_scale::{LossScale, LossScaleOptions};
pub use optimizer::{Optimizer, OptimizerOptions};
pub use schedule::{LearningRate, LearningRateSchedule, RateFunction};
pub use sgd::Sgd;
