//! NVIDIA's driver, compiler and matmuls, simulated on the host: a library that takes the
//! place of `libcuda`, `libnvrtc` and `libcublasLt` in tests, where there is no device of NVIDIA's.
//!
//! `cargo xtask simulated COMMAND…` builds it, lays it where the loader looks first, and runs a
//! command. What calls the driver then runs whole: programs are compiled by the host's C++ compiler
//! and run on its processor (`compiler.rs`, `device.hpp`), everything else is bookkeeping that is
//! stricter than a device would be:
//!
//! - Nothing is done when it is asked for. A stream's work waits until somebody waits for it, and
//!   then only what must be done is, so that work which nothing orders is done in an order nobody
//!   expects (`world.rs`). Jobs of a graph run in any of the orders that it allows, each time in another.
//! - Memory begins with rubbish, is freed in the order of its stream, and is given out again at once
//!   on the same one. Programs may only be given memory that is alive when they run, and what they
//!   write beside it is noticed (`memory.rs`).
//! - A context must be current, handles must be alive, and what must not be done while a stream is
//!   captured fails.
//! - Products are computed as their descriptions say, which must fit together; TensorFloat-32 is
//!   rounded to. Algorithms differ in their rounding, and some do not work after all (`product.rs`).
//!
//! It says nothing about speed, nor about what the real compiler and driver accept beyond this.
//! `FERROFLOW_SIMULATED_DEVICES` is the number of devices (1), `FERROFLOW_SIMULATED_MEMORY` their
//! bytes each (4 GiB), `FERROFLOW_SIMULATOR_DIR` the folder of compiled programs.

mod calls;
mod capture;
mod compiler;
mod descriptions;
mod device_calls;
mod graph_calls;
mod launch;
mod matmul;
mod matmul_calls;
mod memory;
mod memory_calls;
mod world;
