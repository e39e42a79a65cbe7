//! Mutated files of the target `index`.

#![no_main]

ferroflow_fuzz::target!("index");
