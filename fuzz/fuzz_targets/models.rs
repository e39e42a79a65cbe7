//! Mutated files of the target `models`.

#![no_main]

ferroflow_fuzz::target!("models");
