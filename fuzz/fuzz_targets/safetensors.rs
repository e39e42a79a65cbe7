//! Mutated files of the target `safetensors`.

#![no_main]

ferroflow_fuzz::target!("safetensors");
