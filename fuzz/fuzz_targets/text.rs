//! Mutated files of the target `text`.

#![no_main]

ferroflow_fuzz::target!("text");
