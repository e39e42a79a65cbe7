//! Mutated files of the target `graphs`.

#![no_main]

ferroflow_fuzz::target!("graphs");
