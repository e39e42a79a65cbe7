//! Layers.

mod keras;
mod modules;
