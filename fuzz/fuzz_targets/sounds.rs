//! Mutated files of the target `sounds`.

#![no_main]

ferroflow_fuzz::target!("sounds");
