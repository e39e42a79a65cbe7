//! Networks that are trained in Rust: layers, losses, optimizers.
//!
//! A layer has weights and says what it makes of a tensor ([`Layer`]). It is made with the sizes it
//! works on; [`Weights`] makes its first values, by a seed or at random. A [`Sequential`] runs layers
//! one after the other; any other network is a structure with layers as fields:
//!
//! ```
//! use ferroflow_tracer::{Result, Tensor, Trackable};
//! use ferroflow_nn::{Activation, Dense, DenseOptions, Layer, LayerNorm, Mode, Module, Weights};
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
//! ones too, and the regularization losses of the layers in it. [`losses`] compare predictions with
//! targets, an [`Optimizer`](optimizers::Optimizer) steps the variables, [`metrics`] sum up how well
//! predictions do.
//!
//! # Kinds of layers
//!
//! Sequences, images and volumes have their channels last; a layer over `N` dimensions, such as
//! [`Conv`] or [`MaxPooling`], has a name for each number of them ([`Conv2D`], [`MaxPooling2D`]).
//! Recurrent layers ([`Lstm`], [`Gru`], [`SimpleRnn`], [`ConvLstm`]) are [`RecurrentLayer`]s, which
//! [`Bidirectional`] takes in pairs. An [`Activation`] is a layer too. Layers of several inputs are
//! functions ([`merge`], and [`Merge`] with masks) or have a method beside [`Layer::call`] (attention).
//! Preprocessing is layers as well: [`StringLookup`], [`Discretization`], [`Normalization`],
//! [`Resizing`], [`RandomFlip`], [`MixUp`], [`MelSpectrogram`];
//! those that learn from data are made by it (`adapted`) or have a method `adapt`.
//!
//! # Precision
//!
//! Layers compute in the dtype of the floats they are given: weights of `float32` are cast to that
//! of `bfloat16` inputs, and their gradients are `float32` again. Inputs that are no floats, such as
//! the bytes of images, are cast to the dtype of the weights, `float32` where there are none, as the
//! layers of Keras do. Normalizations take means and variances in `float32` at least. The indices of
//! an [`Embedding`] stay integers, and so does what only picks elements or passes them on.
//!
//! # Names and numbers
//!
//! Formulas, defaults, orders of gates and shapes of weights are those of Keras 3
//! (`keras/src/layers`). In object graphs weights have the names that Keras 2 gives them (`kernel`,
//! `layer_with_weights-0`) and those of Keras 3 as well where they differ (`_kernel`,
//! `_functional/_operations/1`), so that `tf.train.Checkpoint` of an equal model of either, or of a
//! `tf.Module` with such attributes, restores what is saved here, and the other way round.

#![forbid(unsafe_code)]

pub mod initializers;
pub mod layers;
pub mod losses;
pub mod metrics;
mod module;
pub mod optimizers;
mod ranks;
mod state;
mod summary;
#[cfg(test)]
mod test_support;
pub mod train;

pub use ferroflow_tracer as tracer;
pub use layers::*;
pub use module::Module;
pub use summary::{ModuleSummary, WeightSummary};

/// Begins a call of a layer: errors and nodes name the line that calls the layer.
#[track_caller]
pub(crate) fn called() -> tracer::LibraryCallGuard {
    tracer::library_call(file!().trim_end_matches("lib.rs"))
}
