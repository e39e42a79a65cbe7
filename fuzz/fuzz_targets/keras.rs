//! Mutated files of the target `keras`.

#![no_main]

ferroflow_fuzz::target!("keras");
