//! Behaviour of the crates together, as users see it: a module for each part of the specification,
//! and for programs, examples and recorded answers.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod bad_output;
mod book;
mod checkpoints;
mod cli;
mod cli_files;
mod concrete;
mod control_flow;
mod control_flow_saved;
mod custom_gradients;
mod custom_ops;
#[cfg(feature = "conformance")]
mod damaged_models;
mod data_loops;
mod device_calls;
mod devices;
mod distributed;
mod documents;
mod eager;
mod examples;
mod frozen;
mod functions;
mod fused_ops;
mod gradients;
mod graphs;
mod initialization;
mod keras_checkpoints;
mod keras_files;
#[cfg(feature = "fuzz")]
mod killed_savers;
mod lines;
mod load_dependencies;
mod loaded_models;
mod loading;
mod monitored;
mod order;
mod precision;
mod random_programs;
#[cfg(feature = "conformance")]
mod recorded;
mod resources;
mod retracing;
mod run;
mod save_options;
mod saving;
mod session_objects;
mod sessions;
mod shared_objects;
mod signatures;
mod signatures_saved;
mod stablehlo_export;
mod state;
mod summaries;
mod support;
mod tiny_numbers;
mod training;
mod training_session;
mod types;
mod uncalled;
mod v1;
