//! The layers, losses and optimizers as networks use them.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod convolution;
mod distribute;
mod integers;
mod keras;
mod mixed;
mod modules;
mod normalization;
mod recorded;
mod recurrence;
mod shaping;
