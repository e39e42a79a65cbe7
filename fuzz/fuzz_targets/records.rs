//! Mutated files of the target `records`.

#![no_main]

ferroflow_fuzz::target!("records");
