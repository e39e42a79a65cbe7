//! Mutated files of the target `forests`.

#![no_main]

ferroflow_fuzz::target!("forests");
