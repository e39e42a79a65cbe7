//! Mutated files of the target `npz`.

#![no_main]

ferroflow_fuzz::target!("npz");
