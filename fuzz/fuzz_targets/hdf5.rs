//! Mutated files of the target `hdf5`.

#![no_main]

ferroflow_fuzz::target!("hdf5");
