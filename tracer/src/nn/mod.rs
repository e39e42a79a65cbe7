//! Layers: the modules that networks are made of.
//!
//! A layer has weights and says what it makes of a tensor ([`Layer`]). It is made with the sizes it
//! works on; [`Weights`] makes its first values, by a seed or at random. A [`Sequential`] runs layers
//! one after the other; any other network is a structure with layers as fields:
//!
//! ```
//! use ferroflow_tracer::{Module, Result, Tensor, Trackable};
//! use ferroflow_tracer::nn::{Activation, Dense, DenseOptions, Layer, LayerNorm, Mode, Weights};
//!
//! #[derive(Trackable, Clone)]
//! struct Block {
//!     norm: LayerNorm,
//!     wide: Dense,
//!     narrow: Dense,
//! }
//!
//! impl Block {
//!     fn new(weights: &mut Weights, size: usize) -> Result<Block> {
//!         let gelu = DenseOptions { activation: Activation::Gelu, ..DenseOptions::default() };
//!         Ok(Block {
//!             norm: LayerNorm::new(weights, size)?,
//!             wide: Dense::with_options(weights, size, 4 * size, &gelu)?,
//!             narrow: Dense::new(weights, 4 * size, size)?,
//!         })
//!     }
//! }
//!
//! impl Layer for Block {
//!     fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
//!         let y = self.norm.call(x, mode)?;
//!         x + self.narrow.call(&self.wide.call(&y, mode)?, mode)?
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let block = Block::new(&mut Weights::seeded(1), 8)?;
//! let y = block.call(&Tensor::from([[1.0f32; 8]; 2]), Mode::Inference)?;
//! assert_eq!(y.shape().to_string(), "[2,8]");
//! assert_eq!(block.trainable_variables()?.len(), 6);
//! # Ok(())
//! # }
//! ```
//!
//! # Training
//!
//! What a layer does in training only is told by [`Mode`]: [`Dropout`] drops, [`BatchNorm`] takes the
//! statistics of the batch and moves its averages, in the order of the program also within a function.
//! Which variables are trained is the caller's choice: a part is frozen by leaving its variables out
//! and calling it with [`Mode::Inference`]. [`Module`] collects the variables of any object, loaded
//! ones too, and the regularization losses of the layers in it.
//!
//! # Precision
//!
//! Layers compute in the dtype of the floats they are given: weights of `float32` are cast to that
//! of `bfloat16` inputs, and their gradients are `float32` again. Inputs that are no floats, such as
//! the bytes of images, are cast to the dtype of the weights, `float32` where there are none, as the
//! layers of Keras do. [`BatchNorm`] and [`LayerNorm`] take means and variances in `float32` at
//! least. The indices of an [`Embedding`] stay integers.
//!
//! # Names and numbers
//!
//! Formulas, defaults, orders of gates and shapes of weights are those of Keras 3
//! (`keras/src/layers`). In object graphs weights have the names that Keras 2 gives them (`kernel`,
//! `layer_with_weights-0`) and those of Keras 3 as well where they differ (`_kernel`,
//! `_functional/_operations/1`), so that `tf.train.Checkpoint` of an equal model of either, or of a
//! `tf.Module` with such attributes, restores what is saved here, and the other way round.

mod activation;
mod attention;
mod batch_norm;
mod compute;
mod conv;
mod dense;
mod depthwise;
mod dropout;
mod embedding;
mod gru;
mod layer_norm;
mod lstm;
mod module;
mod pool;
mod recurrent;
mod regularizer;
mod rows;
mod sequential;
mod weights;

pub use activation::Activation;
pub use attention::MultiHeadAttention;
pub use batch_norm::{BatchNorm, BatchNormOptions};
pub use conv::{Conv, Conv1D, Conv2D, Conv3D, ConvOptions, Padding};
pub use dense::{Dense, DenseOptions};
pub use depthwise::DepthwiseConv2D;
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use gru::{Gru, GruCell};
pub use layer_norm::LayerNorm;
pub use lstm::{Lstm, LstmCell, LstmState};
pub use module::Module;
pub use pool::{avg_pool, flatten, global_avg_pool, max_pool};
pub use regularizer::{Penalty, Regularizer};
pub use sequential::Sequential;
pub use weights::Weights;

use crate::{Nest, error::Result, tensor::Tensor};
use ferroflow_runtime::trackable::Trackable;

/// What a network is called for.
#[derive(Nest, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// To learn from what it gives.
    Training,
    /// For its answer.
    Inference,
}

/// Something with weights that makes one tensor of another.
pub trait Layer: Trackable + Send + Sync {
    /// What it makes of `x`.
    ///
    /// # Errors
    ///
    /// When `x` does not fit the layer.
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor>;
}
