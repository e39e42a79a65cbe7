//! Layers.

mod keras;
mod mixed;
mod modules;
