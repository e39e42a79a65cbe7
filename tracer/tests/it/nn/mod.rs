//! Layers.

mod integers;
mod keras;
mod mixed;
mod modules;
