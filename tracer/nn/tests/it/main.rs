//! The layers, losses and optimizers as networks use them.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod activations;
mod attention;
mod augmentation;
mod augmented;
mod cells;
mod convolution;
mod distribute;
mod figures;
mod gradients;
mod integers;
mod keras;
mod losses;
mod masks;
mod merging;
mod mesh;
mod metrics;
mod mixed;
mod modules;
mod noise;
mod normalization;
mod policies;
mod precision;
mod preprocessing;
mod recorded;
mod recurrence;
mod shaping;
mod sound;
