//! Mutated files of the target `data`.

#![no_main]

ferroflow_fuzz::target!("data");
