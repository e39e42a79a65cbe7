//! Mutated files of the target `tokenizers`.

#![no_main]

ferroflow_fuzz::target!("tokenizers");
