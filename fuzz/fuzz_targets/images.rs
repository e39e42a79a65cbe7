//! Mutated files of the target `images`.

#![no_main]

ferroflow_fuzz::target!("images");
