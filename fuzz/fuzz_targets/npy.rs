//! Mutated files of the target `npy`.

#![no_main]

ferroflow_fuzz::target!("npy");
