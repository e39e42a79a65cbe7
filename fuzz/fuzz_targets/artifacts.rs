//! Mutated files of the target `artifacts`.

#![no_main]

ferroflow_fuzz::target!("artifacts");
