//! Mutated files of the target `events`.

#![no_main]

ferroflow_fuzz::target!("events");
